//! The checkpoint: one `.safetensors` file with the weights and everything needed to use them alone.
//!
//! The file's metadata has one entry, `sparring`: JSON with the format number, digests of both parts, and
//! [`CheckpointInfo`]. Any safetensors reader opens the weights; the tensors' names are those of
//! [`NetSpec::tensors`], all float32. Nothing is used before all of it has been verified.
//!
//! Exported files (ONNX, TorchScript) hold the same entry, and [`Checkpoint::import`] takes a network from them.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, SafeTensorError, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};

use crate::game::{Game, full_name};
use crate::net::onnx;
use crate::net::spec::NetSpec;
use crate::net::torchscript;
use crate::net::weights::{Digest, WeightTensor, Weights, WeightsError, floats};
use crate::util::publish::{PublishError, write_atomic};

/// The version of the file format that this program writes and reads.
pub const FORMAT: u32 = 1;

/// Larger files are no checkpoints of ours.
const MAX_BYTES: u64 = 8 << 30;

/// So much of a file is looked at before all of it is read.
const HEAD: usize = 16;

/// Headers of safetensors files are a few thousand bytes, a hundred thousand where the moves of a large game are named. What is
/// made of JSON takes up to forty times its bytes.
const MAX_HEADER: u64 = 16 << 20;

/// A description with the largest network has a few hundred bytes.
const MAX_DESCRIPTION: usize = 1 << 20;

/// The metadata entry that is ours.
pub const KEY: &str = "sparring";

/// A kind of file that holds a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A checkpoint, or any other safetensors file.
    Safetensors,
    /// ONNX.
    Onnx,
    /// TorchScript.
    TorchScript,
}

impl FileKind {
    /// How files of it are named.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Safetensors => "safetensors",
            Self::Onnx => "onnx",
            Self::TorchScript => "pt",
        }
    }

    /// Its name, as `sparring export` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Safetensors => "safetensors",
            Self::Onnx => "onnx",
            Self::TorchScript => "torchscript",
        }
    }

    /// What these bytes look like; a safetensors file where nothing else fits.
    fn of(bytes: &[u8]) -> Self {
        match bytes {
            [b'P', b'K', ..] => Self::TorchScript,
            bytes if onnx::looks_like(bytes) && bytes.get(8) != Some(&b'{') => Self::Onnx,
            _ => Self::Safetensors,
        }
    }
}

impl std::fmt::Display for FileKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Safetensors => "a safetensors file",
            Self::Onnx => "an ONNX file",
            Self::TorchScript => "a TorchScript file",
        })
    }
}

/// What a checkpoint says about its weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointInfo {
    /// The game with its options that differ from the default: `uttt`, `othello:size=6`.
    pub game: String,
    /// The game's [`Game::ENCODING_VERSION`] when the network was trained.
    pub encoding_version: u32,
    /// The network.
    pub network: NetSpec,
    /// Training steps behind the weights.
    pub step: u64,
    /// Training samples behind the weights.
    pub samples: u64,
    /// Generation of the cycle of self-play, training and gate.
    pub generation: u32,
    /// Name of the run, empty when it had none.
    pub run: String,
    /// Rating, where one was measured.
    pub elo: Option<f64>,
    /// Under which licence the weights may be used, where one was stated.
    pub licence: Option<String>,
    /// Version of the program that wrote the file.
    pub tool_version: String,
}

