//! The two losses with their gradients, and figures that tell how good the network is.
//!
//! Policy: cross-entropy between the target and the softmax over *legal* moves only. Value: cross-entropy between
//! the target (win, draw, loss) and the softmax of its three logits. Both are weighted means, in nats.
//!
//! They are worked out here in one pass over the rows, in double precision, and libtorch is handed their gradients. As
//! operations of its own they would be some eighty small ones, which take longer than a small network's matrices.

use tch::{Device, TchError, Tensor};

use crate::net::TorchHeads;
use crate::train::batch::{BatchView, Totals};

/// Bins of the value calibration, over expected points in [0, 1].
pub const CALIBRATION_BINS: usize = 10;

/// Plain sums before the calibration begins.
const HEAD: usize = 7;
/// All sums of [`Sums`].
const SUMS: usize = HEAD + 3 * CALIBRATION_BINS;

/// One number for each logit of some rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Logits {
    /// `[B, A]`.
    pub policy: Vec<f32>,
    /// `[B, 3]`: win, draw, loss of the player to move.
    pub value: Vec<f32>,
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
        Ok(Self { policy: numbers(&heads.policy)?, value: numbers(&heads.value)? })
    }
}

/// The loss of some rows: policy loss plus weighted value loss.
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
    /// Policy loss plus weighted value loss.
    pub total: f64,
    /// Cross-entropy of the policy over legal moves; 0 when no row has a policy weight.
    pub policy: f64,
    /// Cross-entropy of the value.
    pub value: f64,
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
pub fn loss(logits: &Logits, rows: BatchView<'_>, totals: Totals, value_weight: f64) -> Loss {
    assert_eq!((logits.policy.len(), logits.value.len()), (rows.policy.len(), rows.value.len()), "one for each target");
    let actions = rows.policy.len() / rows.size.max(1);
    let mut gradient = Logits { policy: vec![0.0; rows.policy.len()], value: vec![0.0; rows.value.len()] };
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
        head.add_gradient(value_weight * weight * inverse(totals.value), &mut gradient.value);

        let figures = [
            policy_weight * policy.cross_entropy,
            weight * value.cross_entropy,
            policy_weight * policy.right,
            policy_weight * policy.entropy,
            policy_weight * policy.target_entropy,
            weight * value.right,
            weight * value.squares,
        ];
        sums.0.iter_mut().zip(figures).for_each(|(sum, figure)| *sum += figure);
        let points = |of: &dyn Fn(&Slot) -> f64| of(&head.slots[0]) + of(&head.slots[1]) / 2.0;
        let (predicted, observed) = (points(&|slot| slot.p), points(&|slot| slot.target));
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
    pub fn report(&self, totals: Totals, value_weight: f64) -> LossReport {
        let [policy, value, policy_right, entropy, target_entropy, value_right, brier] =
            std::array::from_fn(|i| self.0[i]);
        let (of_policy, of_value) = (inverse(totals.policy), inverse(totals.value));
        let calibration = std::array::from_fn(|bin| {
            let [weight, predicted, observed] = std::array::from_fn(|k| self.0[HEAD + k * CALIBRATION_BINS + bin]);
            CalibrationBin { weight, predicted: predicted * inverse(weight), observed: observed * inverse(weight) }
        });
        LossReport {
            total: policy * of_policy + value_weight * value * of_value,
            policy: policy * of_policy,
            value: value * of_value,
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

/// 1 / `total`, or 0 where nothing counts.
fn inverse(total: f64) -> f64 {
    if total > 0.0 { total.recip() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::batch::BatchView;
    use crate::train::testing;
    use crate::util::rng::Stream;

    const ROWS: usize = 6;

    /// Random logits, targets and weights; one row counts nothing for the policy, one nothing at all.
    struct Case {
        spec: crate::net::NetSpec,
        batch: testing::OwnedBatch,
        policy: Vec<f32>,
        value: Vec<f32>,
    }

    impl Case {
        fn new() -> Self {
            let spec = testing::small_mlp();
            let mut batch = testing::batch(&spec, ROWS, 3);
            batch.policy_weight = vec![1.0, 0.5, 0.0, 1.0, 1.0, 0.25];
            batch.weight = vec![1.0, 2.0, 1.0, 0.0, 0.5, 3.0];
            let actions = spec.action_count();
            batch.policy[2 * actions..3 * actions].fill(0.0);
            let mut random = Stream::test(4);
            let mut normal = |n: usize| (0..n).map(|_| 2.0 * random.normal() as f32).collect::<Vec<_>>();
            let (policy, value) = (normal(ROWS * actions), normal(ROWS * 3));
            Self { spec, batch, policy, value }
        }

        fn logits(&self, rows: std::ops::Range<usize>) -> Logits {
            let part = |numbers: &[f32]| {
                let per_row = numbers.len() / ROWS;
                numbers[rows.start * per_row..rows.end * per_row].to_vec()
            };
            Logits { policy: part(&self.policy), value: part(&self.value) }
        }

        fn run(&self, batch: BatchView<'_>, rows: std::ops::Range<usize>) -> Loss {
            loss(&self.logits(rows.clone()), batch.rows(rows), Totals::of(&batch), 0.7)
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
        let report = case.run(view, 0..ROWS).sums.report(Totals::of(&view), 0.7);
        let (policies, values) = case.softmaxes();
        let actions = case.spec.action_count();
        let mut want = LossReport::default();
        let (mut of_policy, mut of_value) = (0.0, 0.0);
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
        }
        near(report.policy, want.policy / of_policy, "policy");
        near(report.value, want.value / of_value, "value");
        near(report.total, want.policy / of_policy + 0.7 * want.value / of_value, "total");
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
        };
        let logits = Logits { policy: vec![0.0, 50.0, 0.0, 2f32.ln()], value: vec![1.0; 3] };
        let totals = Totals::of(&view);
        let report = loss(&logits, view, totals, 2.0).sums.report(totals, 2.0);
        near(report.policy, 4f64.ln(), "policy");
        near(report.value, 3f64.ln(), "value");
        near(report.total, 4f64.ln() + 2.0 * 3f64.ln(), "total");
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
        let Logits { policy, value } = case.run(view, 0..ROWS).gradient;

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

        let total = |case: &Case| case.run(view, 0..ROWS).sums.report(totals, 0.7).total;
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
    }

    #[test]
    fn shards_add_up_to_the_whole() {
        let case = Case::new();
        let view = case.batch.view();
        let totals = Totals::of(&view);
        let whole = case.run(view, 0..ROWS).sums.report(totals, 0.7);
        let mut sums = Sums::default();
        for rows in [0..2, 2..5, 5..ROWS] {
            sums.add(&case.run(view, rows).sums);
        }
        let parts = sums.report(totals, 0.7);
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
            let report = case.run(view, 0..ROWS).sums.report(Totals::of(&view), 0.7);
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
        let report = loss.sums.report(Totals::of(&view), 0.7);
        assert_eq!((report.policy, report.policy_kl), (0.0, 0.0));
        assert!(report.value > 0.0);
    }
}
