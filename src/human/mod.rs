//! A person at the terminal against any [`Thinker`]: a game is shown, moves and a few commands are read.

mod command;
#[cfg(test)]
mod tests;

use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::game::{Action, EndReason, Game, Outcome, Player, legal_list};
use crate::ugi::{Info, Limits, Position, Thinker};
use crate::util::publish::write_atomic;

use command::{COMMANDS, Command};

/// The game cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum HumanError {
    /// A stream failed.
    #[error("the terminal cannot be read or written: {0}")]
    Stream(#[from] std::io::Error),
    /// The opponent found no move.
    #[error("the opponent cannot move: {0}")]
    Thinker(String),
}

/// How a person plays.
#[derive(Clone, Debug)]
pub struct Seat {
    /// The person's side; with `None` the opponent plays both, and the person watches.
    pub side: Option<Player>,
    /// What the opponent is called.
    pub opponent: String,
    /// Whether a person is there to be prompted; otherwise moves come from a file or pipe.
    pub prompt: bool,
}

/// Plays until the person quits or the input ends.
///
/// # Errors
/// When a stream or the opponent fails. Nothing that the person writes is an error of this function.
pub fn play<G: Game>(
    game: &G,
    start: G::State,
    thinker: Box<dyn Thinker<G>>,
    seat: Seat,
    input: impl BufRead,
    output: impl Write,
) -> Result<(), HumanError> {
    let state = start.clone();
    let limits = Limits::default();
    Table { game, start, state, moves: Vec::new(), thinker, limits, seat, resigned: false, output }.run(input)
}

/// A game in progress.
struct Table<'a, G: Game, W> {
    game: &'a G,
    start: G::State,
    moves: Vec<Action>,
    state: G::State,
    thinker: Box<dyn Thinker<G>>,
    limits: Limits,
    seat: Seat,
    /// The person has given the game up.
    resigned: bool,
    output: W,
}

/// What can be done when a game is over.
const AFTERWARDS: &str = "`new`, `undo`, `swap` or `quit`";

