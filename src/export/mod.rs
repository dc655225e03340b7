//! Networks for other programs: ONNX, TorchScript, safetensors. Each file is read back and tried before it gets its name.

mod check;
mod metadata;
mod tract;

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::game::Game;
use crate::net::{
    self, Checkpoint, CheckpointError, FileKind, GameMismatch, OnnxForm, OpenError, Weights, WeightsError,
};
use crate::util::publish::{AtomicFile, PublishError};

pub use check::{BATCHES, Comparison, Difference};

/// What to export, and how.
#[derive(Clone, Debug)]
pub struct Request {
    /// The format.
    pub format: FileKind,
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
    /// The name of its format.
    pub format: &'static str,
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
    #[error("a TorchScript file cannot be made of this network: {0}")]
    TorchScript(String),
    #[error("the network has weights that are too large for float16: take --precision f32")]
    Half,
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
    // Another process may have been quicker.
    place(&request.path, request.force)?;
    file.publish()?;
    Ok(Report {
        path: path.display().to_string(),
        format: request.format.name(),
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
    let (spec, form) = (&checkpoint.info.network, request.form);
    let mut metadata = metadata::of(game, checkpoint, form);
    // The description of a file names the weights as they are in it.
    let mut served = || -> Result<Weights, ExportError> {
        let weights = net::served_weights(spec, &checkpoint.weights, form.half)?;
        if form.half && weights.check(spec).is_err() {
            return Err(ExportError::Half);
        }
        let served = Checkpoint { info: checkpoint.info.clone(), weights };
        metadata.push((net::KEY.to_owned(), served.envelope()));
        Ok(served.weights)
    };
    match request.format {
        FileKind::Safetensors => Ok(checkpoint.to_safetensors(&metadata)),
        FileKind::Onnx => {
            let weights = served()?;
            Ok(net::to_onnx(spec, &weights, form, &metadata)?)
        }
        FileKind::TorchScript => {
            let weights = served()?;
            net::to_torchscript(spec, &weights, &metadata).map_err(ExportError::TorchScript)
        }
    }
}

/// What runs a file that was just written.
fn open(
    path: &Path,
    bytes: &[u8],
    back: &Checkpoint,
    request: &Request,
) -> Result<Box<dyn check::Runtime>, ExportError> {
    let spec = &back.info.network;
    let failed = |runtime| move |problem| ExportError::Runtime { runtime, problem };
    Ok(match request.format {
        FileKind::Onnx => Box::new(tract::Tract::new(bytes, spec, request.form).map_err(failed("tract"))?),
        FileKind::TorchScript => Box::new(net::Script::open(path, spec).map_err(failed("libtorch"))?),
        FileKind::Safetensors => Box::new(check::Served::new(&check::source(back)?)?),
    })
}