impl CheckpointInfo {
    /// A network of `game` that has not been trained yet.
    pub fn untrained<G: Game>(game: &G, network: NetSpec) -> Self {
        Self {
            game: full_name(game),
            encoding_version: G::ENCODING_VERSION,
            network,
            step: 0,
            samples: 0,
            generation: 0,
            run: String::new(),
            elo: None,
            licence: None,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// A network with its weights and their history.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// What they are.
    pub info: CheckpointInfo,
    /// The numbers.
    pub weights: Weights,
}

/// A checkpoint could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The file system refused.
    #[error(transparent)]
    File(#[from] PublishError),
    /// The file is cut short, altered, or no safetensors file.
    #[error("checkpoint {}: {what}; restore it from a copy", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// Of a kind that is known, but not written by this program.
    #[error("{} is {kind} but none of sparring's: its metadata has no `{KEY}` entry", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What kind of file it is, with its article.
        kind: FileKind,
    },
    /// Written by another version of this program.
    #[error(
        "checkpoint {} has format {found}, but this program reads format {FORMAT}: {}",
        .path.display(),
        if *.found > FORMAT { "upgrade sparring" } else { "use the older sparring that wrote it" }
    )]
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// The format number in the file.
        found: u32,
    },
    /// The weights do not fit the network that the file itself describes, or hold a bad number.
    #[error("checkpoint {}: {source}", .path.display())]
    Weights {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: WeightsError,
    },
}

/// A checkpoint is of another game, or of another encoding of the same game.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the checkpoint's {what} is {found}, but here it is {expected}: {remedy}")]
pub struct GameMismatch {
    /// What differs.
    pub what: &'static str,
    /// The checkpoint's value.
    pub found: String,
    /// The value here.
    pub expected: String,
    /// What to do.
    pub remedy: &'static str,
}

/// The JSON of the metadata entry. `info` is read after the format number is known to be ours.
#[derive(Serialize, Deserialize)]
struct Envelope {
    format: u32,
    #[serde(default)]
    weights_digest: String,
    #[serde(default)]
    info_digest: String,
    #[serde(default)]
    info: serde_json::Value,
}

impl Checkpoint {
    /// Publishes the checkpoint as `path`: whole or not at all. Equal checkpoints give equal bytes.
    ///
    /// # Errors
    /// When the weights are not those of the network or hold a number that is not finite (nothing is written
    /// then), or the file system refuses.
    pub fn save(&self, path: &Path) -> Result<(), CheckpointError> {
        let bad = |source| CheckpointError::Weights { path: path.to_owned(), source };
        self.weights.check(&self.info.network).map_err(bad)?;
        write_atomic(path, &self.to_bytes())?;
        Ok(())
    }

    /// The entry that makes a file one of ours: format, digests, and the description of the network.
    pub(crate) fn envelope(&self) -> String {
        let info = serde_json::to_value(&self.info).expect("plain data has a JSON form");
        let envelope = Envelope {
            format: FORMAT,
            weights_digest: self.weights.digest(),
            info_digest: description_digest(&info),
            info,
        };
        serde_json::to_string(&envelope).expect("plain data has a JSON form")
    }

    /// The bytes of the file.
    fn to_bytes(&self) -> Vec<u8> {
        self.to_safetensors(&[])
    }

    /// The bytes of a checkpoint with these entries of metadata besides its own.
    pub(crate) fn to_safetensors(&self, metadata: &[(String, String)]) -> Vec<u8> {
        let data: Vec<(&String, &Vec<usize>, Vec<u8>)> = self
            .weights
            .0
            .iter()
            .map(|(name, tensor)| (name, &tensor.shape, tensor.data.iter().flat_map(|x| x.to_le_bytes()).collect()))
            .collect();
        let views = data.iter().map(|(name, shape, bytes)| {
            let view = TensorView::new(Dtype::F32, (*shape).clone(), bytes);
            (name.as_str(), view.expect("checked weights have as many numbers as their shape says"))
        });
        let metadata = metadata.iter().cloned().chain([(KEY.to_owned(), self.envelope())]);
        safetensors::serialize(views, Some(metadata.collect::<HashMap<_, _>>()))
            .expect("checked weights are far below the header limit of the format")
    }

    /// Reads and verifies a checkpoint.
    ///
    /// # Errors
    /// When the file cannot be read, is cut short or altered, is of another format, or holds weights that do not
    /// fit its own description or are not finite.
    pub fn load(path: &Path) -> Result<Self, CheckpointError> {
        Self::from_bytes(path, &read_bytes(path)?)
    }

