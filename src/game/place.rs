//! Positions as text: a fen or the start, and moves from there on; in files, one a line. Reads no files itself.

use std::path::Path;

use super::grid::quoted;
use super::{Action, Game};

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
#[error("ply {number}: {problem}")]
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
    /// Says what is wrong with the fen or which move cannot be made, and refuses the end of a game.
    pub fn new<T: AsRef<str>>(game: &G, fen: Option<&str>, moves: &[T]) -> Result<Self, String> {
        let start = match fen {
            Some(fen) => game.parse_state(fen).map_err(|error| error.to_string())?,
            None => game.startpos(),
        };
        let (state, moves) = replay(game, &start, moves).map_err(|error| error.to_string())?;
        if game.end(&state).is_some() {
            return Err(format!("the game is over in {}", game.state_text(&state)));
        }
        Ok(Self { source: String::new(), start, moves, state })
    }

    /// The position on a line: `MOVE...` from the start, `FEN [moves M...]`, or `startpos [moves M...]`, the latter two with or
    /// without `position` and `fen` as the engine protocol writes them.
    fn parse(game: &G, line: &str) -> Result<Self, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let words = words.strip_prefix(&["position"]).unwrap_or(&words);
        let (fen, moves) = match words.iter().position(|&word| word == "moves") {
            Some(at) => (&words[..at], &words[at + 1..]),
            None if words.first().is_some_and(|word| game.parse_action(word).is_ok()) => (&["startpos"][..], words),
            None => (words, &[][..]),
        };
        let fen = fen.strip_prefix(&["fen"]).unwrap_or(fen).join(" ");
        Self::new(game, Some(fen.as_str()).filter(|&fen| fen != "startpos"), moves)
    }
}

/// The positions in the text of `file`, one a line; `#` begins a comment, empty lines are left out.
///
/// # Errors
/// Everything that is wrong, one line each: file, line and what; also when there is no position at all.
pub fn parse_places<G: Game>(game: &G, file: &Path, text: &str) -> Result<Vec<Place<G>>, String> {
    let (mut places, mut faults) = (Vec::new(), Vec::new());
    for (line, number) in text.lines().zip(1..) {
        let line = line.split('#').next().unwrap_or_default();
        if line.trim().is_empty() {
            continue;
        }
        let source = format!("{}:{number}", file.display());
        match Place::parse(game, line) {
            Ok(place) => places.push(Place { source, ..place }),
            Err(problem) => faults.push(format!("{}, line {number}: {problem}", file.display())),
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
