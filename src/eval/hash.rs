//! A fixed hash of positions, and a test double that judges by it.

use std::hash::{Hash, Hasher};

use super::{EvalError, Evaluations, Evaluator, Leaves};
use crate::game::{Game, WdlPov};
use crate::util::rng::mix;

/// A hasher whose result is a pure function of what is written: no random keys, the same in every process
/// and, for keys made of single integers, on every platform (arrays of integers wider than a byte are
/// hashed as they lie in memory; all supported platforms are little-endian).
///
/// Good for tables and pseudo-random choices; not for untrusted keys.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyHasher(u64);

impl KeyHasher {
    #[inline]
    fn word(&mut self, word: u64) {
        self.0 = mix(self.0.rotate_left(23) ^ word.wrapping_add(0x9e37_79b9_7f4a_7c15));
    }
}

impl Hasher for KeyHasher {
    #[inline]
    fn finish(&self) -> u64 {
        mix(self.0)
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            self.word(u64::from_le_bytes(word.try_into().expect("chunks of eight bytes")));
        }
        let rest = words.remainder();
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.word(u64::from_le_bytes(last) ^ ((rest.len() as u64) << 56));
        }
    }

    #[inline]
    fn write_u8(&mut self, number: u8) {
        self.word(u64::from(number));
    }

    #[inline]
    fn write_u16(&mut self, number: u16) {
        self.word(u64::from(number));
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.word(u64::from(number));
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.word(number);
    }

    #[inline]
    fn write_u128(&mut self, number: u128) {
        self.word(number as u64);
        self.word((number >> 64) as u64);
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.word(number as u64);
    }
}

/// The fixed hash of `key`, see [`KeyHasher`].
#[inline]
pub fn key_hash<K: Hash>(key: &K) -> u64 {
    let mut hasher = KeyHasher::default();
    key.hash(&mut hasher);
    hasher.finish()
}

/// A test double: value and priors are a pure, pseudo-random function of the position's
/// [`Game::key`] and a seed. The same numbers on every machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct HashEval {
    /// Different seeds are different judges.
    pub seed: u64,
}

impl HashEval {
    /// The judge with this seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }
}

/// A number in 1..=256 from the `byte`-th byte of `bits`: never zero, exact in `f32`.
fn part(bits: u64, byte: u32) -> f32 {
    ((bits >> (8 * byte)) & 255) as f32 + 1.0
}

impl<G: Game> Evaluator<G> for HashEval {
    fn evaluate(&mut self, game: &G, leaves: &Leaves<G>, out: &mut Evaluations) -> Result<(), EvalError> {
        out.reset(leaves);
        for index in 0..leaves.len() {
            let bits = mix(key_hash(&game.key(leaves.state(index))) ^ mix(self.seed));
            // Sums of small integers and one division each: no rounding that a platform could do otherwise.
            let [win, draw, loss] = [part(bits, 0), part(bits, 1), part(bits, 2)];
            let sum = win + draw + loss;
            out.values[index] = WdlPov { win: win / sum, draw: draw / sum, loss: loss / sum };
            let priors = &mut out.priors[leaves.span(index)];
            for (prior, action) in priors.iter_mut().zip(leaves.legal(index)) {
                *prior = part(mix(bits ^ mix(u64::from(action.0) + 1)), 7);
            }
            let sum: f32 = priors.iter().sum();
            for prior in priors {
                *prior /= sum;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testgame::Pairs;
    use super::super::testleaves::{leaves_of, random_states};
    use super::*;

    #[test]
    fn answers_are_pure_distributions() {
        let game = Pairs;
        let states = random_states(&game, 6, 60);
        let mut whole = Evaluations::default();
        HashEval::new(5).evaluate(&game, &leaves_of(&game, &states), &mut whole).unwrap();
        let leaves = leaves_of(&game, &states);
        let mut distinct = std::collections::HashSet::new();
        for (index, state) in states.iter().enumerate() {
            let mut alone = Evaluations::default();
            let one = std::slice::from_ref(state);
            HashEval::new(5).evaluate(&game, &leaves_of(&game, one), &mut alone).unwrap();
            assert_eq!(alone.values[0], whole.values[index]);
            assert_eq!(alone.priors[..], whole.priors[leaves.span(index)]);
            let value = alone.values[0];
            assert!((value.win + value.draw + value.loss - 1.0).abs() < 1e-6);
            assert!((alone.priors.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            assert!(alone.priors.iter().all(|&p| p > 0.0));
            distinct.insert(value.win.to_bits());
        }
        assert!(distinct.len() > 30, "the values of different positions differ: {}", distinct.len());
    }

    #[test]
    fn the_hash_is_fixed() {
        // Computed apart from this code; another hash would change every golden tree.
        assert_eq!(key_hash(&(1u16, 2u16)), key_hash(&(1u64, 2u32)));
        assert_eq!(key_hash(&0u64), 5197578548964807871);
        assert_eq!(key_hash(&[1u8, 2, 3]), 7043247144541673020);
        assert_ne!(key_hash(&(1u16, 2u16)), key_hash(&(2u16, 1u16)));
    }
}
