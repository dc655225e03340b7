//! What a tree takes in memory.

use super::Tree;
use crate::game::Game;
use crate::search::node::bytes_of;

/// What a tree holds and what that takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeMemory {
    /// Nodes in the tree.
    pub nodes: usize,
    /// Edges in the tree: the moves of all nodes.
    pub edges: usize,
    /// Bytes of the nodes.
    pub node_bytes: usize,
    /// Bytes of the edges, all arrays together.
    pub edge_bytes: usize,
    /// Bytes of everything that the tree holds on to: nodes and edges, the second set that a kept subtree is copied to,
    /// and the room that both have to spare.
    pub total_bytes: usize,
}

impl<G: Game> Tree<G> {
    /// What the tree takes in memory now.
    pub fn memory(&self) -> TreeMemory {
        let (spare_nodes, spare_edges, sources) = &self.spare;
        let [node_bytes, node_room] = bytes_of(&self.nodes);
        let [edge_bytes, edge_room] = self.edges.bytes();
        let others = [bytes_of(spare_nodes), spare_edges.bytes(), bytes_of(sources), bytes_of(&self.paths)];
        TreeMemory {
            nodes: self.nodes.len(),
            edges: self.edges.len(),
            node_bytes,
            edge_bytes,
            total_bytes: node_room + edge_room + others.iter().map(|[_, room]| room).sum::<usize>(),
        }
    }
}

#[test]
fn memory_counts_what_the_tree_holds() {
    use crate::eval::HashEval;
    use crate::game::toy::Graph;
    use crate::search::{Budget, SearchParams, Solo};
    use crate::util::rng::Stream;

    let game = Graph::heap(12, true);
    let mut tree = Tree::new(SearchParams { solver: false, ..SearchParams::default() }, game.startpos());
    assert_eq!(tree.memory().total_bytes, 0, "an empty tree holds nothing");
    let mut last = 0;
    for ply in 0..2 {
        tree.begin(Budget::plain(50), Stream::test(ply));
        Solo::default().search(&mut tree, &game, &mut HashEval::new(1), |_| 1, |_| true).unwrap();
        let memory = tree.memory();
        assert_eq!(memory.nodes, tree.node_count());
        assert!(memory.edges >= memory.nodes - 1, "every node but the root hangs on an edge");
        assert_eq!((memory.node_bytes % memory.nodes, memory.edge_bytes % memory.edges), (0, 0));
        assert!(memory.node_bytes / memory.nodes <= 48 && memory.edge_bytes / memory.edges <= 24, "{memory:?}");
        assert!(memory.total_bytes >= memory.node_bytes + memory.edge_bytes && memory.total_bytes >= last);
        last = memory.total_bytes;
        let summary = tree.summary().unwrap();
        tree.advance(&game, summary.moves[summary.best].action);
    }
}
