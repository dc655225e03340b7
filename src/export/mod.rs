//! Networks for other programs: ONNX, TorchScript, safetensors. Each file is read back and tried before it gets its name.

mod check;
mod metadata;
mod tract;

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::game::Game;
use crate::net::{self, Checkpoint, CheckpointError, GameMismatch, NetSpec, OnnxForm, OpenError, WeightsError};
use crate::util::publish::{AtomicFile, PublishError};

pub use check::{BATCHES, Comparison, Difference};

/// A format to export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// An ONNX graph.
    Onnx,
    /// A TorchScript archive.
    TorchScript,
    /// Weights by name, with the architecture as JSON.
    Safetensors,
}

impl Format {
    /// How files of it are named.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Onnx => "onnx",
            Self::TorchScript => "pt",
            Self::Safetensors => "safetensors",
        }
    }
}

/// What to export, and how.
#[derive(Clone, Debug)]
pub struct Request {
    /// The format.
    pub format: Format,
    /// float16, or a mask; only ONNX has a choice.
    pub form: OnnxForm,
    /// The file to write.
    pub path: PathBuf,
    /// Whether an older file of that name may be replaced.
    pub force: bool,
    /// Positions of self-play that it is tried on.
    pub positions: usize,
}

/// What was written.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The file.
    pub path: String,
    /// Its format.
    pub format: Format,
    /// Its size in bytes.
    pub bytes: usize,
    /// `f32` or `f16`.
    pub precision: &'static str,
    /// Whether legal moves are an input and the outputs probabilities.
    pub with_mask: bool,
    /// What ran the file.
    pub runtime: &'static str,
    /// How it compares with the network that was exported.
    pub comparison: Comparison,
}

/// Nothing was exported, and no file was written.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ExportError {
    #[error("{} exists: name another file with --output, or replace it with --force", .0.display())]
    Exists(PathBuf),
    #[error("{} is no ordinary file: name another with --output", .0.display())]
    NoFile(PathBuf),
    #[error("interrupted; nothing was written")]
    Interrupted,
    #[error(transparent)]
    File(#[from] PublishError),
    #[error(transparent)]
    Mismatch(#[from] GameMismatch),
    #[error(transparent)]
    Weights(#[from] WeightsError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("{what} cannot be made of this network: {problem}")]
    Write { what: &'static str, problem: String },
    #[error("the file was written but cannot be read back, and is removed again: {0}")]
    Unreadable(CheckpointError),
    #[error("{runtime} cannot run the file, which is removed again: {problem}")]
    Runtime { runtime: &'static str, problem: String },
    #[error("the file does not compute what the network does, and is removed again: {0}")]
    Differs(String),
}

impl ExportError {
    /// Whether another command line would help.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Exists(_) | Self::NoFile(_))
    }
}

/// Writes the network for other programs: whole, tried and equal to the source within [`Comparison::problem`]'s bounds, or not at
/// all.
///
/// # Errors
/// When the network is not one for `game`, the file exists or cannot be written, or does not compute the same; and when `stop`
/// has become true meanwhile.
pub fn export<G: Game>(
    game: &G,
    checkpoint: &Checkpoint,
    request: &Request,
    stop: &dyn Fn() -> bool,
) -> Result<Report, ExportError> {
    checkpoint.check_game(game)?;
    checkpoint.weights.check(&checkpoint.info.network)?;
    let path = &place(&request.path, request.force)?;
    let mut file = AtomicFile::create(path)?;
    let bytes = bytes_of(game, checkpoint, request)?;
    file.put(&bytes)?;
    let written = file.written()?;
    let (back, _) = Checkpoint::import(&written).map_err(ExportError::Unreadable)?;
    let mut runtime = open(&written, &bytes, &back, request)?;
    let name = runtime.name();
    let comparison = check::compare(game, checkpoint, &mut *runtime, request.positions, stop)?;
    if let Some(problem) = comparison.problem(request.form.half) {
        return Err(ExportError::Differs(problem));
    }
    file.publish()?;
    Ok(Report {
        path: path.display().to_string(),
        format: request.format,
        bytes: bytes.len(),
        precision: if request.form.half { "f16" } else { "f32" },
        with_mask: request.form.mask,
        runtime: name,
        comparison,
    })
}

/// Where a file is to be written: behind a link, where there is one.
///
/// # Errors
/// When something is there that is no file, or may not be replaced.
pub fn place(path: &Path, force: bool) -> Result<PathBuf, ExportError> {
    if path.symlink_metadata().is_err() {
        return Ok(path.to_owned());
    }
    match path.canonicalize() {
        Ok(found) if found.is_file() && force => Ok(found),
        Ok(found) if found.is_file() => Err(ExportError::Exists(path.to_owned())),
        Ok(_) | Err(_) => Err(ExportError::NoFile(path.to_owned())),
    }
}

/// The bytes of the file.
fn bytes_of<G: Game>(game: &G, checkpoint: &Checkpoint, request: &Request) -> Result<Vec<u8>, ExportError> {
    let spec = &checkpoint.info.network;
    if request.format == Format::Safetensors {
        return Ok(checkpoint.to_safetensors(&metadata::of(game, checkpoint, request.form)));
    }
    // The description of the file names the weights as they are in it.
    let served = Checkpoint {
        info: checkpoint.info.clone(),
        weights: net::served_weights(spec, &checkpoint.weights, request.form.half)?,
    };
    let mut metadata = metadata::of(game, &served, request.form);
    metadata.push((net::KEY.to_owned(), served.envelope()));
    match request.format {
        Format::TorchScript => net::to_torchscript(spec, &served.weights, &metadata)
            .map_err(|problem| ExportError::Write { what: "a TorchScript file", problem }),
        Format::Onnx | Format::Safetensors => Ok(net::to_onnx(spec, &served.weights, request.form, &metadata)?),
    }
}

/// What runs a file that was just written.
fn open(
    path: &Path,
    bytes: &[u8],
    back: &Checkpoint,
    request: &Request,
) -> Result<Box<dyn check::Runtime>, ExportError> {
    let spec: &NetSpec = &back.info.network;
    let failed = |runtime| move |problem| ExportError::Runtime { runtime, problem };
    Ok(match request.format {
        Format::Onnx => Box::new(tract::Tract::new(bytes, spec, request.form).map_err(failed("tract"))?),
        Format::TorchScript => Box::new(check::Script(net::Script::open(path, spec).map_err(failed("libtorch"))?)),
        Format::Safetensors => Box::new(check::Served::new(back)?),
    })
}
