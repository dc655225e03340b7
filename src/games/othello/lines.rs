//! Bitboards of Othello: where a disc can be placed and what it turns.

use std::ops::{BitAnd, BitOr, Not, Shl, Shr};

/// A bitboard: 64 bits where they suffice, which is much faster than 128.
pub(super) trait Word:
    Copy
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + Not<Output = Self>
    + Shl<usize, Output = Self>
    + Shr<usize, Output = Self>
{
    const BITS: usize;
    fn narrow(wide: u128) -> Self;
    fn widen(self) -> u128;
}

impl Word for u64 {
    const BITS: usize = 64;

    #[inline(always)]
    fn narrow(wide: u128) -> Self {
        wide as u64
    }

    #[inline(always)]
    fn widen(self) -> u128 {
        u128::from(self)
    }
}

impl Word for u128 {
    const BITS: usize = 128;

    #[inline(always)]
    fn narrow(wide: u128) -> Self {
        wide
    }

    #[inline(always)]
    fn widen(self) -> u128 {
        self
    }
}

/// Masks of an `N` x `N` board.
pub(super) struct Board<const N: usize>;

impl<const N: usize> Board<N> {
    const ALL: u128 = (1 << (N * N)) - 1;
    /// All cells but the first and the last row. A disc in those is never turned along a line that changes
    /// the row, so lines masked with this cannot run round from one column into the next.
    const INNER: u128 = {
        let (mut mask, mut column) = (0, 0);
        while column < N {
            mask |= ((1 << (N - 2)) - 1) << (column * N + 1);
            column += 1;
        }
        mask
    };
    /// Distance between neighbours along each of the four lines through a cell.
    const STEPS: [usize; 4] = [N, 1, N - 1, N + 1];
    /// The cells that a turned disc can have on each line.
    const TURNABLE: [u128; 4] = [Self::ALL, Self::INNER, Self::INNER, Self::INNER];

    /// The cells of `through` that an unbroken run of such cells joins to `from`, upwards along each line and
    /// downwards. The four lines are worked on side by side (they become one wide vector), and the length
    /// of runs doubles with each round (the parallel prefix of Kogge and Stone).
    #[inline(always)]
    fn runs<W: Word>(from: W, through: W) -> [[W; 4]; 2] {
        let allowed = Self::TURNABLE.map(|mask| through & W::narrow(mask));
        let (mut up, mut down) = ([from; 4], [from; 4]);
        let (mut up_through, mut down_through) = (allowed, allowed);
        let mut length = 1;
        // After the rounds with lengths 1, 2, 4, ... runs of up to 1 + 2 + 4 + ... cells are found; the longest
        // one between two edges has N - 2.
        while length <= N - 2 {
            for line in 0..4 {
                let shift = length * Self::STEPS[line] % W::BITS;
                up[line] = up[line] | (up_through[line] & (up[line] << shift));
                down[line] = down[line] | (down_through[line] & (down[line] >> shift));
                up_through[line] = up_through[line] & (up_through[line] << shift);
                down_through[line] = down_through[line] & (down_through[line] >> shift);
            }
            length *= 2;
        }
        [up, down].map(|runs| std::array::from_fn(|line| runs[line] & allowed[line]))
    }

    /// Where the owner of `own` can place a disc.
    #[inline(always)]
    pub(super) fn places<W: Word>(own: u128, other: u128) -> u128 {
        let (own, other) = (W::narrow(own), W::narrow(other));
        let [up, down] = Self::runs(own, other);
        let ends = (0..4).fold(W::narrow(0), |ends, line| {
            ends | (up[line] << Self::STEPS[line]) | (down[line] >> Self::STEPS[line])
        });
        (ends & !(own | other) & W::narrow(Self::ALL)).widen()
    }

    /// The discs of `other` that a disc of `own` placed at `cell` turns.
    #[inline(always)]
    pub(super) fn turned<W: Word>(own: u128, other: u128, cell: usize) -> u128 {
        let (own, other) = (W::narrow(own), W::narrow(other));
        let [up, down] = Self::runs(W::narrow(1) << cell, other);
        let kept = |run: W, end: W| if (end & own).widen() != 0 { run } else { W::narrow(0) };
        let turned = (0..4).fold(W::narrow(0), |turned, line| {
            let (above, below) = (up[line] << Self::STEPS[line], down[line] >> Self::STEPS[line]);
            turned | kept(up[line], above) | kept(down[line], below)
        });
        turned.widen()
    }
}
