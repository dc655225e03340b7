//! The player that is examined: what it plays in positions, and what it takes them to be worth.

use super::AccuracyError;
use crate::eval::{Evaluator, Rollout};
use crate::game::{Action, Game, WdlAbs};
use crate::play::{Mover, Player, SearchSeat, Seat, Turn};
use crate::search::{Budget, Many, SearchSummary, Solo, Tree};
use crate::util::rng::{Purpose, Stream};

/// What the player makes of a position.
pub(super) struct Answer {
    /// Its move.
    pub action: Action,
    /// Its opinion of the position, of a player that has one.
    pub value: Option<WdlAbs>,
}

/// A player at work.
pub(super) enum Examinee<'a, G: Game> {
    /// Searches many positions together.
    Search { seat: &'a SearchSeat<G>, evaluator: Box<dyn Evaluator<G>>, many: Many<G> },
    /// Plain Monte Carlo tree search, one position after the other: its rollouts follow each other in one stream.
    Mcts { simulations: u32, c: f32, solo: Solo<G> },
    /// Only names moves.
    Mover(Box<dyn Mover<G>>),
}

impl<'a, G: Game> Examinee<'a, G> {
    /// `player`, ready to answer.
    pub fn new(player: &'a Player<G>) -> Result<Self, AccuracyError> {
        Ok(match &player.seat {
            Seat::Search(seat) => Self::Search { seat, evaluator: seat.evaluators.worker()?, many: Many::default() },
            Seat::Mcts { simulations, c } => Self::Mcts { simulations: *simulations, c: *c, solo: Solo::default() },
            Seat::Mover(new) => Self::Mover(new()),
        })
    }

    /// Answers to positions with their numbers, which random decisions are drawn by; `None` when stopped.
    pub fn answer(
        &mut self,
        game: &G,
        seed: u64,
        questions: &[(usize, &G::State)],
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<Answer>>, AccuracyError> {
        let stream = |index: usize| Stream::keyed(seed, Purpose::Match, &[index as u64]);
        if let Self::Search { seat, evaluator, many } = self {
            let mut trees = Vec::with_capacity(questions.len());
            for &(index, state) in questions {
                let mut tree = Tree::new(seat.search.clone(), state.clone());
                tree.begin(Budget::plain(seat.simulations), stream(index));
                trees.push(tree);
            }
            many.search(&mut trees, game, evaluator.as_mut(), || !stop())?;
            if trees.iter().any(|tree| !tree.finished()) {
                return Ok(None);
            }
            let answers = trees.iter().zip(questions).map(|(tree, &(index, state))| {
                let summary = summary(tree);
                let temperature = seat.temperature.at(game.ply(state));
                // Not the stream that the search drew from.
                let mut random = Stream::keyed(seed, Purpose::Match, &[index as u64, 1]);
                let chosen = summary.choose(temperature, &mut random);
                Answer { action: summary.moves[chosen].action, value: Some(summary.value) }
            });
            return Ok(Some(answers.collect()));
        }
        let mut answers = Vec::with_capacity(questions.len());
        for &(index, state) in questions {
            if stop() {
                return Ok(None);
            }
            answers.push(self.answer_one(game, state, stream(index))?);
        }
        Ok(Some(answers))
    }

    fn answer_one(&mut self, game: &G, state: &G::State, mut random: Stream) -> Result<Answer, AccuracyError> {
        match self {
            Self::Search { .. } => unreachable!("it answers many at once"),
            Self::Mcts { simulations, c, solo } => {
                let mut rollout = Rollout::new(Stream::keyed(random.bits(), Purpose::Match, &[]), 1);
                let mut tree = Tree::ucb1(*c, simulations.saturating_add(2), state.clone());
                tree.begin(Budget::plain(*simulations), random);
                solo.search(&mut tree, game, &mut rollout, |_| 1, |_| true)?;
                let summary = summary(&tree);
                Ok(Answer { action: summary.moves[summary.best].action, value: Some(summary.value) })
            }
            Self::Mover(mover) => {
                let position = game.state_text(state);
                let turn = Turn { start: &position, moves: &[], state };
                match mover.choose(game, &turn, random) {
                    Ok(action) => Ok(Answer { action, value: None }),
                    Err(problem) => Err(AccuracyError::NoMove { position, problem }),
                }
            }
        }
    }
}

fn summary<G: Game>(tree: &Tree<G>) -> SearchSummary {
    tree.summary().expect("the position is open and its search is finished")
}
