//! Lets an evaluator see positions through a symmetry of the game.

use super::{EvalError, EvalWork, Evaluations, Evaluator, Leaves, key_hash};
use crate::game::{Action, Game, WdlPov};
use crate::util::rng::mix;

/// Which symmetry a position is seen through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SymmetryMode {
    /// As it is.
    #[default]
    None,
    /// Through one of all symmetries of the game that is a pseudo-random function of the position's
    /// [`Game::key`] and `seed`: spread evenly over positions, yet the same position is always seen the same
    /// way, so that answers stay reproducible and may be cached.
    Hashed {
        /// Different seeds choose differently.
        seed: u64,
    },
    /// Through the symmetry that leads to the canonical form, the one whose [`Game::key`] has the smallest hash:
    /// positions that are symmetric to each other are all seen as the same one, and a cache behind this
    /// answers them alike, whichever came first. It maps each position through every symmetry, so it is for games
    /// with few.
    Canonical,
    /// Through every symmetry of the game, and the answers averaged: the work of as many evaluations as the game has
    /// symmetries, for a judgement that is the same for symmetric positions and errs less.
    Averaged,
}

impl SymmetryMode {
    /// The symmetry that `state` is seen through; the first one where it is seen through all.
    fn choose<G: Game>(self, game: &G, state: &G::State) -> usize {
        let count = game.symmetry_count();
        match self {
            Self::None | Self::Averaged => 0,
            Self::Hashed { seed } => {
                let bits = mix(key_hash(&game.key(state)) ^ mix(seed));
                ((u128::from(bits) * count as u128) >> 64) as usize
            }
            Self::Canonical => {
                let hash = |&symmetry: &usize| key_hash(&game.key(&game.map_state(state, symmetry)));
                (0..count).min_by_key(hash).expect("the identity is a symmetry")
            }
        }
    }
}

/// Evaluates each position through a symmetry and maps the priors back.
#[derive(Clone, Debug)]
pub struct Symmetrized<G: Game, E> {
    inner: E,
    mode: SymmetryMode,
    /// The images, `images` of them for each leaf, one after the other.
    leaves: Leaves<G>,
    legal: Vec<Action>,
    /// For each image its symmetry.
    chosen: Vec<usize>,
    answer: Evaluations,
    /// For each action index its place in the legal list of the mapped position at hand.
    place: Vec<u32>,
}

impl<G: Game, E> Symmetrized<G, E> {
    /// Shows positions to `inner` as `mode` says.
    pub fn new(inner: E, mode: SymmetryMode) -> Self {
        Self {
            inner,
            mode,
            leaves: Leaves::default(),
            legal: Vec::new(),
            chosen: Vec::new(),
            answer: Evaluations::default(),
            place: Vec::new(),
        }
    }
}

impl<G: Game, E: Evaluator<G>> Evaluator<G> for Symmetrized<G, E> {
    fn evaluate(&mut self, game: &G, leaves: &Leaves<G>, out: &mut Evaluations) -> Result<(), EvalError> {
        if self.mode == SymmetryMode::None || game.symmetry_count() <= 1 {
            return self.inner.evaluate(game, leaves, out);
        }
        self.leaves.clear();
        self.chosen.clear();
        let images = if self.mode == SymmetryMode::Averaged { game.symmetry_count() } else { 1 };
        for index in 0..leaves.len() {
            let state = leaves.state(index);
            let first = self.mode.choose(game, state);
            for symmetry in first..first + images {
                self.chosen.push(symmetry);
                if symmetry == 0 {
                    self.leaves.push(state, leaves.legal(index));
                } else {
                    // The moves are listed anew: their notation order is not that of the original.
                    let mapped = game.map_state(state, symmetry);
                    self.legal.clear();
                    game.legal(&mapped, &mut self.legal);
                    self.leaves.push(&mapped, &self.legal);
                }
            }
        }
        self.inner.evaluate(game, &self.leaves, &mut self.answer)?;
        out.reset(leaves);
        // The mean of one number is that number, bit for bit.
        for (value, seen) in out.values.iter_mut().zip(self.answer.values.chunks_exact(images)) {
            *value = mean(seen);
        }
        out.priors.fill(0.0);
        self.place.resize(game.action_count(), 0);
        let share = 1.0 / images as f32;
        for (image, &symmetry) in self.chosen.iter().enumerate() {
            let index = image / images;
            let seen = &self.answer.priors[self.leaves.span(image)];
            let priors = &mut out.priors[leaves.span(index)];
            if symmetry == 0 {
                priors.iter_mut().zip(seen).for_each(|(prior, seen)| *prior += share * seen);
                continue;
            }
            for (place, action) in self.leaves.legal(image).iter().enumerate() {
                self.place[action.index()] = place as u32;
            }
            for (prior, &action) in priors.iter_mut().zip(leaves.legal(index)) {
                *prior += share * seen[self.place[game.map_action(action, symmetry).index()] as usize];
            }
        }
        Ok(())
    }

    fn take_work(&mut self) -> EvalWork {
        self.inner.take_work()
    }
}

