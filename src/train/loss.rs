//! The losses with their gradients, and figures that tell how good the network is.
//!
//! Policy: cross-entropy between the target and the softmax over *legal* moves only. Value: cross-entropy between
//! the target (win, draw, loss) and the softmax of its three logits. Both are weighted means, in nats. Where the network
//! has auxiliary heads (after KataGo's, Wu 2019, section 4.1 and appendix B): for the ending the binary cross-entropy, mean over its
//! slots; for the opponent's next move the cross-entropy with the softmax over all moves, as nobody knows which will be legal.
//!
//! They are worked out here in one pass over the rows, in double precision, and libtorch is handed their gradients. As
//! operations of its own they would be some eighty small ones, which take longer than a small network's matrices.

use tch::{Device, TchError, Tensor};

use crate::net::TorchHeads;
use crate::train::batch::{BatchView, Totals};
use crate::train::params::TrainParams;

/// Bins of the value calibration, over expected points in [0, 1].
pub const CALIBRATION_BINS: usize = 10;

/// Plain sums before the calibration begins.
const HEAD: usize = 9;
/// All sums of [`Sums`].
const SUMS: usize = HEAD + 3 * CALIBRATION_BINS;

/// One number for each logit of some rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Logits {
    /// `[B, A]`.
    pub policy: Vec<f32>,
    /// `[B, 3]`: win, draw, loss of the player to move.
    pub value: Vec<f32>,
    /// `[B, E]`, empty where the network has no such head.
    pub ending: Vec<f32>,
    /// `[B, A]`, empty where the network has no such head.
    pub reply: Vec<f32>,
}

/// How much each loss counts besides the policy's, which counts 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossWeights {
    /// Of the value loss.
    pub value: f64,
    /// Of the loss of the ending.
    pub ending: f64,
    /// Of the loss of the opponent's next move.
    pub reply: f64,
}

impl From<&TrainParams> for LossWeights {
    fn from(params: &TrainParams) -> Self {
        let auxiliary = params.auxiliary.as_ref();
        let weight = |of: fn(&super::params::AuxiliaryParams) -> f64| auxiliary.map_or(0.0, of);
        Self {
            value: params.value_loss_weight,
            ending: weight(|auxiliary| auxiliary.ending),
            reply: weight(|auxiliary| auxiliary.reply),
        }
    }
}

impl Logits {
    /// What a network said, fetched from its device.
    ///
    /// # Errors
    /// When the device fails.
    pub fn of(heads: &TorchHeads) -> Result<Self, TchError> {
        let numbers = |head: &Tensor| {
            let head = head.f_detach()?.f_to_device(Device::Cpu)?.f_contiguous()?;
            let mut numbers = vec![0.0; head.numel()];
            head.f_copy_data(&mut numbers, head.numel())?;
            Ok::<_, TchError>(numbers)
        };
        let optional = |head: &Option<Tensor>| head.as_ref().map_or(Ok(Vec::new()), &numbers);
        Ok(Self {
            policy: numbers(&heads.policy)?,
            value: numbers(&heads.value)?,
            ending: optional(&heads.ending)?,
            reply: optional(&heads.reply)?,
        })
    }

    /// As many zeros.
    fn zeros(&self) -> Self {
        let zeros = |numbers: &Vec<f32>| vec![0.0; numbers.len()];
        Self {
            policy: zeros(&self.policy),
            value: zeros(&self.value),
            ending: zeros(&self.ending),
            reply: zeros(&self.reply),
        }
    }
}

/// The loss of some rows: policy loss plus the weighted others.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// Its derivatives by the logits.
    pub gradient: Logits,
    /// Weighted sums over the rows, for the report.
    pub sums: Sums,
}

/// Weighted sums over rows; those of several shards add up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sums([f64; SUMS]);

impl Default for Sums {
    fn default() -> Self {
        Self([0.0; SUMS])
    }
}

