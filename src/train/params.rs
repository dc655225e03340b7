//! The config section `training`: what the learner may be told.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::game::{Game, PolicyShape};
use crate::net::{Architecture, AuxiliaryHeads, NetSpec};
use crate::train::schedule::Schedule;

/// How the network is fitted to the games (config section `training`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TrainParams {
    /// Positions in one training step.
    #[schemars(
        range(min = 1, max = 65536),
        extend("x-unit" = "positions", "x-paper" = "4096 (AlphaZero), 2048 (AlphaGo Zero), 256 (KataGo)")
    )]
    pub batch_size: usize,
    /// How gradients become changes of the weights.
    #[schemars(extend("x-paper" = "sgd (AlphaZero)"))]
    pub optimizer: OptimizerParams,
    /// Learning rate at its highest, after warm-up and before the schedule lowers it. 0.001 is good for
    /// AdamW; SGD wants about 0.02.
    #[schemars(range(min = 0.0, max = 10.0), extend("x-unit" = "none", "x-paper" = "0.2 (AlphaZero: sgd, batches of 4096)"))]
    pub learning_rate: f64,
    /// Steps over which the learning rate first rises linearly to its full height; 0 for none.
    #[schemars(range(min = 0, max = 10_000_000), extend("x-unit" = "training steps", "x-paper" = "0 (AlphaZero)"))]
    pub warmup_steps: u64,
    /// How the learning rate falls over the run.
    #[schemars(extend("x-paper" = "steps (AlphaZero)"))]
    pub schedule: Schedule,
    /// Weight decay of kernels; biases and normalisation are never decayed. AdamW shrinks them by
    /// `learning_rate * weight_decay` of themselves in each step, SGD adds `weight_decay * weight` to the gradient.
    /// 0.01 is good for AdamW; with SGD take about 0.0001.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-unit" = "none", "x-paper" = "0.0001 (AlphaZero: sgd)"))]
    pub weight_decay: f64,
    /// A gradient whose length (over all parameters together) is greater is shortened to this; 0 for no limit.
    #[schemars(range(min = 0.0, max = 1_000_000.0), extend("x-unit" = "none", "x-paper" = "0 (AlphaZero)"))]
    pub gradient_clip: f64,
    /// Weight of the value loss against the policy loss, which has weight 1.
    #[schemars(range(min = 0.0, max = 1000.0), extend("x-unit" = "none", "x-paper" = "1 (AlphaZero), 1.5 (KataGo)"))]
    pub value_loss_weight: f64,
    /// Further targets, from heads that only training has; null for none.
    pub auxiliary: Option<AuxiliaryParams>,
    /// Share of the old average that is kept in each step by the averaged weights that play; 0 plays the newest
    /// weights. Averages over about `1 / (1 - ema_decay)` steps.
    #[schemars(range(min = 0.0, max = 0.999_999), extend("x-unit" = "share", "x-paper" = "0 (AlphaZero)"))]
    pub ema_decay: f64,
    /// Number format in which convolutions compute; weights, sums and losses are float32 in any case. `auto` is
    /// bfloat16 on CPUs that multiply it in hardware (AMX), else float32.
    pub precision: TrainPrecision,
    /// What happens when a loss, a gradient or a weight is infinite or not a number.
    pub non_finite: NonFiniteParams,
}

/// What the trunk learns to foresee besides policy and value (Wu 2019, section 4.1 and appendix B).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AuxiliaryParams {
    /// Weight of the final position's loss, in games that say what is to be foreseen of it (uttt: who wins which small board;
    /// zener: which pieces end free, and which leave the board). 0 for no such head.
    #[schemars(range(min = 0.0, max = 1000.0), extend("x-unit" = "none", "x-paper" = "1.5 (KataGo: ownership)"))]
    pub ending: f64,
    /// Weight of the loss of the opponent's next move. 0 for no such head.
    #[schemars(range(min = 0.0, max = 1000.0), extend("x-unit" = "none", "x-paper" = "0.15 (KataGo)"))]
    pub reply: f64,
}

impl TrainParams {
    /// The network of `architecture` for `game` as it is trained: with the auxiliary heads whose loss has a weight.
    pub fn spec<G: Game>(&self, game: &G, architecture: Architecture) -> NetSpec {
        let mut spec = NetSpec::for_game(game, architecture);
        if let Some(AuxiliaryParams { ending, reply }) = self.auxiliary {
            let foreseen = if ending > 0.0 { game.ending_shape() } else { PolicyShape::default() };
            spec.auxiliary = AuxiliaryHeads { ending: foreseen, reply: reply > 0.0 };
        }
        spec
    }
}

impl Default for AuxiliaryParams {
    fn default() -> Self {
        Self { ending: 0.5, reply: 0.15 }
    }
}

