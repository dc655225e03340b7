//! Experiments: variants of a config trained at the same price, and all their checkpoints rated together.

mod plan;
mod report;
mod work;

pub use plan::{Budget, Plan, PlanError, Rating, Training, Variant};
pub use report::{Point, Report, Row, Run};
pub use work::{Experiment, ExperimentError, ExperimentFiles, Listener};