/// One bin of the value calibration: of the positions to which the network gave about so many expected points
/// (win + draw / 2), how many did the mover really get?
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CalibrationBin {
    /// Total weight of the positions in the bin.
    pub weight: f64,
    /// Mean of what the network expected, in [0, 1]; 0 in an empty bin.
    pub predicted: f64,
    /// Mean of the targets, in [0, 1]; 0 in an empty bin.
    pub observed: f64,
}

/// Losses and figures of one batch. Means are weighted; entropies in nats.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LossReport {
    /// Policy loss plus the weighted others.
    pub total: f64,
    /// Cross-entropy of the policy over legal moves; 0 when no row has a policy weight.
    pub policy: f64,
    /// Cross-entropy of the value.
    pub value: f64,
    /// Binary cross-entropy of a fact of the ending; 0 without that head.
    pub ending: f64,
    /// Cross-entropy of the opponent's next move; 0 without that head.
    pub reply: f64,
    /// Share of rows where the network's best move is a best move of the target.
    pub policy_accuracy: f64,
    /// Entropy of the network's policy.
    pub policy_entropy: f64,
    /// Entropy of the policy target: the least that the policy loss can be.
    pub target_entropy: f64,
    /// Kullback-Leibler divergence of the network's policy from the target: policy loss minus target entropy.
    pub policy_kl: f64,
    /// Share of rows where the network's likeliest outcome is a likeliest outcome of the target.
    pub value_accuracy: f64,
    /// Brier score (1950) of the value: squared error summed over the three outcomes, in [0, 2].
    pub value_brier: f64,
    /// Calibration of the expected points: bin `i` holds predictions from `i` to `i + 1` tenths.
    pub calibration: [CalibrationBin; CALIBRATION_BINS],
}

/// The loss of `rows`, as their share of the batch whose total weights are `totals`. It is not finite where logits of legal
/// moves or of the value are not.
///
/// # Panics
/// When the logits are not as many as the rows have targets.
pub fn loss(logits: &Logits, rows: BatchView<'_>, totals: Totals, weights: LossWeights) -> Loss {
    let targets = [rows.policy, rows.value, rows.auxiliary.ending, rows.auxiliary.reply].map(<[f32]>::len);
    let answers = [&logits.policy, &logits.value, &logits.ending, &logits.reply].map(Vec::len);
    assert_eq!(answers, targets, "one for each target");
    let actions = rows.policy.len() / rows.size.max(1);
    let endings = rows.auxiliary.ending.len() / rows.size.max(1);
    let mut gradient = logits.zeros();
    let mut sums = Sums::default();
    let mut head = Head::default();
    for row in 0..rows.size {
        let weight = f64::from(rows.weight[row]);
        let policy_weight = weight * f64::from(rows.policy_weight[row]);

        let span = row * actions..(row + 1) * actions;
        let legal = rows.legal[span.clone()].iter().zip(span).filter(|(legal, _)| **legal != 0.0).map(|(_, at)| at);
        let policy = head.judge(legal, &logits.policy, rows.policy);
        head.add_gradient(policy_weight * inverse(totals.policy), &mut gradient.policy);
        let value = head.judge(row * 3..(row + 1) * 3, &logits.value, rows.value);
        head.add_gradient(weights.value * weight * inverse(totals.value), &mut gradient.value);
        let points = |of: &dyn Fn(&Slot) -> f64| of(&head.slots[0]) + of(&head.slots[1]) / 2.0;
        let (predicted, observed) = (points(&|slot| slot.p), points(&|slot| slot.target));

        let (mut ending, mut reply) = (0.0, 0.0);
        if endings > 0 {
            let counts = weight * f64::from(rows.auxiliary.ending_weight[row]);
            let scale = weights.ending * counts * inverse(totals.ending) / endings as f64;
            for at in row * endings..(row + 1) * endings {
                let (logit, target) = (f64::from(logits.ending[at]), f64::from(rows.auxiliary.ending[at]));
                ending += counts * binary_cross_entropy(logit, target) / endings as f64;
                gradient.ending[at] = (scale * (sigmoid(logit) - target)) as f32;
            }
        }
        if !rows.auxiliary.reply.is_empty() {
            let counts = weight * f64::from(rows.auxiliary.reply_weight[row]);
            let judged = head.judge(row * actions..(row + 1) * actions, &logits.reply, rows.auxiliary.reply);
            head.add_gradient(weights.reply * counts * inverse(totals.reply), &mut gradient.reply);
            reply = counts * judged.cross_entropy;
        }

        let figures = [
            policy_weight * policy.cross_entropy,
            weight * value.cross_entropy,
            policy_weight * policy.right,
            policy_weight * policy.entropy,
            policy_weight * policy.target_entropy,
            weight * value.right,
            weight * value.squares,
            ending,
            reply,
        ];
        sums.0.iter_mut().zip(figures).for_each(|(sum, figure)| *sum += figure);
        let bin = ((predicted * CALIBRATION_BINS as f64) as usize).min(CALIBRATION_BINS - 1);
        for (k, figure) in [1.0, predicted, observed].into_iter().enumerate() {
            sums.0[HEAD + k * CALIBRATION_BINS + bin] += weight * figure;
        }
    }
    Loss { gradient, sums }
}

