//! Positions of Ultimate Tic-Tac-Toe as text, and which of them a game can reach.

use super::{FREE, SIGNS, SIZE, SPLIT, State, has_line, part};
use crate::game::bits::ones;
use crate::game::{Outcome, Player, TextError, grid};

/// The number of a board or cell with rows and columns exchanged: from `3 * column + row` to reading order
/// from 0 and back.
const fn transposed(nine: usize) -> usize {
    3 * (nine % 3) + nine / 3
}

/// Writes a position.
pub(super) fn write(state: &State) -> String {
    let board = grid::rows_text(SIZE, SIZE, |row, column| state.owner(column, row).map(|player| SIGNS[player.index()]));
    let target = match state.target {
        FREE => "-".to_owned(),
        board => (transposed(board.into()) + 1).to_string(),
    };
    format!("{board} {} {target}", SIGNS[state.to_move.index()])
}

/// Reads a position and refuses what no game reaches.
pub(super) fn read(text: &str) -> Result<State, TextError> {
    let [board, side, target] = grid::fields(text, ["board", "side to move", "small board to play in"])?;
    let mut state = State::START;
    for (index, cell) in grid::parse_rows(board, SIZE, SIZE, &SIGNS)?.into_iter().enumerate() {
        if let Some(player) = cell {
            let (small, cell) = SPLIT[SIZE * (index % SIZE) + index / SIZE];
            state.stones[usize::from(small)] |= 1 << (usize::from(cell) + 9 * player);
        }
    }
    state.to_move = grid::parse_side(side, SIGNS)?;
    let counts = Player::BOTH.map(|player| state.stones.iter().map(|&s| part(s, player).count_ones()).sum());
    grid::check_counts(counts, state.to_move)?;
    state.ply = (counts[0] + counts[1]) as u8;
    state.settle().map_err(|small| {
        TextError::new(format!("board: both players have a line in small board {}", transposed(small) + 1))
    })?;
    state.target = parse_target(target)?;
    state.check_target()?;
    if state.ply > 0 && !state.has_last_move() {
        return Err(TextError::new(format!(
            "position {}: impossible, no stone of {} can have been the last move: it must lie in a small board that \
                 was undecided, in a game that was not over, and send {} to the small board of the last field",
            grid::quoted(text),
            SIGNS[state.to_move.other().index()],
            SIGNS[state.to_move.index()]
        )));
    }
    Ok(state)
}

/// Reads the last field of a fen.
fn parse_target(text: &str) -> Result<u8, TextError> {
    match text.as_bytes() {
        [b'-'] => Ok(FREE),
        [digit @ b'1'..=b'9'] => Ok(transposed(usize::from(digit - b'1')) as u8),
        _ => Err(TextError::new(format!("small board to play in {}: expected 1 to 9 or -", grid::quoted(text)))),
    }
}

impl State {
    /// Works out `won`, `open` and `outcome` from the stones.
    ///
    /// # Errors
    /// The small board in which both players have a line.
    fn settle(&mut self) -> Result<(), usize> {
        (self.won, self.open) = (0, 0);
        for board in 0..9 {
            let lines = Player::BOTH.map(|player| has_line(part(self.stones[board], player)));
            match lines {
                [true, true] => return Err(board),
                [false, false] if self.free(board) != 0 => self.open |= 1 << board,
                [first, second] => self.won |= u32::from(first) << board | u32::from(second) << (board + 9),
            }
        }
        let lines = Player::BOTH.into_iter().find(|&player| has_line(part(self.won, player)));
        self.outcome = match lines {
            Some(player) => Some(Outcome::Win(player)),
            None => (self.open == 0).then_some(Outcome::Draw),
        };
        Ok(())
    }

    fn check_target(&self) -> Result<(), TextError> {
        if self.target == FREE {
            return Ok(());
        }
        let board = transposed(self.target.into()) + 1;
        let error = |why: &str| Err(TextError::new(format!("small board to play in \"{board}\": {why}, expected -")));
        match self.outcome {
            Some(_) => error("the game is over"),
            None if self.open >> self.target & 1 == 0 => error("that board is decided"),
            None if self.ply == 0 => error("the first move is free"),
            None => Ok(()),
        }
    }

    /// Whether some stone of the player who is not to move can have been the last move.
    fn has_last_move(&self) -> bool {
        let mover = self.to_move.other();
        (0..9).any(|board| {
            ones(part(self.stones[board], mover).into()).any(|cell| {
                let mut before = *self;
                before.stones[board] &= !(1 << (cell + 9 * mover.index()));
                let was_played_on = before.settle().is_ok() && before.outcome.is_none();
                let sends = match self.open >> cell & 1 {
                    1 => cell as u8,
                    _ => FREE,
                };
                was_played_on && before.open >> board & 1 == 1 && (self.outcome.is_some() || self.target == sends)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Uttt;
    use crate::game::Game;

    fn error(text: &str) -> String {
        Uttt.parse_state(text).expect_err(text).to_string()
    }

    #[test]
    fn impossible_positions_name_the_field() {
        let free = "9/9/9/9/9/9/9/9/9";
        assert_eq!(
            error(free),
            "position \"9/9/9/9/9/9/9/9/9\": expected 3 fields with single spaces between them (board, side to move, \
             small board to play in), found 1"
        );
        assert_eq!(error(&format!("{free} x 0")), "small board to play in \"0\": expected 1 to 9 or -");
        assert_eq!(error(&format!("{free} x 10")), "small board to play in \"10\": expected 1 to 9 or -");
        assert_eq!(error(&format!("{free} x 5")), "small board to play in \"5\": the first move is free, expected -");
        assert!(error("9/9/9/9/9/9/9/9/8x x -").starts_with("board: 1 x and 0 o"));
        // After i9 (place 9 in its board) o must play in board 9.
        assert!(Uttt.parse_state("9/9/9/9/9/9/9/9/8x o 9").is_ok());
        assert!(error("9/9/9/9/9/9/9/9/8x o 8").contains("no stone of x can have been the last move"));
        assert!(error("9/9/9/9/9/9/9/9/8x o -").contains("no stone of x can have been the last move"));
        assert_eq!(error("xxx6/ooo6/9/9/9/9/9/9/9 x 1"), "board: both players have a line in small board 1");
        assert_eq!(
            error("xxx6/oo7/9/9/9/9/9/9/9 o 1"),
            "small board to play in \"1\": that board is decided, expected -"
        );
    }

    #[test]
    fn board_and_target_of_the_fen_are_in_reading_order() {
        // c1 is the third cell of board 1 in reading order.
        let mut state = Uttt.startpos();
        Uttt.play(&mut state, Uttt.parse_action("c1").unwrap());
        assert_eq!(Uttt.state_text(&state), "2x6/9/9/9/9/9/9/9/9 o 3");
        let moves: Vec<String> =
            crate::game::legal_list(&Uttt, &state).into_iter().map(|a| Uttt.action_text(a)).collect();
        assert_eq!(moves, ["g1", "g2", "g3", "h1", "h2", "h3", "i1", "i2", "i3"]);
    }
}
