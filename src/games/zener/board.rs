//! The stacks of a Zener position and the moves of single pieces.
//!
//! Every piece knows its square and the piece it lies on; every square knows its top piece. A move
//! changes a constant number of these links without a loop or a branch, however high the stacks are.

use crate::util::rng::Stream;

use super::tables::{CELLS, CHOICES, MOVES, SYMBOLS};

/// A piece as `side * 8 + symbol`, or [`NONE`].
pub(super) type Piece = u8;

/// No piece: symbol slot 7 of side 0, which no piece uses.
pub(super) const NONE: Piece = 7;
/// The square of a piece that has left the board.
pub(super) const OFF: u8 = CELLS as u8;

/// Bits of a piece's field in [`Board::pieces`].
const FIELD: u32 = 12;
/// Where the piece beneath lies in a field.
const BELOW: u32 = 6;
/// A bit for each symbol.
const SYMBOL_BITS: u32 = 0x1f;
/// A bit for each piece.
const PIECE_BITS: u32 = SYMBOL_BITS | SYMBOL_BITS << 8;

/// `side * 8 + symbol`.
#[inline]
pub(super) const fn piece(side: usize, symbol: usize) -> Piece {
    (side * 8 + symbol) as Piece
}

/// One single move: which symbol goes from where to where ([`OFF`]: leaves the board).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub symbol: usize,
    pub from: u8,
    pub to: u8,
}

/// Where the ten pieces are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Board {
    /// For each side twelve bits for each symbol: six of the square (or [`OFF`]), four of the piece
    /// beneath (or [`NONE`]), two unused; the highest four bits are zero. This alone determines the board.
    pieces: [u64; 2],
    /// Which pieces are free (on top): bit `piece` of each.
    free: u32,
    /// The top piece of each square, or [`NONE`].
    tops: [Piece; CELLS],
}

impl Board {
    /// The board with these packed pieces (see the field), which must be consistent.
    pub fn from_pieces(pieces: [u64; 2]) -> Self {
        let mut board = Self { pieces, free: PIECE_BITS, tops: [NONE; CELLS] };
        for side in 0..2 {
            for symbol in 0..SYMBOLS {
                board.free &= !(1 << board.below(side, symbol));
                if board.square(side, symbol) == OFF {
                    board.free &= !(1 << piece(side, symbol));
                }
            }
        }
        for side in 0..2 {
            for symbol in 0..SYMBOLS {
                if board.is_free(side, symbol) {
                    board.tops[usize::from(board.square(side, symbol))] = piece(side, symbol);
                }
            }
        }
        board
    }

    /// The board with these stacks, each from bottom to top, one for each square; pieces that are nowhere
    /// are off the board.
    pub fn from_stacks(stacks: &[Vec<Piece>; CELLS]) -> Self {
        let mut pieces = [pack(OFF, NONE, 0) * (1 | 1 << 12 | 1 << 24 | 1 << 36 | 1 << 48); 2];
        for (square, stack) in stacks.iter().enumerate() {
            let mut below = NONE;
            for &piece in stack {
                let (side, symbol) = (usize::from(piece >> 3), usize::from(piece & 7));
                pieces[side] &= !(0xfff << (FIELD * symbol as u32));
                pieces[side] |= pack(square as u8, below, symbol);
                below = piece;
            }
        }
        Self::from_pieces(pieces)
    }

    /// The packed pieces, which determine the board.
    #[inline]
    pub fn pieces(&self) -> [u64; 2] {
        self.pieces
    }

    /// The square of a piece, or [`OFF`].
    #[inline]
    pub fn square(&self, side: usize, symbol: usize) -> u8 {
        (self.pieces[side] >> (FIELD * symbol as u32)) as u8 & 63
    }

    /// The piece beneath a piece, or [`NONE`].
    #[inline]
    pub fn below(&self, side: usize, symbol: usize) -> Piece {
        (self.pieces[side] >> (FIELD * symbol as u32 + BELOW)) as u8 & 15
    }

    /// The top piece of a square, or [`NONE`].
    #[inline]
    pub fn top(&self, square: u8) -> Piece {
        self.tops[usize::from(square)]
    }

    /// The free pieces of `side`, a bit for each symbol.
    #[inline]
    pub fn free(&self, side: usize) -> u32 {
        self.free >> (8 * side) & SYMBOL_BITS
    }

    /// Whether a piece is on top of its stack.
    #[inline]
    pub fn is_free(&self, side: usize, symbol: usize) -> bool {
        self.free >> piece(side, symbol) & 1 == 1
    }

