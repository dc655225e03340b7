//! The search tree: flat arrays, one descent at a time, proven results, reuse between moves.
//!
//! ```text
//! nodes   [ root | a | b | ... ]            40 bytes each, index 0 is the root
//! edges   [ root's moves | a's moves | ... ] 24 bytes each, one span for each node, in notation order
//! paths   [ steps of the descents that wait for an evaluation ]
//! ```
//! Positions are not stored: a descent replays the moves from the root, so that repetitions are seen as
//! the game sees them. A node is reached by exactly one path (no transpositions), therefore a proven result
//! of a node holds even where it comes from a repetition.

#[cfg(test)]
mod check;
mod memory;
mod read;

use std::ops::Range;

use super::halving::Halving;
use super::node::{Edges, NO_CHILD, Node};
use super::params::{RootNoise, Rule, SearchParams};
use super::select::{self, LOST, NodeView};
use crate::eval::Leaves;
use crate::game::{Action, Game, Outcome, WdlAbs, WdlPov};
use crate::util::rng::Stream;

pub use memory::TreeMemory;
pub(super) use read::EdgeView;

const ROOT: u32 = 0;
/// Edges are counted in 32 bits: a tree with so many has no room for one more node, whatever its node budget.
const MOST_EDGES: usize = u32::MAX as usize - u16::MAX as usize;

#[derive(Clone, Copy, Debug)]
struct Step {
    node: u32,
    edge: u32,
}

/// A leaf that waits for its evaluation. It can be answered exactly once: [`Tree::apply`] consumes it, and all
/// tickets of a tree must be answered before the search goes on to another move.
#[derive(Debug)]
#[must_use = "a leaf in flight must be answered"]
pub struct Ticket {
    leaf: u32,
    path: Range<usize>,
}

/// What a descent found.
#[derive(Debug)]
pub enum Gathered {
    /// A new position, appended to the leaves; its evaluation goes to [`Tree::apply`] with this ticket.
    Leaf(Ticket),
    /// The end of a game or a proven position; its value is already counted.
    Known,
    /// A position that another descent of this round waits for; nothing was counted.
    Collision,
    /// The node budget is used up; the search is over.
    Full,
}

/// Numbers of the root's edges that only a root has.
#[derive(Clone, Debug, Default)]
struct RootExtra {
    /// Priors before noise.
    raw_prior: Vec<f32>,
    /// Gumbel draws, all zero without exploration.
    gumbel: Vec<f32>,
    /// Visits of this search, those in flight included; reused ones not.
    new_visits: Vec<u32>,
    /// Whose turn it is (Gumbel).
    halving: Halving,
}

/// The numbers of `node` that a choice depends on; `busy` when leaves are in flight.
#[inline]
fn view_of<'a>(node: &Node, edges: &'a Edges, draw_score: f32, busy: bool) -> NodeView<'a> {
    let span = node.edges();
    NodeView {
        prior: &edges.prior[span.clone()],
        logit: &edges.logit[span.clone()],
        visits: &edges.visits[span.clone()],
        flight: &edges.flight[span.clone()],
        busy,
        q: &edges.q[span],
        parent_q: node.value().pov(node.mover).utility(draw_score),
        eval_q: node.eval().pov(node.mover).utility(draw_score),
    }
}

/// What a search of one move is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Descents from the evaluated root. The evaluation of the root itself is not counted.
    pub simulations: u32,
    /// Noise on the priors of the root (PUCT).
    pub noise: Option<RootNoise>,
    /// Gumbel noise at the root (Gumbel): on where a search is to explore, off where it is to play well.
    pub gumbel_noise: bool,
}

impl Budget {
    /// A search without any noise.
    pub fn plain(simulations: u32) -> Self {
        Self { simulations, noise: None, gumbel_noise: false }
    }
}

