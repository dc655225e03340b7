//! Games from files, shown: those of a match, and those of a run's self-play.

use std::path::Path;

use super::games_file::{self, GamesFileError, result_text};
use crate::data::{self, Finish, GameRecord, PlyKind, RecordFileError};
use crate::game::{Game, WdlAbs};
use crate::util::text::plain;

/// A game to be shown.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Its number in the match or generation.
    pub index: u64,
    /// Who moved first and who second.
    pub players: [String; 2],
    /// The game.
    pub record: GameRecord,
    /// What was thought of the position before each ply, where that is known.
    pub values: Vec<Option<WdlAbs>>,
    /// What decided the game besides the rules.
    pub fault: Option<String>,
}

/// Games that cannot be shown.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ShownError {
    #[error(transparent)]
    Match(GamesFileError),
    #[error(transparent)]
    Records(#[from] RecordFileError),
    #[error("{file} holds neither the games of a match (`pit --games-out`) nor those of self-play")]
    Foreign { file: String },
    #[error("{file} is no ordinary file: what comes out of a pipe has to be put into a file first")]
    NoFile { file: String },
    #[error("{file} holds no games")]
    Empty { file: String },
    #[error("{file}: {problem}")]
    Record { file: String, problem: String },
}

enum Source {
    Match,
    Records(Vec<GameRecord>),
}

/// What kind of file it is, and of what game.
fn source(path: &Path) -> Result<(Source, String), ShownError> {
    let file = || path.display().to_string();
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(ShownError::NoFile { file: file() });
    }
    match games_file::read_header(path) {
        Ok(header) => Ok((Source::Match, header.game)),
        Err(GamesFileError::Foreign { .. }) => match data::read(path) {
            Ok(read) => {
                let game = read.records.first().map(|record| record.game.clone());
                let game = game.ok_or_else(|| ShownError::Empty { file: file() })?;
                Ok((Source::Records(read.records), game))
            }
            Err(RecordFileError::Foreign { .. }) => Err(ShownError::Foreign { file: file() }),
            Err(error) => Err(error.into()),
        },
        Err(error) => Err(ShownError::Match(error)),
    }
}

/// The game, with its options, that a file holds games of.
///
/// # Errors
/// When it cannot be read or holds no games.
pub fn game_of(path: &Path) -> Result<String, ShownError> {
    source(path).map(|(_, game)| game)
}

/// The games of a file, which must be of `game`, by their numbers.
///
/// # Errors
/// When the file cannot be read, or a game in it is none by the rules.
pub fn read_games<G: Game>(game: &G, path: &Path) -> Result<Vec<Shown>, ShownError> {
    let mut shown: Vec<Shown> = match source(path)?.0 {
        Source::Match => {
            let read = games_file::read_games(game, path).map_err(ShownError::Match)?;
            let players = read.header.players;
            let shown = |finished: crate::play::Finished| Shown {
                index: finished.index,
                players: finished.seats.map(|seat| players[seat].clone()),
                record: finished.record,
                values: finished.opinions,
                fault: finished.fault,
            };
            read.games.into_iter().map(shown).collect()
        }
        Source::Records(records) => records
            .into_iter()
            .map(|record| {
                let wrong = |error: data::ReplayError| ShownError::Record {
                    file: path.display().to_string(),
                    problem: error.to_string(),
                };
                record.check(game).map_err(wrong)?;
                let searched = |kind| matches!(kind, PlyKind::Full | PlyKind::Fast);
                Ok(Shown {
                    index: record.index.into(),
                    players: game.player_names().map(str::to_owned),
                    values: record.plies.iter().map(|ply| searched(ply.kind).then_some(ply.value)).collect(),
                    record,
                    fault: None,
                })
            })
            .collect::<Result<_, ShownError>>()?,
    };
    shown.sort_by_key(|game| game.index);
    if shown.is_empty() { Err(ShownError::Empty { file: path.display().to_string() }) } else { Ok(shown) }
}

impl Shown {
    fn result(&self) -> String {
        let end = self.record.end;
        let result = result_text(end.outcome);
        let why = match end.reason {
            Finish::Rules => "",
            Finish::Repetition => ", by repetition",
            Finish::PlyCap => ", at the ply limit",
            Finish::Proven => ", proven",
            Finish::Resigned => ", by resignation",
            Finish::Adjudicated => ", forfeit",
        };
        format!("{result}{why}")
    }

    /// The players, fit to be shown.
    fn names(&self) -> [String; 2] {
        self.players.each_ref().map(|name| plain(name))
    }

    /// One line about the game.
    pub fn line(&self) -> String {
        let [first, second] = self.names();
        format!("{:>6}  {first} - {second}  {}  {} plies", self.index, self.result(), self.record.plies.len())
    }

    /// The game move by move, with boards in colour or plain.
    ///
    /// # Errors
    /// When the start is no position, which [`read_games`] has made sure of.
    pub fn text<G: Game>(&self, game: &G, color: bool) -> Result<String, String> {
        let draw = |state: &G::State, last| game.paint(state, last).render(color);
        let [first, second] = self.names();
        let names = game.player_names();
        let mut state = game.parse_state(&self.record.start).map_err(|error| error.to_string())?;
        let mut out = format!("game {}: {first} ({}) - {second} ({})\n\n", self.index, names[0], names[1]);
        out += &format!("{}\n", draw(&state, None).trim_end());
        for (at, ply) in self.record.plies.iter().enumerate() {
            let mover = names[game.to_move(&state).index()];
            let opening = if ply.kind == PlyKind::Opening { " (opening)" } else { "" };
            let value = self.values.get(at).copied().flatten().map_or_else(String::new, |value| {
                let [a, draw, b] = [value.first, value.draw, value.second].map(|share| 100.0 * share);
                format!("; {} {a:.0} %, draw {draw:.0} %, {} {b:.0} %", names[0], names[1])
            });
            out += &format!("\n{}. {mover} {}{opening}{value}\n", at + 1, game.action_text(ply.action));
            game.play(&mut state, ply.action);
            out += &format!("{}\n", draw(&state, Some(ply.action)).trim_end());
        }
        out += &format!("\n{}\n", self.result());
        if let Some(fault) = &self.fault {
            out += &format!("{}\n", plain(fault));
        }
        Ok(out)
    }
}
