//! What a position is worth and which moves look promising: [`Evaluator`] and its batch types.
//!
//! A search gathers leaves into [`Leaves`], an evaluator answers them all at once in [`Evaluations`].

mod cache;
mod counting;
mod hash;
mod rollout;
mod symmetry;
#[cfg(test)]
pub(crate) mod testgame;
#[cfg(test)]
mod testleaves;
mod uniform;

pub use cache::{CacheStats, Cached, EvalCache};
pub use counting::{Counting, Counts};
pub use hash::{HashEval, KeyHasher, key_hash};
pub use rollout::Rollout;
pub use symmetry::{Symmetrized, SymmetryMode};
pub use uniform::Uniform;

use crate::game::{Action, Game, WdlPov};

/// Positions that wait for an evaluation, with their legal moves. Buffers are kept when cleared.
#[derive(Clone, Debug)]
pub struct Leaves<G: Game> {
    states: Vec<G::State>,
    count: usize,
    actions: Vec<Action>,
    /// `offsets[i]..offsets[i + 1]` are the moves of position `i`.
    offsets: Vec<usize>,
}

impl<G: Game> Default for Leaves<G> {
    fn default() -> Self {
        Self { states: Vec::new(), count: 0, actions: Vec::new(), offsets: vec![0] }
    }
}

impl<G: Game> Leaves<G> {
    /// Forgets all positions.
    pub fn clear(&mut self) {
        self.count = 0;
        self.actions.clear();
        self.offsets.truncate(1);
    }

    /// Adds a position that has not ended; `legal` are its legal moves in notation order.
    pub fn push(&mut self, state: &G::State, legal: &[Action]) {
        debug_assert!(!legal.is_empty(), "a finished game needs no evaluation");
        match self.states.get_mut(self.count) {
            Some(slot) => slot.clone_from(state),
            None => self.states.push(state.clone()),
        }
        self.count += 1;
        self.actions.extend_from_slice(legal);
        self.offsets.push(self.actions.len());
    }

    /// Number of positions.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is nothing to evaluate.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Position `index`.
    pub fn state(&self, index: usize) -> &G::State {
        &self.states[..self.count][index]
    }

    /// Legal moves of position `index`, in notation order.
    pub fn legal(&self, index: usize) -> &[Action] {
        &self.actions[self.span(index)]
    }

    /// Where the moves of position `index` lie in the priors of the answer.
    pub fn span(&self, index: usize) -> std::ops::Range<usize> {
        self.offsets[index]..self.offsets[index + 1]
    }

    /// Legal moves of all positions together.
    pub fn total_moves(&self) -> usize {
        self.actions.len()
    }
}

/// The answer to [`Leaves`].
#[derive(Clone, Debug, Default)]
pub struct Evaluations {
    /// One value for each position, from the view of the player to move; components sum to 1.
    pub values: Vec<WdlPov>,
    /// One prior probability for each legal move of each position, at [`Leaves::span`]; those of one
    /// position sum to 1.
    pub priors: Vec<f32>,
}

impl Evaluations {
    /// Makes room for the answer to `leaves`: zero values and priors.
    pub fn reset<G: Game>(&mut self, leaves: &Leaves<G>) {
        self.values.clear();
        self.values.resize(leaves.len(), WdlPov::default());
        self.priors.clear();
        self.priors.resize(leaves.total_moves(), 0.0);
    }
}

/// An evaluation failed: the engine is gone, the device is out of memory, a number is not finite.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct EvalError(pub String);

/// What an evaluator spent on the network behind it; the rest of its time went into everything around that (caches,
/// softmax, mapped positions).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvalWork {
    /// Nanoseconds of encoding positions.
    pub encode_ns: u64,
    /// Nanoseconds of running the network.
    pub inference_ns: u64,
    /// Positions that the network was run for.
    pub positions: u64,
}

impl std::ops::AddAssign for EvalWork {
    fn add_assign(&mut self, more: Self) {
        self.encode_ns += more.encode_ns;
        self.inference_ns += more.inference_ns;
        self.positions += more.positions;
    }
}

/// Judges positions. The answer for a position does not depend on what else is in the batch, nor on
/// the order, nor on earlier calls.
pub trait Evaluator<G: Game>: Send {
    /// Evaluates all `leaves` into `out` (which is reset by the callee).
    ///
    /// # Errors
    /// When the engine behind it fails or answers with numbers that are not finite.
    fn evaluate(&mut self, game: &G, leaves: &Leaves<G>, out: &mut Evaluations) -> Result<(), EvalError>;

    /// What was spent since the last call. Evaluators without a network have nothing to tell; those around another one
    /// pass on what that one says.
    fn take_work(&mut self) -> EvalWork {
        EvalWork::default()
    }
}

impl<G: Game, E: Evaluator<G> + ?Sized> Evaluator<G> for Box<E> {
    fn evaluate(&mut self, game: &G, leaves: &Leaves<G>, out: &mut Evaluations) -> Result<(), EvalError> {
        (**self).evaluate(game, leaves, out)
    }

    fn take_work(&mut self) -> EvalWork {
        (**self).take_work()
    }
}
