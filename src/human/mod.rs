//! A person at the terminal against any [`Thinker`]: a game is shown, moves and a few commands are read.
//!
//! Nothing that the person writes is an error of the program; what is wrong is explained, and the game goes on. Where
//! a person is there, an opponent that fails does not end the game either: it is *held*, and can be saved, taken back or
//! tried again.

mod command;
mod editor;
mod lines;
mod obey;
mod saved;
#[cfg(test)]
mod tests;

pub use editor::Editor;
pub use lines::{Lines, Plain, Said};
pub use saved::Saved;

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::game::{Action, Drawing, EndReason, Game, Ink, Outcome, Player, legal_list};
use crate::ugi::{Info, Limits, OptionKind, Position, Thinker};

use command::Command;

/// The game cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum HumanError {
    /// A stream failed.
    #[error("the terminal cannot be read or written: {0}")]
    Stream(#[from] std::io::Error),
    /// The opponent found no move, and nobody is there to say what to do.
    #[error("the opponent cannot move: {0}")]
    Thinker(String),
}

/// How a game was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// The person quit, or the input ended.
    Quit,
    /// By Ctrl-C.
    Interrupted,
}

/// How a person plays.
#[derive(Clone, Debug)]
pub struct Seat {
    /// The person's side; with `None` the opponent plays both, and the person watches.
    pub side: Option<Player>,
    /// What the opponent is called.
    pub opponent: String,
}

/// Where the person sits.
pub struct Terminal<'t, W> {
    /// What the person says.
    pub lines: &'t mut dyn Lines,
    /// What the person sees.
    pub output: W,
    /// Whether it is in colour.
    pub color: bool,
    /// Set by Ctrl-C: a search under way ends at once with what it has found. Reset by each search.
    pub stop: &'t AtomicBool,
}

/// Plays until the person leaves or the input ends.
///
/// # Errors
/// When a stream fails, or the opponent does where nobody is there to be told.
pub fn play<G: Game>(
    game: &G,
    saved: Saved<G>,
    thinker: Box<dyn Thinker<G>>,
    seat: Seat,
    terminal: Terminal<'_, impl Write>,
) -> Result<Left, HumanError> {
    let state = saved.state(game);
    let level =
        thinker.options().into_iter().find(|option| option.name == LEVEL).and_then(|option| match option.kind {
            OptionKind::Spin { default, min, max } => Some(Level { now: default, least: min.max(1), most: max }),
            _ => None,
        });
    Table { game, saved, state, thinker, seat, level, resigned: false, held: false, terminal }.run()
}

/// The option of a thinker that `level` sets.
const LEVEL: &str = "Simulations";

/// How many simulations a move the opponent makes.
struct Level {
    now: i64,
    least: i64,
    most: i64,
}

/// A game in progress.
struct Table<'g, 't, G: Game, W> {
    game: &'g G,
    saved: Saved<G>,
    /// The position after all moves of `saved`.
    state: G::State,
    thinker: Box<dyn Thinker<G>>,
    seat: Seat,
    /// `None` for an opponent that has none.
    level: Option<Level>,
    /// The person has given the game up.
    resigned: bool,
    /// The opponent does not go on by itself.
    held: bool,
    terminal: Terminal<'t, W>,
}

/// What can be done when a game is over.
const AFTERWARDS: &str = "`new`, `undo`, `swap` or `quit`";

impl<G: Game, W: Write> Table<'_, '_, G, W> {
    fn run(mut self) -> Result<Left, HumanError> {
        self.say(&format!("against {}; `help` lists what can be said\n", self.seat.opponent))?;
        self.show()?;
        let mut interrupted = false;
        loop {
            while !self.held && self.is_opponents_turn() {
                self.opponent_moves()?;
            }
            let said = self.ask()?;
            if said == Said::Interrupted && !interrupted {
                interrupted = true;
                self.say("Ctrl-C again leaves, as `quit` does; `save FILE` keeps the game")?;
                continue;
            }
            interrupted = false;
            match said {
                Said::End => return Ok(Left::Quit),
                Said::Interrupted => return Ok(Left::Interrupted),
                Said::Garbage => self.say("that is no text")?,
                Said::Line(line) => match command::parse(&line) {
                    Ok(Command::Quit) => return Ok(Left::Quit),
                    Ok(command) => self.obey(command)?,
                    Err(problem) => self.explain(&problem)?,
                },
            }
        }
    }

