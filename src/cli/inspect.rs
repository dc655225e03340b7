//! `sparring inspect`.

use std::path::PathBuf;

use serde_json::json;

use super::{Outcome, print};
use crate::run::player::PlayerSpec;

/// Say what a checkpoint, or the best network of a run, is
#[derive(clap::Args)]
#[command(after_help = "Example:\n  sparring inspect runs/uttt")]
pub struct Inspect {
    /// A checkpoint file or the folder of a run
    path: PathBuf,
}

impl Inspect {
    pub(super) fn run(self) -> Outcome {
        let spec = PlayerSpec::parse(&self.path.to_string_lossy())?;
        let Some(checkpoint) = spec.checkpoint()? else {
            return Err(super::Failure::Usage(format!("{}: expected a file or folder", self.path.display())));
        };
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
