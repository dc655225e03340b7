//! The geometry of the board, tables for drawing moves, and the permutations of the symbols.

use super::board::OFF;

/// Rows A..G, top to bottom.
pub(super) const ROWS: usize = 7;
/// Columns 1..5, left to right.
pub(super) const COLUMNS: usize = 5;
/// Squares, row by row from A1.
pub(super) const CELLS: usize = ROWS * COLUMNS;
/// Wave, cross, circle, square, star.
pub(super) const SYMBOLS: usize = 5;
/// Directions of a move, each a plane of the policy: up, left, right, down, off the board. Moves of one
/// piece in this order are in the order of their texts.
pub(super) const PLANES: usize = 5;
/// The plane of moves that leave the board.
pub(super) const OFF_PLANE: usize = 4;

/// Letters of the symbols in a fen, those of white in upper case.
pub(super) const LETTERS: [char; SYMBOLS] = ['w', 'x', 'c', 'q', 's'];
/// What the symbols are called.
pub(super) const SYMBOL_NAMES: [&str; SYMBOLS] = ["wave", "cross", "circle", "square", "star"];

/// The moves of a free piece of one side on one square, in notation order.
#[derive(Clone, Copy)]
#[repr(align(16))]
pub(super) struct PieceMoves {
    /// Where to, over and over: entry `i` is move `i % count`. Twelve entries, so that a uniform number below
    /// twelve is a uniform move whether there are two, three or four.
    pub to: [u8; 12],
    /// How many: 2 to 4.
    pub count: u8,
}

/// The moves of a free piece, for each side and square.
pub(super) static MOVES: [[PieceMoves; CELLS]; 2] = all_moves();

const fn all_moves() -> [[PieceMoves; CELLS]; 2] {
    let mut out = [[PieceMoves { to: [OFF; 12], count: 0 }; CELLS]; 2];
    let mut side = 0;
    while side < 2 {
        let mut square = 0;
        while square < CELLS {
            let moves = &mut out[side][square];
            let mut plane = 0;
            while plane < PLANES {
                if let Some(to) = target(square, plane)
                    && (to != OFF || exit_row(side) == square / COLUMNS)
                {
                    moves.to[moves.count as usize] = to;
                    moves.count += 1;
                }
                plane += 1;
            }
            let mut entry = moves.count as usize;
            while entry < 12 {
                moves.to[entry] = moves.to[entry - moves.count as usize];
                entry += 1;
            }
            square += 1;
        }
        side += 1;
    }
    out
}

/// For each set of symbols (a bit each) and each number below 60 a symbol of the set: with a uniform number the
/// symbol is uniform, because 60 is a multiple of 1, 2, 3, 4 and 5. Nothing of use for the empty set.
pub(super) static CHOICES: [[u8; 60]; 32] = choices();

const fn choices() -> [[u8; 60]; 32] {
    let mut out = [[0; 60]; 32];
    let mut set = 1;
    while set < 32 {
        let mut entry = 0;
        let mut symbol = 0;
        while entry < 60 {
            if set >> symbol & 1 == 1 {
                out[set][entry] = symbol;
                entry += 1;
            }
            symbol = (symbol + 1) % SYMBOLS as u8;
        }
        set += 1;
    }
    out
}

/// The row over whose edge a side leaves the board.
pub(super) const fn exit_row(side: usize) -> usize {
    if side == 0 { 0 } else { ROWS - 1 }
}

/// Where a move of `plane` from `square` leads, if there is such a move for one of the sides.
pub(super) const fn target(square: usize, plane: usize) -> Option<u8> {
    let (row, column) = (square / COLUMNS, square % COLUMNS);
    let to = match plane {
        0 if row > 0 => square - COLUMNS,
        1 if column > 0 => square - 1,
        2 if column + 1 < COLUMNS => square + 1,
        3 if row + 1 < ROWS => square + COLUMNS,
        OFF_PLANE if row == 0 || row + 1 == ROWS => CELLS,
        _ => return None,
    };
    Some(to as u8)
}

/// The left-right mirror of a square; [`OFF`] stays.
pub(super) const fn mirrored(square: u8) -> u8 {
    if square == OFF {
        return OFF;
    }
    let column = square % COLUMNS as u8;
    square - column + (COLUMNS as u8 - 1 - column)
}

/// All permutations of the symbols in lexicographic order: the first is the identity. `[k][old]` is the
/// new symbol.
pub(super) static PERMUTATIONS: [[u8; SYMBOLS]; 120] = permutations();

const fn permutations() -> [[u8; SYMBOLS]; 120] {
    let mut out = [[0; SYMBOLS]; 120];
    let mut index = 0;
    while index < 120 {
        // Digits of the index in the factorial number system choose among the symbols left.
        let mut left = [0, 1, 2, 3, 4];
        let mut rest = index;
        let mut block = 24;
        let mut place = 0;
        while place < SYMBOLS {
            let digit = rest / block;
            rest %= block;
            out[index][place] = left[digit];
            let mut shift = digit;
            while shift + 1 < SYMBOLS {
                left[shift] = left[shift + 1];
                shift += 1;
            }
            place += 1;
            if place < SYMBOLS - 1 {
                block /= SYMBOLS - place;
            } else {
                block = 1;
            }
        }
        index += 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutations_are_all_and_in_order() {
        assert_eq!(PERMUTATIONS[0], [0, 1, 2, 3, 4]);
        assert_eq!(PERMUTATIONS[1], [0, 1, 2, 4, 3]);
        assert_eq!(PERMUTATIONS[119], [4, 3, 2, 1, 0]);
        assert!(PERMUTATIONS.is_sorted_by(|a, b| a < b));
        for permutation in &PERMUTATIONS {
            let mut sorted = *permutation;
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3, 4]);
        }
    }

    #[test]
    fn choices_are_even() {
        for (set, entries) in CHOICES.iter().enumerate().skip(1) {
            for symbol in 0..SYMBOLS {
                let times = entries.iter().filter(|&&entry| usize::from(entry) == symbol).count();
                let expected = if set >> symbol & 1 == 1 { 60 / set.count_ones() as usize } else { 0 };
                assert_eq!(times, expected, "set {set:05b}, symbol {symbol}");
            }
        }
    }

    #[test]
    fn moves_by_place() {
        // White leaves over row A, black over row G; 13 moves of a side on its home row.
        assert_eq!(MOVES[0][..5].iter().map(|moves| moves.count).collect::<Vec<_>>(), [3, 4, 4, 4, 3]);
        assert_eq!(MOVES[1][..5].iter().map(|moves| moves.count).sum::<u8>(), 13);
        assert_eq!(MOVES[0][30..].iter().map(|moves| moves.count).sum::<u8>(), 13);
        assert_eq!(MOVES[0][0].to[..3], [1, 5, OFF]);
        assert_eq!(MOVES[1][34].to[..3], [29, 33, OFF]);
        for moves in MOVES.as_flattened() {
            let count = usize::from(moves.count);
            assert!((2..=4).contains(&count) && (0..12).all(|entry| moves.to[entry] == moves.to[entry % count]));
        }
        assert_eq!(mirrored(5), 9);
        assert_eq!(mirrored(OFF), OFF);
    }
}
