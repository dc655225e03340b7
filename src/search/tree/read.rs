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
    /// Plies of the longest path of the tree, from the root on.
    pub fn depth(&self) -> u32 {
        self.deepest
    }

    /// Mean length of this search's descents, in plies; 0 before the first.
    pub fn mean_depth(&self) -> f64 {
        if self.started == 0 { 0.0 } else { self.plies as f64 / f64::from(self.started) }
    }

    /// Whether priors and values of a network (or any other evaluator) lead the search, rather than random games.
    pub fn is_guided(&self) -> bool {
        !matches!(self.rule, Rule::Ucb1 { .. })
    }

    /// Whether the search has proven the result of the root, which ends it.
    pub fn is_decided(&self) -> bool {
        self.nodes.first().is_some_and(|root| root.outcome.is_some())
    }

    /// Whether the node budget is used up: the search has ended before its other limits.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// The visits of the root's moves that the policy target is made of, where they are not all of them.
    pub(in crate::search) fn pruned_root_visits(&self) -> Option<Vec<u32>> {
        let prunes = self.rule == Rule::Puct && self.budget.noise.is_some() && self.params.forced_playouts > 0.0;
        prunes
            .then(|| select::pruned(view_of(&self.nodes[0], &self.edges, self.params.draw_score, false), &self.params))
    }

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
