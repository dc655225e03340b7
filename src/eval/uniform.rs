//! An evaluator that knows nothing.

use super::{EvalError, Evaluations, Evaluator, Leaves};
use crate::game::{Game, WdlPov};

/// Knows nothing: equal priors, win and loss equally likely and no draw.
///
/// Win 1/2, draw 0, loss 1/2 has utility 0 and expected points 1/2 for every draw score, unlike a value
/// with a share of draws, so a search on it favours neither side whatever the draw score is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uniform;

impl Uniform {
    /// The value of every position, for whoever is to move.
    pub const VALUE: WdlPov = WdlPov { win: 0.5, draw: 0.0, loss: 0.5 };
}

/// Equal priors for every position of `leaves`.
pub(super) fn uniform_priors<G: Game>(leaves: &Leaves<G>, out: &mut Evaluations) {
    for index in 0..leaves.len() {
        let span = leaves.span(index);
        let share = 1.0 / span.len() as f32;
        out.priors[span].fill(share);
    }
}

impl<G: Game> Evaluator<G> for Uniform {
    fn evaluate(&mut self, _: &G, leaves: &Leaves<G>, out: &mut Evaluations) -> Result<(), EvalError> {
        out.reset(leaves);
        out.values.fill(Self::VALUE);
        uniform_priors(leaves, out);
        Ok(())
    }
}