/// The search tree of one position of `G`, kept from move to move.
#[derive(Debug)]
pub struct Tree<G: Game> {
    params: SearchParams,
    rule: Rule,
    root_state: G::State,
    nodes: Vec<Node>,
    edges: Edges,
    /// Where `advance` copies the kept subtree to; the two swap.
    spare: (Vec<Node>, Edges, Vec<u32>),
    paths: Vec<Step>,
    in_flight: u32,
    /// A leaf was abandoned: the tree is thrown away as soon as no other is in flight.
    spoilt: bool,
    scratch_state: G::State,
    scratch_legal: Vec<Action>,
    scratch_scores: Vec<f32>,
    root: RootExtra,
    root_ready: bool,
    budget: Budget,
    started: u32,
    /// Plies of all descents of this search together.
    plies: u64,
    /// Plies of the longest path of the tree.
    deepest: u32,
    full: bool,
    random: Stream,
}

impl<G: Game> Tree<G> {
    /// A tree with nothing in it but the position `state`.
    pub fn new(params: SearchParams, state: G::State) -> Self {
        let rule = match params.algorithm {
            super::Algorithm::Puct => Rule::Puct,
            super::Algorithm::Gumbel => Rule::Gumbel,
        };
        Self::with_rule(params, rule, state)
    }

    /// A tree searched by UCB1 without priors or solver: plain Monte Carlo tree search, with exploration constant `c`.
    pub fn ucb1(c: f32, max_nodes: u32, state: G::State) -> Self {
        let params = SearchParams { solver: false, reuse: false, max_nodes, ..SearchParams::default() };
        Self::with_rule(params, Rule::Ucb1 { c }, state)
    }

    fn with_rule(params: SearchParams, rule: Rule, state: G::State) -> Self {
        Self {
            params,
            rule,
            scratch_state: state.clone(),
            root_state: state,
            nodes: Vec::new(),
            edges: Edges::default(),
            spare: Default::default(),
            paths: Vec::new(),
            in_flight: 0,
            spoilt: false,
            scratch_legal: Vec::new(),
            scratch_scores: Vec::new(),
            root: RootExtra::default(),
            root_ready: false,
            budget: Budget::plain(0),
            started: 0,
            plies: 0,
            deepest: 0,
            full: false,
            random: Stream::test(0),
        }
    }

    /// The position at the root.
    pub fn state(&self) -> &G::State {
        &self.root_state
    }

    /// The parameters of the search.
    pub fn params(&self) -> &SearchParams {
        &self.params
    }

    /// Nodes in the tree.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Descents of this search, the unanswered ones included.
    pub fn simulations(&self) -> u32 {
        self.started
    }

    /// Puts another position at the root and forgets the tree.
    pub fn reset(&mut self, state: &G::State) {
        debug_assert_eq!(self.in_flight, 0, "every ticket is answered before the root changes");
        self.root_state.clone_from(state);
        self.forget();
    }

    /// Forgets everything but the position at the root.
    fn forget(&mut self) {
        self.nodes.clear();
        self.edges.clear();
        self.paths.clear();
        self.root_ready = false;
        self.started = 0;
        self.plies = 0;
        self.deepest = 0;
        self.full = false;
    }

    /// Begins the search of a move. `random` feeds root noise, Gumbel draws and UCB1's choice of unvisited moves.
    pub fn begin(&mut self, budget: Budget, random: Stream) {
        debug_assert_eq!(self.in_flight, 0, "every ticket is answered before a search begins");
        if !self.params.reuse {
            self.forget();
        }
        if self.root_ready && !self.nodes.is_empty() {
            // The same root searched again: noise must not pile up.
            let span = self.nodes[0].edges();
            self.edges.prior[span].copy_from_slice(&self.root.raw_prior);
        }
        self.paths.clear();
        self.budget = budget;
        self.random = random;
        self.started = 0;
        self.plies = 0;
        self.full = false;
        self.root_ready = false;
        if self.nodes.first().is_some_and(|root| !root.pending) {
            self.prepare_root();
        }
    }

    /// Raises the number of simulations of the search (analysis without end). Sequential halving was laid out for the
    /// number that the search began with; from there on a Gumbel search follows the improved policy at the root too.
    pub fn extend(&mut self, simulations: u32) {
        self.budget.simulations = simulations;
    }