    fn ask(&mut self) -> Result<Said, HumanError> {
        let mut words: Vec<String> = self.possible().into_iter().map(|action| self.game.action_text(action)).collect();
        words.extend(command::words().map(str::to_owned));
        let turn = Drawing::new().with(Ink::Piece(self.mover()), self.game.turn_text(&self.state));
        let prompt = match (self.is_over(), self.held) {
            (true, _) => "the game is over".into(),
            (false, true) => Drawing::from("held, ").above(turn),
            (false, false) => turn,
        };
        let prompt = prompt.with(Ink::Text, "> ");
        Ok(self.terminal.lines.ask(&prompt, words, &mut self.terminal.output)?)
    }

    fn say(&mut self, text: &str) -> Result<(), HumanError> {
        Ok(writeln!(self.terminal.output, "{text}")?)
    }

    /// Says a text of unknown length.
    fn explain(&mut self, text: &str) -> Result<(), HumanError> {
        self.say(&obey::wrapped(text))
    }

    fn mover(&self) -> Player {
        self.game.to_move(&self.state)
    }

    fn name(&self, player: Player) -> &'static str {
        self.game.player_names()[player.index()]
    }

    fn is_over(&self) -> bool {
        self.resigned || self.game.end(&self.state).is_some()
    }

    /// The moves that can be made, in notation order; none when the game is over.
    fn possible(&self) -> Vec<Action> {
        if self.is_over() { Vec::new() } else { legal_list(self.game, &self.state) }
    }

    fn is_opponents_turn(&self) -> bool {
        !self.is_over() && self.seat.side != Some(self.mover())
    }

    /// The board with the last move marked, and how the game has ended.
    fn show(&mut self) -> Result<(), HumanError> {
        let drawing = self.game.paint(&self.state, self.saved.moves.last().copied());
        let mut text = drawing.render(self.terminal.color).trim_end().to_owned();
        if let Some(end) = self.game.end(&self.state) {
            let why = match end.reason {
                EndReason::Rules => "",
                EndReason::Repetition => ", by repetition",
                EndReason::PlyCap => ", by the largest number of moves",
            };
            let result = match (end.outcome, self.seat.side) {
                (Outcome::Draw, _) => "a draw".to_owned(),
                (Outcome::Win(winner), Some(side)) if winner == side => "you have won".to_owned(),
                (Outcome::Win(_), Some(_)) => "you have lost".to_owned(),
                (Outcome::Win(winner), None) => format!("{} has won", self.name(winner)),
            };
            text += &format!("\n{result}{why}; {AFTERWARDS}");
        }
        self.say(&text)
    }

    /// A search of the position at hand: the move, and what was last told of it.
    fn search(&mut self) -> Result<Result<(Action, Info), String>, HumanError> {
        let Terminal { lines, output, stop, .. } = &mut self.terminal;
        lines.busy(Some("thinking; Ctrl-C makes it answer at once"), output)?;
        let position = Position { start: &self.saved.start, moves: &self.saved.moves, state: &self.state };
        let mut last = Info::default();
        stop.store(false, Relaxed);
        let chosen = self.thinker.think(self.game, &position, &Limits::default(), stop, &mut |info| {
            if info.value.is_some() || last.value.is_none() {
                last = info;
            }
        });
        lines.busy(None, output)?;
        Ok(chosen.map(|action| (action, last)))
    }

    fn make(&mut self, action: Action) {
        self.game.play(&mut self.state, action);
        self.saved.moves.push(action);
    }

    fn opponent_moves(&mut self) -> Result<(), HumanError> {
        let name = self.name(self.mover());
        let found = self.search()?;
        // Whoever watches has no other way to stop the game.
        self.held = self.terminal.stop.swap(false, Relaxed) && self.seat.side.is_none();
        let (action, info) = match found {
            Ok(found) => found,
            Err(problem) if self.terminal.lines.has_person() => {
                self.held = true;
                self.explain(&format!("the opponent cannot move: {problem}"))?;
                return self.say("held: an empty line lets it try again");
            }
            Err(problem) => return Err(HumanError::Thinker(problem)),
        };
        let judged = info.value.map_or_else(String::new, |value| {
            format!(" (expects {:.0} % win, {:.0} % draw)", 100.0 * value.win, 100.0 * value.draw)
        });
        self.say(&format!("{name} plays {}{judged}", self.game.action_text(action)))?;
        self.make(action);
        if self.held {
            self.say("held: you can move for both sides; an empty line lets the game go on")?;
        }
        // Of several moves in a row, a person who plays needs to see only what comes of them.
        if self.seat.side.is_some() && self.is_opponents_turn() { Ok(()) } else { self.show() }
    }
}
