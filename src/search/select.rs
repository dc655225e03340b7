//! The formulas that choose an edge: PUCT, the Gumbel paper's rules, UCB1. Pure functions of one node's numbers.

use super::halving::Halving;
use super::params::SearchParams;
use crate::util::rng::Stream;

/// Utility of an edge that is proven lost for its mover: below everything a search can find.
pub(crate) const LOST: f32 = f32::NEG_INFINITY;

/// The numbers of one node that a choice depends on. Slices have one entry for each legal move.
///
/// Utilities are those of the node's mover, in [-1, 1] ([`LOST`] for a move proven lost).
#[derive(Clone, Copy)]
pub(crate) struct NodeView<'a> {
    /// Prior probabilities.
    pub prior: &'a [f32],
    /// Logarithms of the priors, see [`logits`]; only the Gumbel rules read them.
    pub logit: &'a [f32],
    /// Finished visits.
    pub visits: &'a [u32],
    /// Visits that wait for an evaluation; they count as visits that lost (virtual loss).
    pub flight: &'a [u16],
    /// Whether `flight` has anything but zeros; without, it is not read.
    pub busy: bool,
    /// Mean utility of the finished visits, or the exact one of a proven move.
    pub q: &'a [f32],
    /// Mean utility of the node over its own visits.
    pub parent_q: f32,
    /// The evaluator's utility of the node itself.
    pub eval_q: f32,
}

/// What a choice sees of one move.
#[derive(Clone, Copy)]
struct Seen {
    prior: f32,
    /// Visits with those in flight.
    count: u32,
    /// Mean utility, visits in flight counted as lost; of no meaning without visits.
    q: f32,
}

impl Seen {
    #[inline(always)]
    fn q_or(&self, unvisited: f32) -> f32 {
        if self.count == 0 { unvisited } else { self.q }
    }
}

impl<'a> NodeView<'a> {
    /// The moves; `BUSY` is the view's `busy`, known to the compiler so that its loops stay simple where it is false.
    #[inline(always)]
    fn seen<const BUSY: bool>(self) -> impl ExactSizeIterator<Item = Seen> + Clone + use<'a, BUSY> {
        let numbers = self.prior.iter().zip(self.visits).zip(self.flight).zip(self.q);
        numbers.map(|(((&prior, &visits), &flight), &q)| {
            if !BUSY || flight == 0 {
                return Seen { prior, count: visits, q };
            }
            let count = visits + u32::from(flight);
            // A move without finished visits has q 0, and LOST stays what it is.
            Seen { prior, count, q: (q * visits as f32 - f32::from(flight)) / count as f32 }
        })
    }
}

/// The index of the largest score; the first one of equals. Scores are never NaN.
#[inline]
fn argmax(scores: &[f32]) -> usize {
    let mut best = 0;
    let mut best_score = f32::NEG_INFINITY;
    for (edge, &score) in scores.iter().enumerate() {
        if score > best_score {
            best = edge;
            best_score = score;
        }
    }
    best
}

/// PUCT (Silver et al. 2018, methods, "Search"): `Q + c(N) P sqrt(sum N) / (1 + n)` with
/// `c(N) = c_puct + ln((1 + N + base) / base)`, and first-play urgency for unvisited moves.
pub(crate) fn puct(view: NodeView, params: &SearchParams, fpu_reduction: f32, scratch: &mut Vec<f32>) -> usize {
    if view.busy {
        puct_of::<true>(view, params, fpu_reduction, scratch)
    } else {
        puct_of::<false>(view, params, fpu_reduction, scratch)
    }
}

#[inline(always)]
fn puct_of<const BUSY: bool>(
    view: NodeView,
    params: &SearchParams,
    fpu_reduction: f32,
    scratch: &mut Vec<f32>,
) -> usize {
    let total: u32 = view.seen::<BUSY>().map(|m| m.count).sum();
    let seen: f32 = view.seen::<BUSY>().map(|m| if m.count > 0 { m.prior } else { 0.0 }).sum();
    let scale = prior_weight(params, total as f32);
    let fpu = view.parent_q - fpu_reduction * seen.sqrt();
    scratch.clear();
    scratch.extend(view.seen::<BUSY>().map(|m| m.q_or(fpu) + scale * m.prior / (1.0 + m.count as f32)));
    argmax(scratch)
}

