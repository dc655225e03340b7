//! `sparring train`.

use std::path::PathBuf;

use super::{Failure, Outcome, folder_after, print};
use crate::run::config::RunConfig;
use crate::run::cycle::Ended;
use crate::run::dir::RunDir;
use crate::run::pointer::Which;
use crate::run::session::train;
use crate::run::stop::{Signals, StopFlag};

/// Start a training run from a config file, or resume it when its folder exists
///
/// Ctrl-C saves everything and stops; the same command goes on where it stopped.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    sparring train configs/tictactoe.json\n  \
    sparring train configs/uttt.json --run /data/uttt-1 --set seed=1 --set selfplay.games=2000")]
pub struct Train {
    /// The config file (JSON)
    config: PathBuf,
    /// The run's folder [default: runs/NAME after the config file]
    #[arg(long, value_name = "DIR")]
    run: Option<PathBuf>,
    /// Overrides a key of the config; may be given many times
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl Train {
    pub(super) fn run(self) -> Outcome {
        let stop = StopFlag::new();
        let _signals = Signals::listen(&stop)?;
        let config = RunConfig::read(&self.config, &self.set).map_err(|errors| Failure::Usage(errors.to_string()))?;
        let folder = self.run.unwrap_or_else(|| folder_after(&self.config));
        let dir = RunDir::new(folder);
        match train(config, &dir, &stop) {
            Ok(Ended::Complete(_)) => {
                let best = dir.read_pointer(Which::Best)?.ok_or_else(|| Failure::Failed("the run is empty".into()))?;
                print(&format!("{}\n", dir.checkpoint(best.generation).display()))
            }
            Ok(Ended::Interrupted(_)) => Err(Failure::Interrupted),
            Err(error) => Err(Failure::of(&error, error.is_usage())),
        }
    }
}
