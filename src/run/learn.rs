//! The second phase of a generation: training steps on samples from the replay window.

use std::sync::mpsc::sync_channel;
use std::time::Instant;

use super::event::TrainStep;
use crate::data::{Batch, FurtherTargets, ReplayWindow, SampleError, SampleKey, Sampler};
use crate::game::Game;
use crate::net::NetSpec;
use crate::train::{CalibrationBin, StepStats, TrainError, Trainer};

/// Batches that wait for the trainer while it works.
const AHEAD: usize = 4;

/// Steps whose figures are averaged into one event.
const STEPS_PER_EVENT: u64 = 20;

/// Training failed.
#[derive(Debug, thiserror::Error)]
pub enum LearnError {
    /// There is nothing to learn from.
    #[error(transparent)]
    Sample(#[from] SampleError),
    /// A step failed.
    #[error(transparent)]
    Train(#[from] TrainError),
}

/// What a generation learns from.
pub struct Lesson<'a, G: Game> {
    /// The game.
    pub game: &'a G,
    /// Draws positions.
    pub sampler: &'a Sampler<G>,
    /// From here.
    pub window: &'a ReplayWindow,
    /// Seed of the run.
    pub seed: u64,
    /// The generation.
    pub generation: u32,
    /// Positions in a batch.
    pub batch_size: usize,
}

/// A batch that could not be learned from.
pub struct Rejected<'a> {
    /// Number of the step within the generation, from 0.
    pub step: u64,
    /// Training steps done before, in the whole run.
    pub steps_done: u64,
    /// What was not finite.
    pub term: String,
    /// The batch.
    pub batch: &'a Batch,
}

/// What came of a lesson.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taught {
    /// Steps of the generation that are behind, those with rejected batches included.
    pub done: u64,
    /// Whether a rejected batch was one too many.
    pub broken_off: bool,
}

impl<G: Game> Lesson<'_, G> {
    /// An empty batch with room for what the network is trained on.
    pub fn batch(&self, network: &NetSpec) -> Batch {
        let further = FurtherTargets { ending: network.ending_count() > 0, reply: network.auxiliary.reply };
        Batch::new(self.game, self.batch_size, further)
    }

    /// The batch of a step. It depends on seed, generation and number of the step alone.
    ///
    /// # Errors
    /// When the window is empty or of another game.
    pub fn fill(&self, step: u64, batch: &mut Batch) -> Result<(), SampleError> {
        let key = SampleKey { seed: self.seed, generation: u64::from(self.generation), step };
        self.sampler.fill(self.window, key, batch)
    }

    /// Makes the training steps of a generation with the numbers `steps`, batches being prepared on another thread
    /// meanwhile; fewer when `stop` says so. `report` is told how many are done. `reject` gets the batches whose loss or
    /// gradient is not finite, which change nothing, and says whether to go on.
    ///
    /// # Errors
    /// When the window is empty or a step fails otherwise; the steps before have been made.
    pub fn teach(
        &self,
        trainer: &mut Trainer,
        steps: std::ops::Range<u64>,
        stop: &dyn Fn() -> bool,
        report: &mut dyn FnMut(u64, Option<TrainStep>),
        reject: &mut dyn FnMut(Rejected<'_>) -> bool,
    ) -> Result<Taught, LearnError> {
        let mut figures = Figures::new(self.generation);
        let network = trainer.spec().clone();
        std::thread::scope(|scope| {
            let (filled, ready) = sync_channel::<Result<Batch, SampleError>>(AHEAD);
            let (used, spare) = sync_channel::<Batch>(AHEAD + 2);
            let range = steps.clone();
            scope.spawn(move || {
                for step in range {
                    let mut batch = spare.try_recv().unwrap_or_else(|_| self.batch(&network));
                    let result = self.fill(step, &mut batch).map(|()| batch);
                    let failed = result.is_err();
                    // The trainer stops listening when it is interrupted.
                    if filled.send(result).is_err() || failed {
                        return;
                    }
                }
            });
            for step in steps.clone() {
                if stop() {
                    return Ok(Taught { done: step, broken_off: false });
                }
                let Ok(batch) = ready.recv() else { break };
                let batch = batch?;
                match trainer.step(&batch) {
                    Ok(stats) => figures.add(&stats),
                    Err(TrainError::NotFinite { term, step: steps_done }) => {
                        if !reject(Rejected { step, steps_done, term, batch: &batch }) {
                            return Ok(Taught { done: step + 1, broken_off: true });
                        }
                    }
                    Err(error) => return Err(error.into()),
                }
                let _ = used.try_send(batch);
                let due = (step + 1) % STEPS_PER_EVENT == 0 || step + 1 == steps.end;
                report(step + 1, (due && figures.count > 0).then(|| figures.take()));
            }
            Ok(Taught { done: steps.end, broken_off: false })
        })
    }
}

/// Means over some steps.
struct Figures {
    generation: u32,
    count: u64,
    samples: usize,
    sums: TrainStep,
    bins: Vec<CalibrationBin>,
    since: Instant,
}

impl Figures {
    fn new(generation: u32) -> Self {
        let sums = TrainStep::default();
        Self { generation, count: 0, samples: 0, sums, bins: Vec::new(), since: Instant::now() }
    }

    fn add(&mut self, stats: &StepStats) {
        let report = &stats.report;
        self.count += 1;
        self.samples += stats.samples;
        self.sums.step = stats.step + 1;
        self.sums.learning_rate = stats.learning_rate;
        for (sum, value) in [
            (&mut self.sums.policy_loss, report.policy),
            (&mut self.sums.value_loss, report.value),
            (&mut self.sums.ending_loss, report.ending),
            (&mut self.sums.reply_loss, report.reply),
            (&mut self.sums.total_loss, report.total),
            (&mut self.sums.policy_accuracy, report.policy_accuracy),
            (&mut self.sums.policy_entropy, report.policy_entropy),
            (&mut self.sums.target_entropy, report.target_entropy),
            (&mut self.sums.grad_norm, stats.gradient_norm),
        ] {
            *sum += value;
        }
        self.bins.extend(report.calibration);
    }

    /// The event of the steps since the last one.
    fn take(&mut self) -> TrainStep {
        let count = self.count as f64;
        let s = self.sums;
        let weight: f64 = self.bins.iter().map(|bin| bin.weight).sum();
        let error: f64 = self.bins.iter().map(|bin| bin.weight * (bin.predicted - bin.observed).abs()).sum();
        let event = TrainStep {
            step: s.step,
            generation: self.generation,
            policy_loss: s.policy_loss / count,
            value_loss: s.value_loss / count,
            ending_loss: s.ending_loss / count,
            reply_loss: s.reply_loss / count,
            total_loss: s.total_loss / count,
            policy_accuracy: s.policy_accuracy / count,
            policy_entropy: s.policy_entropy / count,
            target_entropy: s.target_entropy / count,
            value_calibration: if weight > 0.0 { error / weight } else { 0.0 },
            grad_norm: s.grad_norm / count,
            learning_rate: s.learning_rate,
            samples_per_second: self.samples as f64 / self.since.elapsed().as_secs_f64().max(1e-9),
        };
        *self = Self::new(self.generation);
        event
    }
}
