//! Openings: random moves from a start position, so that games of deterministic players differ.

use std::collections::HashSet;

use crate::game::{Action, Game};
use crate::util::rng::Stream;

/// Moves that lead from a start position into a game.
#[derive(Clone, Debug)]
pub struct Opening<G: Game> {
    /// The start position.
    pub start: G::State,
    /// The moves made from it.
    pub moves: Vec<Action>,
}

impl<G: Game> Opening<G> {
    /// The position after the moves.
    pub fn position(&self, game: &G) -> G::State {
        let mut state = self.start.clone();
        for &action in &self.moves {
            game.play(&mut state, action);
        }
        state
    }
}

/// `plies` uniformly random moves from a start position. A game that ends on the way is drawn anew; where `plies` is
/// more than the game has, fewer moves are made.
pub fn random_opening<G: Game>(game: &G, plies: usize, random: &mut Stream) -> Opening<G> {
    let mut scratch = Vec::new();
    let mut wanted = plies.min(game.max_plies());
    loop {
        for _ in 0..16 {
            let start = game.start(random);
            let mut state = start.clone();
            let mut moves = Vec::with_capacity(wanted);
            while moves.len() < wanted && game.end(&state).is_none() {
                let action = game.random_action(&state, random, &mut scratch);
                game.play(&mut state, action);
                moves.push(action);
            }
            if game.end(&state).is_none() {
                return Opening { start, moves };
            }
        }
        wanted -= 1;
    }
}

/// Openings one after the other: drawn at random, or from a list.
#[derive(Clone, Debug)]
pub struct Openings<G: Game> {
    drawn: Vec<Opening<G>>,
    source: Source<G>,
}

#[derive(Clone, Debug)]
enum Source<G: Game> {
    Random { plies: usize, random: Stream, seen: HashSet<G::Key>, exhausted: bool },
    List,
}

impl<G: Game> Openings<G> {
    /// Openings of so many plies, drawn with `random`, that lead to different positions as far as there are such: when 200
    /// tries have found none, positions may repeat from there on.
    pub fn random(plies: usize, random: Stream) -> Self {
        let source = Source::Random { plies, random, seen: HashSet::new(), exhausted: false };
        Self { drawn: Vec::new(), source }
    }

    /// These openings in order, and from the beginning again when they are used up.
    ///
    /// # Panics
    /// When there are none.
    pub fn list(openings: Vec<Opening<G>>) -> Self {
        assert!(!openings.is_empty(), "a list of openings has at least one");
        Self { drawn: openings, source: Source::List }
    }

    /// Opening number `index`, from 0; the same one whenever and in whatever order it is asked for.
    pub fn get(&mut self, game: &G, index: usize) -> &Opening<G> {
        let Source::Random { plies, random, seen, exhausted } = &mut self.source else {
            return &self.drawn[index % self.drawn.len()];
        };
        while self.drawn.len() <= index {
            let mut opening = random_opening(game, *plies, random);
            let mut tries = if *exhausted { 0 } else { 200 };
            while tries > 0 && !seen.insert(game.key(&opening.position(game))) {
                opening = random_opening(game, *plies, random);
                tries -= 1;
            }
            *exhausted |= tries == 0;
            self.drawn.push(opening);
        }
        &self.drawn[index]
    }
}