    /// Whether the search of this move is over: budget used, root proven, or no room for more nodes.
    pub fn finished(&self) -> bool {
        let Some(root) = self.nodes.first() else { return false };
        self.full
            || !root.pending
                && ((self.params.solver || root.edge_count() == 0) && root.outcome.is_some()
                    || self.started >= self.budget.simulations)
    }

    /// Noise, Gumbel draws and sequential halving of a root whose priors are known.
    fn prepare_root(&mut self) {
        let span = self.nodes[0].edges();
        let count = span.len();
        self.root.raw_prior.clear();
        self.root.raw_prior.extend_from_slice(&self.edges.prior[span.clone()]);
        self.root.new_visits.clear();
        self.root.new_visits.resize(count, 0);
        self.root.gumbel.clear();
        self.root.gumbel.resize(count, 0.0);
        match self.rule {
            Rule::Puct => {
                if let (Some(noise), true) = (self.budget.noise, count > 1) {
                    let mut draw = vec![0.0; count];
                    self.random.dirichlet(f64::from(noise.concentration) / count as f64, &mut draw);
                    for (prior, noise_part) in self.edges.prior[span].iter_mut().zip(draw) {
                        *prior += noise.fraction * (noise_part - *prior);
                    }
                }
            }
            Rule::Gumbel => {
                if self.budget.gumbel_noise {
                    self.root.gumbel.iter_mut().for_each(|g| *g = self.random.gumbel() as f32);
                }
                let considered = self.params.gumbel_considered.min(count as u32);
                self.root.halving = Halving::new(considered, self.budget.simulations);
            }
            Rule::Ucb1 { .. } => {}
        }
        self.root_ready = true;
    }

    /// The edge (within the node's span) that a descent takes.
    fn choose_edge(&mut self, node: u32) -> usize {
        let at_root = node == ROOT;
        if self.rule == Rule::Gumbel && self.nodes[node as usize].visits == 1 {
            // Most nodes are leaves to the end and never need their logarithms.
            let span = self.nodes[node as usize].edges();
            select::logits(&self.edges.prior[span.clone()], &mut self.edges.logit[span]);
        }
        let Self { params, nodes, edges, in_flight, root, budget, scratch_scores: scratch, .. } = self;
        let view = view_of(&nodes[node as usize], edges, params.draw_score, *in_flight > 0);
        match self.rule {
            Rule::Puct => {
                let noisy = at_root && budget.noise.is_some();
                let fpu = if noisy { params.fpu_reduction_root } else { params.fpu_reduction };
                let forced =
                    (noisy && params.forced_playouts > 0.0).then(|| select::forced(view, params.forced_playouts));
                forced.flatten().unwrap_or_else(|| select::puct(view, params, fpu, scratch))
            }
            Rule::Gumbel if at_root && self.started < root.halving.simulations() => {
                select::gumbel_scores(view, params, scratch);
                select::gumbel_root(scratch, &root.gumbel, &root.new_visits, &mut root.halving)
            }
            Rule::Gumbel => select::gumbel_inner(view, params, scratch),
            Rule::Ucb1 { c } => select::ucb1(view, c, &mut self.random, scratch),
        }
    }