    /// The pieces of a square from top to bottom.
    pub fn stack(&self, square: u8) -> impl Iterator<Item = Piece> + '_ {
        let start = Some(self.top(square)).filter(|&piece| piece != NONE);
        std::iter::successors(start, |&piece| {
            Some(self.below(usize::from(piece >> 3), usize::from(piece & 7))).filter(|&piece| piece != NONE)
        })
    }

    /// Moves a free piece; [`OFF`] takes it from the board.
    #[inline(always)]
    pub fn make(&mut self, side: usize, step: Step) {
        let Step { symbol, from, to } = step;
        let below = self.below(side, symbol);
        self.tops[usize::from(from)] = below;
        let mut covered = NONE;
        if to == OFF {
            self.free &= !(1 << piece(side, symbol));
        } else {
            covered = std::mem::replace(&mut self.tops[usize::from(to)], piece(side, symbol));
        }
        self.free = (self.free | 1 << below) & !(1 << covered) & PIECE_BITS;
        self.pieces[side] ^= pack(from ^ to, below ^ covered, symbol);
    }

    /// A uniformly random move of one free piece.
    #[inline(always)]
    pub fn random_step_of(&self, side: usize, symbol: usize, random: &mut Stream) -> Step {
        let from = self.square(side, symbol);
        let to = MOVES[side][usize::from(from)].to[random.below(12)];
        Step { symbol, from, to }
    }

    /// A uniformly random move of the pieces in `movable`, free ones and at least one.
    ///
    /// A piece and one of four directions are drawn until the piece has that many moves: each move is as
    /// likely as any other, whatever piece it is of.
    #[inline(always)]
    pub fn random_step(&self, side: usize, movable: u32, random: &mut Stream) -> Step {
        let choices = &CHOICES[(movable & SYMBOL_BITS) as usize];
        loop {
            // The halves of one draw, scaled as in `Stream::below`; the bias is below 60 / 2^32.
            let bits = random.bits();
            let symbol = usize::from(choices[(((bits >> 32) * 60) >> 32) as usize]);
            let direction = (bits & 3) as usize;
            let from = self.square(side, symbol);
            let moves = &MOVES[side][usize::from(from)];
            if direction < usize::from(moves.count) {
                return Step { symbol, from, to: moves.to[direction] };
            }
        }
    }
}

/// The field of a piece at its place in [`Board::pieces`].
#[inline]
const fn pack(square: u8, below: Piece, symbol: usize) -> u64 {
    ((square as u64) | ((below as u64) << BELOW)) << (FIELD * symbol as u32)
}

/// Packed pieces as seen through a symmetry: squares through `square`, pieces through `piece`.
pub(super) fn map_pieces(pieces: [u64; 2], square: impl Fn(u8) -> u8, symbol_to: &[u8; SYMBOLS]) -> [u64; 2] {
    let mut out = [0; 2];
    for side in 0..2 {
        for symbol in 0..SYMBOLS {
            let field = pieces[side] >> (FIELD * symbol as u32);
            let below = (field >> BELOW) as u8 & 15;
            let below = if below == NONE { NONE } else { (below & 8) | symbol_to[usize::from(below & 7)] };
            out[side] |= pack(square(field as u8 & 63), below, usize::from(symbol_to[symbol]));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_stay_consistent_and_equal_a_board_built_anew() {
        let mut random = Stream::test(5);
        for _ in 0..200 {
            let mut stacks: [Vec<Piece>; CELLS] = std::array::from_fn(|_| Vec::new());
            for side in 0..2 {
                for symbol in 0..SYMBOLS {
                    stacks[random.below(CELLS)].push(piece(side, symbol));
                }
            }
            let mut board = Board::from_stacks(&stacks);
            for _ in 0..50 {
                for (square, stack) in stacks.iter().enumerate() {
                    let found: Vec<Piece> = board.stack(square as u8).collect();
                    assert_eq!(found, stack.iter().rev().copied().collect::<Vec<_>>());
                }
                assert_eq!(board, Board::from_stacks(&stacks));
                let side = random.below(2);
                if board.free(side) == 0 {
                    continue;
                }
                let step = board.random_step(side, board.free(side), &mut random);
                assert_eq!(board.top(step.from), piece(side, step.symbol));
                let moved = stacks[usize::from(step.from)].pop().expect("the piece is there");
                board.make(side, step);
                if step.to == OFF {
                    assert_eq!(board, Board::from_stacks(&stacks));
                    break;
                }
                stacks[usize::from(step.to)].push(moved);
            }
        }
    }

    #[test]
    fn every_move_is_drawn_equally_often() {
        let mut stacks: [Vec<Piece>; CELLS] = std::array::from_fn(|_| Vec::new());
        for (symbol, square) in [0, 7, 7, 30, 34].into_iter().enumerate() {
            stacks[square].push(piece(0, symbol));
            stacks[20].push(piece(1, symbol));
        }
        let board = Board::from_stacks(&stacks);
        // Free: wave in the corner A1 (3 moves: off, right, down), circle on B3 (4), square and star on
        // row G (2 and 2); the cross lies under the circle.
        let mut counts = std::collections::HashMap::new();
        let mut random = Stream::test(6);
        for _ in 0..110_000 {
            let step = board.random_step(0, board.free(0), &mut random);
            *counts.entry((step.symbol, step.to)).or_insert(0u32) += 1;
        }
        assert_eq!(counts.len(), 11);
        // Standard deviation 95.
        assert!(counts.values().all(|count| count.abs_diff(10_000) < 480), "{counts:?}");
        assert!(counts.contains_key(&(0, OFF)) && !counts.keys().any(|&(symbol, _)| symbol == 1));
    }
}