/// A logit of one row with its target.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Its place in the batch.
    at: usize,
    target: f64,
    logit: f64,
    /// Its share in the softmax.
    p: f64,
}

/// One head's answer on one row.
#[derive(Default)]
struct Head {
    slots: Vec<Slot>,
}

/// How that answer compares with the target.
#[derive(Default)]
struct Judged {
    cross_entropy: f64,
    entropy: f64,
    target_entropy: f64,
    /// 1 where the likeliest slot is one of the likeliest by the target, else 0.
    right: f64,
    /// Sum of squared errors.
    squares: f64,
}

impl Head {
    /// The softmax over the logits at `places`, against the targets there.
    fn judge(&mut self, places: impl Iterator<Item = usize>, logits: &[f32], targets: &[f32]) -> Judged {
        self.slots.clear();
        let slot = |at: usize| Slot { at, target: targets[at].into(), logit: logits[at].into(), p: 0.0 };
        self.slots.extend(places.map(slot));
        let Some(best) = self.slots.iter().max_by(|a, b| a.logit.total_cmp(&b.logit)).copied() else {
            return Judged::default();
        };
        let mut total = 0.0;
        for slot in &mut self.slots {
            slot.p = (slot.logit - best.logit).exp();
            total += slot.p;
        }
        let mut judged = Judged::default();
        let mut most = 0f64;
        for slot in &mut self.slots {
            slot.p /= total;
            let log = slot.logit - best.logit - total.ln();
            // 0 log 0 is 0.
            let term = |share: f64, log: f64| if share == 0.0 { 0.0 } else { -share * log };
            judged.cross_entropy += term(slot.target, log);
            judged.entropy += term(slot.p, log);
            judged.target_entropy += term(slot.target, slot.target.ln());
            judged.squares += (slot.p - slot.target) * (slot.p - slot.target);
            most = most.max(slot.target);
        }
        judged.right = f64::from(u8::from(best.target >= most));
        judged
    }

    /// The derivatives of the cross-entropy by the logits, times `scale`: softmax minus target.
    fn add_gradient(&self, scale: f64, gradient: &mut [f32]) {
        for slot in &self.slots {
            gradient[slot.at] = (scale * (slot.p - slot.target)) as f32;
        }
    }
}

