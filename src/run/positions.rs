//! Positions from a file.

use std::path::Path;

use crate::game::{Game, Place, parse_places};
use crate::util::text::read_text;

/// The positions of a file, one a line as [`parse_places`] reads them, in order.
///
/// # Errors
/// When the file cannot be read, holds none, or one of them is not legal or the end of a game: in words, with file,
/// line and ply.
pub fn read_places<G: Game>(game: &G, path: &Path) -> Result<Vec<Place<G>>, String> {
    let text = read_text(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    parse_places(game, path, &text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::games::tictactoe::TicTacToe;

    #[test]
    fn a_file_is_read_or_explained() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("book.txt");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_places(&TicTacToe, &path).map(|places| places.len())
        };
        assert_eq!(read("# a comment\n\na1\nb2 a1\r\n"), Ok(2));
        assert_eq!(read("\u{feff}a1\n"), Ok(1));
        assert!(read("a1\n\nb2 b2\n").unwrap_err().contains("book.txt, line 3: ply 2: "));
        assert!(read("a1 a2 b1 b2 c1\n").unwrap_err().contains("line 1: the game is over"));
        assert!(read("# nothing\n").unwrap_err().contains("holds no position"));
        assert!(read_places(&TicTacToe, Path::new("/no/such")).unwrap_err().contains("cannot be read"));
        #[cfg(unix)]
        assert!(read_places(&TicTacToe, Path::new("/dev/zero")).unwrap_err().contains("larger"));
    }

    #[test]
    fn files_of_positions() {
        let text = "# some positions\n\nstartpos\n3/3/3 x moves b2 a1  # after two moves\n  xx1/oo1/3 x\n\
                    position fen 3/3/3 x moves a1\nposition startpos moves c3\r\na1 b2\n";
        let places = parse_places(&TicTacToe, Path::new("p.txt"), text).unwrap();
        let texts: Vec<String> = places.iter().map(|place| TicTacToe.state_text(&place.state)).collect();
        assert_eq!(texts, ["3/3/3 x", "o2/1x1/3 x", "xx1/oo1/3 x", "x2/3/3 o", "3/3/2x o", "x2/1o1/3 x"]);
        assert_eq!((places[1].source.as_str(), places[1].moves.len()), ("p.txt:4", 2));
    }

    #[test]
    fn every_bad_line_is_named() {
        let text = "startpos\nstartpos moves a1 b1 a1\n3/3 x\nxxx/oo1/3 o\nstartpos moves a1 z9\nmoves a1\n\
                    xx1/oo1/3 x moves c1 c2\n";
        let faults = parse_places(&TicTacToe, Path::new("p.txt"), text).unwrap_err();
        let lines: Vec<&str> = faults.lines().collect();
        for (line, (start, part)) in lines.iter().zip([
            ("p.txt, line 2: ply 3: ", "a1"),
            ("p.txt, line 3: ", "row"),
            ("p.txt, line 4: ", "the game is over"),
            ("p.txt, line 5: ply 2: ", "z9"),
            ("p.txt, line 6: ", ""),
            ("p.txt, line 7: ply 2: ", "over before"),
        ]) {
            assert!(line.starts_with(start) && line.contains(part), "{start}{part}: {line}");
        }
        assert_eq!(lines.len(), 6);
        assert!(parse_places(&TicTacToe, Path::new("p.txt"), "# nothing\n").unwrap_err().contains("no position"));
        let many = parse_places(&TicTacToe, Path::new("p.txt"), &"x\n".repeat(50)).unwrap_err();
        assert_eq!((many.lines().count(), many.ends_with("and 30 more lines are wrong")), (21, true));
    }
}
