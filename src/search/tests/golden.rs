//! Behaviour signatures: visits of whole searches as literal text. A change that is meant to be neutral leaves them
//! alone; one that is not replaces them, and says why.

use super::*;
use crate::eval::testgame::Pairs;
use crate::eval::{HashEval, KeyHasher, Rollout};
use crate::game::toy::Graph;
use std::hash::Hasher as _;

/// Visits of the root's moves, then a hash over every node: visits, result, mean value in millionths.
fn signature<G: Game>(tree: &Tree<G>) -> String {
    let summary = tree.summary().expect("searched");
    let visits: Vec<String> = summary.moves.iter().map(|m| m.visits.to_string()).collect();
    let mut hasher = KeyHasher::default();
    for index in 0..tree.node_count() as u32 {
        let node = tree.node(index).expect("in range");
        hasher.write_u32(node.visits);
        hasher.write(format!("{:?}", node.outcome).as_bytes());
        hasher.write_u32((f64::from(node.value().first) * 1e6).round() as u32);
    }
    format!("{} | {} of {} {:08x}", visits.join(" "), summary.best, tree.node_count(), hasher.finish() >> 32)
}

/// Three searches in a row from the start, with the tree kept.
fn game_of<G: Game>(game: &G, params: &SearchParams, budget: Budget, batch: usize) -> String {
    let mut tree = Tree::new(params.clone(), game.startpos());
    let mut lines = Vec::new();
    for ply in 0..3 {
        tree.begin(budget, Stream::test(ply));
        drive(&mut tree, game, &mut HashEval::new(7), batch);
        lines.push(signature(&tree));
        let summary = tree.summary().expect("searched");
        tree.advance(game, summary.moves[summary.best].action);
        if game.end(tree.state()).is_some() {
            break;
        }
    }
    lines.join("\n")
}

fn params(algorithm: Algorithm, solver: bool) -> SearchParams {
    SearchParams { algorithm, solver, ..Default::default() }
}

fn noise(simulations: u32) -> Budget {
    Budget { simulations, noise: Some(RootNoise { fraction: 0.25, concentration: 10.0 }), gumbel_noise: true }
}

fn all() -> String {
    let heap = Graph::heap(12, true);
    let mut text = String::new();
    let mut add = |name: &str, lines: String| text.push_str(&format!("{name}\n{lines}\n"));
    for (algorithm, name) in [(Algorithm::Puct, "puct"), (Algorithm::Gumbel, "gumbel")] {
        add(&format!("{name} pairs"), game_of(&Pairs, &params(algorithm, true), Budget::plain(200), 1));
        add(&format!("{name} pairs noise"), game_of(&Pairs, &params(algorithm, true), noise(200), 1));
        add(&format!("{name} pairs batch"), game_of(&Pairs, &params(algorithm, false), Budget::plain(300), 8));
        add(&format!("{name} heap"), game_of(&heap, &params(algorithm, false), noise(100), 1));
    }
    let mut tree = Tree::ucb1(1.0, 10_000, Pairs.startpos());
    tree.begin(Budget::plain(400), Stream::test(1));
    drive(&mut tree, &Pairs, &mut Rollout::new(Stream::test(2), 1), 1);
    add("ucb1 pairs", signature(&tree));
    text
}

#[test]
fn searches_are_as_they_were() {
    let expected = include_str!("golden.txt");
    let found = all();
    if found != expected {
        let at = found.lines().zip(expected.lines()).position(|(a, b)| a != b);
        panic!("line {at:?} differs (counted from 0); the searches are now:\n{found}");
    }
}
