//! Sets of cells as bits of a number.

/// The bits of `mask`, ascending.
#[inline]
pub fn ones(mask: u64) -> impl Iterator<Item = usize> {
    let mut left = mask;
    std::iter::from_fn(move || {
        (left != 0).then(|| {
            let bit = left.trailing_zeros() as usize;
            left &= left - 1;
            bit
        })
    })
}

/// The bits of `mask`, ascending.
#[inline]
pub fn ones_wide(mask: u128) -> impl Iterator<Item = usize> {
    ones(mask as u64).chain(ones((mask >> 64) as u64).map(|bit| bit + 64))
}

/// `NTH_OF_BYTE[n][byte]` is the place of the `n`-th (from 0) set bit of `byte`, 8 when it has fewer.
static NTH_OF_BYTE: [[u8; 256]; 8] = {
    let mut table = [[8; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut count) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                table[count][byte] = bit as u8;
                count += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    table
};

/// The place of the `n`-th set bit of `mask`, counted from 0 at the low end.
///
/// Without branches: the selection of Vigna, "Broadword Implementation of Rank/Select Queries" (2008),
/// algorithm 2, with a table for the last byte.
///
/// # Panics
/// Or an unspecified number, when `mask` has no more than `n` bits.
#[inline]
pub fn nth_one(mask: u64, n: usize) -> usize {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const TOP: u64 = 0x80 * EACH;
    // Bits in each byte, then in each byte and all lower ones.
    let pairs = mask - ((mask >> 1) & (0x55 * EACH));
    let nibbles = (pairs & (0x33 * EACH)) + ((pairs >> 2) & (0x33 * EACH));
    let sums = ((nibbles + (nibbles >> 4)) & (0x0f * EACH)).wrapping_mul(EACH);
    // One top bit for each byte up to which there are n bits or fewer: the bit lies above them.
    let below = (((n as u64).wrapping_mul(EACH) | TOP).wrapping_sub(sums)) & TOP;
    let place = 8 * below.count_ones() as usize;
    let rank = n - ((sums << 8) >> place & 0xff) as usize;
    place + usize::from(NTH_OF_BYTE[rank & 7][(mask >> place & 0xff) as usize])
}

/// [`nth_one`] of 128 bits.
///
/// # Panics
/// Or an unspecified number, when `mask` has no more than `n` bits.
#[inline]
pub fn nth_one_wide(mask: u128, n: usize) -> usize {
    let low = mask as u64;
    let count = low.count_ones() as usize;
    if n < count { nth_one(low, n) } else { 64 + nth_one((mask >> 64) as u64, n - count) }
}

/// Whether the nine cells of a 3x3 board (bit `3 * i + j`) hold a full row, column or diagonal, for each
/// set of cells.
pub static THREE_IN_LINE: [bool; 512] = {
    const LINES: [usize; 8] = [0o007, 0o070, 0o700, 0o111, 0o222, 0o444, 0o421, 0o124];
    let mut table = [false; 512];
    let mut cells = 0;
    while cells < 512 {
        let mut line = 0;
        while line < 8 {
            table[cells] |= cells & LINES[line] == LINES[line];
            line += 1;
        }
        cells += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::util::rng::Stream;

    #[test]
    fn selection_agrees_with_listing() {
        let mut random = Stream::test(11);
        for round in 0..2000 {
            let mut mask = u128::from(random.bits()) | u128::from(random.bits()) << 64;
            for _ in 0..round % 5 {
                mask &= u128::from(random.bits()) | u128::from(random.bits()) << 64;
            }
            let listed: Vec<usize> = ones_wide(mask).collect();
            assert_eq!(listed, (0..128).filter(|bit| mask >> bit & 1 == 1).collect::<Vec<_>>());
            for (n, &bit) in listed.iter().enumerate() {
                assert_eq!(nth_one_wide(mask, n), bit, "bit {n} of {mask:#x}");
            }
        }
        assert_eq!(nth_one(u64::MAX, 63), 63);
        assert_eq!(nth_one(1 << 63, 0), 63);
    }

    #[test]
    fn lines_of_three() {
        let lines = (0..512usize).filter(|&cells| cells.count_ones() == 3 && THREE_IN_LINE[cells]).count();
        assert_eq!(lines, 8);
        assert!(THREE_IN_LINE[0o421] && THREE_IN_LINE[0o124] && THREE_IN_LINE[0o777]);
        assert!(!THREE_IN_LINE[0o035] && !THREE_IN_LINE[0o653] && !THREE_IN_LINE[0]);
        assert!(
            (0..512).all(|cells: usize| (0..9).all(|bit| !THREE_IN_LINE[cells] || THREE_IN_LINE[cells | 1 << bit]))
        );
    }
}