    /// Reads and verifies a checkpoint, or the network in an ONNX or TorchScript file that this program exported. Nothing in the
    /// file is executed. The weights of an exported network are those it was served with: normalisations folded, rounded where it
    /// was exported in float16.
    ///
    /// # Errors
    /// As [`load`](Self::load), and when another program wrote the file.
    pub fn import(path: &Path) -> Result<(Self, FileKind), CheckpointError> {
        let bytes = read_bytes(path)?;
        let kind = FileKind::of(&bytes);
        if kind == FileKind::Safetensors {
            return Ok((Self::from_bytes(path, &bytes)?, kind));
        }
        let damaged = |what: String| CheckpointError::Damaged { path: path.to_owned(), what };
        let foreign = || CheckpointError::Foreign { path: path.to_owned(), kind };
        let open = |text: Option<&str>| open_envelope(path, text.ok_or_else(foreign)?);
        let (envelope, weights) = if kind == FileKind::Onnx {
            let file = onnx::parse(&bytes).map_err(damaged)?;
            let envelope = open(file.metadata(KEY))?;
            let weights = file.weights(&envelope.0.network).map_err(damaged)?;
            (envelope, weights)
        } else {
            let file = torchscript::parse(&bytes).map_err(damaged)?;
            let envelope = open(file.metadata())?;
            let weights = file.weights(&envelope.0.network).map_err(damaged)?;
            (envelope, weights)
        };
        Ok((Self::assemble(path, envelope, weights)?, kind))
    }

    fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Self, CheckpointError> {
        let damaged = |what: String| CheckpointError::Damaged { path: path.to_owned(), what };
        if let Some((length, _)) = bytes.split_first_chunk::<8>()
            && (MAX_HEADER + 1..=bytes.len() as u64).contains(&u64::from_le_bytes(*length))
        {
            return Err(damaged(format!("its header is longer than that of any checkpoint ({MAX_HEADER} bytes)")));
        }
        // Both calls check every length in the header against the bytes that are there before they use it.
        let broken = |error| damaged(header_problem(&error, bytes));
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(broken)?;
        if metadata.tensors().values().any(|tensor| tensor.data_offsets.1 > bytes.len()) {
            return Err(damaged("its header speaks of more bytes than there are".into()));
        }
        let tensors = SafeTensors::deserialize(bytes).map_err(broken)?;

        let foreign = || CheckpointError::Foreign { path: path.to_owned(), kind: FileKind::Safetensors };
        let text = metadata.metadata().as_ref().and_then(|map| map.get(KEY)).ok_or_else(foreign)?;
        let envelope = open_envelope(path, text)?;

        let mut weights = BTreeMap::new();
        for (name, view) in tensors.iter() {
            if view.dtype() != Dtype::F32 {
                return Err(damaged(format!("tensor `{name}` holds {:?} instead of F32", view.dtype())));
            }
            let (shape, data) = (view.shape().to_vec(), floats(view.data()));
            weights.insert(name.to_owned(), WeightTensor { shape, data });
        }
        Self::assemble(path, envelope, Weights(weights))
    }

    /// A description and weights that have been read, if they belong together.
    fn assemble(
        path: &Path,
        (info, digest): (CheckpointInfo, String),
        weights: Weights,
    ) -> Result<Self, CheckpointError> {
        weights.check(&info.network).map_err(|source| CheckpointError::Weights { path: path.to_owned(), source })?;
        if weights.digest() != digest {
            let what = "its weights were altered (the digest differs)".into();
            return Err(CheckpointError::Damaged { path: path.to_owned(), what });
        }
        Ok(Self { info, weights })
    }

