//! The player that is examined: what it plays in positions, and what it takes them to be worth.

use super::AccuracyError;
use crate::eval::Evaluator;
use crate::game::Game;
use crate::play::{Choice, Mover, Player, SearchSeat, Turn};
use crate::search::{Budget, Solo, Tree};
use crate::util::rng::{Purpose, Stream};

/// A player at work.
pub(super) enum Examinee<'a, G: Game> {
    /// Searches many positions together.
    Search { seat: &'a SearchSeat<G>, evaluator: Box<dyn Evaluator<G>>, solo: Solo<G> },
    /// Answers one position after the other.
    Mover(Box<dyn Mover<G>>),
}

impl<'a, G: Game> Examinee<'a, G> {
    /// `player`, ready to answer.
    pub fn new(player: &'a Player<G>) -> Result<Self, AccuracyError> {
        Ok(match (player.seat.batched(), player.seat.mover()) {
            (_, Some(mover)) => Self::Mover(mover),
            (Some(seat), None) => Self::Search { seat, evaluator: seat.evaluators.worker()?, solo: Solo::default() },
            (None, None) => unreachable!("a player either searches in batches or has a mover"),
        })
    }

    /// Answers to positions with their numbers, which random decisions are drawn by; `None` when stopped.
    pub fn answer(
        &mut self,
        game: &G,
        seed: u64,
        questions: &[(usize, &G::State)],
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<Choice>>, AccuracyError> {
        let stream = |index: usize| Stream::keyed(seed, Purpose::Match, &[index as u64]);
        if let Self::Search { seat, evaluator, solo } = self {
            let mut trees = Vec::with_capacity(questions.len());
            for &(index, state) in questions {
                let mut tree = Tree::new(seat.search.clone(), state.clone());
                tree.begin(Budget::plain(seat.simulations), stream(index));
                trees.push(tree);
            }
            // One leaf of each tree at a time: what a search finds is what it would find alone in a match.
            solo.search_all(&mut trees, game, evaluator.as_mut(), |_| 1, |_| !stop())?;
            if trees.iter().any(|tree| !tree.finished()) {
                return Ok(None);
            }
            let answers = trees.iter().zip(questions).map(|(tree, &(index, state))| {
                let summary = tree.summary().expect("the position is open and its search is finished");
                let temperature = seat.temperature.at(game.ply(state));
                // Not the stream that the search drew from.
                let mut random = Stream::keyed(seed, Purpose::Match, &[index as u64, 1]);
                let chosen = summary.choose(temperature, &mut random);
                Choice { action: summary.moves[chosen].action, value: Some(summary.value) }
            });
            return Ok(Some(answers.collect()));
        }
        let Self::Mover(mover) = self else { unreachable!("the other kind has answered") };
        let mut answers = Vec::with_capacity(questions.len());
        for &(index, state) in questions {
            if stop() {
                return Ok(None);
            }
            let position = game.state_text(state);
            let turn = Turn { start: &position, moves: &[], state, stop };
            let choice = mover.choose(game, &turn, stream(index));
            if stop() {
                return Ok(None);
            }
            answers.push(choice.map_err(|problem| AccuracyError::NoMove { position, problem })?);
        }
        Ok(Some(answers))
    }
}
