//! Counts what an evaluator is asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{EvalError, EvalWork, Evaluations, Evaluator, Leaves};
use crate::game::Game;

/// Counters shared by any number of [`Counting`] evaluators and whoever watches them.
#[derive(Debug, Default)]
pub struct Counts {
    positions: AtomicU64,
    batches: AtomicU64,
}

impl Counts {
    /// Positions evaluated so far.
    pub fn positions(&self) -> u64 {
        self.positions.load(Ordering::Relaxed)
    }

    /// Batches evaluated so far; empty ones are not counted.
    pub fn batches(&self) -> u64 {
        self.batches.load(Ordering::Relaxed)
    }
}

/// Passes everything on and counts positions and batches that were answered without an error.
#[derive(Clone, Debug)]
pub struct Counting<E> {
    inner: E,
    counts: Arc<Counts>,
}

impl<E> Counting<E> {
    /// Counts what goes to `inner` in counters of its own, see [`counts`](Self::counts).
    pub fn new(inner: E) -> Self {
        Self::shared(inner, Arc::default())
    }

    /// Counts what goes to `inner` in `counts`, which several evaluators may share.
    pub fn shared(inner: E, counts: Arc<Counts>) -> Self {
        Self { inner, counts }
    }

    /// The counters.
    pub fn counts(&self) -> &Arc<Counts> {
        &self.counts
    }
}

impl<G: Game, E: Evaluator<G>> Evaluator<G> for Counting<E> {
    fn evaluate(&mut self, game: &G, leaves: &Leaves<G>, out: &mut Evaluations) -> Result<(), EvalError> {
        self.inner.evaluate(game, leaves, out)?;
        if !leaves.is_empty() {
            self.counts.positions.fetch_add(leaves.len() as u64, Ordering::Relaxed);
            self.counts.batches.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn take_work(&mut self) -> EvalWork {
        self.inner.take_work()
    }
}
