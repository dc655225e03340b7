//! The two losses, and figures that tell how good the network is.
//!
//! Policy: cross-entropy between the target and the softmax over *legal* moves only. Value: cross-entropy between
//! the target (win, draw, loss) and the softmax of its three logits. Both are weighted means, in nats.

use tch::{Kind, TchError, Tensor};

use crate::net::TorchHeads;
use crate::train::batch::{Targets, Totals};

/// Bins of the value calibration, over expected points in [0, 1].
pub const CALIBRATION_BINS: usize = 10;

/// Stands for minus infinity in the logits of illegal moves: `exp` of it is 0, yet 0 times it is not NaN.
const NEVER: f64 = -1e30;

/// Plain sums before the calibration begins.
const HEAD: usize = 7;
/// All sums of [`Sums`].
const SUMS: usize = HEAD + 3 * CALIBRATION_BINS;

/// The loss of some rows with its autograd graph, and the sums for the report.
#[derive(Debug)]
pub struct Loss {
    /// Policy loss plus weighted value loss, one number; gradients flow from here.
    pub total: Tensor,
    /// Weighted sums over the rows, `[SUMS]`, without graph, still on the device.
    sums: Tensor,
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

/// The losses of some rows, as their share of the batch whose total weights are `totals`.
///
/// # Errors
/// When shapes do not fit or the device is out of memory.
pub fn loss(heads: &TorchHeads, targets: &Targets, totals: Totals, value_weight: f64) -> Result<Loss, TchError> {
    let log_policy = heads.policy.f_masked_fill(&targets.illegal, NEVER)?.f_log_softmax(-1, Kind::Float)?;
    let log_value = heads.value.f_log_softmax(-1, Kind::Float)?;
    let policy_weight = targets.weight.f_mul(&targets.policy_weight)?;
    let policy_sum = weighted_sum(&cross_entropy(&log_policy, &targets.policy)?, &policy_weight)?;
    let value_sum = weighted_sum(&cross_entropy(&log_value, &targets.value)?, &targets.weight)?;
    let policy = policy_sum.f_mul_scalar(inverse(totals.policy))?;
    let total = policy.f_add(&value_sum.f_mul_scalar(value_weight * inverse(totals.value))?)?;

    let _guard = tch::no_grad_guard();
    let (log_policy, log_value) = (log_policy.f_detach()?, log_value.f_detach()?);
    let value = log_value.f_exp()?;
    let head = [
        policy_sum.f_detach()?,
        value_sum.f_detach()?,
        weighted_sum(&finds_a_best(&log_policy, &targets.policy)?, &policy_weight)?,
        weighted_sum(&cross_entropy(&log_policy, &log_policy.f_exp()?)?, &policy_weight)?,
        weighted_sum(&entropy(&targets.policy)?, &policy_weight)?,
        weighted_sum(&finds_a_best(&log_value, &targets.value)?, &targets.weight)?,
        weighted_sum(&value.f_sub(&targets.value)?.f_square()?.f_sum_dim(-1)?, &targets.weight)?,
    ];
    let head = Tensor::f_stack(&head, 0)?;
    let sums = Tensor::f_cat(&[head, calibration(&value, targets)?.f_view([-1])?], 0)?;
    Ok(Loss { total, sums })
}

impl Loss {
    /// The sums, fetched from the device.
    ///
    /// # Errors
    /// When the device fails.
    pub fn sums(&self) -> Result<Sums, TchError> {
        let numbers = Vec::<f64>::try_from(&self.sums.f_to_kind(Kind::Double)?.f_to_device(tch::Device::Cpu)?)?;
        let mut sums = Sums::default();
        sums.0.copy_from_slice(&numbers);
        Ok(sums)
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

/// `-sum_k target_k log_k` of each row, `[B]`; targets are 0 where the logarithm is that of an illegal move.
fn cross_entropy(log: &Tensor, target: &Tensor) -> Result<Tensor, TchError> {
    log.f_mul(target)?.f_sum_dim(-1)?.f_neg()
}

/// `-sum_k p_k log p_k` of each row, `[B]`, where 0 log 0 is 0.
fn entropy(p: &Tensor) -> Result<Tensor, TchError> {
    p.f_mul(&p.f_clamp_min(1e-30)?.f_log()?)?.f_sum_dim(-1)?.f_neg()
}

fn weighted_sum(rows: &Tensor, weight: &Tensor) -> Result<Tensor, TchError> {
    rows.f_mul(weight)?.f_sum(Kind::Float)
}

/// 1 for each row where the largest score is at a place where the target is largest too, else 0, `[B]`.
fn finds_a_best(scores: &Tensor, target: &Tensor) -> Result<Tensor, TchError> {
    let found = target.f_gather(-1, &scores.f_argmax(-1, true)?, false)?.f_squeeze_dim(-1)?;
    found.f_ge_tensor(&target.f_amax([-1i64], false)?)?.f_to_kind(Kind::Float)
}

/// Sums of weight, weighted predicted points and weighted target points by bin of predicted points, `[3, bins]`.
/// A product of matrices, because scattered additions are not deterministic on GPUs.
fn calibration(value: &Tensor, targets: &Targets) -> Result<Tensor, TchError> {
    let points = |wdl: &Tensor| wdl.f_select(1, 0)?.f_add(&wdl.f_select(1, 1)?.f_mul_scalar(0.5)?);
    let (predicted, observed) = (points(value)?, points(&targets.value)?);
    let bins = CALIBRATION_BINS as i64;
    let bin = predicted.f_mul_scalar(bins)?.f_floor()?.f_clamp(0, bins - 1)?;
    let numbers = Tensor::f_arange(bins, (Kind::Float, predicted.device()))?;
    let member = bin.f_unsqueeze(1)?.f_eq_tensor(&numbers)?.f_to_kind(Kind::Float)?;
    let weight = &targets.weight;
    let rows = Tensor::f_stack(&[weight.shallow_clone(), predicted.f_mul(weight)?, observed.f_mul(weight)?], 0)?;
    rows.f_matmul(&member)
}

trait SumDim {
    fn f_sum_dim(&self, dim: i64) -> Result<Tensor, TchError>;
}

impl SumDim for Tensor {
    fn f_sum_dim(&self, dim: i64) -> Result<Tensor, TchError> {
        self.f_sum_dim_intlist([dim].as_slice(), false, Kind::Float)
    }
}

#[cfg(test)]
mod tests {
    use tch::Device;

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

        fn heads(&self, rows: std::ops::Range<usize>) -> TorchHeads {
            let tensor = |slice: &[f32]| {
                let per_row = slice.len() / ROWS;
                let part = Tensor::from_slice(&slice[rows.start * per_row..rows.end * per_row]);
                part.view([rows.len() as i64, -1]).set_requires_grad(true)
            };
            TorchHeads { policy: tensor(&self.policy), value: tensor(&self.value) }
        }

        fn run(&self, batch: BatchView<'_>, rows: std::ops::Range<usize>) -> (TorchHeads, Loss) {
            let heads = self.heads(rows.clone());
            let (_, targets) = batch.rows(rows).to_device(&self.spec, Device::Cpu).unwrap();
            let loss = loss(&heads, &targets, Totals::of(&batch), 0.7).unwrap();
            (heads, loss)
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
        let (_, loss) = case.run(view, 0..ROWS);
        let report = loss.sums().unwrap().report(Totals::of(&view), 0.7);
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
        near(loss.total.double_value(&[]), report.total, "total with graph");
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
        let spec = crate::net::NetSpec {
            input: crate::game::PlaneShape { channels: 1, height: 1, width: 1 },
            policy: crate::game::PolicyShape { planes: 0, flat: 4 },
            architecture: crate::net::Architecture::default(),
        };
        let view = BatchView {
            size: 1,
            planes: &[0.0],
            legal: &[1.0, 0.0, 1.0, 1.0],
            policy: &[0.5, 0.0, 0.5, 0.0],
            policy_weight: &[1.0],
            value: &[0.0, 1.0, 0.0],
            weight: &[1.0],
        };
        let heads = TorchHeads {
            policy: Tensor::from_slice(&[0.0f32, 50.0, 0.0, 2f32.ln()]).view([1, 4]),
            value: Tensor::from_slice(&[1.0f32, 1.0, 1.0]).view([1, 3]),
        };
        let (_, targets) = view.to_device(&spec, Device::Cpu).unwrap();
        let totals = Totals::of(&view);
        let report = loss(&heads, &targets, totals, 2.0).unwrap().sums().unwrap().report(totals, 2.0);
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
        let (heads, loss) = case.run(view, 0..ROWS);
        loss.total.backward();
        let gradient = crate::train::layout::to_vec;
        let (policy, value) = (gradient(&heads.policy.grad()).unwrap(), gradient(&heads.value.grad()).unwrap());

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

        let total = |case: &Case| case.run(view, 0..ROWS).1.sums().unwrap().report(totals, 0.7).total;
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
        let whole = case.run(view, 0..ROWS).1.sums().unwrap().report(totals, 0.7);
        let mut sums = Sums::default();
        let mut total = 0.0;
        for rows in [0..2, 2..5, 5..ROWS] {
            let (_, part) = case.run(view, rows);
            total += part.total.double_value(&[]);
            sums.add(&part.sums().unwrap());
        }
        let parts = sums.report(totals, 0.7);
        near(parts.total, whole.total, "total");
        near(total, whole.total, "total with graph");
        near(parts.value_brier, whole.value_brier, "brier");
        near(parts.policy_entropy, whole.policy_entropy, "entropy");
    }

    #[test]
    fn a_batch_without_policy_targets_has_no_policy_loss_or_gradient() {
        let case = Case::new();
        let zeros = vec![0.0; case.batch.policy.len()];
        let view = BatchView { policy_weight: &[0.0; ROWS], policy: &zeros, ..case.batch.view() };
        let (heads, loss) = case.run(view, 0..ROWS);
        loss.total.backward();
        assert_eq!(heads.policy.grad().abs().max().double_value(&[]), 0.0);
        let report = loss.sums().unwrap().report(Totals::of(&view), 0.7);
        assert_eq!((report.policy, report.policy_kl), (0.0, 0.0));
        assert!(report.value > 0.0);
    }
}
