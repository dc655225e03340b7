//! The tree against the plain search of `reference`: the same visits everywhere, values within rounding.

use super::reference::{RefMove, RefNode, Reference};
use super::*;
use crate::eval::HashEval;
use crate::eval::testgame::Pairs;
use crate::game::toy::Graph;

/// How the searches of a test compared.
#[derive(Default)]
struct Tally {
    same: u32,
    /// Differed after a choice between two moves whose scores differ by no more than rounding.
    by_rounding: u32,
}

impl Tally {
    /// Rounding must stay the rare exception.
    fn judge(&self, at_least: u32) {
        assert!(self.same >= at_least, "only {} searches were compared", self.same);
        let share = f64::from(self.by_rounding) / f64::from(self.same + self.by_rounding);
        assert!(share < 0.02, "{} of {} differ by rounding", self.by_rounding, self.same + self.by_rounding);
    }
}

/// The first difference between two trees, as text.
fn difference<G: Game>(tree: &Tree<G>, index: u32, plain: &RefNode<G>) -> Option<String> {
    let node = tree.node(index).expect("the plain search has this node");
    if node.visits != plain.visits || node.outcome != plain.result {
        return Some(format!(
            "{:?}: {} visits, {:?}; expected {}, {:?}",
            plain.state, node.visits, node.outcome, plain.visits, plain.result
        ));
    }
    let (value, mean) = (node.value(), plain.mean());
    let off = [value.first, value.draw, value.second].iter().zip(mean).any(|(a, b)| (f64::from(*a) - b).abs() > 1e-5);
    if off {
        return Some(format!("{:?}: {value:?}, expected {mean:?}", plain.state));
    }
    let edges: Vec<_> = tree.edges_of(node).collect();
    assert_eq!(edges.len(), plain.moves.len());
    edges.iter().zip(&plain.moves).find_map(|(edge, m)| {
        assert_eq!((edge.action, edge.child.is_some()), (m.action, m.child.is_some()), "at {:?}", plain.state);
        if edge.visits != m.visits() {
            return Some(format!("{:?} in {:?}: visits {}, {}", m.action, plain.state, edge.visits, m.visits()));
        }
        difference(tree, edge.child?, m.child.as_ref()?)
    })
}

/// Like [`difference`], where children may be missing on one side.
fn compare<G: Game>(tree: &Tree<G>, plain: &Reference<G, HashEval>, tolerance: f64, tally: &mut Tally) -> bool {
    let visits = |moves: &[RefMove<G>]| moves.iter().map(RefMove::visits).collect::<Vec<_>>();
    let root: Vec<u32> = tree.edges_of(tree.node(0).unwrap()).map(|edge| edge.visits).collect();
    let expected = visits(&plain.root.moves);
    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| difference(tree, 0, &plain.root)));
    match found {
        Ok(None) => {
            tally.same += 1;
            true
        }
        _ if plain.closest < tolerance => {
            tally.by_rounding += 1;
            false
        }
        found => {
            panic!(
                "{found:?}\nroot {root:?}, expected {expected:?}\nclosest choice {}, {:?}",
                plain.closest, plain.params
            )
        }
    }
}

