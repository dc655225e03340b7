//! Games as text: one command of the engine protocol, `position fen FEN moves MOVE...`, which `sparring ugi` takes too.

use crate::game::grid::quoted;
use crate::game::{Action, Game, legal_list};

/// A game up to some point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved<G: Game> {
    /// Where it began.
    pub start: G::State,
    /// The moves made from there on.
    pub moves: Vec<Action>,
}

impl<G: Game> Saved<G> {
    /// A game of which no move is made.
    pub fn new(start: G::State) -> Self {
        Self { start, moves: Vec::new() }
    }

    /// The position after all moves.
    pub fn state(&self, game: &G) -> G::State {
        let mut state = self.start.clone();
        self.moves.iter().for_each(|&action| game.play(&mut state, action));
        state
    }

    /// The game as one line, with its end.
    pub fn to_text(&self, game: &G) -> String {
        let mut text = format!("position fen {}", game.state_text(&self.start));
        if !self.moves.is_empty() {
            text += " moves";
        }
        for &action in &self.moves {
            text += &format!(" {}", game.action_text(action));
        }
        text + "\n"
    }

    /// Reads what [`to_text`](Saved::to_text) wrote; `startpos` may stand for the start of the game.
    ///
    /// # Errors
    /// What is wrong with the text, of a move also which one it is.
    pub fn read(game: &G, text: &str) -> Result<Self, String> {
        let expected = || format!("expected `position startpos|fen FEN [moves MOVE...]`, found {}", quoted(text));
        let words: Vec<&str> = text.split_whitespace().collect();
        let split = words.iter().position(|&word| word == "moves");
        let (place, moves) = split.map_or((&words[..], &[][..]), |at| (&words[..at], &words[at + 1..]));
        let start = match place {
            ["position", "startpos"] => game.startpos(),
            ["position", "fen", fen @ ..] if !fen.is_empty() => {
                game.parse_state(&fen.join(" ")).map_err(|error| format!("fen: {error}"))?
            }
            _ => return Err(expected()),
        };
        let (mut saved, mut state) = (Self::new(start.clone()), start);
        for (at, text) in moves.iter().enumerate() {
            let which = format!("move {}", at + 1);
            let action = game.parse_action(text).map_err(|error| format!("{which}: {error}"))?;
            if !legal_list(game, &state).contains(&action) {
                return Err(format!("{which}: {text} is not possible there"));
            }
            game.play(&mut state, action);
            saved.moves.push(action);
        }
        Ok(saved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::games::tictactoe::TicTacToe;

    #[test]
    fn games_round_trip_and_errors_name_the_place() {
        let text = "position fen 3/3/3 x moves b2 a1\n";
        let saved = Saved::read(&TicTacToe, text).unwrap();
        assert_eq!(saved.to_text(&TicTacToe), text);
        assert_eq!(TicTacToe.state_text(&saved.state(&TicTacToe)), "o2/1x1/3 x");
        assert_eq!(Saved::read(&TicTacToe, "position startpos moves b2 a1"), Ok(saved));
        assert_eq!(Saved::new(TicTacToe.startpos()).to_text(&TicTacToe), "position fen 3/3/3 x\n");
        for (text, error) in [
            ("", "expected `position"),
            ("position fen moves a1", "expected `position"),
            ("position fen 3/3 x", "fen: board"),
            ("position startpos moves b2 b2", "move 2: b2 is not possible there"),
            ("position startpos moves b2 z9", "move 2: move \"z9\""),
        ] {
            let found = Saved::read(&TicTacToe, text).unwrap_err();
            assert!(found.starts_with(error), "{found}");
        }
    }
}
