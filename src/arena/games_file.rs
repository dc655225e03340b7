//! The games of a match in a file of JSON lines, from which an interrupted match goes on.
//!
//! The first line says what the match is, each further line is one game: what a person or another program wants to know of
//! it. Lines are written as games end; when the match is over they are put in order. The last member of each line is a
//! checksum of the text before it.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::data::{Finish, GameRecord, PlyKind, PlyRecord, RecordEnd};
use crate::game::{Game, Outcome, Player, WdlAbs, full_name};
use crate::play::{Clock, Finished, Openings};
use crate::util::publish::{PublishError, write_atomic};

/// The format of the file. Another number is another format.
const FORMAT: u32 = 1;

/// No player thinks for so many seconds in one game.
const LONGEST_THINKING: f64 = 1e9;

/// No line is longer.
const LONGEST_LINE: u64 = 16 << 20;

/// What the match is. Games of one match can go on in another with the same header.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The number of the format; also says what the file is.
    pub sparring_match: u32,
    /// The game with its options.
    pub game: String,
    /// The version of its rules.
    pub rules_version: u32,
    /// The players.
    pub players: Vec<String>,
    /// What identifies the network of each, where it has one.
    pub networks: Vec<Option<String>>,
    /// How long players think that do not say it themselves, in words.
    #[serde(default)]
    pub limits: String,
    /// Who meets whom, as numbers of players.
    pub encounters: Vec<[usize; 2]>,
    /// Where pairs begin, in words that change when the openings do.
    pub openings: String,
    /// The seed.
    pub seed: u64,
}

impl Header {
    /// The header of a match of `game` without players.
    pub fn new<G: Game>(game: &G, openings: String, seed: u64) -> Self {
        Self {
            sparring_match: FORMAT,
            game: full_name(game),
            rules_version: G::RULES_VERSION,
            players: Vec::new(),
            networks: Vec::new(),
            limits: String::new(),
            encounters: Vec::new(),
            openings,
            seed,
        }
    }

    /// Who moves first and second in the game `index`; `None` where the match can have no such game.
    fn seats(&self, index: u64) -> Option<[usize; 2]> {
        let number = u64::from(u32::try_from(index).ok()?) / 2 % (self.encounters.len() as u64).max(1);
        let [a, b] = *self.encounters.get(number as usize)?;
        let known = a != b && a.max(b) < self.players.len();
        known.then_some(if index.is_multiple_of(2) { [a, b] } else { [b, a] })
    }

    /// In what it differs from `other`, in words.
    fn difference(&self, other: &Self) -> String {
        let same_players = self.players == other.players;
        let fields = [
            ("the game", self.game != other.game),
            ("the rules of the game", self.rules_version != other.rules_version),
            ("the players", !same_players),
            ("the network of a player", same_players && self.networks != other.networks),
            ("--sims or --movetime", self.limits != other.limits),
            ("who meets whom", same_players && self.encounters != other.encounters),
            ("the openings", self.openings != other.openings),
            ("the seed", self.seed != other.seed),
        ];
        let differing: Vec<&str> = fields.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect();
        differing.join(", ")
    }
}

/// A file of games that cannot be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum GamesFileError {
    #[error("{file} cannot be {what}: {error}")]
    System { file: String, what: &'static str, error: String },
    #[error("{file} is no file of games of a match; name another one")]
    Foreign { file: String },
    #[error("{file} has format {found}, this program reads {FORMAT}: use the version of sparring that wrote it")]
    Version { file: String, found: u64 },
    #[error(
        "{file} holds another match (what differs: {difference}); name another file, or repeat that match's command"
    )]
    Other { file: String, difference: String },
    #[error("{file} is in use by another process")]
    Locked { file: String },
    #[error("{file}, line {line}: {problem}; restore the file or remove the line")]
    Line { file: String, line: usize, problem: String },
    #[error("{file}: game {index} begins with another opening than in this match; restore the file or remove its line")]
    Opening { file: String, index: u64 },
    #[error(transparent)]
    Publish(#[from] PublishError),
}