    /// One descent. A new position is appended to `leaves`; ends and proven positions are counted at once.
    ///
    /// Call only while the search is not [`finished`](Tree::finished).
    pub fn gather(&mut self, game: &G, leaves: &mut Leaves<G>) -> Gathered {
        if self.in_flight == 0 {
            self.paths.clear();
        }
        if self.nodes.is_empty() {
            return self.gather_root(game, leaves);
        }
        if self.nodes[0].pending {
            return Gathered::Collision;
        }
        let start = self.paths.len();
        self.scratch_state.clone_from(&self.root_state);
        let mut node = ROOT;
        loop {
            let current = self.nodes[node as usize];
            if current.pending {
                self.undo(start);
                return Gathered::Collision;
            }
            if let Some(outcome) = current.outcome
                && (node != ROOT || current.edge_count() == 0)
            {
                self.count_started(start);
                self.backup(start..self.paths.len(), node, outcome.wdl());
                return Gathered::Known;
            }
            let local = self.choose_edge(node);
            let edge = current.edges().start + local;
            self.paths.push(Step { node, edge: edge as u32 });
            self.edges.flight[edge] += 1;
            game.play(&mut self.scratch_state, self.edges.action[edge]);
            let child = self.edges.child[edge];
            if child != NO_CHILD {
                node = child;
                continue;
            }
            if self.nodes.len() >= self.params.max_nodes as usize || self.edges.len() > MOST_EDGES {
                self.undo(start);
                self.full = true;
                return Gathered::Full;
            }
            let leaf = self.nodes.len() as u32;
            self.edges.child[edge] = leaf;
            self.count_started(start);
            if let Some(end) = game.end(&self.scratch_state) {
                let mover = game.to_move(&self.scratch_state);
                self.nodes.push(Node::new(mover, self.edges.len(), 0, Some(end.outcome)));
                self.backup(start..self.paths.len(), leaf, end.outcome.wdl());
                return Gathered::Known;
            }
            self.push_open_node(game, leaves);
            return Gathered::Leaf(Ticket { leaf, path: start..self.paths.len() });
        }
    }

    fn gather_root(&mut self, game: &G, leaves: &mut Leaves<G>) -> Gathered {
        self.scratch_state.clone_from(&self.root_state);
        if let Some(end) = game.end(&self.root_state) {
            self.nodes.push(Node::new(game.to_move(&self.root_state), 0, 0, Some(end.outcome)));
            return Gathered::Known;
        }
        self.push_open_node(game, leaves);
        let here = self.paths.len();
        Gathered::Leaf(Ticket { leaf: ROOT, path: here..here })
    }

    /// A node for the position in `scratch_state`, its moves as edges, its evaluation asked for.
    fn push_open_node(&mut self, game: &G, leaves: &mut Leaves<G>) {
        self.scratch_legal.clear();
        game.legal(&self.scratch_state, &mut self.scratch_legal);
        leaves.push(&self.scratch_state, &self.scratch_legal);
        let mover = game.to_move(&self.scratch_state);
        let mut node = Node::new(mover, self.edges.len(), self.scratch_legal.len(), None);
        node.pending = true;
        self.nodes.push(node);
        self.edges.push_new(&self.scratch_legal);
        self.in_flight += 1;
    }

    /// A descent that leads somewhere counts from now on.
    fn count_started(&mut self, start: usize) {
        if let Some(step) = self.paths.get(start) {
            let local = step.edge as usize - self.nodes[0].edges().start;
            self.root.new_visits[local] += 1;
            if self.rule == Rule::Gumbel {
                self.root.halving.take_turn();
            }
            self.started += 1;
            let length = self.paths.len() - start;
            self.plies += length as u64;
            self.deepest = self.deepest.max(length as u32);
        }
    }

    /// Takes back a descent that leads nowhere.
    fn undo(&mut self, start: usize) {
        for step in self.paths.drain(start..) {
            self.edges.flight[step.edge as usize] -= 1;
        }
    }

    /// Answers a leaf. `value` is that of the player to move at the leaf, `priors` belong to its legal moves in notation order.
    pub fn apply(&mut self, ticket: Ticket, value: WdlPov, priors: &[f32]) {
        let Ticket { leaf, path } = ticket;
        let node = &mut self.nodes[leaf as usize];
        debug_assert!(node.pending && priors.len() == node.edge_count());
        let value = value.abs(node.mover);
        node.pending = false;
        node.eval_first = value.first;
        node.eval_draw = value.draw;
        let span = node.edges();
        self.edges.prior[span].copy_from_slice(priors);
        self.in_flight -= 1;
        self.backup(path, leaf, value);
        if leaf == ROOT {
            self.prepare_root();
        }
        self.forget_if_spoilt();
    }

    /// Gives up a leaf whose evaluation failed. Its place cannot be taken back, so the tree forgets everything as
    /// soon as no other leaf is in flight; the search then begins anew at the same position.
    pub fn abandon(&mut self, ticket: Ticket) {
        let Ticket { .. } = ticket;
        self.in_flight -= 1;
        self.spoilt = true;
        self.forget_if_spoilt();
    }

