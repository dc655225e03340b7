//! The accounting of a tree, verified node by node (tests only).

use super::{Edges, LOST, NO_CHILD, Node, Outcome, ROOT, Tree};
use crate::game::Game;

impl<G: Game> Tree<G> {
    /// Panics where the numbers of the tree contradict each other. Good at any time between calls, with leaves in
    /// flight too.
    pub(in crate::search) fn check(&self) {
        let Self { nodes, edges, .. } = self;
        let Edges { prior, logit, visits, q, child, action, flight } = edges;
        let len = edges.len();
        assert!(
            [prior.len(), logit.len(), visits.len(), q.len(), child.len(), action.len(), flight.len()]
                .iter()
                .all(|&l| l == len)
        );
        if self.spoilt {
            // About to be thrown away.
            return;
        }
        let pending = nodes.iter().filter(|node| node.pending).count() as u32;
        assert_eq!(pending, self.in_flight, "every open leaf has its ticket");
        assert!(nodes.len() <= self.params.max_nodes as usize);
        // Each node but the root hangs on exactly one edge, and each span of edges belongs to one node.
        let mut parents = vec![0; nodes.len()];
        child.iter().filter(|&&child| child != NO_CHILD).for_each(|&child| parents[child as usize] += 1);
        assert!(parents.iter().enumerate().all(|(at, &count)| count == u32::from(at != 0)), "{parents:?}");
        assert_eq!(nodes.iter().map(Node::edge_count).sum::<usize>(), len);
        assert!(nodes.windows(2).all(|pair| pair[0].edges().end == pair[1].edges().start));
        nodes.iter().for_each(|node| self.check_node(node));
        self.check_depth();
        if self.root_ready {
            let root = nodes[ROOT as usize].edges();
            let in_flight: u32 = flight[root.clone()].iter().map(|&f| u32::from(f)).sum();
            assert_eq!(self.root.new_visits.iter().sum::<u32>(), self.started);
            assert!(in_flight <= self.in_flight && in_flight <= self.started);
            for (local, edge) in root.enumerate() {
                assert!(self.root.new_visits[local] <= visits[edge] + u32::from(flight[edge]));
            }
        }
        if self.in_flight == 0 {
            assert!(flight.iter().all(|&f| f == 0), "nothing is in flight");
        }
    }

    fn check_depth(&self) {
        let mut depth = vec![0; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            for edge in node.edges().filter(|&edge| self.edges.child[edge] != NO_CHILD) {
                let child = self.edges.child[edge] as usize;
                assert!(child > at, "what walks the nodes backwards meets children first");
                depth[child] = depth[at] + 1;
            }
        }
        assert_eq!(depth.iter().max().copied().unwrap_or(0), self.deepest);
        assert!(self.mean_depth() <= f64::from(self.deepest));
    }

    fn check_node(&self, node: &Node) {
        let Edges { prior, visits, q, child, flight, .. } = &self.edges;
        let seen: u32 = node.edges().map(|edge| visits[edge]).sum();
        if node.pending {
            assert!(node.visits == 0 && seen == 0 && node.outcome.is_none());
            return;
        }
        match node.outcome {
            // The evaluation itself, then one visit for each that went on.
            None => assert_eq!(node.visits, 1 + seen),
            // A visit ends where the result is known. A root that was found finished has none.
            Some(_) => assert!(node.visits > seen || node.edge_count() == 0),
        }
        let most = f64::from(node.visits) * (1.0 + 1e-6);
        assert!(node.sum_first >= 0.0 && node.sum_draw >= 0.0 && node.sum_first + node.sum_draw <= most, "{node:?}");
        let total: f32 = prior[node.edges()].iter().sum();
        assert!(node.edge_count() == 0 || (total - 1.0).abs() < 1e-4, "priors sum to {total}");
        for edge in node.edges() {
            let Some(below) = (child[edge] != NO_CHILD).then(|| &self.nodes[child[edge] as usize]) else {
                assert!(visits[edge] == 0 && flight[edge] == 0);
                continue;
            };
            assert_eq!(visits[edge], below.visits);
            if below.visits > 0 {
                let lost = self.params.solver && below.outcome == Some(Outcome::Win(node.mover.other()));
                let utility = below.value().pov(node.mover).utility(self.params.draw_score);
                assert_eq!(q[edge], if lost { LOST } else { utility });
            }
            let below_flight: u32 = below.edges().map(|edge| u32::from(flight[edge])).sum();
            assert_eq!(u32::from(flight[edge]), below_flight + u32::from(below.pending));
        }
        if node.edge_count() > 0 {
            let result = if self.params.solver { self.known_result(node) } else { None };
            assert_eq!(node.outcome, result, "{node:?}");
        }
    }

    /// The result of a node as its moves' results have it, in other words than the search's.
    fn known_result(&self, node: &Node) -> Option<Outcome> {
        let points = |outcome: &Outcome| (2.0 * outcome.points(node.mover)) as u8;
        let results: Vec<Option<Outcome>> = node
            .edges()
            .map(|edge| self.nodes.get(self.edges.child[edge] as usize).and_then(|below| below.outcome))
            .collect();
        let best = results.iter().flatten().copied().max_by_key(points)?;
        (points(&best) == 2 || results.iter().all(Option::is_some)).then_some(best)
    }
}
