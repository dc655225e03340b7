//! Evaluators of a network for the workers of a pool.

use std::sync::Arc;

use crate::eval::{Cached, EvalCache, EvalError, Evaluator, Symmetrized, SymmetryMode};
use crate::game::Game;
use crate::net::{InferenceFactory, NetEvaluator};
use crate::play::EvaluatorSource;

/// Makes evaluators of one network. All of them share one cache of evaluations; it belongs to this network alone, so a
/// new network starts with an empty one.
pub struct NetSource<G: Game> {
    factory: Arc<InferenceFactory>,
    cache: Option<Arc<EvalCache<G::Key>>>,
    symmetry: SymmetryMode,
}

impl<G: Game> NetSource<G> {
    /// Evaluators of `factory` with a cache of this many MiB, 0 for none.
    pub fn new(factory: Arc<InferenceFactory>, cache_megabytes: u32) -> Self {
        let cache = (cache_megabytes > 0).then(|| Arc::new(EvalCache::new((cache_megabytes as usize) << 20)));
        Self { factory, cache, symmetry: SymmetryMode::None }
    }

    /// Shows positions to the network through symmetries. The canonical form is made before the cache is asked, so
    /// that symmetric positions share an entry.
    pub fn seen_through(self, symmetry: SymmetryMode) -> Self {
        Self { symmetry, ..self }
    }

    fn cached(&self, evaluator: impl Evaluator<G> + 'static) -> Box<dyn Evaluator<G>> {
        match &self.cache {
            Some(cache) => Box::new(Cached::new(evaluator, cache.clone())),
            None => Box::new(evaluator),
        }
    }

    /// The network.
    pub fn factory(&self) -> &InferenceFactory {
        &self.factory
    }

    /// Share of evaluations that were answered from the cache; `None` without a cache.
    pub fn hit_share(&self) -> Option<f64> {
        self.cache.as_ref().map(|cache| cache.stats().hit_share())
    }
}

impl<G: Game> EvaluatorSource<G> for NetSource<G> {
    fn worker(&self) -> Result<Box<dyn Evaluator<G>>, EvalError> {
        let network = NetEvaluator::new(&self.factory).map_err(|error| EvalError(error.to_string()))?;
        Ok(match self.symmetry {
            SymmetryMode::None => self.cached(network),
            // The average is what is worth remembering, not its parts.
            mode @ SymmetryMode::Averaged => self.cached(Symmetrized::new(network, mode)),
            mode => Box::new(Symmetrized::new(self.cached(network), mode)),
        })
    }
}