/// The weight of the priors at a node with so many visits below it, `c(N) sqrt(N)`.
#[inline(always)]
fn prior_weight(params: &SearchParams, total: f32) -> f32 {
    let c = params.c_puct + ((1.0 + total + params.c_puct_base) / params.c_puct_base).ln();
    // Before the first visit every exploration term would be 0: let the prior decide then.
    c * total.max(1.0).sqrt()
}

/// Visits that a root move with this prior is to have once it has one: `sqrt(k P sum N)` (Wu 2019, section 3.2).
fn forced_visits(k: f32, prior: f32, total: u32) -> f32 {
    (k * prior * total as f32).sqrt()
}

/// The first root move that has fewer visits than are forced; none that is proven lost.
pub(crate) fn forced(view: NodeView, k: f32) -> Option<usize> {
    let total: u32 = view.seen::<true>().map(|m| m.count).sum();
    view.seen::<true>().position(|m| m.count > 0 && m.q > LOST && (m.count as f32) < forced_visits(k, m.prior, total))
}

/// The visits of a root less those that were forced on moves not worth them (Wu 2019, section 3.2): of every move but the most visited
/// one up to the forced number is taken away, as long as its PUCT score stays below that of the most visited one; a move that is left
/// with one visit loses it too.
pub(crate) fn pruned(view: NodeView, params: &SearchParams) -> Vec<u32> {
    let total: u32 = view.visits.iter().sum();
    let weight = prior_weight(params, total as f32);
    // The first one of equals, as everywhere.
    let best = (0..view.visits.len()).rev().max_by_key(|&edge| view.visits[edge]).unwrap_or(0);
    let score = view.q[best] + weight * view.prior[best] / (1.0 + view.visits[best] as f32);
    let rest = |edge: usize| {
        let (visits, prior) = (view.visits[edge], view.prior[edge]);
        let least = visits.saturating_sub(forced_visits(params.forced_playouts, prior, total) as u32);
        // Below that score it stays with more visits than this.
        let gap = score - view.q[edge];
        let bound = if gap > 0.0 { (weight * prior / gap - 1.0).floor() + 1.0 } else { f32::INFINITY };
        // A number beyond all visits, and none below 0, when it becomes whole.
        match (bound as u32).max(least).min(visits) {
            1 => 0,
            left => left,
        }
    };
    (0..view.visits.len()).map(|edge| if edge == best { view.visits[edge] } else { rest(edge) }).collect()
}

/// UCB1 with rewards in [0, 1]; unvisited moves first, in random order.
pub(crate) fn ucb1(view: NodeView, c: f32, random: &mut Stream, scratch: &mut Vec<f32>) -> usize {
    if view.busy { ucb1_of::<true>(view, c, random, scratch) } else { ucb1_of::<false>(view, c, random, scratch) }
}

#[inline(always)]
fn ucb1_of<const BUSY: bool>(view: NodeView, c: f32, random: &mut Stream, scratch: &mut Vec<f32>) -> usize {
    let total: u32 = view.seen::<BUSY>().map(|m| m.count).sum();
    let unvisited = view.seen::<BUSY>().filter(|m| m.count == 0).count();
    if unvisited > 0 {
        let pick = random.below(unvisited);
        let mut open = view.seen::<BUSY>().enumerate().filter(|(_, m)| m.count == 0);
        return open.nth(pick).expect("counted above").0;
    }
    let log = (total as f32).ln();
    scratch.clear();
    scratch.extend(view.seen::<BUSY>().map(|m| 0.5 * (m.q + 1.0) + c * (log / m.count as f32).sqrt()));
    argmax(scratch)
}

/// Writes the logarithms of `priors`. A tiny floor stands for priors that underflowed.
pub(crate) fn logits(priors: &[f32], out: &mut [f32]) {
    for (logit, prior) in out.iter_mut().zip(priors) {
        *logit = prior.max(f32::MIN_POSITIVE).ln();
    }
}

/// `logit + sigma(completed Q)` for each move (Danihelka et al. 2022): sigma is equation 8 with Q in [0, 1], not
/// stretched to the extremes seen as in `mctx`, whose values have no known bounds; completed Q is equation 10, where
/// an unvisited move takes the mixed value of appendix D. Visits in flight count as visits.
///
/// A move that is proven lost gets [`LOST`]. Returns the number of visits.
pub(crate) fn gumbel_scores(view: NodeView, params: &SearchParams, out: &mut Vec<f32>) -> u32 {
    if view.busy { gumbel_scores_of::<true>(view, params, out) } else { gumbel_scores_of::<false>(view, params, out) }
}

