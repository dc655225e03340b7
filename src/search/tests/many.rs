//! Many trees that share their batches come to be what each would be by itself.

use super::*;
use crate::eval::testgame::Pairs;
use crate::eval::{EvalError, HashEval};

fn trees(states: &[<Pairs as Game>::State], params: &SearchParams, budget: Budget) -> Vec<Tree<Pairs>> {
    let begun = |state: &<Pairs as Game>::State| {
        let mut tree = Tree::new(params.clone(), *state);
        tree.begin(budget, Stream::test(77));
        tree
    };
    states.iter().map(begun).collect()
}

#[test]
fn company_changes_nothing() {
    let game = Pairs;
    let states = positions(&game, &mut Stream::test(5), 40, 12);
    for algorithm in [Algorithm::Puct, Algorithm::Gumbel] {
        let params = SearchParams { algorithm, ..SearchParams::default() };
        // Also by the prior alone.
        for simulations in [0, 1, 150] {
            let budget = Budget::plain(simulations);
            let mut together = trees(&states, &params, budget);
            Solo::default().search_all(&mut together, &game, &mut HashEval::new(3), |_| 1, |_| true).unwrap();
            for (state, tree) in states.iter().zip(&together) {
                let alone = searched(&game, state, &params, budget, &mut HashEval::new(3));
                assert!(tree.finished());
                assert_eq!(tree.summary(), alone.summary(), "{}", game.state_text(state));
            }
        }
    }
}

#[test]
fn a_search_can_be_left_and_goes_on() {
    let game = Pairs;
    let states = positions(&game, &mut Stream::test(6), 5, 6);
    let (params, budget) = (SearchParams::default(), Budget::plain(100));
    let mut whole = trees(&states, &params, budget);
    let mut solo = Solo::default();
    solo.search_all(&mut whole, &game, &mut HashEval::new(3), |_| 1, |_| true).unwrap();
    let mut parts = trees(&states, &params, budget);
    let mut rounds = 0;
    while parts.iter().any(|tree| !tree.finished()) {
        solo.search_all(&mut parts, &game, &mut HashEval::new(3), |_| 1, |_| false).unwrap();
        rounds += 1;
    }
    assert!(rounds > 50, "{rounds}");
    assert!(parts.iter().zip(&whole).all(|(part, whole)| part.summary() == whole.summary()));
}

#[test]
fn a_failure_is_told_and_can_be_overcome() {
    struct Broken;
    impl<G: Game> Evaluator<G> for Broken {
        fn evaluate(&mut self, _: &G, _: &Leaves<G>, _: &mut Evaluations) -> Result<(), EvalError> {
            Err(EvalError("gone".to_owned()))
        }
    }
    let game = Pairs;
    let states = positions(&game, &mut Stream::test(6), 5, 6);
    let mut trees = trees(&states, &SearchParams::default(), Budget::plain(20));
    let mut solo = Solo::default();
    assert_eq!(solo.search_all(&mut trees, &game, &mut Broken, |_| 1, |_| true).unwrap_err().to_string(), "gone");
    solo.search_all(&mut trees, &game, &mut HashEval::new(3), |_| 1, |_| true).unwrap();
    assert!(trees.iter().all(|tree| tree.finished() && tree.summary().is_some()));
}
