//! What becomes of the things that a person says.

use std::io::Write;
use std::path::Path;

use super::command::{COMMANDS, Command};
use super::{AFTERWARDS, HumanError, LEVEL, Table};
use crate::game::{Action, Game, Player};
use crate::ugi::Info;
use crate::util::publish::write_atomic;

/// Signs in a line of the terminals that everything fits into.
const WIDTH: usize = 80;

impl<G: Game, W: Write> Table<'_, '_, G, W> {
    /// Does what was said, whatever it was; `quit` is for the caller.
    pub(super) fn obey(&mut self, command: Command) -> Result<(), HumanError> {
        match command {
            Command::Quit => Ok(()),
            Command::Nothing => {
                self.held = false;
                Ok(())
            }
            Command::Help => {
                let width = COMMANDS.iter().map(|(usage, _)| usage.len()).max().unwrap_or(0);
                let lines: Vec<String> =
                    COMMANDS.iter().map(|(usage, help)| format!("  {usage:width$}  {help}")).collect();
                self.say(&lines.join("\n"))
            }
            Command::Board => self.show(),
            Command::Move(_) | Command::Moves | Command::Hint | Command::Eval | Command::Resign if self.is_over() => {
                self.say(&format!("the game is over; {AFTERWARDS}"))
            }
            Command::Move(text) => self.person_moves(&text),
            Command::Moves => {
                let texts: Vec<String> = (1..)
                    .zip(self.possible())
                    .map(|(number, action)| format!("#{number} {}", self.game.action_text(action)))
                    .collect();
                self.say(&columns(&texts))
            }
            Command::Hint => match self.search()? {
                Ok((action, _)) => {
                    let text = format!("{} would play {}", self.seat.opponent, self.game.action_text(action));
                    self.say(&text)
                }
                Err(problem) => self.explain(&format!("the opponent cannot answer: {problem}")),
            },
            Command::Eval => match self.search()? {
                Ok((_, info)) => self.say(&self.opinion(&info)),
                Err(problem) => self.explain(&format!("the opponent cannot answer: {problem}")),
            },
            Command::Undo => self.undo(),
            Command::New => {
                (self.resigned, self.held) = (false, false);
                self.saved.moves.clear();
                self.state = self.saved.start.clone();
                self.thinker.new_game();
                self.show()
            }
            Command::Swap => {
                let side = self.seat.side.map_or(Player::First, Player::other);
                (self.seat.side, self.held) = (Some(side), false);
                self.say(&format!("you are {} now", self.name(side)))
            }
            Command::Level(wanted) => {
                let told = self.level(wanted);
                self.say(&told)
            }
            Command::Save(path) => {
                let told = self.save(Path::new(&path));
                self.say(&told)
            }
            Command::Resign if self.seat.side.is_none() => {
                self.say("you play neither side; `swap` takes one, `quit` leaves")
            }
            Command::Resign => {
                self.resigned = true;
                self.say(&format!("you have given up; {AFTERWARDS}"))
            }
        }
    }

    /// A move by its notation, or by its number in the list of moves.
    fn person_moves(&mut self, text: &str) -> Result<(), HumanError> {
        let possible = self.possible();
        let by_text = |text: &str| possible.iter().copied().find(|&action| self.game.action_text(action) == text);
        let by_number = || -> Option<Action> {
            // Where moves are numbers themselves, as columns are, a bare number is a move.
            let number = match text.strip_prefix('#') {
                Some(number) => number.trim(),
                None if self.game.parse_action(text).is_err() => text,
                None => return None,
            };
            possible.get(number.parse::<usize>().ok()?.checked_sub(1)?).copied()
        };
        if let Some(action) = by_text(text).or_else(|| by_text(&text.to_lowercase())).or_else(by_number) {
            self.make(action);
            // Whoever watches goes on by an empty line, to be able to make several moves.
            self.held &= self.seat.side.is_none();
            return self.show();
        }
        let is_number = text.trim_start_matches('#').parse::<usize>().is_ok();
        let problem = match self.game.parse_action(text) {
            Ok(_) => format!("{text} is not possible now; `moves` lists what is"),
            Err(_) if is_number => format!("there is no move number {text}; `moves` lists #1 to #{}", possible.len()),
            Err(error) => format!("{error}; `moves` lists moves, `help` the other things that can be said"),
        };
        self.explain(&problem)
    }

