//! Tests of the search as a whole; those of the formulas are in `select`.

mod accounting;
mod against_reference;
mod golden;
mod many;
mod noise;
mod proof;
mod reference;
mod solving;
mod spread;

use super::*;
use crate::eval::{Evaluations, Evaluator, Leaves};
use crate::game::{Action, Game};
use crate::util::rng::Stream;

/// Goes on until the search is over, with up to `batch` leaves in flight.
fn drive<G: Game>(tree: &mut Tree<G>, game: &G, evaluator: &mut dyn Evaluator<G>, batch: usize) {
    Solo::default().search(tree, game, evaluator, |_| batch, |_| true).expect("test evaluators do not fail");
}

/// A finished search of `state`, one leaf at a time.
fn searched<G: Game>(
    game: &G,
    state: &G::State,
    params: &SearchParams,
    budget: Budget,
    evaluator: &mut dyn Evaluator<G>,
) -> Tree<G> {
    let mut tree = Tree::new(params.clone(), state.clone());
    tree.begin(budget, Stream::test(77));
    drive(&mut tree, game, evaluator, 1);
    tree
}

/// Positions of random games that have not ended, the start among them.
fn positions<G: Game>(game: &G, random: &mut Stream, count: usize, deepest: usize) -> Vec<G::State> {
    let mut states = vec![game.startpos()];
    while states.len() < count {
        let mut state = game.startpos();
        for _ in 0..random.below(deepest + 1) {
            if game.end(&state).is_none() {
                let action = game.random_action(&state, random, &mut Vec::<Action>::new());
                game.play(&mut state, action);
            }
        }
        if game.end(&state).is_none() {
            states.push(state);
        }
    }
    states
}
