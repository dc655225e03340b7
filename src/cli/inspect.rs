//! `sparring inspect`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Failure, Outcome, print};
use crate::arena::{GamesFileError, read_header};
use crate::data::{self, ReadRecords, RecordFileError};
use crate::net::{Checkpoint, FileKind};
use crate::run::dir::{Found, RunDir};
use crate::run::event::GamesSummary;
use crate::run::player::load_network;
use crate::run::pointer::Which;
use crate::run::state::RunState;
use crate::run::verify::verify;
use crate::util::text::plain_json;

/// Say what a checkpoint, an exported network, a run or a file of games is
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    sparring inspect runs/uttt\n  \
    sparring inspect runs/uttt/checkpoints/gen-000012.safetensors\n  \
    sparring inspect uttt.onnx\n  \
    sparring inspect runs/uttt/games/gen-000012.games\n  \
    sparring inspect --verify runs/uttt")]
pub struct Inspect {
    /// A checkpoint, an exported network, the folder of a run (its best checkpoint and how far it is), or a file of games
    path: PathBuf,
    /// Read every file of the run and say what is damaged or does not belong together; exit code 1 if anything is
    #[arg(long)]
    verify: bool,
}

impl Inspect {
    pub(super) fn run(self) -> Outcome {
        if self.verify {
            return whole(&self.path);
        }
        if self.path.is_file() {
            match data::read(&self.path) {
                // What is no file of games is taken for a checkpoint.
                Err(RecordFileError::Foreign { .. }) => {}
                read => return show(&games(&read?)),
            }
            if let Some(run) = part_of_run(&self.path) {
                return Err(Failure::Usage(format!(
                    "{} is a file of the run {}, but neither a checkpoint nor games: `sparring inspect {1}` tells of the run, \
                     with --verify whether this file is whole",
                    self.path.display(),
                    run.display()
                )));
            }
            match read_header(&self.path) {
                Err(GamesFileError::Foreign { .. }) => {}
                header => return show(&json!({ "match": header?, "games": "`sparring replay` shows them" })),
            }
        }
        if self.path.is_file() {
            let (checkpoint, kind) = Checkpoint::import(&self.path)?;
            let mut document = network(&checkpoint);
            document["file"] = json!({
                "format": kind.name(),
                "bytes": std::fs::metadata(&self.path).map(|about| about.len()).ok(),
                "verified": match kind {
                    FileKind::Safetensors => "digests, names, shapes, finite numbers",
                    FileKind::Onnx => "digests, operations, names, shapes, finite numbers",
                    FileKind::TorchScript => "digests, names, shapes, finite numbers; the code is not run",
                },
            });
            return show(&document);
        }
        let checkpoint = load_network(&self.path).map_err(|error| Failure::of(&error, error.is_usage()))?;
        let mut document = network(&checkpoint);
        if self.path.is_dir() {
            document["run"] = run(&self.path)?;
        }
        show(&document)
    }
}

/// The run that a file is in, where it is a file of a run that cannot be shown alone.
fn part_of_run(path: &Path) -> Option<PathBuf> {
    let run = RunDir::around(path)?;
    let shown = [run.join("checkpoints"), run.join("ladder"), run.join("games"), run.join("damaged")];
    let is_network =
        path.extension().is_some_and(|end| end == "safetensors") && !path.starts_with(run.join("rejected"));
    (!shown.iter().any(|place| path.starts_with(place)) && !is_network).then_some(run)
}

fn whole(path: &Path) -> Outcome {
    let dir = RunDir::new(path);
    if !matches!(dir.find(), Ok(Found::Run)) {
        return Err(Failure::Usage(format!("{} is no run; --verify takes the folder of a run", path.display())));
    }
    let found = verify(&dir)?;
    show(&json!(found))?;
    match found.problems.len() {
        0 => Ok(()),
        count => Err(Failure::Failed(format!(
            "{count} problem{} in {} files; `sparring train` mends what it can and says what is lost, without touching what it \
             cannot (docs/run-directory.md)",
            if count == 1 { "" } else { "s" },
            found.files
        ))),
    }
}

fn show(document: &Value) -> Outcome {
    print(&plain_json(&format!("{document:#}\n")))
}

fn network(checkpoint: &Checkpoint) -> Value {
    let info = &checkpoint.info;
    json!({
        "checkpoint": info,
        "parameters": info.network.parameter_count(),
        "flops_per_position": info.network.flops(),
        "weights_digest": checkpoint.weights.digest(),
    })
}

/// How far a run is.
fn run(folder: &Path) -> Result<Value, Failure> {
    let dir = RunDir::new(folder);
    let state = RunState::load(&dir)?.unwrap_or_default();
    let latest = dir.read_pointer(Which::Latest)?.map(|pointer| pointer.generation);
    Ok(json!({
        "best": state.best,
        "latest": latest,
        "generation_in_progress": state.generation,
        "stage": state.stage,
        "games": state.games,
        "positions": state.positions,
        "training_steps": state.step,
        "training_samples": state.samples,
        "hours": state.hours,
    }))
}

fn games(read: &ReadRecords) -> Value {
    let origin = read.records.first().map(|record| {
        json!({
            "game": record.game,
            "rules_version": record.rules_version,
            "run_seed": record.seed,
            "generation": record.generation,
        })
    });
    json!({
        "origin": origin,
        "summary": GamesSummary::of(&read.records),
        "damage": read.warning.as_ref().map(ToString::to_string),
    })
}