/// One search, then a few moves with the tree kept, each searched anew.
fn one<G: Game>(game: &G, state: &G::State, params: &SearchParams, simulations: u32, noisy: bool, tally: &mut Tally) {
    let tolerance = if params.algorithm == Algorithm::Puct { 5e-6 } else { 5e-4 };
    let evaluator = HashEval::new(u64::from(simulations));
    let mut tree = Tree::new(params.clone(), state.clone());
    let mut plain = Reference::new(game.clone(), params.clone(), evaluator, state);
    let budget = Budget {
        simulations,
        noise: noisy.then_some(RootNoise { fraction: 0.3, concentration: 5.0 }),
        gumbel_noise: noisy,
    };
    for ply in 0..3 {
        tree.begin(budget, Stream::test(ply));
        // The root alone: after this, noise and draws are known.
        if tree.node(0).is_none() {
            let (mut leaves, mut answers) = (Leaves::default(), Evaluations::default());
            if let Gathered::Leaf(ticket) = tree.gather(game, &mut leaves) {
                evaluator.clone().evaluate(game, &leaves, &mut answers).unwrap();
                tree.apply(ticket, answers.values[0], &answers.priors);
            }
        }
        let priors: Vec<f64> = tree.edges_of(tree.node(0).unwrap()).map(|edge| edge.prior.into()).collect();
        let gumbel: Vec<f64> = match params.algorithm {
            Algorithm::Gumbel => tree.root_gumbel().1.iter().map(|&g| g.into()).collect(),
            Algorithm::Puct => Vec::new(),
        };
        plain.search(simulations, (noisy && params.algorithm == Algorithm::Puct).then_some(&priors), &gumbel);
        drive(&mut tree, game, &mut evaluator.clone(), 1);
        if !compare(&tree, &plain, tolerance, tally) {
            return;
        }
        let Some(summary) = tree.summary() else { return };
        let action = summary.moves[summary.best].action;
        tree.advance(game, action);
        plain.advance(action);
        if game.end(tree.state()).is_some() {
            return;
        }
        if tree.node(0).is_some() {
            // What is kept is exactly what was below the move.
            assert_eq!(difference(&tree, 0, &plain.root), None);
        }
    }
}

fn variants(algorithm: Algorithm) -> Vec<SearchParams> {
    let base = SearchParams { algorithm, ..Default::default() };
    vec![
        base.clone(),
        SearchParams { solver: false, ..base.clone() },
        SearchParams { draw_score: -0.4, ..base.clone() },
        SearchParams { draw_score: 0.3, solver: false, fpu_reduction: 0.0, ..base.clone() },
        SearchParams { fpu_reduction: 0.7, c_puct: 0.8, c_puct_base: 50.0, gumbel_considered: 3, ..base.clone() },
        SearchParams { gumbel_visit: 10.0, gumbel_scale: 0.2, fpu_reduction_root: 0.5, ..base },
    ]
}

fn all<G: Game>(game: &G, algorithm: Algorithm, states: &[G::State], simulations: &[u32], tally: &mut Tally) {
    for (at, state) in states.iter().enumerate() {
        for params in variants(algorithm) {
            for &count in simulations {
                one(game, state, &params, count, at % 2 == 1, tally);
            }
        }
    }
}

fn many_games(algorithm: Algorithm) {
    let mut tally = Tally::default();
    let mut random = Stream::test(algorithm as u64);
    let few = [1, 2, 7, 100];
    all(&Pairs, algorithm, &positions(&Pairs, &mut random, 25, 12), &few, &mut tally);
    for stones in [7, 12, 25] {
        let heap = Graph::heap(stones, stones % 2 == 0);
        all(&heap, algorithm, &positions(&heap, &mut random, 4, 6), &few, &mut tally);
    }
    for _ in 0..40 {
        // Cycles, double moves, moves that lead to the same position.
        let graph = Graph::random(&mut random, 12, 3, 12);
        all(&graph, algorithm, &[graph.startpos()], &few, &mut tally);
    }
    let many = [800];
    all(&Pairs, algorithm, &positions(&Pairs, &mut random, 6, 9), &many, &mut tally);
    all(&Graph::heap(30, false), algorithm, &[Graph::heap(30, false).startpos()], &many, &mut tally);
    for _ in 0..10 {
        let graph = Graph::random(&mut random, 20, 2, 30);
        all(&graph, algorithm, &[graph.startpos()], &many, &mut tally);
    }
    tally.judge(1200);
}

#[test]
fn puct_is_the_plain_search() {
    many_games(Algorithm::Puct);
}

#[test]
fn gumbel_is_the_plain_search() {
    many_games(Algorithm::Gumbel);
}
