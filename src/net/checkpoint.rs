//! The checkpoint: one `.safetensors` file with the weights and everything needed to use them alone.
//!
//! The file's metadata has one entry, `sparring`: JSON with the format number, digests of both parts, and
//! [`CheckpointInfo`]. Any safetensors reader opens the weights; the tensors' names are those of
//! [`NetSpec::tensors`], all float32. Nothing is used before all of it has been verified.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, SafeTensorError, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};

use crate::game::{Game, full_name};
use crate::net::spec::NetSpec;
use crate::net::weights::{Digest, WeightTensor, Weights, WeightsError};
use crate::util::publish::{PublishError, write_atomic};

/// The version of the file format that this program writes and reads.
pub const FORMAT: u32 = 1;

/// Larger files are no checkpoints of ours.
const MAX_BYTES: u64 = 8 << 30;

/// The metadata entry that is ours.
const KEY: &str = "sparring";

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
    /// A safetensors file, but not written by this program.
    #[error("{} is a safetensors file but no sparring checkpoint: its metadata has no `{KEY}` entry", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
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

    /// The bytes of the file.
    fn to_bytes(&self) -> Vec<u8> {
        let info = serde_json::to_value(&self.info).expect("plain data has a JSON form");
        let envelope = Envelope {
            format: FORMAT,
            weights_digest: self.weights.digest(),
            info_digest: description_digest(&info),
            info,
        };
        let text = serde_json::to_string(&envelope).expect("plain data has a JSON form");
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
        safetensors::serialize(views, Some(HashMap::from([(KEY.to_owned(), text)])))
            .expect("checked weights are far below the header limit of the format")
    }

    /// Reads and verifies a checkpoint.
    ///
    /// # Errors
    /// When the file cannot be read, is cut short or altered, is of another format, or holds weights that do not
    /// fit its own description or are not finite.
    pub fn load(path: &Path) -> Result<Self, CheckpointError> {
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
        let bytes = std::fs::read(path).map_err(unreadable)?;
        Self::from_bytes(path, &bytes)
    }

    fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Self, CheckpointError> {
        let damaged = |what: String| CheckpointError::Damaged { path: path.to_owned(), what };
        // Both calls check every length in the header against the bytes that are there before they use it.
        let broken = |error| damaged(header_problem(&error, bytes));
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(broken)?;
        if metadata.tensors().values().any(|tensor| tensor.data_offsets.1 > bytes.len()) {
            return Err(damaged("its header speaks of more bytes than there are".into()));
        }
        let tensors = SafeTensors::deserialize(bytes).map_err(broken)?;

        let foreign = || CheckpointError::Foreign { path: path.to_owned() };
        let text = metadata.metadata().as_ref().and_then(|map| map.get(KEY)).ok_or_else(foreign)?;
        let unreadable = |error: serde_json::Error| damaged(format!("its metadata cannot be read ({error})"));
        let envelope: Envelope = serde_json::from_str(text).map_err(unreadable)?;
        if envelope.format != FORMAT {
            return Err(CheckpointError::OtherFormat { path: path.to_owned(), found: envelope.format });
        }
        if description_digest(&envelope.info) != envelope.info_digest {
            return Err(damaged("its description was altered (the digest differs)".into()));
        }
        let info: CheckpointInfo = serde_json::from_value(envelope.info).map_err(unreadable)?;

        let mut weights = BTreeMap::new();
        for (name, view) in tensors.iter() {
            if view.dtype() != Dtype::F32 {
                return Err(damaged(format!("tensor `{name}` holds {:?} instead of F32", view.dtype())));
            }
            let number = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().expect("chunks of four bytes"));
            let data = view.data().chunks_exact(4).map(number).collect();
            weights.insert(name.to_owned(), WeightTensor { shape: view.shape().to_vec(), data });
        }
        let weights = Weights(weights);
        weights.check(&info.network).map_err(|source| CheckpointError::Weights { path: path.to_owned(), source })?;
        if weights.digest() != envelope.weights_digest {
            return Err(damaged("its weights were altered (the digest differs)".into()));
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
            format!("it is cut short ({} bytes) or no safetensors file", bytes.len())
        }
        SafeTensorError::MetadataIncompleteBuffer => {
            "it is cut short or has bytes behind its end: the lengths in its header do not add up".into()
        }
        other => format!("it is altered or no safetensors file ({other})"),
    }
}

#[cfg(test)]
#[path = "checkpoint_tests.rs"]
mod tests;
