//! `sparring inspect`.

use std::path::PathBuf;

use serde_json::json;

use super::{Failure, Outcome, print};
use crate::run::player::load_network;

/// Say what a checkpoint, or the best network of a run, is
#[derive(clap::Args)]
#[command(after_help = "Example:\n  sparring inspect runs/uttt")]
pub struct Inspect {
    /// A checkpoint file or the folder of a run
    path: PathBuf,
}

impl Inspect {
    pub(super) fn run(self) -> Outcome {
        let checkpoint = load_network(&self.path).map_err(|error| Failure::of(&error, error.is_usage()))?;
        let info = &checkpoint.info;
        let document = json!({
            "checkpoint": info,
            "parameters": info.network.parameter_count(),
            "flops_per_position": info.network.flops(),
            "weights_digest": checkpoint.weights.digest(),
        });
        print(&format!("{document:#}\n"))
    }
}
