//! The learner: takes batches, changes weights, and can be put away and taken up again without a trace.

use std::path::Path;

use tch::{Device, Kind, TchError, Tensor};

use crate::net::{NetSpec, TorchError, TorchNet, Weights};
use crate::train::batch::{BatchError, BatchView, Totals};
use crate::train::crew::Crew;
use crate::train::ema::Ema;
use crate::train::layout::{Layout, to_vec};
use crate::train::loss::{Logits, LossReport, LossWeights, Sums, loss};
use crate::train::optim::{Optimizer, pieces};
use crate::train::params::{OptimizerParams, ParamProblem, TrainParams, TrainPrecision};
use crate::train::replica::{Replica, automatic_precision, bind};
use crate::train::schedule::learning_rate;
use crate::train::state::{State, StateError};

/// Training cannot begin or go on. A failed step changes nothing.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// The parameters are out of range.
    #[error("the section `training` of the config: {}", list(.0))]
    Params(Vec<ParamProblem>),
    /// The threads could not be started.
    #[error("the threads that train could not be started: {0}")]
    Spawn(#[from] rayon::ThreadPoolBuildError),
    /// No threads to train on.
    #[error("training needs at least one thread")]
    Threads,
    /// The batch does not fit the network.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// A loss or gradient is infinite or not a number.
    #[error("training step {step}: the {term} is not finite; the step was not applied. Lower `training.learning_rate`")]
    NotFinite {
        /// Number of the step that was tried, the first being 0.
        step: u64,
        /// `policy loss`, `value loss`, `loss of the auxiliary heads`, `gradient of TENSOR`, or the part of the batch at fault.
        term: String,
    },
    /// The network could not be built or run.
    #[error(transparent)]
    Network(#[from] TorchError),
    /// The training state could not be saved or taken up.
    #[error(transparent)]
    State(#[from] StateError),
}

impl From<TchError> for TrainError {
    fn from(error: TchError) -> Self {
        Self::Network(error.into())
    }
}

fn list(problems: &[ParamProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// What one step did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepStats {
    /// Number of the step, the first being 0.
    pub step: u64,
    /// Positions in the batch.
    pub samples: usize,
    /// Learning rate of the step.
    pub learning_rate: f64,
    /// Length of the whole gradient before clipping.
    pub gradient_norm: f64,
    /// Whether the gradient was shortened.
    pub clipped: bool,
    /// Losses and figures of the batch under the weights before the step, in training mode.
    pub report: LossReport,
}

/// Fits one network to batches of positions.
///
/// On a CPU the batch is dealt to `threads` threads, each with a replica of the network that shares the weights;
/// gradients are added in the order of the replicas, and each replica normalises by the statistics of its own
/// rows ("ghost" batches, Hoffer et al. 2017, section 4). That scales where libtorch's own threads stall as soon as
/// anything else runs, and the result depends on the number of threads only, never on timing: the same
/// batches give the same weights, bit for bit.
#[derive(Debug)]
pub struct Trainer {
    spec: NetSpec,
    params: TrainParams,
    layout: Layout,
    precision: Kind,
    /// All weights, flat; the replicas' parameters are views of it.
    values: Tensor,
    replicas: Vec<Replica>,
    /// A thread for each replica.
    crew: Crew,
    optimizer: Optimizer,
    ema: Ema,
    /// The network with averaged weights, which are views of those of `ema`.
    player: TorchNet,
    step: u64,
    /// Factor of the learning rate besides the schedule.
    rate_factor: f64,
    /// Whether the first replica holds the gradient of a step.
    has_gradient: bool,
}

impl Trainer {
    /// A trainer at the start of a run with these weights. `threads` is the number of CPU threads to train on (a
    /// GPU is fed by one whatever it is). libtorch's own threads are set to one for the whole process.
    ///
    /// # Errors
    /// When parameters are out of range, weights are not those of `spec`, or the device fails.
    pub fn new(
        spec: &NetSpec,
        weights: &Weights,
        params: TrainParams,
        device: Device,
        threads: usize,
    ) -> Result<Self, TrainError> {
        let problems = params.problems();
        if !problems.is_empty() {
            return Err(TrainError::Params(problems));
        }
        if threads == 0 {
            return Err(TrainError::Threads);
        }
        weights.check(spec).map_err(TorchError::from)?;
        let layout = Layout::new(spec);
        let values = layout.flatten(weights, device)?;
        let precision = match params.precision {
            TrainPrecision::Auto => automatic_precision(device),
            TrainPrecision::F32 => Kind::Float,
            TrainPrecision::Bf16 => Kind::BFloat16,
        };
        // A batch cannot be dealt to more than it has positions.
        let count = if device == Device::Cpu { threads.min(params.batch_size) } else { 1 };
        let replicas = (0..count)
            .map(|_| Replica::new(spec, weights, &layout, &values, precision))
            .collect::<Result<Vec<_>, _>>()?;
        let crew = Crew::new(count)?;
        let optimizer = Optimizer::new(params.optimizer.clone(), params.weight_decay, &layout, device)?;
        let ema = Ema::new(params.ema_decay, &values)?;
        let player = TorchNet::new(spec, weights, device)?;
        let buffers = ema.average().f_narrow(0, layout.trainable(), layout.total() - layout.trainable())?;
        bind(&player, &layout, ema.average(), &buffers)?;
        Ok(Self {
            spec: spec.clone(),
            params,
            layout,
            precision,
            values,
            replicas,
            crew,
            optimizer,
            ema,
            player,
            step: 0,
            rate_factor: 1.0,
            has_gradient: false,
        })
    }

    /// The network's description.
    pub fn spec(&self) -> &NetSpec {
        &self.spec
    }

    /// Training steps made so far.
    pub fn step_count(&self) -> u64 {
        self.step
    }

    /// Learning rate of the next step.
    pub fn learning_rate(&self) -> f64 {
        let TrainParams { learning_rate: highest, warmup_steps, schedule, .. } = &self.params;
        self.rate_factor * learning_rate(*highest, *warmup_steps, self.optimizer.steps(), schedule, self.step)
    }

    /// Numbers the next step `step`, as if others had gone before: those of a network that this one takes over from. Its warm-up it
    /// has nonetheless.
    pub fn begin_at(&mut self, step: u64) {
        self.step = step;
    }

    /// Multiplies the learning rate of all further steps by `factor`, instead of by what was given before.
    pub fn set_rate_factor(&mut self, factor: f64) {
        self.rate_factor = factor;
    }

    /// What of the network is infinite or not a number: a weight, trained or averaged, or what the averaged ones say of
    /// `batch`.
    ///
    /// # Errors
    /// When the batch does not fit or the device fails.
    pub fn not_finite<'a>(&self, batch: impl Into<BatchView<'a>>) -> Result<Option<String>, TrainError> {
        for (kind, weights) in [("trained", self.raw_weights()?), ("averaged", self.averaged_weights()?)] {
            if let Err(error) = weights.check(&self.spec) {
                return Ok(Some(format!("{kind} weights: {error}")));
            }
        }
        let report = self.evaluate(batch)?;
        let finite = report.total.is_finite();
        Ok((!finite).then(|| "answers of the averaged network".to_owned()))
    }

    /// The number format in which convolutions compute: what `precision: auto` came to.
    pub fn precision(&self) -> TrainPrecision {
        if self.precision == Kind::BFloat16 { TrainPrecision::Bf16 } else { TrainPrecision::F32 }
    }

    /// One training step on a batch.
    ///
    /// # Errors
    /// When the batch does not fit, a loss or gradient is not finite, or the device fails; then nothing has changed.
    pub fn step<'a>(&mut self, batch: impl Into<BatchView<'a>>) -> Result<StepStats, TrainError> {
        let batch = batch.into();
        batch.check(&self.spec)?;
        self.crew.clone().lead(|| self.checked_step(batch))
    }

    fn checked_step(&mut self, batch: BatchView<'_>) -> Result<StepStats, TrainError> {
        let totals = Totals::of(&batch);
        let sums = self.run_shards(&batch, totals)?;
        let report = sums.report(totals, LossWeights::from(&self.params));
        let step = self.step;
        let failed = |term: String| {
            let part = batch.not_finite().map(|part| format!("batch's `{part}`"));
            Err(TrainError::NotFinite { step, term: part.unwrap_or(term) })
        };
        if !report.policy.is_finite() {
            return failed("policy loss".into());
        }
        if !report.value.is_finite() {
            return failed("value loss".into());
        }
        if !report.total.is_finite() {
            return failed("loss of the auxiliary heads".into());
        }
        let _guard = tch::no_grad_guard();
        let gradient_norm = self.gather_gradient(shards(self.replicas.len(), batch.size))?;
        if !gradient_norm.is_finite() {
            return failed(self.guilty_gradient()?);
        }
        let limit = self.params.gradient_clip;
        let clipped = limit > 0.0 && gradient_norm > limit;
        if clipped {
            let _ = self.replicas[0].gradient.f_mul_scalar_(limit / gradient_norm)?;
        }

        let rate = self.learning_rate();
        let trainable = self.layout.trainable();
        self.mean_of_buffers(batch.size)?;
        let parameters = self.values.f_narrow(0, 0, trainable)?;
        self.optimizer.step(&parameters, &self.replicas[0].gradient, rate, &self.crew)?;
        self.ema.update(&self.values, &self.crew)?;
        self.has_gradient = true;
        let step = self.step;
        self.step += 1;
        Ok(StepStats { step, samples: batch.size, learning_rate: rate, gradient_norm, clipped, report })
    }

    /// Losses and figures of the averaged weights on a batch, as they play: running statistics, float32. Changes
    /// nothing.
    ///
    /// # Errors
    /// When the batch does not fit or the device fails.
    pub fn evaluate<'a>(&self, batch: impl Into<BatchView<'a>>) -> Result<LossReport, TrainError> {
        let batch = batch.into();
        batch.check(&self.spec)?;
        let _guard = tch::no_grad_guard();
        let totals = Totals::of(&batch);
        let planes = batch.planes_on(&self.spec, self.values.device())?;
        tch::set_num_threads(1);
        let logits = Logits::of(&self.player.forward(&planes, false)?)?;
        let weights = LossWeights::from(&self.params);
        Ok(loss(&logits, batch, totals, weights).sums.report(totals, weights))
    }

    /// The averaged weights, which should play: those of the network without its auxiliary heads.
    ///
    /// # Errors
    /// When reading from the device fails.
    pub fn play_weights(&self) -> Result<Weights, TrainError> {
        Ok(self.averaged_weights()?.part(&self.spec.played()))
    }

    /// The averages of all weights.
    fn averaged_weights(&self) -> Result<Weights, TrainError> {
        Ok(self.layout.unflatten(self.ema.average())?)
    }

    /// The weights that are trained.
    ///
    /// # Errors
    /// When reading from the device fails.
    pub fn raw_weights(&self) -> Result<Weights, TrainError> {
        Ok(self.layout.unflatten(&self.values)?)
    }

    /// Numbers for histograms: `weights/NAME` for each trainable tensor, and `gradients/NAME` (after clipping) once
    /// a step has been made.
    ///
    /// # Errors
    /// When reading from the device fails.
    pub fn histograms(&self) -> Result<Vec<(String, Vec<f32>)>, TrainError> {
        let mut found = Vec::new();
        let mut add = |group: &str, flat: &Tensor| {
            let numbers = to_vec(flat)?;
            for entry in self.layout.parameters() {
                let slice = &numbers[entry.offset as usize..(entry.offset + entry.len) as usize];
                found.push((format!("{group}/{}", entry.name), slice.to_vec()));
            }
            Ok::<(), TchError>(())
        };
        add("weights", &self.values)?;
        if self.has_gradient {
            add("gradients", &self.replicas[0].gradient)?;
        }
        Ok(found)
    }

    /// Saves everything that training goes on from as one file; an older one is replaced when the new one is whole.
    ///
    /// # Errors
    /// When the file cannot be written or the device read.
    pub fn save_state(&self, path: &Path) -> Result<(), TrainError> {
        let moments = self.optimizer.moments().iter();
        let moments = moments.map(|(name, moment)| Ok(((*name).to_owned(), self.layout.unflatten(moment)?)));
        let state = State {
            step: self.step,
            optimizer_steps: self.optimizer.steps(),
            average_steps: self.ema.steps(),
            optimizer: self.optimizer_name().to_owned(),
            weights: self.raw_weights()?,
            average: self.averaged_weights()?,
            moments: moments.collect::<Result<_, TchError>>()?,
        };
        Ok(state.save(path)?)
    }

    /// Goes on from a saved state: the same batches then give the same weights as without the interruption. Auxiliary heads that
    /// the state has not begin with the weights that the trainer was made with, and those that the network has not are left.
    ///
    /// # Errors
    /// When the file is not there, damaged, of another format, network or optimizer, or holds a number that is not
    /// finite. Then nothing has changed.
    pub fn load_state(&mut self, path: &Path) -> Result<(), TrainError> {
        let names: Vec<&str> = self.optimizer.moments().iter().map(|(name, _)| *name).collect();
        let fresh = self.raw_weights()?;
        let state = State::load(path, &self.spec, &fresh, self.optimizer_name(), &names)?;
        let _guard = tch::no_grad_guard();
        let device = self.values.device();
        let values = self.layout.flatten(&state.weights, device)?;
        let average = self.layout.flatten(&state.average, device)?;
        let moments = state.moments.iter().map(|(_, moment)| self.layout.flatten_trainable(moment, device));
        let moments = moments.collect::<Result<Vec<_>, _>>()?;
        self.values.f_copy_(&values)?;
        self.ema.restore(state.average_steps, &average)?;
        self.optimizer.restore(state.optimizer_steps, &moments)?;
        self.step = state.step;
        self.has_gradient = false;
        Ok(())
    }

    fn optimizer_name(&self) -> &'static str {
        match self.params.optimizer {
            OptimizerParams::Adamw(_) => "adamw",
            OptimizerParams::Sgd(_) => "sgd",
        }
    }

    /// Runs each replica on its rows; afterwards each holds the gradient of its shard.
    fn run_shards(&mut self, batch: &BatchView<'_>, totals: Totals) -> Result<Sums, TrainError> {
        let (trainable, weights) = (self.layout.trainable(), LossWeights::from(&self.params));
        let buffers = self.values.f_narrow(0, trainable, self.layout.total() - trainable)?;
        let count = shards(self.replicas.len(), batch.size);
        let rows = |shard: usize| batch.rows(shard_rows(shard, count, batch.size));
        let shards = self.replicas.iter_mut().take(count).enumerate();
        let shards = shards.map(|(shard, replica)| (replica, rows(shard), buffers.shallow_clone())).collect();
        let parts = self.crew.map(shards, |(replica, rows, buffers)| replica.run(rows, totals, weights, &buffers));
        let mut sums = Sums::default();
        for part in parts {
            sums.add(&part?);
        }
        Ok(sums)
    }

    /// Adds the gradients of the first `count` replicas up in the first one, and returns the length of the sum.
    ///
    /// Piece by piece on all threads; the order of every sum is fixed.
    fn gather_gradient(&self, count: usize) -> Result<f64, TchError> {
        let gradients = self.replicas[..count].iter().map(|replica| &replica.gradient);
        let work = pieces(0..self.layout.trainable(), gradients)?;
        let squares = self.crew.map(work, |mut parts| {
            let _guard = tch::no_grad_guard();
            let (first, others) = parts.split_at_mut(1);
            for other in others.iter() {
                let _ = first[0].f_add_(other)?;
            }
            first[0].f_dot(&first[0])?.f_double_value(&[])
        });
        let squares = squares.into_iter().collect::<Result<Vec<f64>, TchError>>()?;
        Ok(squares.iter().sum::<f64>().sqrt())
    }

    /// Replaces the running statistics by the mean of the replicas', each counting by its rows.
    fn mean_of_buffers(&mut self, size: usize) -> Result<(), TchError> {
        let trainable = self.layout.trainable();
        let mut own = self.values.f_narrow(0, trainable, self.layout.total() - trainable)?;
        let count = shards(self.replicas.len(), size);
        if count == 1 {
            return own.f_copy_(&self.replicas[0].buffers);
        }
        let _ = own.f_zero_()?;
        for (shard, replica) in self.replicas[..count].iter().enumerate() {
            let share = shard_rows(shard, count, size).len() as f64 / size as f64;
            let _ = own.f_add_(&replica.buffers.f_mul_scalar(share)?)?;
        }
        Ok(())
    }

    /// Names the first tensor whose gradient is not finite.
    fn guilty_gradient(&self) -> Result<String, TchError> {
        let numbers = to_vec(&self.replicas[0].gradient)?;
        let bad =
            |offset: i64, len: i64| numbers[offset as usize..(offset + len) as usize].iter().any(|x| !x.is_finite());
        let guilty = self.layout.parameters().find(|entry| bad(entry.offset, entry.len));
        Ok(guilty.map_or_else(|| "length of the gradient".to_owned(), |entry| format!("gradient of {}", entry.name)))
    }
}

/// Shards that a batch is dealt into: one for each replica, none of them empty.
fn shards(replicas: usize, size: usize) -> usize {
    replicas.min(size)
}

/// Rows of one shard; sizes differ by at most one.
fn shard_rows(shard: usize, count: usize, size: usize) -> std::ops::Range<usize> {
    shard * size / count..(shard + 1) * size / count
}

#[cfg(test)]
#[path = "trainer_tests.rs"]
mod tests;