#[inline(always)]
fn gumbel_scores_of<const BUSY: bool>(view: NodeView, params: &SearchParams, out: &mut Vec<f32>) -> u32 {
    let mut total = 0u32;
    let mut most = 0u32;
    let mut seen = 0f32;
    let mut weighted = 0f32;
    for m in view.seen::<BUSY>().filter(|m| m.count > 0) {
        total += m.count;
        most = most.max(m.count);
        // The same floor as that of the logits keeps from dividing by zero.
        let prior = m.prior.max(f32::MIN_POSITIVE);
        seen += prior;
        weighted += prior * m.q.max(-1.0);
    }
    let visits = total as f32;
    let mixed = if total > 0 { (view.eval_q + visits * weighted / seen) / (1.0 + visits) } else { view.eval_q };
    let sigma = (params.gumbel_visit + most as f32) * params.gumbel_scale * 0.5;
    out.clear();
    out.extend(view.seen::<BUSY>().zip(view.logit).map(|(m, logit)| {
        let q = m.q_or(mixed);
        if q == LOST { LOST } else { logit + sigma * (q + 1.0) }
    }));
    total
}

/// The improved policy of the paper (equation 11): softmax of [`gumbel_scores`], in place.
pub(crate) fn softmax(scores: &mut [f32]) {
    let top = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if top == f32::NEG_INFINITY {
        // Every move is proven lost; none is better than another.
        let share = 1.0 / scores.len() as f32;
        scores.fill(share);
        return;
    }
    let mut sum = 0.0;
    for score in scores.iter_mut() {
        *score = (*score - top).exp();
        sum += *score;
    }
    for score in scores.iter_mut() {
        *score /= sum;
    }
}

/// The choice inside the tree (equation 14): the move whose visit share lags most behind the improved policy.
pub(crate) fn gumbel_inner(view: NodeView, params: &SearchParams, scratch: &mut Vec<f32>) -> usize {
    let total = gumbel_scores(view, params, scratch);
    softmax(scratch);
    let share = 1.0 / (1.0 + total as f32);
    for (edge, score) in scratch.iter_mut().enumerate() {
        if view.visits[edge] > 0 && view.q[edge] == LOST {
            *score = LOST;
        } else {
            let flight = if view.busy { view.flight[edge] } else { 0 };
            *score -= (view.visits[edge] + u32::from(flight)) as f32 * share;
        }
    }
    argmax(scratch)
}

