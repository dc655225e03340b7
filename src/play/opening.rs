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
    let mut wanted = plies;
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

/// `count` random openings that lead to different positions as far as there are that many: after 200 tries for one
/// opening a position may repeat.
pub fn distinct_openings<G: Game>(game: &G, plies: usize, count: usize, random: &mut Stream) -> Vec<Opening<G>> {
    let mut seen = HashSet::new();
    (0..count)
        .map(|_| {
            for _ in 0..200 {
                let opening = random_opening(game, plies, random);
                if seen.insert(game.key(&opening.position(game))) {
                    return opening;
                }
            }
            random_opening(game, plies, random)
        })
        .collect()
}