impl GamesFileError {
    /// Whether another name would help.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Foreign { .. } | Self::Other { .. })
    }
}

/// A game as it stands in the file.
#[derive(Serialize, Deserialize)]
struct Line {
    index: u64,
    /// Names, and numbers in the header, of who moves first and who second.
    first: String,
    second: String,
    seats: [usize; 2],
    start: String,
    opening: Vec<String>,
    moves: Vec<String>,
    /// Before each of `moves`: chances that the first player wins, that nobody does, that the second does.
    evaluations: Vec<Option<[f32; 3]>>,
    result: String,
    reason: Finish,
    fault: Option<String>,
    /// Seconds that each thought in all, and on how many moves.
    seconds: [f64; 2],
    decisions: [u64; 2],
}

/// Results in the order of the players.
const RESULTS: [(&str, Outcome); 3] =
    [("1-0", Outcome::Win(Player::First)), ("1/2-1/2", Outcome::Draw), ("0-1", Outcome::Win(Player::Second))];

/// A result as it is written.
pub(super) fn result_text(outcome: Outcome) -> &'static str {
    RESULTS.iter().find(|(_, known)| *known == outcome).expect("all results are there").0
}

impl Line {
    fn new<G: Game>(game: &G, header: &Header, finished: &Finished) -> Self {
        let record = &finished.record;
        let opening = record.plies.iter().take_while(|ply| ply.kind == PlyKind::Opening).count();
        let texts = |plies: &[PlyRecord]| plies.iter().map(|ply| game.action_text(ply.action)).collect();
        let short = |share: f32| (share * 10_000.0).round() / 10_000.0;
        let value = |value: &Option<WdlAbs>| value.map(|v| [v.first, v.draw, v.second].map(short));
        let [first, second] = finished.seats.map(|player| header.players[player].clone());
        Self {
            index: finished.index,
            first,
            second,
            seats: finished.seats,
            start: record.start.clone(),
            opening: texts(&record.plies[..opening]),
            moves: texts(&record.plies[opening..]),
            evaluations: finished.opinions[opening..].iter().map(value).collect(),
            result: result_text(record.end.outcome).to_owned(),
            reason: record.end.reason,
            fault: finished.fault.clone(),
            seconds: finished.clocks.map(|clock| (clock.thinking.as_secs_f64() * 1e6).round() / 1e6),
            decisions: finished.clocks.map(|clock| clock.moves),
        }
    }

    /// Whether it is a game of this match, whose numbers are what they can be.
    fn check(&self, header: &Header) -> Result<(), String> {
        let seats = header.seats(self.index).ok_or_else(|| format!("the match has no game {}", self.index))?;
        if self.seats != seats {
            return Err(format!("game {} is between players {seats:?}, not {:?}", self.index, self.seats));
        }
        if seats.map(|seat| &header.players[seat]) != [&self.first, &self.second] {
            return Err(format!("{:?} and {:?} are not the players {seats:?}", self.first, self.second));
        }
        if self.evaluations.len() != self.moves.len() {
            return Err(format!("{} evaluations of {} moves", self.evaluations.len(), self.moves.len()));
        }
        let distribution = |e: &[f32; 3]| {
            e.iter().all(|share| (0.0..=1.0).contains(share)) && (e.iter().sum::<f32>() - 1.0).abs() < 0.01
        };
        if let Some(wrong) = self.evaluations.iter().flatten().find(|e| !distribution(e)) {
            return Err(format!("the evaluation {wrong:?} is not three chances of sum 1"));
        }
        if !self.reason.by_the_game() && self.reason != Finish::Adjudicated {
            return Err(format!("games of a match do not end {:?}", self.reason));
        }
        if (self.reason == Finish::Adjudicated) != self.fault.is_some() {
            return Err("an adjudicated game has a fault, and no other has one".to_owned());
        }
        if !self.seconds.iter().all(|seconds| (0.0..=LONGEST_THINKING).contains(seconds)) {
            return Err(format!("seconds {:?} are not from 0 to {LONGEST_THINKING:e}", self.seconds));
        }
        if self.decisions.iter().any(|&moves| moves > self.moves.len() as u64) {
            return Err(format!("{:?} decisions in {} moves", self.decisions, self.moves.len()));
        }
        Ok(())
    }

