//! The weights that a run begins with.

use std::path::{Path, PathBuf};

use super::player::{NetworkError, load_network};
use crate::game::Game;
use crate::net::{Checkpoint, GameMismatch, NetSpec};

/// A run cannot begin with the checkpoint that its config names.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It cannot be read.
    #[error("start: {0}")]
    Network(#[from] NetworkError),
    /// It is an export.
    #[error(
        "start: in {} the normalisations that training needs are folded away, as in every file that was exported for other programs: \
         name the checkpoint that it was made from",
        .file.display()
    )]
    Folded {
        /// The file.
        file: PathBuf,
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
    Other {
        /// The checkpoint.
        file: PathBuf,
        /// Its network.
        found: String,
        /// That of the config.
        asked: String,
    },
}

/// The checkpoint `file`, or the best one of the run `file`, for a run that trains `spec`.
///
/// # Errors
/// When it cannot be read or does not fit.
pub fn start_network<G: Game>(game: &G, spec: &NetSpec, file: &Path) -> Result<Checkpoint, StartError> {
    let checkpoint = load_network(file)?;
    checkpoint.check_game(game).map_err(|error| StartError::Game { file: file.to_owned(), error })?;
    let network = &checkpoint.info.network;
    if network != spec {
        let words = |spec: &NetSpec| serde_json::to_string(&spec.architecture).expect("plain data has a JSON form");
        let (found, asked) = (words(network), words(spec));
        return Err(StartError::Other { file: file.to_owned(), found, asked });
    }
    if checkpoint.weights.is_folded(spec) {
        return Err(StartError::Folded { file: file.to_owned() });
    }
    Ok(checkpoint)
}
