//! The engine protocol UGI (Universal Game Interface) on a pair of streams.
//!
//! UGI is UCI for any game; the public specification and a match runner are those of CuteGames
//! (<https://github.com/kz04px/cutegames>). Spoken here: `ugi`, `isready`, `setoption name N [value V]`,
//! `uginewgame`, `position startpos|fen F [moves M...]`, `go` with `nodes N`, `movetime MS`,
//! `p1time MS p2time MS [p1inc MS] [p2inc MS]`, `depth N` or `infinite`, `stop`, `query gameover|p1turn|result`, `quit`; and
//! `go perft N`, which prints `MOVE: COUNT` for each legal move in notation order, then
//! `Nodes searched: TOTAL`.
//!
//! Whatever cannot be done is answered by exactly one line `info string error ...`; the state stays as it was and
//! the engine goes on. What a `go` asks for always ends in one `bestmove` line (or the lines of perft);
//! `bestmove none`, after a line `info string ...` that says why, when there is no move to give.
//!
//! Commands are carried out in the order in which they come. `isready`, `query`, `ugi` and `stop` are answered while
//! a search is running. A command that needs the search to be over (`go`, `position`, `setoption`, `uginewgame`)
//! waits for it to finish, or ends it when it is `infinite`; so a script may be piped in. `quit` and the end
//! of the input end the search, which still answers.

mod clock;
mod command;
mod perft;
mod random;
mod serve;
mod thinker;

#[cfg(test)]
mod tests;

pub use random::RandomThinker;
pub use serve::serve;
pub use thinker::{NetworkLoader, SeatThinker};

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::game::{Action, Game, WdlPov};

/// The position to think about, and how it came about.
#[derive(Debug)]
pub struct Position<'a, G: Game> {
    /// Where the moves begin: the start or a fen.
    pub start: &'a G::State,
    /// The moves made from there on. A thinker that keeps its tree finds the new root by them.
    pub moves: &'a [Action],
    /// The position after the moves; the game goes on.
    pub state: &'a G::State,
}

/// The clock of a game, in the order of the players.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// Time left of each player, where it was told.
    pub left: [Option<Duration>; 2],
    /// What each player gains with a move.
    pub increment: [Duration; 2],
}

/// How long to think. All that is given holds together: the first limit reached ends the search. With nothing
/// given the thinker uses the limit it was made with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Simulations, at least 1.
    pub nodes: Option<u64>,
    /// Time for this move.
    pub movetime: Option<Duration>,
    /// The clocks.
    pub clock: Option<Clock>,
    /// Simulations are to be longer than so many plies on average. It does not replace a limit: without another one the
    /// thinker's own holds too.
    pub depth: Option<u32>,
    /// Think until stopped.
    pub infinite: bool,
}

/// What a thinker tells while it thinks; what is absent is not written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Info {
    /// Time spent so far.
    pub time: Option<Duration>,
    /// Mean length of the simulations, in plies.
    pub depth: Option<u32>,
    /// Length of the longest path looked at, in plies.
    pub seldepth: Option<u32>,
    /// Simulations so far.
    pub nodes: Option<u64>,
    /// The position's value as the player to move sees it.
    pub value: Option<WdlPov>,
    /// Plies until the player to move has won, negative until it has lost, where that is proven.
    pub mate: Option<i64>,
    /// The moves expected, the best one first.
    pub line: Vec<Action>,
    /// Anything else, one line, written at the end.
    pub text: Option<String>,
}

/// An option of a thinker, as `setoption` sets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UgiOption {
    /// Its name; it may contain spaces, but not the word `value`.
    pub name: String,
    /// What values it takes.
    pub kind: OptionKind,
}

/// The values an option takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionKind {
    /// `true` or `false`.
    Check {
        /// The default.
        default: bool,
    },
    /// A whole number.
    Spin {
        /// The default.
        default: i64,
        /// The smallest value.
        min: i64,
        /// The largest value.
        max: i64,
    },
    /// One of several words.
    Combo {
        /// The default.
        default: String,
        /// All of them.
        choices: Vec<String>,
    },
    /// Any text.
    String {
        /// The default.
        default: String,
    },
    /// Something to do, without a value.
    Button,
}

impl fmt::Display for UgiOption {
    /// As `ugi` lists it.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "option name {} type ", self.name)?;
        match &self.kind {
            OptionKind::Check { default } => write!(out, "check default {default}"),
            OptionKind::Spin { default, min, max } => write!(out, "spin default {default} min {min} max {max}"),
            OptionKind::Combo { default, choices } => {
                write!(out, "combo default {default}")?;
                choices.iter().try_for_each(|choice| write!(out, " var {choice}"))
            }
            OptionKind::String { default } if default.is_empty() => write!(out, "string default <empty>"),
            OptionKind::String { default } => write!(out, "string default {default}"),
            OptionKind::Button => write!(out, "button"),
        }
    }
}

/// Whatever finds moves behind the protocol.
pub trait Thinker<G: Game>: Send {
    /// Finds a move. Looks at `stop` often (several times a second at the least) and answers soon after it has
    /// become true, with the best move so far. Calls `info` now and then, not more than some ten times a second.
    ///
    /// With `limits.infinite` it may answer early; the answer is held back until the search is stopped.
    ///
    /// # Errors
    /// When no move can be found (a network fails); the text is shown to the user.
    fn think(
        &mut self,
        game: &G,
        position: &Position<'_, G>,
        limits: &Limits,
        stop: &AtomicBool,
        info: &mut dyn FnMut(Info),
    ) -> Result<Action, String>;

    /// What comes next has nothing to do with what was: forget trees.
    fn new_game(&mut self);

    /// Gets ready for searches, so that the first one need not: opens networks, takes memory. Called when `isready` asks and
    /// nothing is searched; called again it has nothing to do.
    ///
    /// # Errors
    /// When that fails; a search will say so too.
    fn prepare(&mut self, _game: &G) -> Result<(), String> {
        Ok(())
    }

    /// The options, always the same ones.
    fn options(&self) -> Vec<UgiOption>;

    /// Sets the option of this name, one of [`options`](Thinker::options). The value is of its kind and range; that of a
    /// button is empty.
    ///
    /// # Errors
    /// When the value cannot be used; the option stays as it was.
    fn set_option(&mut self, name: &str, value: &str) -> Result<(), String>;
}

/// The streams failed.
#[derive(Debug, thiserror::Error)]
pub enum UgiError {
    /// Commands cannot be read.
    #[error("cannot read engine commands: {0}")]
    Input(#[source] std::io::Error),
    /// Answers cannot be written.
    #[error("cannot write engine answers: {0}")]
    Output(#[source] std::io::Error),
}
