//! The weights that a run begins with.

use std::path::{Path, PathBuf};

use crate::game::Game;
use crate::net::{Checkpoint, CheckpointError, FileKind, GameMismatch, NetSpec, Weights};

/// A run cannot begin with the checkpoint that its config names.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It cannot be read.
    #[error("start: {0}")]
    Checkpoint(#[from] CheckpointError),
    /// It is an export.
    #[error(
        "start: {} is {kind}, in which the normalisations that training needs are folded away: name the checkpoint that it was \
         exported from",
        .file.display()
    )]
    Exported {
        /// The file.
        file: PathBuf,
        /// Its kind.
        kind: FileKind,
    },
    /// It is of another game.
    #[error("start: {}: {error}", .file.display())]
    Game {
        /// The checkpoint.
        file: PathBuf,
        /// What differs.
        error: GameMismatch,
    },
    /// It is another network.
    #[error(
        "start: {} holds the network {found}, but the config asks for {asked}: put the former into `network`, or name another \
         checkpoint",
        .file.display()
    )]
    Network {
        /// The checkpoint.
        file: PathBuf,
        /// Its network.
        found: String,
        /// That of the config.
        asked: String,
    },
}

/// The weights in the checkpoint `file`, for a run that trains `spec`.
///
/// # Errors
/// When it cannot be read or does not fit.
pub fn start_weights<G: Game>(game: &G, spec: &NetSpec, file: &Path) -> Result<Weights, StartError> {
    let (checkpoint, kind) = Checkpoint::import(file)?;
    if kind != FileKind::Safetensors {
        return Err(StartError::Exported { file: file.to_owned(), kind });
    }
    checkpoint.check_game(game).map_err(|error| StartError::Game { file: file.to_owned(), error })?;
    let network = &checkpoint.info.network;
    if network != spec {
        let words = |spec: &NetSpec| serde_json::to_string(&spec.architecture).expect("plain data has a JSON form");
        let (found, asked) = (words(network), words(spec));
        return Err(StartError::Network { file: file.to_owned(), found, asked });
    }
    Ok(checkpoint.weights)
}
