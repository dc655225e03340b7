//! What the tree is made of: nodes, and the moves that lead from them as a structure of arrays.

use std::ops::Range;

use crate::game::{Action, Outcome, Player, WdlAbs};

/// An edge whose child does not exist yet.
pub(super) const NO_CHILD: u32 = u32::MAX;

/// One position of the tree. Sums are over finished visits, in absolute values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub sum_first: f64,
    pub sum_draw: f64,
    /// The evaluator's value of this position alone.
    pub eval_first: f32,
    pub eval_draw: f32,
    pub visits: u32,
    first_edge: u32,
    edge_count: u16,
    pub mover: Player,
    /// The result, of a finished game or proven by the solver.
    pub outcome: Option<Outcome>,
    /// Waits for its evaluation.
    pub pending: bool,
}

impl Node {
    /// A node without visits; its moves are the `edge_count` edges from `first_edge` on.
    pub fn new(mover: Player, first_edge: usize, edge_count: usize, outcome: Option<Outcome>) -> Self {
        let mut node = Self {
            sum_first: 0.0,
            sum_draw: 0.0,
            eval_first: 0.0,
            eval_draw: 0.0,
            visits: 0,
            first_edge: 0,
            edge_count: u16::try_from(edge_count).expect("no game has more than 65535 moves"),
            mover,
            outcome,
            pending: false,
        };
        node.move_edges(first_edge);
        node
    }

    /// Where the node's moves lie in [`Edges`].
    #[inline]
    pub fn edges(&self) -> Range<usize> {
        let first = self.first_edge as usize;
        first..first + usize::from(self.edge_count)
    }

    /// The number of moves.
    #[inline]
    pub fn edge_count(&self) -> usize {
        self.edge_count.into()
    }

    /// The node's moves lie from `first_edge` on.
    pub fn move_edges(&mut self, first_edge: usize) {
        self.first_edge = u32::try_from(first_edge).expect("the tree stops growing before its edges are so many");
    }

    /// Counts a visit with this value.
    #[inline]
    pub fn count(&mut self, value: WdlAbs) {
        self.visits += 1;
        self.sum_first += f64::from(value.first);
        self.sum_draw += f64::from(value.draw);
    }

    /// Mean value of the finished visits; the exact one when proven.
    #[inline]
    pub fn value(&self) -> WdlAbs {
        if let Some(outcome) = self.outcome {
            return outcome.wdl();
        }
        if self.visits == 0 {
            return self.eval();
        }
        let scale = 1.0 / f64::from(self.visits);
        let (first, draw) = (self.sum_first * scale, self.sum_draw * scale);
        // Rounding must not make a probability negative.
        WdlAbs { first: first as f32, draw: draw as f32, second: (1.0 - first - draw).max(0.0) as f32 }
    }

    /// The evaluator's value.
    #[inline]
    pub fn eval(&self) -> WdlAbs {
        let second = (1.0 - self.eval_first - self.eval_draw).max(0.0);
        WdlAbs { first: self.eval_first, draw: self.eval_draw, second }
    }
}

/// Edges as a structure of arrays, so that a choice reads only what it needs, contiguously.
#[derive(Clone, Debug, Default)]
pub(super) struct Edges {
    pub prior: Vec<f32>,
    /// Logarithms of the priors. Written when a descent first comes through the node, and only for the Gumbel rules.
    pub logit: Vec<f32>,
    pub visits: Vec<u32>,
    /// Mean utility for the mover of the edge's node; exact when the child is proven.
    pub q: Vec<f32>,
    pub child: Vec<u32>,
    pub action: Vec<Action>,
    /// Descents through the edge that wait for an evaluation.
    pub flight: Vec<u16>,
}

impl Edges {
    pub fn len(&self) -> usize {
        self.action.len()
    }

    pub fn clear(&mut self) {
        self.prior.clear();
        self.logit.clear();
        self.visits.clear();
        self.q.clear();
        self.child.clear();
        self.action.clear();
        self.flight.clear();
    }

    /// Bytes of the edges, and of the memory held for them and more to come.
    pub fn bytes(&self) -> [usize; 2] {
        // Taken apart by name, so that no new array is forgotten.
        let Self { prior, logit, visits, q, child, action, flight } = self;
        let floats = [prior, logit, q].into_iter().map(bytes_of);
        let counts = [visits, child].into_iter().map(bytes_of);
        let all = floats.chain(counts).chain([bytes_of(action), bytes_of(flight)]);
        all.fold([0, 0], |[used, held], [u, h]| [used + u, held + h])
    }

    /// Edges of a new node.
    pub fn push_new(&mut self, actions: &[Action]) {
        let len = self.len() + actions.len();
        self.action.extend_from_slice(actions);
        self.prior.resize(len, 0.0);
        self.logit.resize(len, 0.0);
        self.visits.resize(len, 0);
        self.q.resize(len, 0.0);
        self.child.resize(len, NO_CHILD);
        self.flight.resize(len, 0);
    }

    /// Copies of edges of another tree.
    pub fn push_span(&mut self, other: &Edges, span: Range<usize>) {
        self.prior.extend_from_slice(&other.prior[span.clone()]);
        self.logit.extend_from_slice(&other.logit[span.clone()]);
        self.visits.extend_from_slice(&other.visits[span.clone()]);
        self.q.extend_from_slice(&other.q[span.clone()]);
        self.child.extend_from_slice(&other.child[span.clone()]);
        self.action.extend_from_slice(&other.action[span.clone()]);
        self.flight.extend_from_slice(&other.flight[span]);
    }
}

/// Bytes of a list's items, and of all its room.
pub(super) fn bytes_of<T>(list: &Vec<T>) -> [usize; 2] {
    [list.len(), list.capacity()].map(|items| items * size_of::<T>())
}

#[test]
fn nodes_and_edges_stay_small() {
    let edge = size_of::<f32>() * 3 + size_of::<u32>() * 2 + size_of::<Action>() + size_of::<u16>();
    assert!(size_of::<Node>() <= 48 && edge <= 24, "a node takes {} bytes, an edge {edge}", size_of::<Node>());
}
