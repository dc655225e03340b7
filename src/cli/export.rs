//! `sparring export`.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::{Failure, Outcome, outside_of_runs, print};
use crate::export::{self, Difference, ExportError, Report, Request};
use crate::game::Game;
use crate::games::{self, GameVisitor};
use crate::net::{Checkpoint, FileKind, OnnxForm};
use crate::run::player::load_network;
use crate::run::stop::{Signals, StopFlag};

/// Write a network for other programs, as ONNX, TorchScript or safetensors
///
/// The file is read back and run on positions of self-play before it gets its name: it computes what the network computes, or
/// nothing is written. It names the game, every input plane and every move; docs/export.md says what is in it and how to use it.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    sparring export runs/uttt --format onnx\n  \
    sparring export runs/uttt --format onnx --with-mask --precision f16 -o uttt-small.onnx\n  \
    sparring export models/connect4.safetensors --format torchscript --licence CC-BY-4.0")]
pub struct Export {
    /// A checkpoint, the folder of a run (its best checkpoint), or a file exported before
    checkpoint: PathBuf,
    /// What to write
    #[arg(long, value_enum)]
    format: FormatName,
    /// The file to write [default: in this folder, the checkpoint's name with the ending of the format]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Numbers of weights and arithmetic; inputs and outputs are float32 (f16 for ONNX only)
    #[arg(long, value_enum, default_value = "f32")]
    precision: PrecisionName,
    /// Take the legal moves as a second input, and give probabilities instead of logits (ONNX only)
    #[arg(long)]
    with_mask: bool,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
    /// Positions of self-play that the file is tried on
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    positions: u32,
    /// Under which licence the network may be used, to be written into the file
    #[arg(long, value_name = "TEXT")]
    licence: Option<String>,
    /// One JSON document instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum FormatName {
    /// A graph for onnxruntime, browsers, phones
    Onnx,
    /// A module for PyTorch, in Python and C++
    #[value(name = "torchscript")]
    TorchScript,
    /// Weights by name, with the architecture as JSON
    Safetensors,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum PrecisionName {
    /// float32
    F32,
    /// float16: half the size
    F16,
}

impl Export {
    pub(super) fn run(self) -> Outcome {
        let format = match self.format {
            FormatName::Onnx => FileKind::Onnx,
            FormatName::TorchScript => FileKind::TorchScript,
            FormatName::Safetensors => FileKind::Safetensors,
        };
        let form = OnnxForm { half: self.precision == PrecisionName::F16, mask: self.with_mask };
        if format != FileKind::Onnx && form != OnnxForm::default() {
            return Err(Failure::Usage("--precision f16 and --with-mask are for --format onnx".to_owned()));
        }
        if let Some(path) = &self.output {
            named_as(path, format)?;
        }
        let mut checkpoint = load_network(&self.checkpoint).map_err(|error| Failure::of(&error, error.is_usage()))?;
        if self.licence.is_some() {
            checkpoint.info.licence = self.licence.filter(|text| !text.trim().is_empty());
        }
        let path = self.output.unwrap_or_else(|| default_path(&self.checkpoint, format));
        let request = Request { format, form, path, force: self.force, positions: self.positions as usize };
        outside_of_runs(&request.path)?;
        let game = checkpoint.info.game.clone();
        let stop = StopFlag::new();
        let _signals = Signals::listen(&stop)?;
        let task = Task { checkpoint, request, stop };
        // The name comes from a file: a game that is not known is no wrong command line.
        let report = games::dispatch(&game, task)?.map_err(|error| match error {
            ExportError::Mismatch(error) => Failure::Failed(format!("{}: {error}", self.checkpoint.display())),
            error => failure(error),
        })?;
        if self.json {
            return print(&format!("{:#}\n", serde_json::json!(report)));
        }
        print(&text(&report))
    }
}

/// Refuses a name that is that of another format.
fn named_as(path: &Path, format: FileKind) -> Outcome {
    let kinds = [FileKind::Safetensors, FileKind::Onnx, FileKind::TorchScript];
    let end = path.extension().unwrap_or_default().to_ascii_lowercase();
    match kinds.into_iter().find(|kind| end == kind.extension()) {
        Some(kind) if kind != format => Err(Failure::Usage(format!(
            "{} is named as {kind}: name it .{}, or take --format {}",
            path.display(),
            format.extension(),
            kind.name()
        ))),
        _ => Ok(()),
    }
}

/// `runs/uttt` and `models/uttt.safetensors` are written as `uttt.onnx`, here.
fn default_path(source: &Path, format: FileKind) -> PathBuf {
    // A path that ends in `..` names no file; its folder has a name all the same.
    let whole = source.canonicalize().unwrap_or_else(|_| source.to_owned());
    let name = if whole.is_dir() { whole.file_name() } else { whole.file_stem() };
    let mut name = name.unwrap_or("network".as_ref()).to_owned();
    name.push(".");
    name.push(format.extension());
    name.into()
}

pub(super) fn failure(error: ExportError) -> Failure {
    match error {
        ExportError::Interrupted => Failure::Interrupted,
        error => Failure::of(&error, error.is_usage()),
    }
}

struct Task {
    checkpoint: Checkpoint,
    request: Request,
    stop: StopFlag,
}

impl GameVisitor for Task {
    type Output = Result<Report, ExportError>;

    fn visit<G: Game>(self, game: G) -> Self::Output {
        export::export(&game, &self.checkpoint, &self.request, &|| self.stop.is_set())
    }
}

fn text(report: &Report) -> String {
    let Report { path, bytes, precision, with_mask, runtime, comparison, .. } = report;
    let mask = if *with_mask { ", with a mask" } else { "" };
    let apart = |what: &str, found: Difference| {
        format!("  {what:<14} largest difference {:.1e}, mean {:.1e}\n", found.largest, found.mean)
    };
    let [a, b, c, d] = comparison.batches;
    let mut out = format!("{}: {precision}{mask}, {:.2} MB\n", path, *bytes as f64 / 1e6);
    out += &format!(
        "run by {runtime} on {} positions of self-play, in batches of {a}, {b}, {c} and {d}:\n",
        comparison.positions
    );
    out += &apart("policy", comparison.policy);
    out += &apart("value", comparison.value);
    out += &comparison.logits.map_or_else(String::new, |logits| apart("logits", logits));
    out + &format!("  same best move in {} of {}\n", comparison.same_best_move, comparison.positions)
}
