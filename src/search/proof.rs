//! What analysis reads of a search: every move with its line, and results that are certain with their distance.
//!
//! The search itself keeps results only (see `resolve` in [`super::tree`]). How far away they are is worked out
//! afterwards from the part of the tree that proves them, so that nodes stay small and searching stays fast.

use super::node::Node;
use super::summary::{SearchSummary, rank};
use super::tree::{EdgeView, Tree};
use crate::game::{Action, Game, Outcome, Player};

/// A result that is certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proven {
    /// The result.
    pub outcome: Outcome,
    /// Single moves until the game is over, where the winner takes the shortest way that the tree knows and the loser
    /// the longest. A way that the tree does not hold may be shorter: the win comes after so many plies *at the latest*.
    /// Of a draw, which neither side hastens or delays, the longest line of those that prove it.
    pub plies: u32,
}

/// One legal move of the searched position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The result that the move leads to for certain, the move itself counted as a ply.
    pub proven: Option<Proven>,
    /// The moves that the search expects, this one first.
    pub moves: Vec<Action>,
}

/// All that a search has found out.
#[derive(Clone, Debug, PartialEq)]
pub struct Insight {
    /// Values, visits and policy of the moves.
    pub summary: SearchSummary,
    /// The result that the position leads to for certain.
    pub proven: Option<Proven>,
    /// One for each of the summary's moves.
    pub lines: Vec<Line>,
    /// Indices of the moves from best to worst: proven wins from the fastest to the slowest; then the others as
    /// [`SearchSummary::ranked`] has them; then proven losses from the slowest to the fastest. A proven draw ranks before what
    /// may be worse where the position is proven to be one.
    pub ranked: Vec<usize>,
}

impl Insight {
    /// Index of the best move.
    pub fn best(&self) -> usize {
        self.ranked[0]
    }
}

/// The results that a tree proves, one for each node: 0 where there is none, else the plies times four and
/// 1 to 3 for the outcome. Empty where nothing was worked out.
struct Proofs(Vec<u32>);

impl Proofs {
    fn pack(proven: Proven) -> u32 {
        let outcome = match proven.outcome {
            Outcome::Win(Player::First) => 1,
            Outcome::Draw => 2,
            Outcome::Win(Player::Second) => 3,
        };
        proven.plies << 2 | outcome
    }

    fn of(&self, node: u32) -> Option<Proven> {
        let packed = self.0.get(node as usize)?;
        let outcome = match packed & 3 {
            0 => return None,
            1 => Outcome::Win(Player::First),
            2 => Outcome::Draw,
            _ => Outcome::Win(Player::Second),
        };
        Some(Proven { outcome, plies: packed >> 2 })
    }
}

impl<G: Game> Tree<G> {
    /// What the search has found out so far, with lines of at most `most` moves; `None` when the root is not evaluated
    /// or the game is over. Walks the whole tree, and tries the moves that no simulation has: a win at once is always
    /// seen.
    pub fn insight(&self, game: &G, most: usize) -> Option<Insight> {
        let summary = self.summary()?;
        let proofs = self.proofs();
        let root = self.node(0)?;
        let wins = |action: Action| {
            let mut state = self.state().clone();
            game.play(&mut state, action);
            game.end(&state).is_some_and(|end| end.outcome == Outcome::Win(summary.mover))
        };
        let win_at_once = Proven { outcome: Outcome::Win(summary.mover), plies: 1 };
        let lines: Vec<Line> = self
            .edges_of(root)
            .map(|edge| {
                let proven = match edge.child {
                    Some(child) => proofs.of(child).map(one_ply_more),
                    None => wins(edge.action).then_some(win_at_once),
                };
                Line { proven, moves: self.line(edge, most, &proofs) }
            })
            .collect();
        let at_once = lines.iter().any(|line| line.proven == Some(win_at_once));
        let proven = if at_once { Some(win_at_once) } else { proofs.of(0) };
        let ranked = ranked(&summary, proven, &lines);
        Some(Insight { summary, proven, lines, ranked })
    }

