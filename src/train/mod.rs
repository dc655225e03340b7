//! Fitting a network to played games: batches, losses, optimizers with a state that can be saved, schedules,
//! averaged weights, and the [`Trainer`] that puts them together.

mod batch;
mod crew;
mod eager;
mod ema;
mod layout;
mod loss;
mod optim;
mod params;
mod replica;
mod schedule;
mod state;
#[cfg(test)]
mod testing;
mod trainer;

pub use batch::{AuxiliaryView, BatchError, BatchView, Totals};
pub use crew::Crew;
pub use eager::EagerTrainer;
pub use ema::Ema;
pub use layout::{Entry, Layout};
pub use loss::{CALIBRATION_BINS, CalibrationBin, Loss, LossReport, LossWeights, Sums, loss};
pub use optim::Optimizer;
pub use params::{
    AdamwParams, AuxiliaryParams, NonFiniteAction, NonFiniteParams, OptimizerParams, ParamProblem, SgdParams,
    TrainParams, TrainPrecision,
};
pub use schedule::{Constant, Cosine, Schedule, Steps, learning_rate};
pub use state::{STATE_FORMAT, StateError};
pub use trainer::{StepStats, TrainError, Trainer};