impl Sums {
    /// Adds those of other rows.
    pub fn add(&mut self, other: &Sums) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, term)| *sum += term);
    }

    /// The report on a batch of these total weights.
    pub fn report(&self, totals: Totals, weights: LossWeights) -> LossReport {
        let [policy, value, policy_right, entropy, target_entropy, value_right, brier, ending, reply] =
            std::array::from_fn(|i| self.0[i]);
        let (ending, reply) = (ending * inverse(totals.ending), reply * inverse(totals.reply));
        let (of_policy, of_value) = (inverse(totals.policy), inverse(totals.value));
        let calibration = std::array::from_fn(|bin| {
            let [weight, predicted, observed] = std::array::from_fn(|k| self.0[HEAD + k * CALIBRATION_BINS + bin]);
            CalibrationBin { weight, predicted: predicted * inverse(weight), observed: observed * inverse(weight) }
        });
        LossReport {
            total: policy * of_policy
                + weights.value * value * of_value
                + weights.ending * ending
                + weights.reply * reply,
            policy: policy * of_policy,
            value: value * of_value,
            ending,
            reply,
            policy_accuracy: policy_right * of_policy,
            policy_entropy: entropy * of_policy,
            target_entropy: target_entropy * of_policy,
            policy_kl: (policy - target_entropy) * of_policy,
            value_accuracy: value_right * of_value,
            value_brier: brier * of_value,
            calibration,
        }
    }
}

/// 1 / (1 + exp(-x)).
fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// - target log sigmoid(x) - (1 - target) log (1 - sigmoid(x)), without overflow.
fn binary_cross_entropy(x: f64, target: f64) -> f64 {
    x.max(0.0) - x * target + (-x.abs()).exp().ln_1p()
}

