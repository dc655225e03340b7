//! What trees and stored positions take in memory. Counted, not timed: the same on every machine.

use super::records::replay_window;
use super::{Bench, BenchError, Figure, Rows};
use crate::data::ReplayWindow;
use crate::eval::Uniform;
use crate::game::Game;
use crate::search::{Budget, Solo, Tree, TreeMemory};
use crate::util::rng::{Purpose, Stream};

/// Moves that a tree is kept over before it is looked at.
const MOVES: u64 = 8;
/// Every search is at least so large, so that spare room is that of a grown tree.
const LEAST_SIMULATIONS: u32 = 64;

/// What is counted.
type Count = fn(&TreeMemory, &ReplayWindow) -> (usize, usize);

/// The rows: bytes, and what they are shared by.
const CASES: [(&str, Count); 4] = [
    ("node of a tree", |tree, _| (tree.node_bytes, tree.nodes)),
    ("edge of a tree", |tree, _| (tree.edge_bytes, tree.edges)),
    ("whole tree with spare room, for each node", |tree, _| (tree.total_bytes, tree.nodes)),
    ("stored position", |_, window| (window.bytes_used(), window.stats().positions)),
];

/// The tree of a game's first moves, searched as in self-play.
fn grown_tree<G: Game>(bench: &Bench<'_, G>) -> Result<TreeMemory, BenchError> {
    let game = &bench.game;
    let mut tree = Tree::new(bench.config.search.clone(), game.startpos());
    let simulations = bench.config.selfplay.simulations.max(LEAST_SIMULATIONS);
    let mut solo = Solo::default();
    for ply in 0.. {
        tree.begin(Budget::plain(simulations), Stream::keyed(0, Purpose::Analysis, &[ply]));
        solo.search(&mut tree, game, &mut Uniform, |_| 1, |_| true)?;
        let Some(summary) = tree.summary().filter(|summary| ply < MOVES && summary.proven.is_none()) else { break };
        tree.advance(game, summary.moves[summary.best].action);
    }
    Ok(tree.memory())
}

pub(super) fn measure<G: Game>(bench: &Bench<'_, G>, rows: &mut Rows<'_>) -> Result<(), BenchError> {
    let (tree, window) = (grown_tree(bench)?, replay_window(bench)?);
    for (case, count) in CASES {
        let (bytes, by) = count(&tree, &window);
        rows.add(case, "bytes", Figure::exact(bytes as f64 / by.max(1) as f64));
    }
    Ok(())
}
