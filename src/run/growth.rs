//! Networks that grow while a run goes on: a larger one is trained on the replay window and takes over.
//!
//! A small network plays more games an hour, and a large one learns more from them: KataGo's main run went from 6 blocks of 96
//! channels to 20 of 256 (Wu 2019, section 5).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::RunConfig;
use super::strict::Findings;
use crate::game::Game;
use crate::net::{Architecture, NetSpec};

/// A step to another network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrowthParams {
    /// The generation that trains it first, from random weights.
    #[schemars(range(min = 1, max = 1_000_000_000), extend("x-unit" = "generation"))]
    pub generation: u32,
    /// The network from then on.
    pub network: Architecture,
    /// How often that generation goes through the whole replay window, besides what it would train anyway.
    #[serde(default = "default_passes")]
    #[schemars(range(min = 0.0, max = 1000.0), extend("x-unit" = "passes"))]
    pub passes: f64,
}

fn default_passes() -> f64 {
    4.0
}

impl RunConfig {
    /// The network that `generation` trains; that of generation 0 is the run's first.
    pub fn network_of(&self, generation: u32) -> &Architecture {
        self.growth_until(generation).last().map_or(&self.network, |step| &step.network)
    }

    /// The step to another network that `generation` takes, if it takes one.
    pub fn growth_at(&self, generation: u32) -> Option<&GrowthParams> {
        self.growth.iter().find(|step| step.generation == generation)
    }

    /// The steps that are taken up to `generation`.
    pub fn growth_until(&self, generation: u32) -> &[GrowthParams] {
        &self.growth[..self.growth.partition_point(|step| step.generation <= generation)]
    }

    /// The networks of the run until `generation`, as they are trained.
    pub fn trained_networks<G: Game>(&self, game: &G, generation: u32) -> impl Iterator<Item = NetSpec> {
        let later = self.growth_until(generation).iter().map(|step| &step.network);
        let all = std::iter::once(&self.network).chain(later);
        all.map(|network| self.training.spec(game, network.clone()))
    }

    /// What ranges alone cannot say of the steps.
    pub(super) fn check_growth<G: Game>(&self, game: &G, findings: &mut Findings) {
        for (index, step) in self.growth.iter().enumerate() {
            if let Err(error) = NetSpec::for_game(game, step.network.clone()).validate() {
                findings.add(format!("growth[{index}].network"), error.to_string());
            }
            if index > 0 && self.growth[index - 1].generation >= step.generation {
                findings.add(format!("growth[{index}].generation"), "must be above that of the step before");
            }
        }
    }
}
