//! Searches of one position at a time: plain MCTS, and networks whose moves take a fixed time.

use std::time::{Duration, Instant};

use super::seat::{Choice, Mover, SearchSeat, Turn};
use crate::eval::{Evaluator, Rollout};
use crate::game::{Action, Game, legal_list};
use crate::search::{Algorithm, Budget, SearchParams, Solo, Tree, width_of};
use crate::util::rng::{Purpose, Stream};

/// Plain MCTS with random rollouts. Nothing but memory is kept between moves: with an older tree it would be another player than
/// the one that runs are measured by.
pub(super) struct MctsMover<G: Game> {
    simulations: u32,
    time: Option<Duration>,
    c: f32,
    solo: Solo<G>,
    tree: Option<Tree<G>>,
}

impl<G: Game> MctsMover<G> {
    pub(super) fn new(simulations: u32, time: Option<Duration>, c: f32) -> Self {
        Self { simulations, time, c, solo: Solo::default(), tree: None }
    }
}

impl<G: Game> Mover<G> for MctsMover<G> {
    fn choose(&mut self, game: &G, turn: &Turn<'_, G>, mut random: Stream) -> Result<Choice, String> {
        if let [only] = legal_list(game, turn.state)[..] {
            return Ok(only.into());
        }
        let mut rollout = Rollout::new(Stream::keyed(random.bits(), Purpose::Match, &[]), 1);
        let nodes = self.simulations.saturating_add(2);
        let tree = self.tree.get_or_insert_with(|| Tree::ucb1(self.c, nodes, turn.state.clone()));
        tree.reset(turn.state);
        tree.begin(Budget::plain(self.simulations), random);
        let mut go_on = until(self.time, turn.stop);
        self.solo.search(tree, game, &mut rollout, |_| 1, |_| go_on()).map_err(|error| error.to_string())?;
        let summary = tree.summary().ok_or("the game is over")?;
        Ok(Choice { action: summary.moves[summary.best].action, value: Some(summary.value) })
    }
}

/// A network that searches for a fixed time.
pub(super) struct TimedMover<G: Game> {
    seat: SearchSeat<G>,
    solo: Solo<G>,
    evaluator: Option<Box<dyn Evaluator<G>>>,
    /// The tree of the last search, with the start and the moves that led to its root.
    kept: Option<(Tree<G>, String, Vec<Action>)>,
}

impl<G: Game> TimedMover<G> {
    pub(super) fn new(mut seat: SearchSeat<G>) -> Self {
        seat.search = SearchParams { algorithm: Algorithm::Puct, ..seat.search };
        Self { seat, solo: Solo::default(), evaluator: None, kept: None }
    }
}

impl<G: Game> Mover<G> for TimedMover<G> {
    fn choose(&mut self, game: &G, turn: &Turn<'_, G>, mut random: Stream) -> Result<Choice, String> {
        if let [only] = legal_list(game, turn.state)[..] {
            return Ok(only.into());
        }
        let mut go_on = until(self.seat.time, turn.stop);
        let mut evaluator = match self.evaluator.take() {
            Some(evaluator) => evaluator,
            None => self.seat.evaluators.worker().map_err(|error| error.to_string())?,
        };
        let mut tree = match self.kept.take() {
            Some((mut tree, start, moves)) if start == turn.start && turn.moves.starts_with(&moves) => {
                turn.moves[moves.len()..].iter().for_each(|&action| tree.advance(game, action));
                tree
            }
            _ => Tree::new(self.seat.search.clone(), turn.state.clone()),
        };
        tree.begin(Budget::plain(self.seat.simulations), Stream::keyed(random.bits(), Purpose::Match, &[]));
        let searched = self.solo.search(&mut tree, game, evaluator.as_mut(), width_of, |_| go_on());
        self.evaluator = Some(evaluator);
        searched.map_err(|error| error.to_string())?;
        let summary = tree.summary().ok_or("the game is over")?;
        let chosen = summary.choose(self.seat.temperature.at(game.ply(turn.state)), &mut random);
        self.kept = Some((tree, turn.start.to_owned(), turn.moves.to_vec()));
        Ok(Choice { action: summary.moves[chosen].action, value: Some(summary.value) })
    }
}

/// Simulations between two looks at whether to stop: looking takes as long as some of them.
const LOOK_EVERY: u32 = 64;

/// Whether there is time left, from now on, and nobody says to stop.
fn until(time: Option<Duration>, stop: &dyn Fn() -> bool) -> impl FnMut() -> bool {
    let until = time.map(|time| Instant::now() + time);
    let mut rounds = 0u32;
    move || {
        rounds = rounds.wrapping_add(1);
        until.is_none_or(|until| Instant::now() < until) && !(rounds.is_multiple_of(LOOK_EVERY) && stop())
    }
}
