//! The grid that stored numbers are rounded to: shares of 1/65535, weights of 1/1024.
//!
//! Rounding is a projection: what was rounded once stays as it is, so records survive any number of
//! write-read rounds unchanged.

use crate::game::WdlAbs;

/// What the parts of a stored distribution sum to, exactly.
pub const ONE: u16 = u16::MAX;

/// Steps of a stored weight in 1.
pub const WEIGHT_STEPS: u16 = 1024;

/// The largest weight that can be stored, 65535/1024; larger ones are cut down to it.
pub const MAX_WEIGHT: f32 = u16::MAX as f32 / WEIGHT_STEPS as f32;

/// Rounds the distribution `shares` (not negative, finite, not all zero; scaled to sum 1 first) to parts that sum to
/// exactly [`ONE`], and appends them to `out`.
///
/// By the method of largest remainders, ties to the earlier entry: each part differs from `share * ONE` by less
/// than 1, so a share changes by less than 1/65535 however many there are; a share of zero stays zero; parts
/// that came from here come out as they were.
pub fn parts(shares: &[f32], out: &mut Vec<u16>) {
    let first = out.len();
    let total: f64 = shares.iter().copied().map(f64::from).sum();
    let scale = f64::from(ONE) / total;
    let mut rest = u32::from(ONE);
    let mut remainders: Vec<(f64, usize)> = Vec::with_capacity(shares.len());
    for (index, &share) in shares.iter().enumerate() {
        let exact = f64::from(share) * scale;
        let floor = (exact.floor() as u32).min(rest);
        rest -= floor;
        out.push(floor as u16);
        remainders.push((exact - f64::from(floor), index));
    }
    if rest > 0 {
        let order = |a: &(f64, usize), b: &(f64, usize)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        remainders.sort_unstable_by(order);
        for &(_, index) in remainders.iter().cycle().take(rest as usize) {
            out[first + index] += 1;
        }
    }
}

/// The share that a stored part stands for.
#[inline]
pub fn share(part: u16) -> f32 {
    f32::from(part) / f32::from(ONE)
}

/// A value as the parts of the first player's win and of the draw; the rest up to [`ONE`] is the second's.
pub fn value_parts(value: WdlAbs) -> [u16; 2] {
    let mut out = Vec::with_capacity(3);
    parts(&[value.first, value.draw, value.second], &mut out);
    [out[0], out[1]]
}

/// The value of these parts, `None` when they exceed [`ONE`] together.
pub fn value(parts: [u16; 2]) -> Option<WdlAbs> {
    let second = ONE.checked_sub(parts[0])?.checked_sub(parts[1])?;
    Some(WdlAbs { first: share(parts[0]), draw: share(parts[1]), second: share(second) })
}

/// A weight (not negative, not NaN) in steps of 1/1024, cut at [`MAX_WEIGHT`].
pub fn weight_steps(weight: f32) -> u16 {
    // A float that is too large saturates in the cast.
    (f64::from(weight) * f64::from(WEIGHT_STEPS)).round() as u16
}

/// The weight of so many steps.
pub fn weight(steps: u16) -> f32 {
    f32::from(steps) / f32::from(WEIGHT_STEPS)
}

/// Whether `shares` is a distribution: finite, not negative, sum within 1/1000 of 1.
pub fn is_distribution(shares: &[f32]) -> bool {
    let sum: f64 = shares.iter().copied().map(f64::from).sum();
    shares.iter().all(|share| share.is_finite() && *share >= 0.0) && (sum - 1.0).abs() <= 1e-3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::util::rng::Stream;

    #[test]
    fn parts_are_close_sum_to_one_and_stay() {
        let mut stream = Stream::test(11);
        for round in 0..3000 {
            let count = 1 + stream.below(if round % 50 == 0 { 2000 } else { 40 });
            let mut shares = vec![0f32; count];
            stream.dirichlet([0.03, 0.3, 3.0][round % 3], &mut shares);
            let mut first = Vec::new();
            parts(&shares, &mut first);
            assert_eq!(first.iter().map(|&part| u32::from(part)).sum::<u32>(), u32::from(ONE));
            let total: f64 = shares.iter().copied().map(f64::from).sum();
            for (&part, &exact) in first.iter().zip(&shares) {
                assert!((f64::from(part) / 65535.0 - f64::from(exact) / total).abs() < 1.0 / 65535.0);
                assert!(exact != 0.0 || part == 0);
            }
            let stored: Vec<f32> = first.iter().map(|&part| share(part)).collect();
            let mut second = Vec::new();
            parts(&stored, &mut second);
            assert_eq!(first, second);
        }
    }

    #[test]
    fn values_and_weights_stay() {
        let mut stream = Stream::test(12);
        for _ in 0..20_000 {
            let mut wdl = [0f32; 3];
            stream.dirichlet(0.5, &mut wdl);
            let once = value_parts(WdlAbs { first: wdl[0], draw: wdl[1], second: wdl[2] });
            assert_eq!(value_parts(value(once).unwrap()), once);
        }
        assert_eq!(value_parts(WdlAbs { first: 0.0, draw: 0.0, second: 1.0 }), [0, 0]);
        assert_eq!(value([ONE, 1]), None);
        assert!((0..=u16::MAX).all(|steps| weight_steps(weight(steps)) == steps));
        assert_eq!(weight_steps(1e9), u16::MAX);
    }
}
