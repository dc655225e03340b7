//! The search of one position, or of several that share batches: gather a few leaves of each tree, evaluate them all,
//! apply, until the searches are over.

use super::tree::{Gathered, Ticket, Tree};
use crate::eval::{EvalError, Evaluations, Evaluator, Leaves};
use crate::game::Game;

/// Buffers of [`Solo::search`], kept from search to search.
#[derive(Debug)]
pub struct Solo<G: Game> {
    leaves: Leaves<G>,
    answers: Evaluations,
    /// The tree of each leaf, by its place, in the order of the leaves.
    tickets: Vec<(usize, Ticket)>,
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
        self.search_all(std::slice::from_mut(tree), game, evaluator, width, |trees| go_on(&trees[0]))
    }

    /// Searches until all `trees` are finished or `go_on` says no; the leaves of a round, of each tree as many as it
    /// would have alone, are evaluated in one batch. A tree finds what it would find alone, where an evaluation depends
    /// on its position only.
    ///
    /// # Errors
    /// When the evaluator fails. The trees that had leaves in flight have forgotten what they knew then.
    pub fn search_all(
        &mut self,
        trees: &mut [Tree<G>],
        game: &G,
        evaluator: &mut dyn Evaluator<G>,
        width: impl Fn(&Tree<G>) -> usize,
        mut go_on: impl FnMut(&[Tree<G>]) -> bool,
    ) -> Result<(), EvalError> {
        while trees.iter().any(|tree| !tree.finished()) {
            self.leaves.clear();
            for (place, tree) in trees.iter_mut().enumerate().filter(|(_, tree)| !tree.finished()) {
                self.gather(place, tree, game, &width);
            }
            if !self.tickets.is_empty() {
                if let Err(error) = evaluator.evaluate(game, &self.leaves, &mut self.answers) {
                    self.tickets.drain(..).for_each(|(place, ticket)| trees[place].abandon(ticket));
                    return Err(error);
                }
                for (row, (place, ticket)) in self.tickets.drain(..).enumerate() {
                    let priors = &self.answers.priors[self.leaves.span(row)];
                    trees[place].apply(ticket, self.answers.values[row], priors);
                }
            }
            if !go_on(trees) {
                break;
            }
        }
        Ok(())
    }

    /// A round's leaves of the tree at `place`.
    fn gather(&mut self, place: usize, tree: &mut Tree<G>, game: &G, width: impl Fn(&Tree<G>) -> usize) {
        let width = width(tree);
        let mut found = 0;
        // Ends of games and proven positions need no evaluation, but a round of them alone must end too.
        for _ in 0..2 * width.max(1) {
            match tree.gather(game, &mut self.leaves) {
                Gathered::Leaf(ticket) => {
                    self.tickets.push((place, ticket));
                    found += 1;
                }
                Gathered::Known => {}
                Gathered::Collision | Gathered::Full => break,
            }
            if tree.finished() || found >= width {
                break;
            }
        }
    }
}