impl<G: Game, W: Write> Table<'_, G, W> {
    fn run(mut self, mut input: impl BufRead) -> Result<(), HumanError> {
        self.say(&format!("against {}; `help` lists what can be said\n", self.seat.opponent))?;
        self.show()?;
        loop {
            while self.is_opponents_turn() {
                self.opponent_moves()?;
            }
            if self.seat.prompt {
                let prompt = if self.is_over() { "the game is over" } else { self.mover_name() };
                write!(self.output, "{prompt}> ")?;
                self.output.flush()?;
            }
            let mut line = String::new();
            match input.read_line(&mut line) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                    self.say("that is no text")?;
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            match command::parse(line.trim()) {
                Ok(None) => {}
                Ok(Some(Command::Quit)) => return Ok(()),
                Ok(Some(Command::Move(text))) => self.person_moves(&text)?,
                Ok(Some(command)) => self.obey(command)?,
                Err(problem) => self.say(&problem)?,
            }
        }
    }

    fn say(&mut self, text: &str) -> Result<(), HumanError> {
        Ok(writeln!(self.output, "{text}")?)
    }

    fn mover_name(&self) -> &'static str {
        self.game.player_names()[self.game.to_move(&self.state).index()]
    }

    fn is_over(&self) -> bool {
        self.resigned || self.game.end(&self.state).is_some()
    }

    fn is_opponents_turn(&self) -> bool {
        !self.is_over() && self.seat.side != Some(self.game.to_move(&self.state))
    }

    /// The board, and who is to move or how the game has ended.
    fn show(&mut self) -> Result<(), HumanError> {
        let mut text = self.game.draw(&self.state).trim_end().to_owned();
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
                (Outcome::Win(winner), None) => format!("{} has won", self.game.player_names()[winner.index()]),
            };
            text += &format!("\n{result}{why}; {AFTERWARDS}");
        }
        self.say(&text)
    }

    /// A search of the position at hand: the move, and what was last told of it.
    fn search(&mut self) -> Result<(Action, Info), HumanError> {
        let position = Position { start: &self.start, moves: &self.moves, state: &self.state };
        let mut last = Info::default();
        let never = AtomicBool::new(false);
        let chosen = self.thinker.think(self.game, &position, &self.limits, &never, &mut |info| last = info);
        Ok((chosen.map_err(HumanError::Thinker)?, last))
    }

    fn make(&mut self, action: Action) {
        self.game.play(&mut self.state, action);
        self.moves.push(action);
    }

    fn opponent_moves(&mut self) -> Result<(), HumanError> {
        let name = self.mover_name();
        let (action, info) = self.search()?;
        let judged = info.value.map_or_else(String::new, |value| {
            format!(" (expects {:.0} % win, {:.0} % draw)", 100.0 * value.win, 100.0 * value.draw)
        });
        self.say(&format!("{name} plays {}{judged}", self.game.action_text(action)))?;
        self.make(action);
        self.show()
    }

    /// A move by its notation, or by its number in the list of moves.
    fn person_moves(&mut self, text: &str) -> Result<(), HumanError> {
        if self.is_over() {
            return self.say(&format!("the game is over; {AFTERWARDS}"));
        }
        let legal = legal_list(self.game, &self.state);
        let by_text = legal.iter().copied().find(|&action| self.game.action_text(action) == text);
        // Where moves are numbers themselves, as columns are, these come first.
        let by_number = || text.strip_prefix('#')?.parse::<usize>().ok()?.checked_sub(1).and_then(|at| legal.get(at));
        match by_text.or_else(|| by_number().copied()) {
            Some(action) => {
                self.make(action);
                self.show()
            }
            None => {
                let problem = match self.game.parse_action(text) {
                    Ok(_) => format!("{text} is not possible now; `moves` lists what is"),
                    Err(error) => format!("{error}; `moves` lists moves, `help` the other things that can be said"),
                };
                self.say(&problem)
            }
        }
    }

    fn obey(&mut self, command: Command) -> Result<(), HumanError> {
        match command {
            Command::Move(_) | Command::Quit => unreachable!("taken care of by the caller"),
            Command::Help => {
                let width = COMMANDS.iter().map(|(usage, _)| usage.len()).max().unwrap_or(0);
                let lines: Vec<String> =
                    COMMANDS.iter().map(|(usage, help)| format!("  {usage:width$}  {help}")).collect();
                self.say(&lines.join("\n"))
            }
            Command::Board => self.show(),
            Command::Moves | Command::Hint | Command::Eval | Command::Resign if self.is_over() => {
                self.say(&format!("the game is over; {AFTERWARDS}"))
            }
            Command::Moves => {
                let legal = legal_list(self.game, &self.state);
                let texts: Vec<String> = legal
                    .iter()
                    .enumerate()
                    .map(|(at, &action)| format!("#{} {}", at + 1, self.game.action_text(action)))
                    .collect();
                self.say(&columns(&texts))
            }
            Command::Hint => {
                let (action, _) = self.search()?;
                self.say(&format!("{} would play {}", self.seat.opponent, self.game.action_text(action)))
            }
            Command::Eval => {
                let (_, info) = self.search()?;
                let Some(value) = info.value else { return self.say("this opponent has no opinion") };
                let line: Vec<String> = info.line.iter().map(|&action| self.game.action_text(action)).collect();
                let [win, draw, loss] = [value.win, value.draw, 1.0 - value.win - value.draw].map(|x| 100.0 * x);
                let name = self.mover_name();
                self.say(&format!(
                    "{name}: {win:.0} % win, {draw:.0} % draw, {loss:.0} % loss; expected: {}",
                    line.join(" ")
                ))
            }
            Command::Undo => self.undo(),
            Command::New => {
                self.resigned = false;
                self.moves.clear();
                self.state = self.start.clone();
                self.thinker.new_game();
                self.show()
            }
            Command::Swap => {
                self.seat.side = Some(self.seat.side.map_or(Player::First, Player::other));
                let name = self.game.player_names()[self.seat.side.map_or(0, Player::index)];
                self.say(&format!("you are {name} now"))
            }
            Command::Level(simulations) => {
                self.limits = Limits { nodes: Some(simulations), ..Limits::default() };
                self.say(&format!("{} now makes {simulations} simulations a move", self.seat.opponent))
            }
            Command::Save(path) => {
                let told = self.save(Path::new(&path));
                self.say(&told)
            }
            Command::Resign => {
                self.resigned = true;
                self.say(&format!("you have given up; {AFTERWARDS}"))
            }
        }
    }

    /// Takes back the person's last move and all after it.
    fn undo(&mut self) -> Result<(), HumanError> {
        if std::mem::take(&mut self.resigned) {
            return self.show();
        }
        let mut state = self.start.clone();
        let mut last = None;
        for (at, &action) in self.moves.iter().enumerate() {
            if self.seat.side == Some(self.game.to_move(&state)) {
                last = Some(at);
            }
            self.game.play(&mut state, action);
        }
        let Some(last) = last else { return self.say("there is no move of yours to take back") };
        self.moves.truncate(last);
        self.state = self.start.clone();
        self.moves.iter().for_each(|&action| self.game.play(&mut self.state, action));
        self.show()
    }

    /// Writes the game as a command that the engine protocol takes.
    fn save(&self, path: &Path) -> String {
        if path.exists() {
            return format!("{} is there already; choose another name", path.display());
        }
        let mut text = format!("position fen {}", self.game.state_text(&self.start));
        if !self.moves.is_empty() {
            text += " moves";
        }
        for &action in &self.moves {
            text += &format!(" {}", self.game.action_text(action));
        }
        match write_atomic(path, format!("{text}\n").as_bytes()) {
            Ok(()) => {
                format!("saved as {}; `sparring ugi {}` reads it", path.display(), crate::game::full_name(self.game))
            }
            Err(error) => error.to_string(),
        }
    }
}

/// Texts in columns that fit into eighty signs.
fn columns(texts: &[String]) -> String {
    let width = texts.iter().map(|text| text.chars().count()).max().unwrap_or(0) + 2;
    let lines: Vec<String> = texts
        .chunks((78 / width).max(1))
        .map(|row| row.iter().map(|text| format!("{text:width$}")).collect::<String>().trim_end().to_owned())
        .collect();
    lines.join("\n")
}