/// The mean of values of one position.
fn mean(values: &[WdlPov]) -> WdlPov {
    let share = 1.0 / values.len() as f32;
    values.iter().fold(WdlPov { win: 0.0, draw: 0.0, loss: 0.0 }, |sum, value| WdlPov {
        win: sum.win + share * value.win,
        draw: sum.draw + share * value.draw,
        loss: sum.loss + share * value.loss,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testgame::Pairs;
    use super::super::testleaves::{leaves_of, random_states};
    use super::super::{Cached, EvalCache, HashEval};
    use super::*;

    /// Judges a move by what the board looks like after it, counted so that no symmetry can change it:
    /// an equivariant evaluator.
    struct Invariant;

    impl Evaluator<Pairs> for Invariant {
        fn evaluate(&mut self, game: &Pairs, leaves: &Leaves<Pairs>, out: &mut Evaluations) -> Result<(), EvalError> {
            out.reset(leaves);
            for index in 0..leaves.len() {
                let canonical = |state: &<Pairs as Game>::State| {
                    (0..8).map(|s| key_hash(&game.key(&game.map_state(state, s)))).min().unwrap()
                };
                let state = leaves.state(index);
                let win = (canonical(state) >> 40) as f32 / (1u64 << 24) as f32;
                out.values[index] = WdlPov { win, draw: 0.0, loss: 1.0 - win };
                let span = leaves.span(index);
                for (prior, &action) in out.priors[span].iter_mut().zip(leaves.legal(index)) {
                    let mut after = *state;
                    game.play(&mut after, action);
                    *prior = (canonical(&after) >> 40) as f32;
                }
            }
            Ok(())
        }
    }

    #[test]
    fn an_equivariant_evaluator_is_not_changed() {
        let game = Pairs;
        let leaves = leaves_of(&game, &random_states(&game, 7, 200));
        let (mut plain, mut seen) = (Evaluations::default(), Evaluations::default());
        Invariant.evaluate(&game, &leaves, &mut plain).unwrap();
        for seed in 0..4 {
            let mut through = Symmetrized::new(Invariant, SymmetryMode::Hashed { seed });
            through.evaluate(&game, &leaves, &mut seen).unwrap();
            assert_eq!(plain.values, seen.values);
            assert_eq!(plain.priors, seen.priors);
            let mut counts = [0; 8];
            through.chosen.iter().for_each(|&symmetry| counts[symmetry] += 1);
            assert!(counts.iter().all(|&c| c > 0), "all symmetries are used: {counts:?}");
        }
    }

    #[test]
    fn symmetric_positions_have_one_canonical_form() {
        let game = Pairs;
        let cache = std::sync::Arc::new(EvalCache::new(1 << 20));
        let mut through = Symmetrized::new(Cached::new(HashEval::new(1), cache.clone()), SymmetryMode::Canonical);
        let mut seen = Evaluations::default();
        for state in random_states(&game, 9, 50) {
            let images: Vec<_> = (0..8).map(|symmetry| game.map_state(&state, symmetry)).collect();
            let forms: Vec<_> = images
                .iter()
                .map(|image| game.map_state(image, SymmetryMode::Canonical.choose(&game, image)))
                .collect();
            assert!(forms.iter().all(|form| *form == forms[0]), "{forms:?}");
            let before = cache.stats().misses;
            for image in images {
                through.evaluate(&game, &leaves_of(&game, &[image]), &mut seen).unwrap();
            }
            assert!(cache.stats().misses <= before + 1, "eight images, one evaluation");
        }
    }

    #[test]
    fn an_average_is_the_same_for_symmetric_positions_and_that_of_all_images() {
        let game = Pairs;
        let mut through = Symmetrized::new(HashEval::new(1), SymmetryMode::Averaged);
        let (mut seen, mut direct) = (Evaluations::default(), Evaluations::default());
        for state in random_states(&game, 10, 20) {
            let images: Vec<_> = (0..8).map(|symmetry| game.map_state(&state, symmetry)).collect();
            HashEval::new(1).evaluate(&game, &leaves_of(&game, &images), &mut direct).unwrap();
            let win = direct.values.iter().map(|value| value.win).sum::<f32>() / 8.0;
            let leaves = leaves_of(&game, &images);
            through.evaluate(&game, &leaves, &mut seen).unwrap();
            for (index, value) in seen.values.iter().enumerate() {
                assert!((value.win - win).abs() < 1e-6 && (value.win + value.draw + value.loss - 1.0).abs() < 1e-6);
                let priors = &seen.priors[leaves.span(index)];
                assert!((priors.iter().sum::<f32>() - 1.0).abs() < 1e-5);
                for (&action, prior) in leaves.legal(0).iter().zip(&seen.priors[leaves.span(0)]) {
                    let there = game.map_action(action, index);
                    let place = leaves.legal(index).iter().position(|&a| a == there).unwrap();
                    assert!((priors[place] - prior).abs() < 1e-6);
                }
            }
        }
    }

    #[test]
    fn the_answer_is_that_of_the_mapped_position() {
        the_answer_is_mapped_back(SymmetryMode::Hashed { seed: 3 });
        the_answer_is_mapped_back(SymmetryMode::Canonical);
    }

    fn the_answer_is_mapped_back(mode: SymmetryMode) {
        let game = Pairs;
        let states = random_states(&game, 8, 50);
        let leaves = leaves_of(&game, &states);
        let mut through = Symmetrized::new(HashEval::new(1), mode);
        let mut seen = Evaluations::default();
        through.evaluate(&game, &leaves, &mut seen).unwrap();
        for (index, state) in states.iter().enumerate() {
            let symmetry = through.chosen[index];
            let mapped = [game.map_state(state, symmetry)];
            let mapped_leaves = leaves_of(&game, &mapped);
            let mut direct = Evaluations::default();
            HashEval::new(1).evaluate(&game, &mapped_leaves, &mut direct).unwrap();
            assert_eq!(direct.values[0], seen.values[index]);
            for (&action, &prior) in leaves.legal(index).iter().zip(&seen.priors[leaves.span(index)]) {
                let there = game.map_action(action, symmetry);
                let place = mapped_leaves.legal(0).iter().position(|&a| a == there).unwrap();
                assert_eq!(prior, direct.priors[place]);
            }
        }
    }
}
