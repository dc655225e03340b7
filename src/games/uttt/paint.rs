//! The position drawn for a person.

use super::{FREE, SIGNS, SIZE, SPLIT, State, Uttt, part, split};
use crate::game::{Action, Drawing, Ink, Player, grid};

/// The whole grid, then who is to move and where. A decided board shows its winner in all cells (`X`, `O`, or `-` for
/// a draw); `+` marks free cells that the mover can play.
pub(super) fn paint(state: &State, last: Option<Action>) -> Drawing {
    let playable = state.playable();
    let cell = |column: usize, row: usize| {
        let board = SPLIT[SIZE * column + row].0;
        let is = |boards: u32| boards >> board & 1 == 1;
        if let Some(winner) = Player::BOTH.into_iter().find(|&player| is(part(state.won, player))) {
            return (Ink::Spent(winner), SIGNS[winner.index()].to_ascii_uppercase());
        }
        match state.owner(column, row) {
            _ if !is(state.open) => (Ink::Text, '-'),
            Some(player) => (Ink::Piece(player), SIGNS[player.index()]),
            None if is(playable) => (Ink::Open, '+'),
            None => (Ink::Frame, '.'),
        }
    };
    let last = last.map(|action| {
        let (board, cell) = split(action);
        (3 * (board / 3) + cell / 3, 3 * (board % 3) + cell % 3)
    });
    let drawing = grid::paint_square(SIZE, Some(3), last, cell);
    if state.outcome.is_some() {
        return drawing.above(grid::caption(&Uttt, state));
    }
    let boards = match state.target {
        FREE => "any board that is not decided".to_owned(),
        board => {
            let (column, row) = (3 * usize::from(board / 3), 3 * usize::from(board % 3));
            format!("the board {}-{}", grid::square_text(column, row), grid::square_text(column + 2, row + 2))
        }
    };
    drawing
        .with(Ink::Piece(state.to_move), SIGNS[state.to_move.index()])
        .with(Ink::Text, " to move in ")
        .with(Ink::Open, boards)
        .with(Ink::Text, "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::Game as _;

    #[test]
    fn drawn_with_coordinates_and_the_board_to_play_in() {
        let state = Uttt.parse_state("9/9/9/9/9/9/9/9/8x o 9").unwrap();
        let drawn = Uttt.draw(&state);
        let lines: Vec<&str> = drawn.lines().collect();
        assert_eq!(lines[0], "    a b c   d e f   g h i");
        assert_eq!(lines[4], "   -------+-------+-------");
        assert_eq!(lines[11], " 9  . . . | . . . | + + x");
        assert_eq!(lines[12], "o to move in the board g7-i9");
        let marked = Uttt.paint(&state, Some(Uttt.parse_action("i9").unwrap())).to_string();
        assert_eq!(marked.lines().nth(11), Some(" 9  . . . | . . . | + +[x]"));
        assert!(Uttt.draw(&Uttt.startpos()).ends_with("x to move in any board that is not decided\n"));
    }

    #[test]
    fn a_won_board_is_filled() {
        let state = Uttt.parse_state("xxx6/oo7/9/9/9/9/9/9/9 o -").unwrap();
        let drawn = Uttt.draw(&state);
        let first: Vec<&str> = drawn.lines().skip(1).take(3).collect();
        assert!(first.iter().all(|line| line[2..].starts_with("  X X X | + + + | + + +")), "{drawn}");
    }
}