    fn forget_if_spoilt(&mut self) {
        if self.spoilt && self.in_flight == 0 {
            self.spoilt = false;
            self.forget();
        }
    }

    /// Counts `value` at `leaf` and all along the path to the root, and proves what follows from a proven leaf.
    fn backup(&mut self, path: Range<usize>, leaf: u32, mut value: WdlAbs) {
        let mut child = leaf;
        self.nodes[leaf as usize].count(value);
        for at in path.rev() {
            let Step { node, edge } = self.paths[at];
            let edge = edge as usize;
            self.edges.visits[edge] += 1;
            self.edges.flight[edge] -= 1;
            let below = &self.nodes[child as usize];
            let mover = self.nodes[node as usize].mover;
            let utility = below.value().pov(mover).utility(self.params.draw_score);
            let proven = below.outcome.filter(|_| self.params.solver);
            self.edges.q[edge] = match proven {
                Some(outcome) if outcome == Outcome::Win(mover.other()) => LOST,
                _ => utility,
            };
            if proven.is_some() && self.nodes[node as usize].outcome.is_none() {
                self.nodes[node as usize].outcome = self.resolve(node);
            }
            if let (Some(outcome), true) = (self.nodes[node as usize].outcome, self.params.solver) {
                value = outcome.wdl();
            }
            self.nodes[node as usize].count(value);
            child = node;
        }
    }

    /// The result that the known results of a node's moves prove: a win as soon as one move wins, else the best
    /// of all when all are known. The mover is asked of each node, so double moves need nothing special.
    fn resolve(&self, node: u32) -> Option<Outcome> {
        let n = &self.nodes[node as usize];
        let win = Outcome::Win(n.mover);
        let mut best = Some(Outcome::Win(n.mover.other()));
        for edge in n.edges() {
            let child = self.edges.child[edge];
            match (child != NO_CHILD).then(|| self.nodes[child as usize].outcome).flatten() {
                Some(outcome) if outcome == win => return Some(win),
                Some(Outcome::Draw) => best = best.map(|_| Outcome::Draw),
                Some(_) => {}
                None => best = None,
            }
        }
        best
    }

    /// Makes `action` at the root and keeps what the tree knows below it.
    pub fn advance(&mut self, game: &G, action: Action) {
        debug_assert_eq!(self.in_flight, 0, "every ticket is answered before the root changes");
        let kept = self.nodes.first().filter(|_| self.params.reuse).and_then(|root| {
            let edge = root.edges().find(|&edge| self.edges.action[edge] == action)?;
            let child = self.edges.child[edge];
            (child != NO_CHILD).then_some(child)
        });
        game.play(&mut self.root_state, action);
        match kept {
            Some(child) => self.keep(child),
            None => self.forget(),
        }
        self.root_ready = false;
        self.started = 0;
        self.plies = 0;
        self.full = false;
    }

    /// Copies the subtree of `new_root`, breadth first, and swaps it in.
    fn keep(&mut self, new_root: u32) {
        let (mut nodes, mut edges, mut sources) = std::mem::take(&mut self.spare);
        nodes.clear();
        edges.clear();
        sources.clear();
        sources.push(new_root);
        let mut next = 0;
        // Breadth first, a level is what the level before has added.
        let mut level_end = 1;
        self.deepest = 0;
        while let Some(&source) = sources.get(next) {
            if next == level_end {
                level_end = sources.len();
                self.deepest += 1;
            }
            next += 1;
            let mut node = self.nodes[source as usize];
            let span = node.edges();
            node.move_edges(edges.len());
            nodes.push(node);
            edges.push_span(&self.edges, span);
            for child in &mut edges.child[node.edges()] {
                if *child != NO_CHILD {
                    sources.push(*child);
                    *child = sources.len() as u32 - 1;
                }
            }
        }
        std::mem::swap(&mut self.nodes, &mut nodes);
        std::mem::swap(&mut self.edges, &mut edges);
        self.spare = (nodes, edges, sources);
    }
}