    /// The game again, after checking it against the match and the rules.
    fn finished<G: Game>(self, game: &G, header: &Header) -> Result<Finished, String> {
        self.check(header)?;
        let outcome = RESULTS.iter().find(|(text, _)| *text == self.result);
        let (_, outcome) = outcome.ok_or_else(|| format!("result {:?} is none of 1-0, 1/2-1/2, 0-1", self.result))?;
        let mut opinions = vec![None; self.opening.len()];
        opinions.extend(self.evaluations.iter().map(|e| e.map(|[first, draw, second]| WdlAbs { first, draw, second })));
        let kinds = self.opening.iter().map(|_| PlyKind::Opening).chain(self.moves.iter().map(|_| PlyKind::Fast));
        let texts = self.opening.iter().chain(&self.moves);
        let plies = texts.zip(kinds).map(|(text, kind)| {
            let action = game.parse_action(text).map_err(|error| error.to_string())?;
            Ok(PlyRecord { action, kind, value: outcome.wdl(), policy: Vec::new(), proven: None, weight: 1.0 })
        });
        let record = GameRecord {
            game: header.game.clone(),
            rules_version: header.rules_version,
            seed: header.seed,
            generation: 0,
            index: u32::try_from(self.index).map_err(|_| format!("index {} is too large", self.index))?,
            start: self.start,
            plies: plies.collect::<Result<_, String>>()?,
            end: RecordEnd { outcome: *outcome, reason: self.reason },
        };
        let last = record.check(game).map_err(|error| error.to_string())?;
        if self.fault.is_some() && *outcome != Outcome::Win(game.to_move(&last).other()) {
            return Err("the one at fault has not lost".to_owned());
        }
        let clock =
            |side: usize| Clock { thinking: Duration::from_secs_f64(self.seconds[side]), moves: self.decisions[side] };
        Ok(Finished {
            index: self.index,
            seats: self.seats,
            record,
            fault: self.fault,
            clocks: [clock(0), clock(1)],
            opinions,
        })
    }
}

/// A line with its checksum.
fn sealed(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).expect("such values can be written");
    let body = text.strip_suffix('}').expect("an object ends with a brace");
    format!("{body},\"check\":\"{:08x}\"}}\n", crc32fast::hash(body.as_bytes()))
}

/// The line without its checksum, if that is right.
fn opened(line: &str) -> Option<String> {
    let (body, check) = line.trim_end().rsplit_once(",\"check\":\"")?;
    let check = check.strip_suffix("\"}")?;
    (check == format!("{:08x}", crc32fast::hash(body.as_bytes()))).then(|| format!("{body}}}"))
}

/// What a file holds.
#[derive(Debug)]
pub struct Games {
    /// The match.
    pub header: Header,
    /// Its games, in the order of the file.
    pub games: Vec<Finished>,
    /// Bytes of complete lines; what follows is a line that breaks off.
    whole: u64,
}

/// Reads the header alone: what game a file is of.
///
/// # Errors
/// When it cannot be read or is no such file.
pub fn read_header(path: &Path) -> Result<Header, GamesFileError> {
    header(path, &mut Lines::new(path, File::open(path).map_err(|e| system(path, "read", &e))?))
}

/// Reads a file of a match of `game`. A last line that breaks off is left out: the program was ended while it wrote.
///
/// # Errors
/// When it cannot be read, is no such file, or a line is damaged or no game by the rules.
pub fn read_games<G: Game>(game: &G, path: &Path) -> Result<Games, GamesFileError> {
    read_from(game, path, File::open(path).map_err(|e| system(path, "read", &e))?, None)
}

