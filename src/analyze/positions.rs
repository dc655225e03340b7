//! Positions as text: a fen or the start, and moves from there on; in files, one a line.

use std::path::Path;

use crate::game::grid::quoted;
use crate::game::{Action, Game};

/// How many faults of a file are listed.
const MOST_FAULTS: usize = 20;

/// A position and how it came about.
#[derive(Clone, Debug, PartialEq)]
pub struct Place<G: Game> {
    /// Where it is written, for messages: `positions.txt:3`; empty on the command line.
    pub source: String,
    /// Where the moves begin.
    pub start: G::State,
    /// The moves made from there on.
    pub moves: Vec<Action>,
    /// The position after them.
    pub state: G::State,
}

/// A move that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("move number {number}: {problem}")]
pub struct MoveError {
    /// Its number in the list, from 1.
    pub number: usize,
    /// What is wrong with it.
    pub problem: String,
}

/// Makes the moves that `texts` name, from `start` on.
///
/// # Errors
/// Names the first one that is no move, not legal, or comes after the end of the game.
pub fn replay<G: Game, T: AsRef<str>>(
    game: &G,
    start: &G::State,
    texts: &[T],
) -> Result<(G::State, Vec<Action>), MoveError> {
    let mut state = start.clone();
    let mut actions = Vec::with_capacity(texts.len());
    let mut legal = Vec::new();
    for (text, number) in texts.iter().map(AsRef::as_ref).zip(1..) {
        let fail = |problem: String| MoveError { number, problem };
        let action = game.parse_action(text).map_err(|error| fail(error.to_string()))?;
        if game.end(&state).is_some() {
            return Err(fail(format!("the game is over before {}", quoted(text))));
        }
        legal.clear();
        game.legal(&state, &mut legal);
        if !legal.contains(&action) {
            return Err(fail(format!("{} is not legal in {}", quoted(text), game.state_text(&state))));
        }
        game.play(&mut state, action);
        actions.push(action);
    }
    Ok((state, actions))
}

impl<G: Game> Place<G> {
    /// The position after `moves` from `fen`, or from the start where that is absent.
    ///
    /// # Errors
    /// Says what is wrong with the fen or which move cannot be made, and refuses the end of a game, in which there is nothing
    /// to analyse.
    pub fn new<T: AsRef<str>>(game: &G, fen: Option<&str>, moves: &[T]) -> Result<Self, String> {
        let start = match fen {
            Some(fen) => game.parse_state(fen).map_err(|error| error.to_string())?,
            None => game.startpos(),
        };
        let (state, moves) = replay(game, &start, moves).map_err(|error| error.to_string())?;
        if game.end(&state).is_some() {
            return Err(format!("the game is over in {}: there is nothing to analyse", game.state_text(&state)));
        }
        Ok(Self { source: String::new(), start, moves, state })
    }

    /// The position on a line: `FEN [moves M...]` or `startpos [moves M...]`, with or without `position` and `fen` as the
    /// engine protocol writes them.
    fn parse(game: &G, line: &str) -> Result<Self, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let words = words.strip_prefix(&["position"]).unwrap_or(&words);
        let words = words.strip_prefix(&["fen"]).unwrap_or(words);
        let (fen, moves) = match words.iter().position(|&word| word == "moves") {
            Some(at) => (&words[..at], &words[at + 1..]),
            None => (words, &[][..]),
        };
        let fen = fen.join(" ");
        Self::new(game, Some(fen.as_str()).filter(|&fen| fen != "startpos"), moves)
    }
}

/// The positions in the text of `file`, one a line; `#` begins a comment, empty lines are left out.
///
/// # Errors
/// Everything that is wrong, one line each: file, line and what; also when there is no position at all.
pub fn parse_file<G: Game>(game: &G, file: &Path, text: &str) -> Result<Vec<Place<G>>, String> {
    let (mut places, mut faults) = (Vec::new(), Vec::new());
    for (line, number) in text.lines().zip(1..) {
        let line = line.split('#').next().unwrap_or_default();
        if line.trim().is_empty() {
            continue;
        }
        let source = format!("{}:{number}", file.display());
        match Place::parse(game, line) {
            Ok(place) => places.push(Place { source, ..place }),
            Err(problem) => faults.push(format!("{source}: {problem}")),
        }
    }
    match faults.len() {
        0 if places.is_empty() => Err(format!("{} holds no position", file.display())),
        0 => Ok(places),
        count => {
            faults.truncate(MOST_FAULTS);
            if count > MOST_FAULTS {
                faults.push(format!("and {} more lines are wrong", count - MOST_FAULTS));
            }
            Err(faults.join("\n"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::games::tictactoe::TicTacToe;

    #[test]
    fn files_of_positions() {
        let text = "# some positions\n\nstartpos\n3/3/3 x moves b2 a1  # after two moves\n  xx1/oo1/3 x\n\
                    position fen 3/3/3 x moves a1\nposition startpos moves c3\r\n";
        let places = parse_file(&TicTacToe, Path::new("p.txt"), text).unwrap();
        let texts: Vec<String> = places.iter().map(|place| TicTacToe.state_text(&place.state)).collect();
        assert_eq!(texts, ["3/3/3 x", "o2/1x1/3 x", "xx1/oo1/3 x", "x2/3/3 o", "3/3/2x o"]);
        assert_eq!((places[1].source.as_str(), places[1].moves.len()), ("p.txt:4", 2));
    }

    #[test]
    fn every_bad_line_is_named() {
        let text = "startpos\nstartpos moves a1 b1 a1\n3/3 x\nxxx/oo1/3 o\nstartpos moves a1 z9\nmoves a1\n\
                    xx1/oo1/3 x moves c1 c2\n";
        let faults = parse_file(&TicTacToe, Path::new("p.txt"), text).unwrap_err();
        let lines: Vec<&str> = faults.lines().collect();
        for (line, (start, part)) in lines.iter().zip([
            ("p.txt:2: move number 3: ", "a1"),
            ("p.txt:3: ", "row"),
            ("p.txt:4: ", "the game is over"),
            ("p.txt:5: move number 2: ", "z9"),
            ("p.txt:6: ", ""),
            ("p.txt:7: move number 2: ", "over before"),
        ]) {
            assert!(line.starts_with(start) && line.contains(part), "{start}{part}: {line}");
        }
        assert_eq!(lines.len(), 6);
        assert!(parse_file(&TicTacToe, Path::new("p.txt"), "# nothing\n").unwrap_err().contains("no position"));
        let many = parse_file(&TicTacToe, Path::new("p.txt"), &"x\n".repeat(50)).unwrap_err();
        assert_eq!((many.lines().count(), many.ends_with("and 30 more lines are wrong")), (21, true));
    }
}
