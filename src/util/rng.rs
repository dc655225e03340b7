//! Random streams that are named instead of shared.
//!
//! Every random decision of a run draws from a stream that is derived from the run's seed, a
//! [`Purpose`] and indices (generation, game, step). A stream is a pure function of these, so the
//! result of a run depends neither on the number of threads nor on where it was interrupted.

use rand_core::{Rng as _, SeedableRng as _};
use rand_distr::Distribution as _;
use rand_xoshiro::Xoshiro256PlusPlus;

/// What a random stream is used for. Streams of different purposes never coincide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u64)]
pub enum Purpose {
    /// Self-play games: indices are (generation, game).
    SelfPlay = 1,
    /// Drawing training samples: indices are (generation, step).
    Samples = 2,
    /// Initial weights of a network.
    Weights = 3,
    /// Openings of a match or gate: indices are (pair).
    Opening = 4,
    /// The players' choices in a match or gate: indices are (game).
    Match = 5,
    /// Interactive analysis, engine protocol, benchmarks.
    Analysis = 6,
    /// Tests.
    Test = 7,
    /// Symmetries through which evaluators see positions: indices are (generation).
    Symmetry = 8,
}

/// A random stream (xoshiro256++ seeded through SplitMix64).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream of `purpose` with `indices` in the run seeded with `seed`.
    pub fn keyed(seed: u64, purpose: Purpose, indices: &[u64]) -> Self {
        let mut key = mix(seed ^ 0x5eed_5eed_5eed_5eed);
        key = mix(key ^ purpose as u64);
        for &index in indices {
            key = mix(key.rotate_left(17) ^ mix(index.wrapping_add(0x9e37_79b9_7f4a_7c15)));
        }
        Self(Xoshiro256PlusPlus::seed_from_u64(key))
    }

    /// A stream for tests.
    pub fn test(seed: u64) -> Self {
        Self::keyed(seed, Purpose::Test, &[])
    }

    /// 64 uniform bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform index in `0..bound` (Lemire's multiply-shift; the bias is below `bound` / 2^64).
    ///
    /// # Panics
    /// When `bound` is 0.
    #[inline]
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "a uniform index needs at least one choice");
        ((u128::from(self.bits()) * bound as u128) >> 64) as usize
    }

    /// A uniform number in `[0, 1)` with 53 random bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A draw from the standard Gumbel distribution, `-ln(-ln u)`.
    pub fn gumbel(&mut self) -> f64 {
        let uniform = (self.bits() >> 11) as f64 + 0.5;
        -(-(uniform * (1.0 / (1u64 << 53) as f64)).ln()).ln()
    }

    /// A draw from the symmetric Dirichlet distribution with concentration `alpha` over `out.len()`
    /// categories; the entries sum to 1.
    ///
    /// # Panics
    /// When `alpha` is not positive and finite.
    pub fn dirichlet(&mut self, alpha: f64, out: &mut [f32]) {
        let gamma = rand_distr::Gamma::new(alpha, 1.0).expect("alpha is positive and finite");
        let mut sum = 0.0;
        for slot in out.iter_mut() {
            let draw: f64 = gamma.sample(&mut self.0);
            *slot = draw as f32;
            sum += f64::from(*slot);
        }
        if sum <= 0.0 {
            // A tiny alpha can underflow in every component; the limit is one random category.
            let one = self.below(out.len());
            out.fill(0.0);
            out[one] = 1.0;
            return;
        }
        for slot in out.iter_mut() {
            *slot = (f64::from(*slot) / sum) as f32;
        }
    }

    /// A standard normal draw.
    pub fn normal(&mut self) -> f64 {
        rand_distr::StandardNormal.sample(&mut self.0)
    }

    /// Draws an index with probability proportional to `weights` (non-negative, not all zero).
    /// When all weights are zero the choice is uniform.
    ///
    /// # Panics
    /// When `weights` is empty.
    pub fn weighted(&mut self, weights: &[f64]) -> usize {
        let total: f64 = weights.iter().sum();
        if !(total > 0.0 && total.is_finite()) {
            return self.below(weights.len());
        }
        let mut left = self.unit() * total;
        let mut last = 0;
        for (index, &weight) in weights.iter().enumerate() {
            if weight > 0.0 {
                last = index;
                if left < weight {
                    return index;
                }
                left -= weight;
            }
        }
        last
    }

    /// Shuffles `items` uniformly (Fisher-Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

/// The finaliser of SplitMix64: a bijection of 64 bits that spreads every input bit.
#[inline]
pub fn mix(mut x: u64) -> u64 {
    x ^= x >> 30;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 27;
    x = x.wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_every_part_of_their_key() {
        let first = |s: u64, p, i: &[u64]| Stream::keyed(s, p, i).bits();
        let mut seen = std::collections::HashSet::new();
        for seed in 0..4 {
            for purpose in [Purpose::SelfPlay, Purpose::Samples, Purpose::Match] {
                for generation in 0..8 {
                    for game in 0..64 {
                        assert!(seen.insert(first(seed, purpose, &[generation, game])));
                    }
                }
                assert!(seen.insert(first(seed, purpose, &[])));
                assert!(seen.insert(first(seed, purpose, &[0])));
            }
        }
    }

    #[test]
    fn below_is_uniform() {
        let mut stream = Stream::test(1);
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[stream.below(7)] += 1;
        }
        // Standard deviation of each count is about 93; five of them on either side.
        assert!(counts.iter().all(|c| c.abs_diff(10_000) < 470), "{counts:?}");
    }

    #[test]
    fn dirichlet_sums_to_one_and_has_the_stated_mean() {
        let mut stream = Stream::test(2);
        let mut mean = [0f64; 5];
        let mut draw = [0f32; 5];
        for _ in 0..20_000 {
            stream.dirichlet(0.3, &mut draw);
            assert!((draw.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            for (m, d) in mean.iter_mut().zip(draw) {
                *m += f64::from(d) / 20_000.0;
            }
        }
        assert!(mean.iter().all(|m| (m - 0.2).abs() < 0.01), "{mean:?}");
        stream.dirichlet(1e-12, &mut draw);
        assert!((draw.iter().sum::<f32>() - 1.0).abs() < 1e-5);
    }

    #[test]
    fn weighted_follows_the_weights() {
        let mut stream = Stream::test(3);
        let mut counts = [0u32; 4];
        for _ in 0..40_000 {
            counts[stream.weighted(&[1.0, 0.0, 2.0, 1.0])] += 1;
        }
        assert_eq!(counts[1], 0);
        assert!(counts[2].abs_diff(20_000) < 500 && counts[0].abs_diff(10_000) < 500, "{counts:?}");
    }

    #[test]
    fn gumbel_has_the_stated_mean() {
        let mut stream = Stream::test(4);
        let mean = (0..100_000).map(|_| stream.gumbel()).sum::<f64>() / 100_000.0;
        assert!((mean - 0.577_215_7).abs() < 0.02, "{mean}");
    }
}