    /// The moves that the search expects, from the root on, at most `most`.
    pub fn principal_line(&self, game: &G, most: usize) -> Vec<Action> {
        let Some(summary) = self.summary() else { return Vec::new() };
        if summary.proven.is_some() {
            let insight = self.insight(game, most);
            return insight.map_or_else(Vec::new, |mut insight| insight.lines.swap_remove(insight.ranked[0]).moves);
        }
        let best = summary.moves[summary.best].action;
        let edge = self.node(0).and_then(|root| self.edges_of(root).find(|edge| edge.action == best));
        edge.map_or_else(Vec::new, |edge| self.line(edge, most, &Proofs(Vec::new())))
    }

    /// The results of all nodes. A node's children lie behind it, so that one pass from the last to the first is enough.
    fn proofs(&self) -> Proofs {
        let count = self.node_count();
        let mut proofs = Proofs(vec![0; count]);
        for at in (0..count as u32).rev() {
            let node = self.node(at).expect("it is counted");
            // Where the search proves results itself, it has proven all that can be.
            if node.outcome.is_none() && self.params().solver {
                continue;
            }
            if let Some(proven) = self.proof_of(node, &proofs) {
                proofs.0[at as usize] = Proofs::pack(proven);
            }
        }
        proofs
    }

    /// The result that the results of a node's moves prove.
    fn proof_of(&self, node: &Node, proofs: &Proofs) -> Option<Proven> {
        let edges = self.edges_of(node);
        if edges.len() == 0 {
            return node.outcome.map(|outcome| Proven { outcome, plies: 0 });
        }
        let mover = self.mover(node);
        let (mut win, mut other, mut open): (Option<Proven>, Option<Proven>, bool) = (None, None, false);
        for edge in edges {
            let Some(after) = edge.child.and_then(|child| proofs.of(child)).map(one_ply_more) else {
                open = true;
                continue;
            };
            if after.outcome == Outcome::Win(mover) {
                win = Some(win.map_or(after, |best| if after.plies < best.plies { after } else { best }));
            } else {
                let key = |proven: Proven| (rank(proven.outcome, mover), proven.plies);
                other = Some(other.map_or(after, |best| if key(after) > key(best) { after } else { best }));
            }
        }
        win.or(if open { None } else { other })
    }

    /// The line that begins with `first`.
    fn line(&self, first: EdgeView, most: usize, proofs: &Proofs) -> Vec<Action> {
        let mut line = Vec::new();
        let mut next = Some(first);
        while let Some(edge) = next.filter(|_| line.len() < most) {
            line.push(edge.action);
            next = edge.child.and_then(|child| self.expected_edge(child, proofs));
        }
        line
    }

    /// The move expected at a node. Where its result is known: one that keeps it, as fast as the winner can and as slow as
    /// the loser can. Elsewhere the most visited one that is not known to be lost.
    fn expected_edge(&self, at: u32, proofs: &Proofs) -> Option<EdgeView> {
        let node = self.node(at)?;
        let known = proofs.of(at);
        let outcome = known.map(|proven| proven.outcome).or(node.outcome);
        let lost = Outcome::Win(self.mover(node).other());
        let key = |edge: &EdgeView| {
            let child = edge.child.unwrap_or(u32::MAX);
            let after = proofs.of(child).map(one_ply_more);
            let after_outcome = after.map(|proven| proven.outcome).or(self.node(child).and_then(|child| child.outcome));
            let sound = if outcome.is_some() { after_outcome == outcome } else { after_outcome != Some(lost) };
            let on_time = outcome != Some(Outcome::Draw) && after.is_some() && after == known;
            (sound, on_time, edge.visits)
        };
        let visited: Vec<EdgeView> = self.edges_of(node).filter(|edge| edge.visits > 0).collect();
        // The first of equals.
        visited.into_iter().rev().max_by_key(key)
    }
}

fn one_ply_more(proven: Proven) -> Proven {
    Proven { plies: proven.plies + 1, ..proven }
}

/// See [`Insight::ranked`].
fn ranked(summary: &SearchSummary, proven: Option<Proven>, lines: &[Line]) -> Vec<usize> {
    let mover = summary.mover;
    let key = |&index: &usize| match lines[index].proven {
        Some(after) if after.outcome == Outcome::Win(mover) => (0, i64::from(after.plies)),
        Some(after) if after.outcome == Outcome::Win(mover.other()) => (3, -i64::from(after.plies)),
        Some(_) if proven.is_some_and(|root| root.outcome == Outcome::Draw) => (1, 0),
        _ => (2, 0),
    };
    let mut order = summary.ranked();
    // Stable: equals stay as the search ranks them.
    order.sort_by_key(key);
    order
}
