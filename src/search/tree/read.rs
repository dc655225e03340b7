//! What summaries and tests read of a tree.

use super::{NO_CHILD, Node, NodeView, Rule, Tree, select, view_of};
use crate::game::{Action, Game, Player};

/// One edge, read by summaries and tests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::search) struct EdgeView {
    pub action: Action,
    pub prior: f32,
    pub visits: u32,
    pub child: Option<u32>,
}

impl<G: Game> Tree<G> {
    pub(in crate::search) fn node(&self, index: u32) -> Option<&Node> {
        self.nodes.get(index as usize)
    }

    pub(in crate::search) fn mover(&self, node: &Node) -> Player {
        node.mover
    }

    pub(in crate::search) fn edges_of<'a>(
        &'a self,
        node: &Node,
    ) -> impl ExactSizeIterator<Item = EdgeView> + use<'a, G> {
        node.edges().map(|edge| EdgeView {
            action: self.edges.action[edge],
            prior: self.edges.prior[edge],
            visits: self.edges.visits[edge],
            child: Some(self.edges.child[edge]).filter(|&child| child != NO_CHILD),
        })
    }

    /// Priors of the root before noise; empty when the root is not evaluated.
    pub(in crate::search) fn raw_root_priors(&self) -> &[f32] {
        if self.root_ready { &self.root.raw_prior } else { &[] }
    }

    /// `logit + sigma(completed Q)` of the root's moves and their Gumbel draws (zero without exploration),
    /// with the visits of this search.
    pub(in crate::search) fn root_gumbel(&self) -> (Vec<f32>, &[f32], &[u32]) {
        let mut scores = Vec::new();
        let view = view_of(&self.nodes[0], &self.edges, self.params.draw_score, self.in_flight > 0);
        let mut logit = vec![0.0; view.prior.len()];
        select::logits(view.prior, &mut logit);
        select::gumbel_scores(NodeView { logit: &logit, ..view }, &self.params, &mut scores);
        (scores, &self.root.gumbel, &self.root.new_visits)
    }

    pub(in crate::search) fn rule(&self) -> Rule {
        self.rule
    }
}
