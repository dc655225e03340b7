//! The search of one position: gather a few leaves, evaluate them, apply, until the search is over.

use super::tree::{Gathered, Ticket, Tree};
use crate::eval::{EvalError, Evaluations, Evaluator, Leaves};
use crate::game::Game;

/// Buffers of [`Solo::search`], kept from search to search.
#[derive(Debug)]
pub struct Solo<G: Game> {
    leaves: Leaves<G>,
    answers: Evaluations,
    tickets: Vec<Ticket>,
}

impl<G: Game> Default for Solo<G> {
    fn default() -> Self {
        Self { leaves: Leaves::default(), answers: Evaluations::default(), tickets: Vec::new() }
    }
}

/// The most leaves in flight in [`width_of`]: enough for full batches on a few threads, and a round is over soon.
const MOST_IN_FLIGHT: usize = 64;

/// How many leaves of `tree` a network should judge at once: an eighth of its nodes, from 1 to 64, as a power of two, because
/// engines prepare themselves for each size of batch. Each of a few leaves should know what the others found; among
/// many it matters little. It does not depend on the threads, so these change nothing but the time.
pub fn width_of<G: Game>(tree: &Tree<G>) -> usize {
    let width = (tree.node_count() / 8).clamp(1, MOST_IN_FLIGHT);
    1 << width.ilog2()
}

impl<G: Game> Solo<G> {
    /// Searches until `tree` is finished or `go_on`, asked after each round, says no. A round has up to `width` leaves in
    /// flight: more make larger batches and a slightly worse choice of leaves (virtual loss).
    ///
    /// # Errors
    /// When the evaluator fails. The tree has forgotten what it knew then; a later call begins anew.
    pub fn search(
        &mut self,
        tree: &mut Tree<G>,
        game: &G,
        evaluator: &mut dyn Evaluator<G>,
        width: impl Fn(&Tree<G>) -> usize,
        mut go_on: impl FnMut(&Tree<G>) -> bool,
    ) -> Result<(), EvalError> {
        while !tree.finished() {
            self.leaves.clear();
            let width = width(tree);
            // Ends of games and proven positions need no evaluation, but a round of them alone must end too.
            for _ in 0..2 * width.max(1) {
                match tree.gather(game, &mut self.leaves) {
                    Gathered::Leaf(ticket) => self.tickets.push(ticket),
                    Gathered::Known => {}
                    Gathered::Collision | Gathered::Full => break,
                }
                if tree.finished() || self.tickets.len() >= width {
                    break;
                }
            }
            if !self.tickets.is_empty() {
                if let Err(error) = evaluator.evaluate(game, &self.leaves, &mut self.answers) {
                    self.tickets.drain(..).for_each(|ticket| tree.abandon(ticket));
                    return Err(error);
                }
                for (row, ticket) in self.tickets.drain(..).enumerate() {
                    tree.apply(ticket, self.answers.values[row], &self.answers.priors[self.leaves.span(row)]);
                }
            }
            if !go_on(tree) {
                break;
            }
        }
        Ok(())
    }
}