    /// What a search found out, in two lines.
    fn opinion(&self, info: &Info) -> String {
        let Some(value) = info.value else { return format!("{} has no opinion", self.seat.opponent) };
        let [win, draw, loss] = [value.win, value.draw, 1.0 - value.win - value.draw].map(|x| 100.0 * x.max(0.0));
        let mut text = format!("{}: {win:.0} % win, {draw:.0} % draw, {loss:.0} % loss", self.name(self.mover()));
        let mut line = String::from("expected:");
        for &action in &info.line {
            let next = format!(" {}", self.game.action_text(action));
            if line.len() + next.len() > WIDTH {
                break;
            }
            line += &next;
        }
        if !info.line.is_empty() {
            text += &format!("\n{line}");
        }
        text
    }

    /// Says or sets how strong the opponent is.
    fn level(&mut self, wanted: Option<i64>) -> String {
        let opponent = &self.seat.opponent;
        let Some(level) = &mut self.level else {
            return format!("{opponent} has no level: `level` sets simulations, and it is no search of this program");
        };
        let Some(wanted) = wanted else { return format!("{opponent} makes {} simulations a move", level.now) };
        if !(level.least..=level.most).contains(&wanted) {
            return format!("`level` takes a number of simulations from {} to {}", level.least, level.most);
        }
        match self.thinker.set_option(LEVEL, &wanted.to_string()) {
            Ok(()) => {
                level.now = wanted;
                format!("{opponent} makes {wanted} simulations a move now")
            }
            Err(problem) => problem,
        }
    }

    /// Takes back the person's last move and all after it; of a game that is only watched, the last move.
    fn undo(&mut self) -> Result<(), HumanError> {
        if std::mem::take(&mut self.resigned) {
            return self.show();
        }
        let mut state = self.saved.start.clone();
        let mut last = None;
        for (at, &action) in self.saved.moves.iter().enumerate() {
            if self.seat.side.is_none_or(|side| side == self.game.to_move(&state)) {
                last = Some(at);
            }
            self.game.play(&mut state, action);
        }
        let Some(last) = last else { return self.say("there is no move of yours to take back") };
        self.saved.moves.truncate(last);
        self.state = self.saved.state(self.game);
        // Otherwise the move would be made again at once.
        self.held |= self.seat.side.is_none();
        self.show()
    }

    /// Writes the game to a file; what came of it.
    fn save(&self, path: &Path) -> String {
        if path.exists() {
            return format!("{} is there already; choose another name", path.display());
        }
        match write_atomic(path, self.saved.to_text(self.game).as_bytes()) {
            Ok(()) => format!("saved as {0}; `sparring play ... --load {0}` goes on with it", path.display()),
            Err(error) => error.to_string(),
        }
    }
}

/// `text` in lines that fit, broken between words.
pub(super) fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut width = 0;
    for word in text.split_whitespace() {
        let more = word.chars().count();
        let fits = width + 1 + more <= WIDTH;
        match (width, fits) {
            (0, _) => {}
            (_, true) => out.push(' '),
            (_, false) => out.push('\n'),
        }
        width = if width > 0 && fits { width + 1 + more } else { more };
        out.push_str(word);
    }
    out
}

/// Texts in columns that fit into a line.
fn columns(texts: &[String]) -> String {
    let width = texts.iter().map(|text| text.chars().count()).max().unwrap_or(0) + 2;
    let lines: Vec<String> = texts
        .chunks(((WIDTH - 2) / width).max(1))
        .map(|row| row.iter().map(|text| format!("{text:width$}")).collect::<String>().trim_end().to_owned())
        .collect();
    lines.join("\n")
}
