//! Players rated together, from games that are kept in a file.

use std::path::{Path, PathBuf};

use super::games_file::{Begins, GamesFile, GamesFileError, Header};
use super::hold::hold;
use super::report::ratings;
use crate::game::Game;
use crate::net::EngineChoice;
use crate::play::{Finished, MatchParams, MatchReport, MatchTally, Openings, Player, PoolError, PoolParams};
use crate::run::config::opening_plies;
use crate::run::player::{PlayerError, PlayerSpec};
use crate::util::publish::{PublishError, set_aside};
use crate::util::rng::{Purpose, Stream};
use crate::util::stats::{Estimate, RatingError};

/// A player who is rated.
#[derive(Clone, Debug)]
pub struct Entrant {
    name: String,
    player: PlayerSpec,
    /// What identifies its network, where it is known already.
    network: Option<String>,
}

impl Entrant {
    /// The checkpoint `file`, whose weights have this `digest`.
    pub fn checkpoint(name: String, file: PathBuf, digest: &str, simulations: u32) -> Self {
        let network = Some(format!("{digest} @sims={simulations}"));
        Self { name, player: PlayerSpec::network(file, simulations), network }
    }

    /// A player as `sparring pit` takes it, named so.
    ///
    /// # Errors
    /// When there is no such player.
    pub fn named(text: &str) -> Result<Self, RatedError> {
        Ok(Self { name: text.to_owned(), player: PlayerSpec::parse(text)?, network: None })
    }

    /// Whether it plays `game`.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn check<G: Game>(&self, game: &G) -> Result<(), RatedError> {
        self.player.open(game, &EngineChoice::default())?;
        Ok(())
    }
}

/// Who is rated and how.
#[derive(Clone, Debug)]
pub struct Field {
    /// The players.
    pub entrants: Vec<Entrant>,
    /// Who meets whom, as numbers of players.
    pub encounters: Vec<[usize; 2]>,
    /// The player at Elo 0.
    pub zero: usize,
    /// Games of each two that meet, an even number.
    pub games: usize,
    /// Seeds openings and players.
    pub seed: u64,
    /// Worker threads.
    pub threads: usize,
    /// The file of the games, from which an interrupted match goes on.
    pub file: PathBuf,
}

/// What is ahead when the games begin.
#[derive(Clone, Debug)]
pub struct Ahead {
    /// Games in all.
    pub games: usize,
    /// Those that are there already.
    pub played: usize,
    /// Why games that were there are played anew, and what became of them.
    pub anew: Option<String>,
}

/// What came out.
#[derive(Clone, Debug)]
pub struct Rated {
    /// The Elo of each player.
    pub elo: Vec<Estimate>,
    /// The match.
    pub report: MatchReport,
}

/// Players could not be rated.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum RatedError {
    #[error(transparent)]
    Player(#[from] PlayerError),
    #[error(transparent)]
    Pool(#[from] PoolError),
    #[error(transparent)]
    Games(#[from] GamesFileError),
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error("the players cannot be rated: {0}")]
    Rating(#[from] RatingError),
}

impl Field {
    /// Plays and rates; `None` when it was interrupted, what was played is kept. `begin` is told what is ahead. A file of another
    /// match is begun anew, as it is when players are added; one that is damaged is set aside before.
    ///
    /// # Errors
    /// When a player cannot be opened, or the file not written.
    pub fn rate<G: Game>(
        &self,
        game: &G,
        stop: &(dyn Fn() -> bool + Sync),
        begin: &dyn Fn(Ahead),
        progress: &(dyn Fn(&[MatchTally]) + Sync),
    ) -> Result<Option<Rated>, RatedError> {
        let engine = EngineChoice::default();
        let (mut players, mut networks) = (Vec::new(), Vec::new());
        for Entrant { name, player, network } in &self.entrants {
            let opened = player.open(game, &engine)?;
            players.push(Player { name: name.clone(), ..opened });
            // The file of a player may change.
            networks.push(match network {
                Some(network) => Some(network.clone()),
                None => player.checkpoint()?.map(|checkpoint| checkpoint.weights.digest()),
            });
        }
        let plies = opening_plies(game) as usize;
        let header = Header {
            players: players.iter().map(|player| player.name.clone()).collect(),
            networks,
            encounters: self.encounters.clone(),
            ..Header::new(game, format!("{plies} random plies"), self.seed)
        };
        let total = self.encounters.len() * (self.games / 2) * 2;
        let openings = openings(game, self.seed);
        let begins = Begins { openings: &openings, games: total as u64 };
        let (file, played, anew) = open_games(game, &self.file, header, &begins)?;
        begin(Ahead { games: total, played: played.len(), anew });
        let threads = self.threads.clamp(1, total.max(1));
        let params = MatchParams {
            encounters: self.encounters.clone(),
            pairs: self.games / 2,
            openings,
            sprt: None,
            seed: self.seed,
            pool: PoolParams { threads, slots: (total / threads).clamp(1, 64) },
        };
        let held = hold(game, &players, &params, Some(file), played, stop, progress)?;
        held.kept?;
        if held.report.interrupted {
            return Ok(None);
        }
        let elo = ratings(&held.report, players.len(), self.zero)?;
        Ok(Some(Rated { elo, report: held.report }))
    }
}

/// The openings of rated games.
pub(super) fn openings<G: Game>(game: &G, seed: u64) -> Openings<G> {
    Openings::random(opening_plies(game) as usize, Stream::keyed(seed, Purpose::Opening, &[]))
}

/// The file of the games, what is in it, and why what was in it before is not.
fn open_games<G: Game>(
    game: &G,
    path: &Path,
    header: Header,
    begins: &Begins<'_, G>,
) -> Result<(GamesFile, Vec<Finished>, Option<String>), GamesFileError> {
    let anew = match GamesFile::open(game, path, header.clone(), Some(begins)) {
        Ok((file, played)) => return Ok((file, played, None)),
        Err(GamesFileError::Other { difference, .. }) => {
            std::fs::remove_file(path).map_err(|error| PublishError::writing(path, "remove", error))?;
            format!("all games are played anew, as they are not those of before (what differs: {difference})")
        }
        Err(
            error @ (GamesFileError::Foreign { .. }
            | GamesFileError::Version { .. }
            | GamesFileError::Line { .. }
            | GamesFileError::Opening { .. }),
        ) => {
            let mut target = path.to_owned();
            target.as_mut_os_string().push(".damaged");
            let aside = set_aside(path, &target)?;
            // What helps is done already.
            let error = error.to_string();
            let told = error.split("; ").next().unwrap_or_default();
            format!("{told}. All games are played anew; the file is kept as {}", aside.display())
        }
        Err(error) => return Err(error),
    };
    let (file, played) = GamesFile::open(game, path, header, Some(begins))?;
    Ok((file, played, Some(anew)))
}