fn system(path: &Path, what: &'static str, error: &std::io::Error) -> GamesFileError {
    GamesFileError::System { file: path.display().to_string(), what, error: error.to_string() }
}

/// The lines of a file, counted.
struct Lines<'a> {
    path: &'a Path,
    input: BufReader<File>,
    number: usize,
    /// Bytes of the lines read.
    bytes: u64,
}

impl<'a> Lines<'a> {
    fn new(path: &'a Path, file: File) -> Self {
        Self { path, input: BufReader::new(file), number: 0, bytes: 0 }
    }

    fn wrong(&self, problem: impl Into<String>) -> GamesFileError {
        GamesFileError::Line { file: self.path.display().to_string(), line: self.number, problem: problem.into() }
    }

    /// The next line that has an end; what is behind the last end is counted as no line.
    fn next(&mut self) -> Result<Option<String>, GamesFileError> {
        let mut line = Vec::new();
        self.number += 1;
        let read = (&mut self.input).take(LONGEST_LINE).read_until(b'\n', &mut line);
        if read.map_err(|error| system(self.path, "read", &error))? as u64 == LONGEST_LINE {
            return Err(self.wrong("the line is too long"));
        }
        if line.last() != Some(&b'\n') {
            return Ok(None);
        }
        self.bytes += line.len() as u64;
        String::from_utf8(line).map(Some).map_err(|_| self.wrong("it is no text"))
    }
}

fn header(path: &Path, lines: &mut Lines<'_>) -> Result<Header, GamesFileError> {
    #[derive(Deserialize)]
    struct Format {
        sparring_match: u64,
    }
    let foreign = || GamesFileError::Foreign { file: path.display().to_string() };
    let line = match lines.next() {
        Ok(line) => line.ok_or_else(foreign)?,
        Err(GamesFileError::Line { .. }) => return Err(foreign()),
        Err(error) => return Err(error),
    };
    let Format { sparring_match: found } = serde_json::from_str(&line).map_err(|_| foreign())?;
    if found != u64::from(FORMAT) {
        return Err(GamesFileError::Version { file: path.display().to_string(), found });
    }
    let body = opened(&line).ok_or_else(|| lines.wrong("it is damaged"))?;
    serde_json::from_str(&body).map_err(|error| lines.wrong(error.to_string()))
}

/// Which games a match has.
#[derive(Debug)]
pub struct Begins<'a, G: Game> {
    /// Where its pairs begin.
    pub openings: &'a Openings<G>,
    /// How many there are.
    pub games: u64,
}

impl<G: Game> Begins<'_, G> {
    /// Leaves out games that are beyond those of the match, and says which of the others begins otherwise.
    fn check(&self, game: &G, header: &Header, games: &mut Vec<Finished>) -> Result<(), u64> {
        games.retain(|finished| finished.index < self.games);
        let mut openings = self.openings.clone();
        let mut other = |finished: &&Finished| {
            let pair = finished.index as usize / 2 / header.encounters.len();
            let (opening, record) = (openings.get(game, pair), &finished.record);
            let made = record.plies.iter().take_while(|ply| ply.kind == PlyKind::Opening).map(|ply| ply.action);
            record.start != game.state_text(&opening.start) || made.ne(opening.moves.iter().copied())
        };
        games.iter().find(&mut other).map_or(Ok(()), |finished| Err(finished.index))
    }
}

/// Reads all; with `expected`, a file of that match alone.
fn read_from<G: Game>(game: &G, path: &Path, file: File, expected: Option<&Header>) -> Result<Games, GamesFileError> {
    let mut lines = Lines::new(path, file);
    let header = header(path, &mut lines)?;
    if let Some(expected) = expected.filter(|expected| **expected != header) {
        let difference = header.difference(expected);
        return Err(GamesFileError::Other { file: path.display().to_string(), difference });
    }
    let mut games = Vec::new();
    let mut seen = HashSet::new();
    while let Some(line) = lines.next()? {
        let body = opened(&line).ok_or_else(|| lines.wrong("it is damaged"))?;
        let line: Line = serde_json::from_str(&body).map_err(|error| lines.wrong(error.to_string()))?;
        let finished = line.finished(game, &header).map_err(|problem| lines.wrong(problem))?;
        if !seen.insert(finished.index) {
            return Err(lines.wrong(format!("game {} is there twice", finished.index)));
        }
        games.push(finished);
    }
    Ok(Games { header, games, whole: lines.bytes })
}

