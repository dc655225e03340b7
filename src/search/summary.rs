//! What a finished search says: the one view that move choice, records, analysis and the engine protocol read.

use super::params::Rule;
use super::select;
use super::tree::Tree;
use crate::game::{Action, Game, Outcome, Player, WdlAbs};
use crate::util::rng::Stream;

/// One legal move of the searched position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MoveSummary {
    /// The move.
    pub action: Action,
    /// Its prior probability, without noise.
    pub prior: f32,
    /// Finished visits, those kept from earlier searches included.
    pub visits: u32,
    /// What the search made of the prior: the policy target. All moves together sum to 1.
    pub policy: f32,
    /// Mean value below the move; that of the root for a move without visits.
    pub value: WdlAbs,
    /// The result that the move leads to for certain.
    pub proven: Option<Outcome>,
}

/// A finished search.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchSummary {
    /// Who is to move.
    pub mover: Player,
    /// Mean value of the root, exact when proven.
    pub value: WdlAbs,
    /// The result that the root leads to for certain under best play.
    pub proven: Option<Outcome>,
    /// Descents of this search.
    pub simulations: u32,
    /// Every legal move, in notation order.
    pub moves: Vec<MoveSummary>,
    /// Index in `moves` of the move to play without temperature.
    pub best: usize,
}

impl SearchSummary {
    /// Index of a move drawn with temperature: proportional to `policy^(1 / temperature)` for the moves that are
    /// not proven worse than the best; [`best`](SearchSummary::best) at temperature 0 and for a proven root.
    pub fn choose(&self, temperature: f32, random: &mut Stream) -> usize {
        if temperature <= 0.0 || self.proven.is_some() {
            return self.best;
        }
        // In logarithms, relative to the largest, so that no temperature can overflow or vanish.
        let top = self.moves.iter().map(|m| m.policy).fold(0.0, f32::max);
        let weights: Vec<f64> =
            self.moves
                .iter()
                .map(|m| {
                    if m.policy <= 0.0 { 0.0 } else { (f64::from(m.policy / top).ln() / f64::from(temperature)).exp() }
                })
                .collect();
        random.weighted(&weights)
    }

    /// Indices of the moves from best to worst: the best, then by policy, visits and prior.
    pub fn ranked(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.moves.len()).collect();
        order.sort_by(|&a, &b| {
            let key = |i: usize| (i == self.best, self.moves[i].policy, self.moves[i].visits, self.moves[i].prior);
            key(b).partial_cmp(&key(a)).expect("policies are finite").then(a.cmp(&b))
        });
        order
    }
}

/// How good a result is for `player`: 2 win, 1 draw, 0 loss.
pub(super) fn rank(outcome: Outcome, player: Player) -> u8 {
    match outcome {
        Outcome::Win(winner) if winner == player => 2,
        Outcome::Draw => 1,
        Outcome::Win(_) => 0,
    }
}

impl<G: Game> Tree<G> {
    /// The outcome of the search so far, or `None` when the root is not evaluated or the game is over.
    pub fn summary(&self) -> Option<SearchSummary> {
        let root = self.node(0)?;
        let raw = self.raw_root_priors();
        if raw.is_empty() {
            return None;
        }
        let mover = self.mover(root);
        let mut moves: Vec<MoveSummary> = self
            .edges_of(root)
            .zip(raw)
            .map(|(edge, &prior)| {
                let child = edge.child.and_then(|child| self.node(child)).filter(|_| edge.visits > 0);
                MoveSummary {
                    action: edge.action,
                    prior,
                    visits: edge.visits,
                    policy: 0.0,
                    value: child.map_or(root.value(), |child| child.value()),
                    proven: child.and_then(|child| child.outcome),
                }
            })
            .collect();
        let proven = root.outcome;
        let best = match proven {
            Some(outcome) => proven_policy(&mut moves, outcome, mover),
            None => self.searched_policy(&mut moves, mover),
        };
        Some(SearchSummary { mover, value: root.value(), proven, simulations: self.simulations(), moves, best })
    }

    /// Policy and best move of a root that is not proven.
    fn searched_policy(&self, moves: &mut [MoveSummary], mover: Player) -> usize {
        let lost = Outcome::Win(mover.other());
        let solver = self.params().solver;
        let allowed = |m: &MoveSummary| !(solver && m.proven == Some(lost));
        if self.rule() == Rule::Gumbel {
            let (mut scores, gumbel, new_visits) = self.root_gumbel();
            // Algorithm 2, last line: the best of the moves that were searched most.
            let most = (0..moves.len()).filter(|&i| allowed(&moves[i])).map(|i| new_visits[i]).max().unwrap_or(0);
            let key = |i: usize| (allowed(&moves[i]) && new_visits[i] == most, scores[i] + gumbel[i]);
            let best = first_max(moves.len(), key);
            select::softmax(&mut scores);
            moves.iter_mut().zip(scores).for_each(|(m, policy)| m.policy = policy);
            return best;
        }
        let pruned = self.pruned_root_visits();
        let visits = |at: usize, m: &MoveSummary| pruned.as_ref().map_or(m.visits, |pruned| pruned[at]);
        let total: u32 = moves.iter().enumerate().filter(|(_, m)| allowed(m)).map(|(at, m)| visits(at, m)).sum();
        let prior: f32 = moves.iter().filter(|m| allowed(m)).map(|m| m.prior).sum();
        let count = moves.iter().filter(|m| allowed(m)).count() as f32;
        for (at, m) in moves.iter_mut().enumerate() {
            m.policy = match () {
                () if !allowed(m) => 0.0,
                () if total > 0 => visits(at, m) as f32 / total as f32,
                () if prior > 0.0 => m.prior / prior,
                () => 1.0 / count,
            };
        }
        first_max(moves.len(), |i| (allowed(&moves[i]), (moves[i].visits, moves[i].prior)))
    }
}

/// Policy and best move where the result is certain: shared by the moves that reach it.
fn proven_policy(moves: &mut [MoveSummary], outcome: Outcome, mover: Player) -> usize {
    let wanted = rank(outcome, mover);
    // All moves of a lost root are lost; otherwise only those that keep the result count.
    let keeps = |m: &MoveSummary| wanted == 0 || m.proven.is_some_and(|p| rank(p, mover) == wanted);
    let total: u32 = moves.iter().filter(|m| keeps(m)).map(|m| m.visits).sum();
    let count = moves.iter().filter(|m| keeps(m)).count() as f32;
    for m in moves.iter_mut() {
        m.policy = match () {
            () if !keeps(m) => 0.0,
            () if total > 0 => m.visits as f32 / total as f32,
            () => 1.0 / count,
        };
    }
    first_max(moves.len(), |i| (keeps(&moves[i]), (moves[i].visits, moves[i].prior)))
}

/// The first index with the largest key.
fn first_max<K: PartialOrd>(count: usize, key: impl Fn(usize) -> K) -> usize {
    (1..count).fold(0, |best, i| if key(i) > key(best) { i } else { best })
}