/// What happens when a loss, a gradient or a weight is infinite or not a number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NonFiniteParams {
    /// Batches of one generation that are left out because their loss or gradient is not finite; with one more, or a
    /// network that has come to such numbers, follows `then`.
    #[schemars(range(min = 0, max = 1_000_000), extend("x-unit" = "batches"))]
    pub skip: u64,
    /// What follows then.
    pub then: NonFiniteAction,
    /// Factor of the learning rate for the rest of the run with each return.
    #[schemars(range(min = 0.000_001, max = 1.0), extend("x-unit" = "none"))]
    pub rate_factor: f64,
    /// Returns in the whole run; after so many it stops.
    #[schemars(range(min = 0, max = 100), extend("x-unit" = "returns"))]
    pub rollbacks: u32,
}

impl Default for NonFiniteParams {
    fn default() -> Self {
        Self { skip: 10, then: NonFiniteAction::Rollback, rate_factor: 0.5, rollbacks: 3 }
    }
}

/// What follows when too many batches had to be left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NonFiniteAction {
    /// Training returns to the network that the generation began with, and goes on at a lower rate.
    #[default]
    Rollback,
    /// The run stops with an error, and can be resumed with another config.
    Stop,
}

impl Default for TrainParams {
    fn default() -> Self {
        Self {
            batch_size: 256,
            optimizer: OptimizerParams::default(),
            learning_rate: 1e-3,
            warmup_steps: 100,
            schedule: Schedule::default(),
            weight_decay: 0.01,
            gradient_clip: 2.0,
            value_loss_weight: 1.0,
            auxiliary: None,
            ema_decay: 0.995,
            precision: TrainPrecision::Auto,
            non_finite: NonFiniteParams::default(),
        }
    }
}

/// Which optimizer, with its own numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OptimizerParams {
    /// Adam with decoupled weight decay (Loshchilov and Hutter 2019).
    Adamw(AdamwParams),
    /// Stochastic gradient descent with Nesterov momentum (Sutskever et al. 2013).
    Sgd(SgdParams),
}

impl Default for OptimizerParams {
    fn default() -> Self {
        Self::Adamw(AdamwParams::default())
    }
}

/// Numbers of AdamW, named as in the paper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AdamwParams {
    /// Share of the mean gradient that is kept in each step.
    #[schemars(range(min = 0.0, max = 0.999_999), extend("x-unit" = "share", "x-paper" = "0.9 (Adam)"))]
    pub beta1: f64,
    /// Share of the mean squared gradient that is kept in each step.
    #[schemars(range(min = 0.0, max = 0.999_999), extend("x-unit" = "share", "x-paper" = "0.999 (Adam)"))]
    pub beta2: f64,
    /// Added to the root of the mean squared gradient.
    #[schemars(range(min = 1e-12, max = 1.0), extend("x-unit" = "none", "x-paper" = "1e-8 (Adam)"))]
    pub epsilon: f64,
}

impl Default for AdamwParams {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 }
    }
}

/// Numbers of SGD.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SgdParams {
    /// Share of the velocity that is kept in each step; 0 is plain SGD.
    #[schemars(range(min = 0.0, max = 0.999_999), extend("x-unit" = "share", "x-paper" = "0.9 (AlphaGo Zero)"))]
    pub momentum: f64,
}

impl Default for SgdParams {
    fn default() -> Self {
        Self { momentum: 0.9 }
    }
}

/// Number format of the convolutions in training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TrainPrecision {
    /// Whichever is faster on the device.
    #[default]
    Auto,
    /// 32-bit floating point.
    F32,
    /// bfloat16: the range of float32 with 8 bits of precision.
    Bf16,
}

/// A number of the section that is out of range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` is {value}; allowed is {allowed}")]
pub struct ParamProblem {
    /// Path of the field inside the section `training`, such as `optimizer.beta1`.
    pub field: String,
    /// What it holds.
    pub value: String,
    /// What it may hold, in words.
    pub allowed: String,
}

