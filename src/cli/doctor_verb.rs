//! `sparring doctor`.

use super::{Outcome, print};

/// Say what the set-up found: libtorch, OpenVINO, devices, CPU features, threads, folders
#[derive(clap::Args)]
#[command(after_help = "Example:\n  sparring doctor --json")]
pub struct Doctor {
    /// One JSON document instead of text
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(super) fn run(self) -> Outcome {
        print(&super::doctor::text(self.json)?)
    }
}
