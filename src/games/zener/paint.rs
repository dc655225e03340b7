//! The position drawn for a person, and in words whose move of which kind it is.

use crate::game::{Action, Drawing, Ink};

use super::board::{NONE, OFF, Piece};
use super::state::{Finish, State, Turn, player};
use super::tables::{CELLS, COLUMNS, SYMBOL_NAMES, exit_row, target};
use super::text::{SIDE_NAMES, letter};

/// Signs of one square with their meanings, the space or bracket before them included.
type Cell = Vec<(Ink, char)>;

/// The position drawn: the board with coordinates, every stack from bottom to top, then whose move of which kind it is.
/// A compulsory piece that can move carries `*`, a piece just moved `'`; the square that the last move led to stands
/// in brackets.
pub(super) fn paint(state: &State, last: Option<Action>, max_plies: u16) -> Drawing {
    let to = last.and_then(|action| target(action.index() % CELLS, action.index() / CELLS)).filter(|&to| to != OFF);
    let cells: Vec<Cell> = (0..CELLS).map(|square| cell(state, square, to == Some(square as u8))).collect();
    // Room for one piece with all marks, so that the board keeps its shape; beyond that each column is as wide as it
    // needs to be. With ten pieces in all, even one stack of them fits.
    let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
        cells.iter().skip(column).step_by(COLUMNS).map(Vec::len).max().unwrap_or(0).max(4)
    });
    let numbers: String = (1..).zip(widths).map(|(column, width)| format!(" {column:<0$}", width - 1)).collect();
    let header = format!("  {}\n", numbers.trim_end());
    let mut out = Drawing::new().with(Ink::Frame, &header);
    for (row, line) in cells.chunks(COLUMNS).enumerate() {
        let name = char::from(b'A' + row as u8);
        out.push(Ink::Frame, format_args!("{name} "));
        for (cell, width) in line.iter().zip(widths) {
            cell.iter().for_each(|&(ink, sign)| out.push(ink, sign));
            out.push(Ink::Frame, " ".repeat(width - cell.len()));
        }
        out.push(Ink::Frame, format_args!(" {name}"));
        if let Some(side) = (0..2).find(|&side| exit_row(side ^ 1) == row) {
            out.push(Ink::Frame, format_args!("  {}'s home row", SIDE_NAMES[side]));
        }
        out.push(Ink::Frame, "\n");
    }
    out.push(Ink::Frame, header);
    out.push(Ink::Text, "W wave, X cross, C circle, Q square, S star; upper case is white\n");
    let ply = state.ply;
    out.push(
        Ink::Text,
        format_args!("stacks are written from bottom to top; {ply} of at most {max_plies} moves made\n"),
    );
    if state.finish == Finish::No && state.earlier > 0 {
        out.push(Ink::Text, "this position stood before; the third time is a draw\n");
    }
    out.above(status(state)).with(Ink::Text, "\n")
}

/// A square: its stack with what is to be said of the top piece.
fn cell(state: &State, square: usize, is_last: bool) -> Cell {
    let mut pieces: Vec<Piece> = state.board.stack(square as u8).collect();
    pieces.reverse();
    let mut cell = vec![if is_last { (Ink::Mark, '[') } else { (Ink::Frame, ' ') }];
    let Some((&top, blocked)) = pieces.split_last() else {
        cell.push((Ink::Frame, '.'));
        return cell;
    };
    cell.extend(blocked.iter().map(|&piece| (Ink::Spent(player(piece >> 3)), letter(piece))));
    cell.push((Ink::Piece(player(top >> 3)), letter(top)));
    if state.finish == Finish::No && top != NONE && top >> 3 == state.side {
        match state.turn.get() {
            Turn::Compulsory(symbol) if top & 7 == symbol => cell.push((Ink::Open, '*')),
            Turn::Free(symbol) if top & 7 == symbol => cell.push((Ink::Mark, '\'')),
            _ => {}
        }
    }
    if is_last {
        cell.push((Ink::Mark, ']'));
    }
    cell
}

/// Whether the piece that the turn demands can move.
fn can_obey(state: &State, symbol: u8) -> bool {
    state.board.is_free(usize::from(state.side), usize::from(symbol))
}

/// Whose move of which kind it is, or how the game ended.
fn status(state: &State) -> Drawing {
    let name = |side: u8| Drawing::new().with(Ink::Piece(player(side)), SIDE_NAMES[usize::from(side)]);
    let (mover, symbol_name) = (name(state.side), |symbol: u8| SYMBOL_NAMES[usize::from(symbol)]);
    match state.finish {
        Finish::Won(winner) => name(winner).with(Ink::Text, " has won"),
        Finish::Repeated => "draw by the third occurrence of the position".into(),
        Finish::Capped => "draw by the limit of moves".into(),
        Finish::No => match state.turn.get() {
            Turn::Opening => mover.with(Ink::Text, " to move: the first move, of any piece"),
            Turn::Free(symbol) => mover.with(
                Ink::Text,
                format_args!(" to move: a free move, not of the {} just moved (')", symbol_name(symbol)),
            ),
            Turn::Compulsory(symbol) if can_obey(state, symbol) => mover
                .with(Ink::Text, " to move: the ")
                .with(Ink::Open, format_args!("compulsory {} (*)", symbol_name(symbol))),
            Turn::Compulsory(symbol) => mover.with(
                Ink::Text,
                format_args!(
                    " to move: the compulsory {} is blocked, so one move of any free piece",
                    symbol_name(symbol)
                ),
            ),
        },
    }
}

/// Whose move of which kind it is, short.
pub(super) fn turn_text(state: &State) -> String {
    let mover = SIDE_NAMES[usize::from(state.side)];
    match state.turn.get() {
        Turn::Opening => format!("{mover}, first move"),
        Turn::Free(_) => format!("{mover}, free move"),
        Turn::Compulsory(symbol) if can_obey(state, symbol) => {
            format!("{mover}, compulsory {}", SYMBOL_NAMES[usize::from(symbol)])
        }
        Turn::Compulsory(_) => format!("{mover}, any piece"),
    }
}
