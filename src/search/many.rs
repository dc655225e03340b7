//! The search of many positions at once: in each round every tree adds one leaf, and one batch evaluates them all.

use super::tree::{Gathered, Ticket, Tree};
use crate::eval::{EvalError, Evaluations, Evaluator, Leaves};
use crate::game::Game;

/// Buffers of [`Many::search`], kept from search to search.
#[derive(Debug)]
pub struct Many<G: Game> {
    leaves: Leaves<G>,
    answers: Evaluations,
    /// The tree and its ticket for each leaf of the batch.
    waiting: Vec<(usize, Ticket)>,
}

impl<G: Game> Default for Many<G> {
    fn default() -> Self {
        Self { leaves: Leaves::default(), answers: Evaluations::default(), waiting: Vec::new() }
    }
}

impl<G: Game> Many<G> {
    /// Searches until all `trees`, whose searches have begun, are finished or `go_on`, asked after each round, says no. With
    /// an evaluator that answers for a position alone, each tree comes to be what it would be if searched by itself, leaf
    /// for leaf.
    ///
    /// # Errors
    /// When the evaluator fails. The trees have forgotten what they knew then.
    pub fn search(
        &mut self,
        trees: &mut [Tree<G>],
        game: &G,
        evaluator: &mut dyn Evaluator<G>,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<(), EvalError> {
        loop {
            self.leaves.clear();
            for (index, tree) in trees.iter_mut().enumerate() {
                // Ends of games and proven positions need no evaluation.
                while !tree.finished() {
                    if let Gathered::Leaf(ticket) = tree.gather(game, &mut self.leaves) {
                        self.waiting.push((index, ticket));
                        break;
                    }
                }
            }
            if self.waiting.is_empty() {
                return Ok(());
            }
            if let Err(error) = evaluator.evaluate(game, &self.leaves, &mut self.answers) {
                self.waiting.drain(..).for_each(|(index, ticket)| trees[index].abandon(ticket));
                return Err(error);
            }
            for (row, (index, ticket)) in self.waiting.drain(..).enumerate() {
                trees[index].apply(ticket, self.answers.values[row], &self.answers.priors[self.leaves.span(row)]);
            }
            if !go_on() {
                return Ok(());
            }
        }
    }
}
