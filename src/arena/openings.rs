//! Openings and other positions from a file: one a line, as a list of moves or as a fen.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::game::grid::quoted;
use crate::game::{Game, legal_list};
use crate::play::Opening;

/// No file of openings is larger.
const MAX_BYTES: u64 = 64 << 20;

/// A file of openings that cannot be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum OpeningsError {
    #[error("{file} cannot be read: {error}")]
    Read { file: String, error: String },
    #[error("{file}, line {line}: {problem}")]
    Line { file: String, line: usize, problem: String },
    #[error("{file} holds no openings; write one a line, as moves or as a fen")]
    Empty { file: String },
}

/// The opening on a line: `MOVE...` from the start position, `FEN`, or as the engine protocol writes it,
/// `startpos [moves MOVE...]` or `fen FEN [moves MOVE...]`, with or without `position` before it.
///
/// # Errors
/// Says what is wrong, with the number of the ply (from 1) where it is a move.
pub fn parse_line<G: Game>(game: &G, line: &str) -> Result<Opening<G>, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let words = words.strip_prefix(&["position"]).unwrap_or(&words);
    let split = words.iter().position(|&word| word == "moves");
    let (place, moves) = split.map_or((words, &[][..]), |at| (&words[..at], &words[at + 1..]));
    let fen = |fen: &[&str]| game.parse_state(&fen.join(" ")).map_err(|error| error.to_string());
    let (start, moves) = match place {
        [] => return Err("expected moves or a fen".to_owned()),
        ["startpos"] => (game.startpos(), moves),
        ["fen", rest @ ..] => (fen(rest)?, moves),
        [first, ..] if split.is_none() && game.parse_action(first).is_ok() => (game.startpos(), place),
        _ => {
            let state = fen(place);
            let hint = |error| format!("this is neither a list of moves nor a fen: {error}");
            (state.map_err(hint)?, moves)
        }
    };
    let mut opening: Opening<G> = Opening { start, moves: Vec::with_capacity(moves.len()) };
    let mut state = opening.start.clone();
    for (at, text) in moves.iter().enumerate() {
        let wrong = |problem: String| format!("ply {}: {problem}", at + 1);
        let action = game.parse_action(text).map_err(|error| wrong(error.to_string()))?;
        if game.end(&state).is_some() {
            return Err(wrong(format!("the game is over before {}", quoted(text))));
        }
        if !legal_list(game, &state).contains(&action) {
            return Err(wrong(format!("{} is not legal there", quoted(text))));
        }
        game.play(&mut state, action);
        opening.moves.push(action);
    }
    Ok(opening)
}

/// The openings of a file, in order. Empty lines and lines that begin with `#` are left out.
///
/// # Errors
/// When the file cannot be read, holds none, or one of them is not legal or leaves no game to be played.
pub fn read_openings<G: Game>(game: &G, path: &Path) -> Result<Vec<Opening<G>>, OpeningsError> {
    let file = || path.display().to_string();
    let failed = |error: std::io::Error| OpeningsError::Read { file: file(), error: error.to_string() };
    let mut text = String::new();
    let read = File::open(path).map_err(failed)?.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if read as u64 > MAX_BYTES {
        return Err(OpeningsError::Read { file: file(), error: format!("it is larger than {} MB", MAX_BYTES >> 20) });
    }
    let mut openings = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#')) {
        let wrong = |problem| OpeningsError::Line { file: file(), line: at + 1, problem };
        let opening = parse_line(game, line).map_err(wrong)?;
        if game.end(&opening.position(game)).is_some() {
            return Err(wrong("the game is over in this position".to_owned()));
        }
        openings.push(opening);
    }
    if openings.is_empty() { Err(OpeningsError::Empty { file: file() }) } else { Ok(openings) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::games::tictactoe::TicTacToe;

    #[test]
    fn moves_and_fens_are_read() {
        let game = TicTacToe;
        let after = |line: &str| {
            let opening = parse_line(&game, line).unwrap_or_else(|error| panic!("{line}: {error}"));
            game.state_text(&opening.position(&game))
        };
        let expected = after("a1 b2");
        for line in [
            "startpos moves a1 b2".to_owned(),
            "  position startpos moves a1 b2 ".to_owned(),
            format!("fen {} moves b2", after("a1")),
            format!("{} moves b2", after("a1")),
            expected.clone(),
        ] {
            assert_eq!(after(&line), expected);
        }
        for (line, part) in [
            ("moves a1", "expected moves"),
            ("a1 a1", "ply 2: \"a1\" is not legal"),
            ("a1 z9", "ply 2: "),
            ("a1 a2 b1 b2 c1 c2", "ply 6: the game is over"),
            ("nonsense", "neither"),
        ] {
            let error = parse_line(&game, line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }

    #[test]
    fn faults_of_a_file_are_named_with_their_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("book.txt");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_openings(&TicTacToe, &path).map(|openings| openings.len()).map_err(|error| error.to_string())
        };
        assert_eq!(read("# a comment\n\na1\nb2 a1\r\n"), Ok(2));
        assert!(read("a1\n\nb2 b2\n").unwrap_err().contains("book.txt, line 3: ply 2: "));
        assert!(read("a1 a2 b1 b2 c1\n").unwrap_err().contains("line 1: the game is over"));
        assert!(read("# nothing\n").unwrap_err().contains("holds no openings"));
        assert!(read_openings(&TicTacToe, Path::new("/no/such")).unwrap_err().to_string().contains("cannot be read"));
        #[cfg(unix)]
        assert!(read_openings(&TicTacToe, Path::new("/dev/zero")).unwrap_err().to_string().contains("larger"));
    }
}