impl TrainParams {
    /// Everything in the section that is out of range; empty when all is well.
    pub fn problems(&self) -> Vec<ParamProblem> {
        let mut found = Problems(Vec::new());
        found.check("batch_size", self.batch_size, 1, 65_536);
        match &self.optimizer {
            OptimizerParams::Adamw(adamw) => {
                found.check("optimizer.beta1", adamw.beta1, 0.0, 0.999_999);
                found.check("optimizer.beta2", adamw.beta2, 0.0, 0.999_999);
                found.check("optimizer.epsilon", adamw.epsilon, 1e-12, 1.0);
            }
            OptimizerParams::Sgd(sgd) => found.check("optimizer.momentum", sgd.momentum, 0.0, 0.999_999),
        }
        found.check("learning_rate", self.learning_rate, 0.0, 10.0);
        found.check("warmup_steps", self.warmup_steps, 0, 10_000_000);
        match &self.schedule {
            Schedule::Constant(_) => {}
            Schedule::Cosine(cosine) => {
                found.check("schedule.steps", cosine.steps, 1, 1_000_000_000);
                found.check("schedule.end", cosine.end, 0.0, 1.0);
            }
            Schedule::Steps(steps) => {
                found.check("schedule.factor", steps.factor, 0.0, 1.0);
                if steps.at.windows(2).any(|pair| pair[0] >= pair[1]) {
                    found.push("schedule.at", format!("{:?}", steps.at), "a list of rising step numbers".into());
                }
            }
        }
        found.check("weight_decay", self.weight_decay, 0.0, 1.0);
        found.check("gradient_clip", self.gradient_clip, 0.0, 1e6);
        found.check("value_loss_weight", self.value_loss_weight, 0.0, 1000.0);
        if let Some(auxiliary) = &self.auxiliary {
            found.check("auxiliary.ending", auxiliary.ending, 0.0, 1000.0);
            found.check("auxiliary.reply", auxiliary.reply, 0.0, 1000.0);
        }
        found.check("ema_decay", self.ema_decay, 0.0, 0.999_999);
        let NonFiniteParams { skip, then: _, rate_factor, rollbacks } = &self.non_finite;
        found.check("non_finite.skip", *skip, 0, 1_000_000);
        found.check("non_finite.rate_factor", *rate_factor, 1e-6, 1.0);
        found.check("non_finite.rollbacks", *rollbacks, 0, 100);
        found.0
    }
}

struct Problems(Vec<ParamProblem>);

impl Problems {
    fn push(&mut self, field: &str, value: String, allowed: String) {
        self.0.push(ParamProblem { field: field.into(), value, allowed });
    }

    /// A number that is not a number is outside every range.
    fn check<T: PartialOrd + std::fmt::Display>(&mut self, field: &str, value: T, low: T, high: T) {
        if !(low <= value && value <= high) {
            self.push(field, value.to_string(), format!("{low} to {high}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::schedule::{Cosine, Steps};

    #[test]
    fn defaults_are_valid_and_an_empty_section_means_them() {
        assert_eq!(TrainParams::default().problems(), []);
        assert_eq!(serde_json::from_str::<TrainParams>("{}").unwrap(), TrainParams::default());
        let text = serde_json::to_string(&TrainParams::default()).unwrap();
        assert_eq!(serde_json::from_str::<TrainParams>(&text).unwrap(), TrainParams::default());
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let params = TrainParams {
            batch_size: 0,
            optimizer: OptimizerParams::Adamw(AdamwParams { beta2: 1.0, ..AdamwParams::default() }),
            learning_rate: f64::NAN,
            schedule: Schedule::Steps(Steps { at: vec![5, 5], factor: 2.0 }),
            ema_decay: -0.1,
            ..TrainParams::default()
        };
        let fields: Vec<_> = params.problems().into_iter().map(|p| p.field).collect();
        let expected =
            ["batch_size", "optimizer.beta2", "learning_rate", "schedule.factor", "schedule.at", "ema_decay"];
        assert_eq!(fields, expected);
        assert_eq!(params.problems()[0].to_string(), "`batch_size` is 0; allowed is 1 to 65536");
        let cosine = Schedule::Cosine(Cosine { steps: 0, end: 0.0 });
        assert_eq!(TrainParams { schedule: cosine, ..TrainParams::default() }.problems()[0].field, "schedule.steps");
        let sgd = OptimizerParams::Sgd(SgdParams { momentum: f64::INFINITY });
        assert_eq!(TrainParams { optimizer: sgd, ..TrainParams::default() }.problems()[0].field, "optimizer.momentum");
    }

    #[test]
    fn the_section_is_strict_at_every_level() {
        let parse = serde_json::from_str::<TrainParams>;
        let sgd = parse(r#"{"optimizer": {"type": "sgd", "momentum": 0.8}, "precision": "bf16"}"#).unwrap();
        assert_eq!(sgd.optimizer, OptimizerParams::Sgd(SgdParams { momentum: 0.8 }));
        assert_eq!(sgd.precision, TrainPrecision::Bf16);
        for (text, word) in [
            (r#"{"batchsize": 3}"#, "batchsize"),
            (r#"{"optimizer": {"type": "sgd", "beta1": 0.8}}"#, "beta1"),
            (r#"{"optimizer": {"type": "adam"}}"#, "adam"),
            (r#"{"schedule": {"type": "constant", "steps": 3}}"#, "steps"),
            (r#"{"precision": "half"}"#, "half"),
        ] {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains(word), "{text}: {message}");
        }
        let schema = serde_json::to_string(&schemars::schema_for!(TrainParams)).unwrap();
        assert!(schema.contains(r#""maximum":65536"#) && schema.contains("Positions in one training step"), "{schema}");
    }
}