    /// Checks that the network is for `game` with these options and this encoding.
    ///
    /// # Errors
    /// Names the first difference, both values and the remedy.
    pub fn check_game<G: Game>(&self, game: &G) -> Result<(), GameMismatch> {
        let differ = |what, found: String, expected: String, remedy| {
            if found == expected { Ok(()) } else { Err(GameMismatch { what, found, expected, remedy }) }
        };
        let network = &self.info.network;
        let retrain = "its network cannot be used with this version of the game; train a new one";
        differ("game", self.info.game.clone(), full_name(game), "name that game, or take another checkpoint")?;
        differ("encoding version", self.info.encoding_version.to_string(), G::ENCODING_VERSION.to_string(), retrain)?;
        differ("input", format!("{:?}", network.input), format!("{:?}", game.plane_shape()), retrain)?;
        differ("policy", format!("{:?}", network.policy), format!("{:?}", game.policy_shape()), retrain)
    }
}

/// All bytes of a file that may hold a network.
fn read_bytes(path: &Path) -> Result<Vec<u8>, CheckpointError> {
    let unreadable = |source| PublishError::reading(path, source);
    let about = std::fs::metadata(path).map_err(unreadable)?;
    let length = about.len();
    if !about.is_file() {
        return Err(CheckpointError::Damaged { path: path.to_owned(), what: "it is no ordinary file".to_owned() });
    }
    if length > MAX_BYTES {
        let what = format!("{length} bytes are more than any checkpoint has ({MAX_BYTES})");
        return Err(CheckpointError::Damaged { path: path.to_owned(), what });
    }
    let mut file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    (&mut file).take(HEAD as u64).read_to_end(&mut bytes).map_err(unreadable)?;
    if FileKind::of(&bytes) == FileKind::Safetensors && bytes.len() == HEAD && bytes[8] != b'{' {
        let what = "it is altered, or holds no network (safetensors, ONNX or TorchScript)".to_owned();
        return Err(CheckpointError::Damaged { path: path.to_owned(), what });
    }
    // A file may be large and empty: room is made for what comes.
    file.read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

/// The description in an entry of ours, and the digest that the weights must have.
fn open_envelope(path: &Path, text: &str) -> Result<(CheckpointInfo, String), CheckpointError> {
    let damaged = |what: String| CheckpointError::Damaged { path: path.to_owned(), what };
    let unreadable = |error: serde_json::Error| damaged(format!("its metadata cannot be read ({error})"));
    if text.len() > MAX_DESCRIPTION {
        return Err(damaged(format!("its description has {} bytes, more than that of any network", text.len())));
    }
    let envelope: Envelope = serde_json::from_str(text).map_err(unreadable)?;
    if envelope.format != FORMAT {
        return Err(CheckpointError::OtherFormat { path: path.to_owned(), found: envelope.format });
    }
    if description_digest(&envelope.info) != envelope.info_digest {
        return Err(damaged("its description was altered (the digest differs)".into()));
    }
    let info = serde_json::from_value(envelope.info).map_err(unreadable)?;
    Ok((info, envelope.weights_digest))
}

/// The digest of a checkpoint's description (the member `info` of its metadata), over its JSON in the order in which the
/// keys stand: for programs that write checkpoints of their own. It notices damage; like [`Weights::digest`] it is no
/// protection against forgery, and everything in a description is checked for itself when it is read.
pub fn description_digest(info: &serde_json::Value) -> String {
    let mut digest = Digest::default();
    digest.bytes(info.to_string().as_bytes());
    digest.to_string()
}

/// What a person should know about a header that cannot be read.
fn header_problem(error: &SafeTensorError, bytes: &[u8]) -> String {
    match error {
        SafeTensorError::HeaderTooSmall | SafeTensorError::InvalidHeaderLength => {
            format!("it is cut short ({} bytes) or holds no network (safetensors, ONNX or TorchScript)", bytes.len())
        }
        SafeTensorError::MetadataIncompleteBuffer => {
            "it is cut short or has bytes behind its end: the lengths in its header do not add up".into()
        }
        other => format!("it is altered, or neither a safetensors, ONNX nor TorchScript file ({other})"),
    }
}

#[cfg(test)]
#[path = "checkpoint_tests.rs"]
mod tests;
