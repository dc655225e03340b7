//! `sparring doctor`.

use super::{Failure, Outcome};

/// Say what the set-up found: libtorch, OpenVINO, devices, CPU features, threads, folders
#[derive(clap::Args)]
pub struct Doctor {
    /// One JSON document instead of text
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(super) fn run(self) -> Outcome {
        super::doctor::run(self.json).map_err(Failure::Failed)
    }
}