/// A file that games are added to. Locked against other processes while it is open.
#[derive(Debug)]
pub struct GamesFile {
    path: PathBuf,
    file: File,
    header: Header,
}

impl GamesFile {
    /// Opens the file `path` for the match `header`: anew, or with the games that are there, as far as the match has them by
    /// `begins`.
    ///
    /// # Errors
    /// When it cannot be read or written, is in use, or is of another match or no such file.
    pub fn open<G: Game>(
        game: &G,
        path: &Path,
        header: Header,
        begins: Option<&Begins<'_, G>>,
    ) -> Result<(Self, Vec<Finished>), GamesFileError> {
        let failed = |error: std::io::Error| system(path, "opened", &error);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(GamesFileError::Locked { file: path.display().to_string() });
            }
            Err(std::fs::TryLockError::Error(error)) => return Err(failed(error)),
        }
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(GamesFileError::Foreign { file: path.display().to_string() });
        }
        let mut own = Self { path: path.to_owned(), file, header };
        if metadata.len() == 0 {
            own.write(&sealed(&own.header.clone()))?;
            return Ok((own, Vec::new()));
        }
        let mut read = read_from(game, path, own.file.try_clone().map_err(failed)?, Some(&own.header))?;
        if let Some(begins) = begins {
            begins
                .check(game, &own.header, &mut read.games)
                .map_err(|index| GamesFileError::Opening { file: path.display().to_string(), index })?;
        }
        own.file.set_len(read.whole).and_then(|()| own.file.seek(std::io::SeekFrom::End(0))).map_err(failed)?;
        Ok((own, read.games))
    }

    fn write(&mut self, line: &str) -> Result<(), GamesFileError> {
        self.file.write_all(line.as_bytes()).map_err(|error| system(&self.path, "written", &error))
    }

    /// Adds a game.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add<G: Game>(&mut self, game: &G, finished: &Finished) -> Result<(), GamesFileError> {
        let line = sealed(&Line::new(game, &self.header, finished));
        self.write(&line)
    }

    /// Puts the games in order and brings them to disk.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn finish(mut self) -> Result<(), GamesFileError> {
        #[derive(Deserialize)]
        struct Index {
            index: u64,
        }
        let failed = |error: std::io::Error| system(&self.path, "read", &error);
        let mut text = String::new();
        self.file.rewind().and_then(|()| self.file.read_to_string(&mut text)).map_err(failed)?;
        let (header, games) = text.split_at(text.find('\n').map_or(text.len(), |end| end + 1));
        let mut lines: Vec<(u64, &str)> = games
            .split_inclusive('\n')
            .map(|line| (serde_json::from_str::<Index>(line).map_or(u64::MAX, |line| line.index), line))
            .collect();
        if lines.is_sorted_by_key(|(index, _)| *index) {
            return self.file.sync_all().map_err(|error| system(&self.path, "written", &error));
        }
        lines.sort_by_key(|(index, _)| *index);
        let ordered: String = std::iter::once(header).chain(lines.into_iter().map(|(_, line)| line)).collect();
        // A link stays one, and who may read the file may do so afterwards.
        let place = self.path.canonicalize().map_err(failed)?;
        let permissions = self.file.metadata().map_err(failed)?.permissions();
        write_atomic(&place, ordered.as_bytes())?;
        std::fs::set_permissions(&place, permissions).map_err(|error| system(&self.path, "written", &error))
    }
}

#[cfg(test)]
#[path = "games_file_tests.rs"]
mod tests;
