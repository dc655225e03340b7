//! The evaluator that asks a network: encode, run, softmax over the legal moves.

use std::marker::PhantomData;
use std::time::Instant;

use crate::eval::{EvalError, EvalWork, Evaluations, Evaluator, Leaves};
use crate::game::{Game, PlaneShape, PolicyShape, WdlPov, full_name};
use crate::net::infer::{Inference, InferenceFactory, OpenError};
use crate::net::spec::VALUE_OUTPUTS;

/// Judges positions of `G` with a network.
pub struct NetEvaluator<G> {
    inference: Box<dyn Inference>,
    /// The network's input and policy.
    shapes: (PlaneShape, PolicyShape),
    action_count: usize,
    work: EvalWork,
    game: PhantomData<fn(&G)>,
}

impl<G: Game> NetEvaluator<G> {
    /// An evaluator for one worker thread.
    ///
    /// # Errors
    /// When the engine fails.
    pub fn new(factory: &InferenceFactory) -> Result<Self, OpenError> {
        let spec = factory.spec();
        Ok(Self {
            inference: factory.worker()?,
            shapes: (spec.input, spec.policy),
            action_count: spec.action_count(),
            work: EvalWork::default(),
            game: PhantomData,
        })
    }
}

impl<G: Game> Evaluator<G> for NetEvaluator<G> {
    fn evaluate(&mut self, game: &G, leaves: &Leaves<G>, out: &mut Evaluations) -> Result<(), EvalError> {
        let expected = (game.plane_shape(), game.policy_shape());
        if self.shapes != expected {
            let (name, found) = (full_name(game), self.shapes);
            return Err(EvalError(format!(
                "the network is not one for {name}, which has {expected:?}: it has {found:?}; take a checkpoint of {name}"
            )));
        }
        out.reset(leaves);
        let most = self.inference.max_batch();
        for first in (0..leaves.len()).step_by(most) {
            let batch = most.min(leaves.len() - first);
            let began = Instant::now();
            let planes = self.inference.input(batch)?;
            for (index, position) in planes.chunks_exact_mut(self.shapes.0.len()).enumerate() {
                game.encode(leaves.state(first + index), position);
            }
            let encoded = Instant::now();
            let heads = self.inference.run(batch)?;
            self.work.encode_ns += (encoded - began).as_nanos() as u64;
            self.work.inference_ns += encoded.elapsed().as_nanos() as u64;
            self.work.positions += batch as u64;
            let policies = heads.policy.chunks_exact(self.action_count);
            for (index, (policy, value)) in policies.zip(heads.value.chunks_exact(VALUE_OUTPUTS)).enumerate() {
                let leaf = first + index;
                out.values[leaf] = wdl(value).ok_or_else(|| not_finite("value", value))?;
                let priors = &mut out.priors[leaves.span(leaf)];
                for (prior, action) in priors.iter_mut().zip(leaves.legal(leaf)) {
                    *prior = policy[action.index()];
                }
                if !softmax(priors) {
                    return Err(not_finite("policy", policy));
                }
            }
        }
        Ok(())
    }

    fn take_work(&mut self) -> EvalWork {
        std::mem::take(&mut self.work)
    }
}

fn not_finite(head: &str, logits: &[f32]) -> EvalError {
    let bad = logits.iter().position(|x| !x.is_finite()).unwrap_or(0);
    EvalError(format!(
        "the network's {head} output {bad} is {}: its weights are damaged or too large for this precision; \
         try `precision` f32 or an earlier checkpoint",
        logits[bad]
    ))
}

/// Win, draw and loss probabilities from three logits; `None` when they are not finite.
fn wdl(logits: &[f32]) -> Option<WdlPov> {
    let mut values = [logits[0], logits[1], logits[2]];
    softmax(&mut values).then_some(WdlPov { win: values[0], draw: values[1], loss: values[2] })
}

/// Turns logits into probabilities, in order and in float32, so that the result is the same everywhere. Returns
/// whether all were finite.
fn softmax(logits: &mut [f32]) -> bool {
    if logits.iter().any(|x| !x.is_finite()) {
        return false;
    }
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for x in logits.iter_mut() {
        *x = (*x - largest).exp();
        sum += *x;
    }
    // The largest term is 1, so the sum is not 0.
    logits.iter_mut().for_each(|x| *x /= sum);
    true
}

#[cfg(test)]
#[path = "evaluator_tests.rs"]
mod tests;
