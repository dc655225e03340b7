//! A match with its games kept in a file.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::games_file::{GamesFile, GamesFileError};
use crate::game::Game;
use crate::play::{Finished, MatchParams, MatchReport, MatchTally, Player, PoolError, PoolStats, Referee, play_match};

/// What a match came to.
#[derive(Debug)]
pub struct Held {
    /// The report.
    pub report: MatchReport,
    /// Whether the games could be kept. When not, the match was ended.
    pub kept: Result<(), GamesFileError>,
}

/// Plays a match, keeps each game in `file`, and goes on from the games `played` that were in it.
///
/// # Errors
/// When an evaluator fails.
pub fn hold<G: Game>(
    game: &G,
    players: &[Player<G>],
    params: &MatchParams<G>,
    file: Option<GamesFile>,
    played: Vec<Finished>,
    stop: &(dyn Fn() -> bool + Sync),
    progress: &(dyn Fn(&[MatchTally]) + Sync),
) -> Result<Held, PoolError> {
    let (file, failed) = (Mutex::new(file.map(Ok)), AtomicBool::new(false));
    let keep = |finished: &Finished| {
        let mut file = file.lock().expect("nothing panics here");
        if let Some(Ok(open)) = file.as_mut()
            && let Err(error) = open.add(game, finished)
        {
            *file = Some(Err(error));
            failed.store(true, Relaxed);
        }
    };
    let referee = Referee { stop: &|| stop() || failed.load(Relaxed), finished: &keep, progress };
    let report = play_match(game, players, params, played, &PoolStats::default(), &referee)?;
    let file = file.into_inner().expect("nothing panics here");
    let kept = file.map_or(Ok(()), |file| file.and_then(GamesFile::finish));
    Ok(Held { report, kept })
}