/// The root's choice in sequential halving: among the moves that are due, the one with the largest
/// `gumbel + score`. A round without such a move is over, because what was in play is proven lost; when everything
/// that was ever in play is, the best of the other moves steps in.
pub(crate) fn gumbel_root(scores: &[f32], gumbel: &[f32], new_visits: &[u32], halving: &mut Halving) -> usize {
    loop {
        let round = halving.round();
        let (mut due, mut other) = ((LOST, None), (LOST, 0));
        let mut ahead = false;
        for edge in 0..scores.len() {
            let score = scores[edge] + gumbel[edge];
            ahead |= score > LOST && new_visits[edge] > round;
            if new_visits[edge] == round && score > due.0 {
                due = (score, Some(edge));
            }
            if score > other.0 {
                other = (score, edge);
            }
        }
        match due.1 {
            Some(edge) => return edge,
            None if ahead => halving.end_round(),
            None => return other.1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view<'a>(prior: &'a [f32], visits: &'a [u32], flight: &'a [u16], q: &'a [f32]) -> NodeView<'a> {
        let mut logit = vec![0.0; prior.len()];
        logits(prior, &mut logit);
        let busy = flight.iter().any(|&f| f > 0);
        NodeView { prior, logit: logit.leak(), visits, flight, busy, q, parent_q: 0.1, eval_q: 0.2 }
    }

    fn puct(view: NodeView, params: &SearchParams, fpu_reduction: f32) -> usize {
        let choice = super::puct(view, params, fpu_reduction, &mut Vec::new());
        // Whether the visits in flight are looked at makes no difference where there are none.
        assert_eq!(choice, super::puct(NodeView { busy: true, ..view }, params, fpu_reduction, &mut Vec::new()));
        choice
    }

    fn ucb1(view: NodeView, c: f32, random: &mut Stream) -> usize {
        super::ucb1(view, c, random, &mut Vec::new())
    }

    #[test]
    fn puct_by_hand() {
        let params = SearchParams { c_puct: 1.0, c_puct_base: 1e9, fpu_reduction: 0.5, ..Default::default() };
        // sum N = 4, sqrt = 2. Scores: 0.5 + 2 * 0.5 / 4 = 0.75; -0.2 + 2 * 0.2 / 2 = 0.0;
        // unvisited: 0.1 - 0.5 * sqrt(0.7) + 2 * 0.3 / 1 = 0.2817.
        let at = |q0, p2| puct(view(&[0.5, 0.2, p2], &[3, 1, 0], &[0; 3], &[q0, -0.2, 0.0]), &params, 0.5);
        assert_eq!(at(0.5, 0.3), 0);
        // The first drops to 0.03 + 0.25 = 0.28, just below the unvisited one; at 0.04 it is above.
        assert_eq!(at(0.03, 0.3), 2);
        assert_eq!(at(0.04, 0.3), 0);
        // A move that is proven lost is never chosen, whatever its prior.
        assert_eq!(puct(view(&[0.9, 0.1], &[1, 1], &[0; 2], &[LOST, -0.9]), &params, 0.5), 1);
        // Nothing visited: the prior decides.
        assert_eq!(puct(view(&[0.2, 0.5, 0.3], &[0; 3], &[0; 3], &[0.0; 3]), &params, 0.5), 1);
    }

    #[test]
    fn moves_are_forced_until_they_have_their_visits() {
        // Of 100 visits sqrt(2 * 0.08 * 100) = 4 are forced on a prior of 0.08, sqrt(2 * 0.5 * 100) = 10 on one of 0.5.
        let at = |visits: [u32; 3]| forced(view(&[0.5, 0.08, 0.42], &visits, &[0; 3], &[0.5, -0.9, 0.0]), 2.0);
        assert_eq!(at([50, 4, 46]), None);
        assert_eq!(at([51, 3, 46]), Some(1));
        assert_eq!(at([9, 4, 87]), Some(0));
        // What was never visited is not forced, nor what is lost.
        assert_eq!(at([54, 0, 46]), None);
        assert_eq!(forced(view(&[0.9, 0.1], &[96, 4], &[0; 2], &[0.0, LOST]), 2.0), None);
    }

    #[test]
    fn forced_visits_are_taken_back_where_they_were_not_worth_it() {
        let params = SearchParams { c_puct: 1.0, c_puct_base: 1e9, forced_playouts: 2.0, ..Default::default() };
        // 100 visits, weight 10. The best: 0.5 + 10 * 0.5 / 61 = 0.58197.
        let at = |visits: [u32; 3], q: [f32; 3]| pruned(view(&[0.5, 0.325, 0.175], &visits, &[0; 3], &q), &params);
        // The second may lose sqrt(2 * 0.325 * 100) = 8: with n left it scores 0.3 + 3.25 / (1 + n), which is below for n > 10.5. The
        // third may lose 5: of 6 one is left, which goes too; -0.9 + 1.75 / (1 + n) is below for n > 0.2.
        assert_eq!(at([60, 34, 6], [0.5, 0.3, -0.9]), [60, 26, 0]);
        assert_eq!(at([60, 15, 25], [0.5, 0.3, -0.9]), [60, 11, 20]);
        // As good as the best one: nothing is taken.
        assert_eq!(at([60, 34, 6], [0.5, 0.6, 0.55]), [60, 34, 6]);
        assert_eq!(at([60, 34, 6], [0.5, 0.3, LOST]), [60, 26, 0]);
    }

    #[test]
    fn the_weight_of_the_prior_grows_with_visits() {
        let params = SearchParams { c_puct: 1.0, c_puct_base: 10.0, fpu_reduction: 0.0, ..Default::default() };
        // N = 89: c = 1 + ln(100 / 10) = 3.302585, scale = 3.302585 * sqrt(89) = 31.1563.
        // First: 0 + 31.1563 * 0.5 / 90 = 0.17309; second, unvisited: q0 + 31.1563 * 0.5 is far above; with one visit
        // more balanced: visits 88 and 1, prior 0.99 and 0.01: 31.1563 * 0.99 / 89 = 0.34657; 31.1563 * 0.01 / 2 = 0.15578.
        let at = |q1| puct(view(&[0.99, 0.01], &[88, 1], &[0; 2], &[0.0, q1]), &params, 0.0);
        assert_eq!(at(0.1907), 0);
        assert_eq!(at(0.1909), 1);
    }

    #[test]
    fn visits_in_flight_count_as_lost() {
        let params = SearchParams { c_puct: 1.0, c_puct_base: 1e9, ..Default::default() };
        let at = |flight| puct(view(&[0.5, 0.5], &[1, 1], &[flight, 0], &[0.2, 0.0]), &params, 0.0);
        assert_eq!(at(0), 0);
        // (0.2 * 1 - 1) / 2 = -0.4 and a smaller exploration term.
        assert_eq!(at(1), 1);
    }

    #[test]
    fn ucb1_by_hand() {
        let mut random = Stream::test(1);
        // N = 10, ln = 2.302585. Points 0.7 + sqrt(2.302585 / 6) = 1.3195; 0.5 + sqrt(2.302585 / 4) = 1.2587.
        let at = |q: [f32; 2], c, random: &mut Stream| ucb1(view(&[0.0; 2], &[6, 4], &[0; 2], &q), c, random);
        assert_eq!(at([0.4, 0.0], 1.0, &mut random), 0);
        // With c = 2: 0.7 + 1.2390 = 1.9390 against 0.5 + 1.5175 = 2.0175.
        assert_eq!(at([0.4, 0.0], 2.0, &mut random), 1);
        for _ in 0..20 {
            assert_eq!(ucb1(view(&[0.0; 3], &[6, 0, 4], &[0; 3], &[1.0, 0.0, 1.0]), 1.0, &mut random), 1);
        }
    }

    #[test]
    fn completed_q_by_hand() {
        let params = SearchParams { gumbel_visit: 50.0, gumbel_scale: 1.0, ..Default::default() };
        let mut scores = Vec::new();
        gumbel_scores(view(&[0.5, 0.3, 0.2], &[2, 0, 1], &[0; 3], &[0.4, 0.0, -0.2]), &params, &mut scores);
        // Visited prior 0.7; weighted q (0.5 * 0.4 + 0.2 * -0.2) / 0.7 = 0.228571; mixed = (0.2 + 3 * 0.228571) / 4 = 0.221429.
        // sigma = (50 + 2) / 2 = 26 for q in [-1, 1].
        let expected = [0.5f32.ln() + 26.0 * 1.4, 0.3f32.ln() + 26.0 * 1.221_428_6, 0.2f32.ln() + 26.0 * 0.8];
        for (score, wanted) in scores.iter().zip(expected) {
            assert!((score - wanted).abs() < 1e-4, "{scores:?} {expected:?}");
        }
        softmax(&mut scores);
        assert!((scores.iter().sum::<f32>() - 1.0).abs() < 1e-6);
    }

    #[test]
    fn inner_choice_follows_the_improved_policy() {
        let params = SearchParams { gumbel_visit: 0.0, gumbel_scale: 0.0, ..Default::default() };
        let mut scratch = Vec::new();
        // With sigma = 0 the improved policy is the prior: 0.6, 0.4. Shares N / (1 + sum): 2/4 and 1/4 -> lags 0.1 and 0.15.
        assert_eq!(gumbel_inner(view(&[0.6, 0.4], &[2, 1], &[0; 2], &[0.0; 2]), &params, &mut scratch), 1);
        assert_eq!(gumbel_inner(view(&[0.6, 0.4], &[1, 1], &[0; 2], &[0.0; 2]), &params, &mut scratch), 0);
        assert_eq!(gumbel_inner(view(&[0.6, 0.4], &[1, 1], &[0; 2], &[LOST, 0.0]), &params, &mut scratch), 1);
    }

    #[test]
    fn the_root_takes_the_best_move_that_is_due() {
        let scores = [0.0, 3.0, 1.0, LOST];
        let gumbel = [0.5, 0.0, 0.2, 9.0];
        let at = |new_visits, rounds| {
            let mut halving = Halving::new(4, 100);
            (0..rounds).for_each(|_| halving.end_round());
            (gumbel_root(&scores, &gumbel, new_visits, &mut halving), halving.round())
        };
        assert_eq!(at(&[0, 1, 0, 0], 0), (2, 0));
        assert_eq!(at(&[0, 1, 0, 0], 1), (1, 1));
        // Only the lost move is due: the round is over.
        assert_eq!(at(&[2, 2, 2, 1], 1), (1, 2));
        // Everything that was in play is lost: the best of the others.
        assert_eq!(at(&[0, 0, 0, 7], 7), (1, 7));
    }
}
