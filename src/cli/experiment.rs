//! `sparring experiment`.

use std::path::PathBuf;

use super::live::LiveLater;
use super::threads::Threads;
use super::{Failure, Outcome, folder_after, outside_of_runs, print};
use crate::experiment::{Experiment, ExperimentError, ExperimentFiles, Listener, Plan, Report};
use crate::game::Game;
use crate::games::{self, GameVisitor};
use crate::run::stop::{Signals, StopFlag};

/// Train variants of a config at the same price and rate them together
///
/// The file names a config, variants with their overrides, seeds and what each run may use. The checkpoints of all runs are rated
/// in one pool with players that do not change. FOLDER gets a table, pictures of Elo over positions and over CPU hours, all numbers,
/// and the runs. Interrupted, the same command goes on.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    sparring experiment experiments/connect4-pooling.json\n  \
    sparring experiment experiments/connect4-pooling.json --output /data/pooling --json")]
pub struct ExperimentVerb {
    /// The experiment (JSON; docs/experiments.md says what is in it)
    file: PathBuf,
    /// The folder of its runs and results [default: runs/NAME after the file]
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Say what would be trained, and end
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    threads: Threads,
    /// One JSON document instead of text
    #[arg(long)]
    json: bool,
}

impl ExperimentVerb {
    pub(super) fn run(self) -> Outcome {
        let stop = StopFlag::new();
        let _signals = Signals::listen(&stop)?;
        let (plan, trainings) = Plan::read(&self.file).map_err(|error| Failure::Usage(error.to_string()))?;
        let folder = self.output.clone().unwrap_or_else(|| folder_after(&self.file));
        if let Some(file) = folder.ancestors().find(|part| part.exists()).filter(|part| !part.is_dir()) {
            return Err(Failure::Usage(format!("{} is a file: --output names a folder", file.display())));
        }
        outside_of_runs(&ExperimentFiles::of(&folder).table)?;
        let experiment = Experiment::new(plan, trainings, folder.clone(), self.threads.count());
        if self.dry_run {
            return print(&experiment.folders().map(|folder| format!("{}\n", folder.display())).collect::<String>());
        }
        let game = experiment.game().to_owned();
        let task = Task { experiment, stop };
        let report = games::dispatch(&game, task).map_err(|error| Failure::Usage(error.to_string()))?;
        let Some(report) = report.map_err(|error| Failure::of(&error, error.is_usage()))? else {
            return Err(Failure::Interrupted);
        };
        if self.json {
            return print(&format!("{:#}\n", serde_json::json!(report)));
        }
        let files = ExperimentFiles::of(&folder);
        let question = if report.question.is_empty() { String::new() } else { format!("{}\n\n", report.question) };
        let pictures = format!("pictures: {}, {}\n", files.by_positions.display(), files.by_cpu_hours.display());
        print(&format!("{question}{}\n{pictures}", report.markdown()))
    }
}

struct Task {
    experiment: Experiment,
    stop: StopFlag,
}

impl GameVisitor for Task {
    type Output = Result<Option<Report>, ExperimentError>;

    fn visit<G: Game>(self, game: G) -> Self::Output {
        let live = LiveLater::default();
        let listener = Listener {
            training: &|variant, seed, number, of| {
                anstream::eprintln!("== {variant}, seed {seed}: training {number} of {of}");
            },
            begin: &|ahead| live.rating(ahead),
            progress: &|tallies| live.tell(tallies),
        };
        self.experiment.check(&game)?;
        if !self.experiment.train(&self.stop, &listener)? {
            return Ok(None);
        }
        let report = self.experiment.rate(&game, &|| self.stop.is_set(), &listener)?;
        live.end();
        Ok(report)
    }
}
