//! Positions of the test game, ready to be judged.

use super::Leaves;
use super::testgame::{Pairs, Stones};
use crate::game::{Game, legal_list};
use crate::util::rng::Stream;

/// `count` positions of random games that go on.
pub fn random_states(game: &Pairs, seed: u64, count: usize) -> Vec<Stones> {
    let mut stream = Stream::test(seed);
    let mut states = Vec::new();
    while states.len() < count {
        let mut state = game.startpos();
        for _ in 0..stream.below(10) {
            if game.end(&state).is_none() {
                let action = game.random_action(&state, &mut stream, &mut Vec::new());
                game.play(&mut state, action);
            }
        }
        if game.end(&state).is_none() {
            states.push(state);
        }
    }
    states
}

/// The positions as leaves.
pub fn leaves_of(game: &Pairs, states: &[Stones]) -> Leaves<Pairs> {
    let mut leaves = Leaves::default();
    for state in states {
        leaves.push(state, &legal_list(game, state));
    }
    leaves
}
