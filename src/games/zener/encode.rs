//! What a network sees of a position.
//!
//! The board is never turned: row A is the first row whoever moves, because action indices are fixed to
//! squares. Pieces are told apart as the mover's own and the opponent's, and planes say over which edge the
//! mover leaves the board.

use super::board::OFF;
use super::state::{Position, State, Turn};
use super::tables::{CELLS, COLUMNS, ROWS, SYMBOL_NAMES, SYMBOLS, exit_row};

/// Plies left are told exactly below this number only, so that earlier positions share their evaluations.
const PLIES_LEFT: u16 = 40;

const OWN: usize = 0;
const OPPONENT: usize = 5;
const OWN_FREE: usize = 10;
const OPPONENT_FREE: usize = 11;
const MOVABLE: usize = 12;
const HEIGHT: usize = 13;
const COMPULSORY: usize = 14;
const JUST_MOVED: usize = 19;
const WHITE: usize = 24;
const EXIT: usize = 25;
const REPEATED: usize = 26;
const LEFT: usize = 27;
/// Number of planes.
pub(super) const CHANNELS: usize = 28;

/// What each plane means.
pub(super) fn plane_names() -> Vec<String> {
    let mut names = Vec::with_capacity(CHANNELS);
    for owner in ["own", "opponent's"] {
        names.extend(
            SYMBOL_NAMES.map(|symbol| format!("{owner} {symbol}: 1 / (1 + pieces above it) on its square, else 0")),
        );
    }
    names.push("own free pieces: 1, else 0".to_owned());
    names.push("opponent's free pieces: 1, else 0".to_owned());
    names.push("pieces that may move now: 1, else 0".to_owned());
    names.push("pieces on the square / 10".to_owned());
    names.extend(SYMBOL_NAMES.map(|symbol| {
        format!("1 everywhere at the first move of a turn when the opponent moved the {symbol} last, else 0")
    }));
    names.extend(
        SYMBOL_NAMES.map(|symbol| format!("1 everywhere at the free move after the compulsory {symbol}, else 0")),
    );
    names.push("1 everywhere when white is to move, else 0".to_owned());
    names.push("rows to the row from which the mover leaves the board, / 6".to_owned());
    names.push("times this position stood before, / 2, everywhere".to_owned());
    names.push("single moves left before the draw, at most 40, / 40, everywhere".to_owned());
    names
}

/// Single moves left, as far as they are told.
fn plies_left(state: &State, max_plies: u16) -> u16 {
    max_plies.saturating_sub(state.ply).min(PLIES_LEFT)
}

/// What the encoding of a position depends on, packed exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    position: Position,
    earlier: u8,
    plies_left: u8,
}

/// The key of a position.
pub(super) fn key(state: &State, max_plies: u16) -> Key {
    let plies_left = plies_left(state, max_plies) as u8;
    Key { position: state.position(), earlier: state.earlier, plies_left }
}

/// Facts of a final position.
pub(super) const ENDING: usize = 4 * SYMBOLS;

/// Writes which pieces are free, and which are off the board, as `viewer` sees them.
pub(super) fn encode_ending(end: &State, viewer: usize, out: &mut [f32]) {
    for (half, side) in out.chunks_exact_mut(2 * SYMBOLS).zip([viewer, viewer ^ 1]) {
        for symbol in 0..SYMBOLS {
            half[symbol] = f32::from(u8::from(end.board.is_free(side, symbol)));
            half[SYMBOLS + symbol] = f32::from(u8::from(end.board.square(side, symbol) == OFF));
        }
    }
}

/// Writes the planes into `out`, `[CHANNELS, ROWS, COLUMNS]` numbers that are zero on entry.
pub(super) fn encode(state: &State, max_plies: u16, out: &mut [f32]) {
    let mover = usize::from(state.side);
    for square in 0..CELLS {
        let mut height = 0;
        for (above, piece) in state.board.stack(square as u8).enumerate() {
            let (side, symbol) = (usize::from(piece >> 3), usize::from(piece & 7));
            let base = if side == mover { OWN } else { OPPONENT };
            out[(base + symbol) * CELLS + square] = 1.0 / (1 + above) as f32;
            height += 1;
        }
        out[HEIGHT * CELLS + square] = height as f32 / 10.0;
        let row = square / COLUMNS;
        out[EXIT * CELLS + square] = row.abs_diff(exit_row(mover)) as f32 / (ROWS - 1) as f32;
    }
    for (plane, side, symbols) in [
        (OWN_FREE, mover, state.board.free(mover)),
        (OPPONENT_FREE, mover ^ 1, state.board.free(mover ^ 1)),
        (MOVABLE, mover, state.movable()),
    ] {
        for symbol in (0..SYMBOLS).filter(|symbol| symbols >> symbol & 1 == 1) {
            let square = state.board.square(side, symbol);
            debug_assert_ne!(square, OFF, "a free piece is on the board");
            out[plane * CELLS + usize::from(square)] = 1.0;
        }
    }
    let mut everywhere = |plane: usize, value: f32| out[plane * CELLS..(plane + 1) * CELLS].fill(value);
    match state.turn.get() {
        Turn::Opening => {}
        Turn::Compulsory(symbol) => everywhere(COMPULSORY + usize::from(symbol), 1.0),
        Turn::Free(symbol) => everywhere(JUST_MOVED + usize::from(symbol), 1.0),
    }
    everywhere(WHITE, if mover == 0 { 1.0 } else { 0.0 });
    everywhere(REPEATED, f32::from(state.earlier) / 2.0);
    everywhere(LEFT, f32::from(plies_left(state, max_plies)) / f32::from(PLIES_LEFT));
}
