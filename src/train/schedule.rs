//! The learning rate over a run: a linear warm-up, then a schedule.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the learning rate falls over the run, as a factor on its full height.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Schedule {
    /// It does not fall.
    Constant(Constant),
    /// It falls along half a cosine (Loshchilov and Hutter 2017, equation 5, without restarts).
    Cosine(Cosine),
    /// It falls in steps.
    Steps(Steps),
}

impl Default for Schedule {
    fn default() -> Self {
        Self::Constant(Constant {})
    }
}

/// A constant learning rate; has no settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Constant {}

/// Half a cosine from 1 to `end`, then `end` for ever.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Cosine {
    /// Training steps until `end` is reached, counted from the start of the run.
    #[schemars(range(min = 1, max = 1_000_000_000), extend("x-unit" = "training steps"))]
    pub steps: u64,
    /// The last factor.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-unit" = "none"))]
    pub end: f64,
}

impl Default for Cosine {
    fn default() -> Self {
        Self { steps: 100_000, end: 0.01 }
    }
}

/// At each of some training steps the learning rate is multiplied by `factor`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Steps {
    /// Numbers of the training steps, rising.
    #[schemars(extend("x-unit" = "training steps", "x-paper" = "100000, 300000, 500000 (AlphaZero, chess)"))]
    pub at: Vec<u64>,
    /// What the learning rate is multiplied by at each.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-unit" = "none", "x-paper" = "0.1 (AlphaZero)"))]
    pub factor: f64,
}

impl Default for Steps {
    fn default() -> Self {
        Self { at: vec![100_000, 300_000, 500_000], factor: 0.1 }
    }
}

impl Schedule {
    /// The factor on the learning rate in training step `step`, where the first step is number 0.
    pub fn factor(&self, step: u64) -> f64 {
        match self {
            Self::Constant(_) => 1.0,
            Self::Cosine(cosine) => {
                let share = (step as f64 / cosine.steps.max(1) as f64).min(1.0);
                cosine.end + (1.0 - cosine.end) * 0.5 * (1.0 + (std::f64::consts::PI * share).cos())
            }
            Self::Steps(steps) => {
                let passed = steps.at.iter().filter(|&&at| at <= step).count();
                steps.factor.powi(passed.try_into().unwrap_or(i32::MAX))
            }
        }
    }
}

/// The learning rate in training step `step`, where the first step is number 0, of a network that has had `behind` steps: `peak`,
/// times the share of the warm-up that is done once this step is (1 when `warmup` is 0), times the schedule's factor.
pub fn learning_rate(peak: f64, warmup: u64, behind: u64, schedule: &Schedule, step: u64) -> f64 {
    let warm = if behind < warmup { (behind + 1) as f64 / warmup as f64 } else { 1.0 };
    peak * warm * schedule.factor(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warm_up_rises_linearly_to_the_peak() {
        let rate = |step| learning_rate(0.5, 4, step, &Schedule::default(), step);
        assert_eq!([0, 1, 2, 3, 4, 1000].map(rate), [0.125, 0.25, 0.375, 0.5, 0.5, 0.5]);
        assert_eq!(learning_rate(0.5, 0, 0, &Schedule::default(), 0), 0.5);
        // A network that takes over late warms up all the same.
        assert_eq!(learning_rate(0.5, 4, 1, &Schedule::default(), 1000), 0.25);
    }

    #[test]
    fn cosine_passes_its_known_points() {
        let schedule = Schedule::Cosine(Cosine { steps: 300, end: 0.2 });
        let near = |step, value: f64| assert!((schedule.factor(step) - value).abs() < 1e-12, "{step}");
        near(0, 1.0);
        near(100, 0.2 + 0.8 * 0.75);
        near(150, 0.6);
        near(200, 0.2 + 0.8 * 0.25);
        near(300, 0.2);
        near(u64::MAX, 0.2);
    }

    #[test]
    fn steps_multiply_from_their_step_on() {
        let schedule = Schedule::Steps(Steps { at: vec![10, 20], factor: 0.5 });
        assert_eq!([0, 9, 10, 19, 20, 1_000_000].map(|s| schedule.factor(s)), [1.0, 1.0, 0.5, 0.5, 0.25, 0.25]);
        assert_eq!(Schedule::Steps(Steps { at: vec![], factor: 0.5 }).factor(7), 1.0);
    }
}