/// 1 / `total`, or 0 where nothing counts.
fn inverse(total: f64) -> f64 {
    if total > 0.0 { total.recip() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::batch::{AuxiliaryView, BatchView};
    use crate::train::testing;
    use crate::util::rng::Stream;

    const ROWS: usize = 6;
    const WEIGHTS: LossWeights = LossWeights { value: 0.7, ending: 0.4, reply: 0.3 };

    /// Random logits, targets and weights; one row counts nothing for the policy, one nothing at all.
    struct Case {
        spec: crate::net::NetSpec,
        batch: testing::OwnedBatch,
        policy: Vec<f32>,
        value: Vec<f32>,
        ending: Vec<f32>,
        reply: Vec<f32>,
    }

    impl Case {
        fn new() -> Self {
            let spec = testing::with_auxiliary(&testing::small_mlp());
            let mut batch = testing::batch(&spec, ROWS, 3);
            batch.ending_weight[1] = 0.0;
            batch.reply_weight[4] = 0.5;
            batch.policy_weight = vec![1.0, 0.5, 0.0, 1.0, 1.0, 0.25];
            batch.weight = vec![1.0, 2.0, 1.0, 0.0, 0.5, 3.0];
            let actions = spec.action_count();
            batch.policy[2 * actions..3 * actions].fill(0.0);
            let mut random = Stream::test(4);
            let mut normal = |n: usize| (0..n).map(|_| 2.0 * random.normal() as f32).collect::<Vec<_>>();
            let (policy, value) = (normal(ROWS * actions), normal(ROWS * 3));
            let (ending, reply) = (normal(ROWS * spec.ending_count()), normal(ROWS * actions));
            Self { spec, batch, policy, value, ending, reply }
        }

        fn logits(&self, rows: std::ops::Range<usize>) -> Logits {
            let part = |numbers: &[f32]| {
                let per_row = numbers.len() / ROWS;
                numbers[rows.start * per_row..rows.end * per_row].to_vec()
            };
            Logits {
                policy: part(&self.policy),
                value: part(&self.value),
                ending: part(&self.ending),
                reply: part(&self.reply),
            }
        }

        fn run(&self, batch: BatchView<'_>, rows: std::ops::Range<usize>) -> Loss {
            loss(&self.logits(rows.clone()), batch.rows(rows), Totals::of(&batch), WEIGHTS)
        }

        /// Probabilities over legal moves, and of the value, row by row, in double precision.
        fn softmaxes(&self) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
            let softmax = |logits: &[f32], legal: &[f32]| {
                let terms: Vec<f64> =
                    logits.iter().zip(legal).map(|(&x, &l)| if l > 0.0 { f64::from(x).exp() } else { 0.0 }).collect();
                let total: f64 = terms.iter().sum();
                terms.into_iter().map(|t| t / total).collect::<Vec<_>>()
            };
            let actions = self.spec.action_count();
            let policy = self.policy.chunks(actions).zip(self.batch.legal.chunks(actions));
            let policy = policy.map(|(x, l)| softmax(x, l)).collect();
            (policy, self.value.chunks(3).map(|x| softmax(x, &[1.0; 3])).collect())
        }
    }

    fn log_sum(target: &[f32], p: &[f64]) -> f64 {
        target.iter().zip(p).filter(|(t, _)| **t > 0.0).map(|(&t, &p)| -f64::from(t) * p.ln()).sum()
    }

    fn near(found: f64, expected: f64, what: &str) {
        assert!((found - expected).abs() < 2e-6 * (1.0 + expected.abs()), "{what}: {found} instead of {expected}");
    }

    #[test]
    fn every_figure_equals_the_one_worked_out_in_double_precision() {
        let case = Case::new();
        let view = case.batch.view();
        let report = case.run(view, 0..ROWS).sums.report(Totals::of(&view), WEIGHTS);
        let (policies, values) = case.softmaxes();
        let actions = case.spec.action_count();
        let mut want = LossReport::default();
        let (mut of_policy, mut of_value, mut of_ending, mut of_reply) = (0.0, 0.0, 0.0, 0.0);
        for row in 0..ROWS {
            let w = f64::from(view.weight[row]);
            let pw = w * f64::from(view.policy_weight[row]);
            let (target, p) = (&view.policy[row * actions..(row + 1) * actions], &policies[row]);
            let (wdl, v) = (&view.value[row * 3..(row + 1) * 3], &values[row]);
            let own: Vec<f32> = p.iter().map(|&x| x as f32).collect();
            let t64: Vec<f64> = target.iter().map(|&t| f64::from(t)).collect();
            let best = |xs: &[f64]| (0..xs.len()).max_by(|&a, &b| xs[a].total_cmp(&xs[b])).unwrap();
            of_policy += pw;
            of_value += w;
            want.policy += pw * log_sum(target, p);
            want.value += w * log_sum(wdl, v);
            want.policy_entropy += pw * log_sum(&own, p);
            want.target_entropy += pw * log_sum(target, &t64);
            want.policy_accuracy += pw * f64::from(u8::from(best(p) == best(&t64)));
            let w64: Vec<f64> = wdl.iter().map(|&t| f64::from(t)).collect();
            want.value_accuracy += w * f64::from(u8::from(best(v) == best(&w64)));
            want.value_brier += w * w64.iter().zip(v).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
            let bin = &mut want.calibration[((v[0] + v[1] / 2.0) * 10.0) as usize];
            bin.weight += w;
            bin.predicted += w * (v[0] + v[1] / 2.0);
            bin.observed += w * (w64[0] + w64[1] / 2.0);

            let facts = case.spec.ending_count();
            let span = row * facts..(row + 1) * facts;
            let (w_ending, w_reply) = (view.auxiliary.ending_weight[row], view.auxiliary.reply_weight[row]);
            for (&x, &fact) in case.ending[span.clone()].iter().zip(&view.auxiliary.ending[span]) {
                let p = 1.0 / (1.0 + f64::from(-x).exp());
                let likelihood = if fact > 0.5 { p } else { 1.0 - p };
                want.ending -= w * f64::from(w_ending) * likelihood.ln() / facts as f64;
            }
            let span = row * actions..(row + 1) * actions;
            let terms: Vec<f64> = case.reply[span.clone()].iter().map(|&x| f64::from(x).exp()).collect();
            let shares: Vec<f64> = terms.iter().map(|term| term / terms.iter().sum::<f64>()).collect();
            want.reply += w * f64::from(w_reply) * log_sum(&view.auxiliary.reply[span], &shares);
            of_ending += w * f64::from(w_ending);
            of_reply += w * f64::from(w_reply);
        }
        near(report.ending, want.ending / of_ending, "ending");
        near(report.reply, want.reply / of_reply, "reply");
        near(report.policy, want.policy / of_policy, "policy");
        near(report.value, want.value / of_value, "value");
        let others = 0.7 * want.value / of_value + 0.4 * want.ending / of_ending + 0.3 * want.reply / of_reply;
        near(report.total, want.policy / of_policy + others, "total");
        near(report.policy_entropy, want.policy_entropy / of_policy, "policy entropy");
        near(report.target_entropy, want.target_entropy / of_policy, "target entropy");
        near(report.policy_kl, (want.policy - want.target_entropy) / of_policy, "kl");
        near(report.policy_accuracy, want.policy_accuracy / of_policy, "policy accuracy");
        near(report.value_accuracy, want.value_accuracy / of_value, "value accuracy");
        near(report.value_brier, want.value_brier / of_value, "brier");
        for (found, want) in report.calibration.iter().zip(want.calibration) {
            near(found.weight, want.weight, "bin weight");
            if want.weight > 0.0 {
                near(found.predicted, want.predicted / want.weight, "bin predicted");
                near(found.observed, want.observed / want.weight, "bin observed");
            }
        }
        assert!(report.policy_kl > 0.0 && report.calibration.iter().filter(|b| b.weight > 0.0).count() > 1);
    }

    #[test]
    fn losses_worked_out_on_paper() {
        // Three legal moves with logits 0, 0 and ln 2: probabilities 1/4, 1/4, 1/2. The illegal one is huge.
        let view = BatchView {
            size: 1,
            planes: &[0.0],
            legal: &[1.0, 0.0, 1.0, 1.0],
            policy: &[0.5, 0.0, 0.5, 0.0],
            policy_weight: &[1.0],
            value: &[0.0, 1.0, 0.0],
            weight: &[1.0],
            auxiliary: AuxiliaryView {
                ending: &[1.0, 0.0],
                ending_weight: &[1.0],
                reply: &[0.0, 0.0, 1.0, 0.0],
                reply_weight: &[1.0],
            },
        };
        // One fact at 1/2, the other at 3/4; four replies alike.
        let (ending, reply) = (vec![0.0, 3f32.ln()], vec![2.0; 4]);
        let logits = Logits { policy: vec![0.0, 50.0, 0.0, 2f32.ln()], value: vec![1.0; 3], ending, reply };
        let weights = LossWeights { value: 2.0, ending: 10.0, reply: 5.0 };
        let totals = Totals::of(&view);
        let report = loss(&logits, view, totals, weights).sums.report(totals, weights);
        near(report.policy, 4f64.ln(), "policy");
        near(report.value, 3f64.ln(), "value");
        near(report.ending, (2f64.ln() + 4f64.ln()) / 2.0, "ending");
        near(report.reply, 4f64.ln(), "reply");
        near(report.total, 6.0 * 4f64.ln() + 2.0 * 3f64.ln() + 15.0 * 2f64.ln(), "total");
        near(report.target_entropy, 2f64.ln(), "target entropy");
        near(report.policy_entropy, 1.5 * 2f64.ln(), "policy entropy");
        assert_eq!(report.policy_accuracy, 0.0);
        near(report.value_brier, 6.0 / 9.0, "brier");
        // Exactly on a border of bins, so that rounding decides which one it is.
        near(report.calibration.iter().map(|bin| bin.weight * bin.predicted).sum(), 0.5, "calibration");
    }

    #[test]
    fn gradients_are_softmax_minus_target_and_equal_finite_differences() {
        let mut case = Case::new();
        let owned = Case::new().batch;
        let view = owned.view();
        let totals = Totals::of(&view);
        let Logits { policy, value, ending, reply } = case.run(view, 0..ROWS).gradient;

        let (policies, values) = case.softmaxes();
        let actions = case.spec.action_count();
        for row in 0..ROWS {
            let w = f64::from(view.weight[row]);
            let pw = w * f64::from(view.policy_weight[row]);
            for (a, p) in policies[row].iter().enumerate() {
                let i = row * actions + a;
                let expected = pw / totals.policy * (p - f64::from(view.policy[i]));
                assert!((f64::from(policy[i]) - expected).abs() < 1e-6, "policy {row} {a}");
                assert!(view.legal[i] > 0.0 || policy[i] == 0.0, "an illegal move has a gradient");
            }
            for (k, p) in values[row].iter().enumerate() {
                let i = row * 3 + k;
                let expected = 0.7 * w / totals.value * (p - f64::from(view.value[i]));
                assert!((f64::from(value[i]) - expected).abs() < 1e-6, "value {row} {k}");
            }
        }

        let total = |case: &Case| case.run(view, 0..ROWS).sums.report(totals, WEIGHTS).total;
        let step = 0.02f32;
        let slope = |case: &mut Case, logits: fn(&mut Case) -> &mut Vec<f32>, i: usize| {
            let kept = logits(case)[i];
            logits(case)[i] = kept + step;
            let above = total(case);
            logits(case)[i] = kept - step;
            let below = total(case);
            logits(case)[i] = kept;
            (above - below) / (2.0 * f64::from(step))
        };
        for (i, &found) in policy.iter().enumerate().step_by(7) {
            let slope = slope(&mut case, |case| &mut case.policy, i);
            assert!((slope - f64::from(found)).abs() < 2e-4, "policy {i}: {slope} or {found}");
        }
        for (i, &found) in value.iter().enumerate() {
            let slope = slope(&mut case, |case| &mut case.value, i);
            assert!((slope - f64::from(found)).abs() < 2e-4, "value {i}: {slope} or {found}");
        }
        for (i, &found) in ending.iter().enumerate().step_by(5) {
            let slope = slope(&mut case, |case| &mut case.ending, i);
            assert!((slope - f64::from(found)).abs() < 2e-4, "ending {i}: {slope} or {found}");
        }
        for (i, &found) in reply.iter().enumerate().step_by(7) {
            let slope = slope(&mut case, |case| &mut case.reply, i);
            assert!((slope - f64::from(found)).abs() < 2e-4, "reply {i}: {slope} or {found}");
        }
    }

    #[test]
    fn shards_add_up_to_the_whole() {
        let case = Case::new();
        let view = case.batch.view();
        let totals = Totals::of(&view);
        let whole = case.run(view, 0..ROWS).sums.report(totals, WEIGHTS);
        let mut sums = Sums::default();
        for rows in [0..2, 2..5, 5..ROWS] {
            sums.add(&case.run(view, rows).sums);
        }
        let parts = sums.report(totals, WEIGHTS);
        near(parts.total, whole.total, "total");
        near(parts.value_brier, whole.value_brier, "brier");
        near(parts.policy_entropy, whole.policy_entropy, "entropy");
    }

    #[test]
    fn logits_that_are_not_finite_are_not_hidden() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut case = Case::new();
            let legal = (0..case.policy.len()).find(|&at| case.batch.policy[at] > 0.0).unwrap();
            case.policy[legal] = bad;
            case.value[0] = bad;
            let view = case.batch.view();
            let report = case.run(view, 0..ROWS).sums.report(Totals::of(&view), WEIGHTS);
            assert!(!report.policy.is_finite() && !report.value.is_finite(), "{bad}");
        }
    }

    #[test]
    fn a_batch_without_policy_targets_has_no_policy_loss_or_gradient() {
        let case = Case::new();
        let zeros = vec![0.0; case.batch.policy.len()];
        let view = BatchView { policy_weight: &[0.0; ROWS], policy: &zeros, ..case.batch.view() };
        let loss = case.run(view, 0..ROWS);
        assert!(loss.gradient.policy.iter().all(|&x| x == 0.0));
        let report = loss.sums.report(Totals::of(&view), WEIGHTS);
        assert_eq!((report.policy, report.policy_kl), (0.0, 0.0));
        assert!(report.value > 0.0);
    }
}
