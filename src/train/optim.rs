//! AdamW and SGD with Nesterov momentum on one flat vector, with a state that can be saved.
//!
//! `tch`'s own optimizers can neither give away nor take back their state, so a run could not be resumed exactly.

use tch::{Device, Kind, TchError, Tensor};

use crate::train::crew::Crew;
use crate::train::layout::Layout;
use crate::train::params::OptimizerParams;

/// An optimizer for the parameters of a [`Layout`], with its moments.
#[derive(Debug)]
pub struct Optimizer {
    rule: OptimizerParams,
    weight_decay: f64,
    decayed: i64,
    /// Names and numbers, each a flat float32 vector of all parameters.
    moments: Vec<(&'static str, Tensor)>,
    steps: u64,
}

impl Optimizer {
    /// An optimizer at the start of a run: all moments are zero.
    ///
    /// # Errors
    /// When the device is out of memory.
    pub fn new(rule: OptimizerParams, weight_decay: f64, layout: &Layout, device: Device) -> Result<Self, TchError> {
        let mut moments = Vec::new();
        for &name in rule.moment_names() {
            moments.push((name, Tensor::f_zeros([layout.trainable()], (Kind::Float, device))?));
        }
        Ok(Self { rule, weight_decay, decayed: layout.decayed(), moments, steps: 0 })
    }

    /// Steps made so far; bias corrections depend on it.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The moments by name, each a flat vector in the order of the layout.
    pub fn moments(&self) -> &[(&'static str, Tensor)] {
        &self.moments
    }

    /// Goes on from a saved state: `moments` in the order of [`moments`](Self::moments).
    ///
    /// # Panics
    /// When there are not as many moments as this optimizer has.
    ///
    /// # Errors
    /// When a moment has another length.
    pub fn restore(&mut self, steps: u64, moments: &[Tensor]) -> Result<(), TchError> {
        assert_eq!(moments.len(), self.moments.len(), "a state of this optimizer has all its moments");
        for ((_, own), saved) in self.moments.iter_mut().zip(moments) {
            own.f_copy_(saved)?;
        }
        self.steps = steps;
        Ok(())
    }

    /// Changes `parameters` (flat, without autograd) along `gradient` of the same length with learning rate `rate`.
    ///
    /// Piece by piece by `crew`; every number is computed by itself, so pieces and threads change
    /// nothing.
    ///
    /// # Errors
    /// When shapes differ or the device fails.
    pub fn step(&mut self, parameters: &Tensor, gradient: &Tensor, rate: f64, crew: &Crew) -> Result<(), TchError> {
        let len = parameters.size1()?;
        self.steps += 1;
        let all = [parameters, gradient].into_iter().chain(self.moments.iter().map(|(_, moment)| moment));
        let decayed = pieces(0..self.decayed, all.clone())?.into_iter().map(|piece| (piece, self.weight_decay));
        let others = pieces(self.decayed..len, all)?.into_iter().map(|piece| (piece, 0.0));
        let work: Vec<_> = decayed.chain(others).collect();
        let (rule, steps) = (&self.rule, self.steps as f64);
        let on_cpu = parameters.device() == Device::Cpu;
        crew.try_each(work, |(tensors, decay)| {
            let _guard = tch::no_grad_guard();
            if on_cpu {
                rule.update_at_once(tensors, rate, decay, steps)
            } else {
                rule.update(tensors, rate, decay, steps)
            }
        })
    }
}

impl OptimizerParams {
    /// The names of the moments, in the order of [`update`](Self::update).
    pub(super) fn moment_names(&self) -> &'static [&'static str] {
        match self {
            Self::Adamw(_) => &["first_moment", "second_moment"],
            Self::Sgd(_) => &["velocity"],
        }
    }

    /// Step number `steps` (from 1) of some parameters: these, their gradients, their moments.
    pub(super) fn update(&self, tensors: Vec<Tensor>, rate: f64, decay: f64, steps: f64) -> Result<(), TchError> {
        let mut tensors = tensors.into_iter();
        let mut next = || tensors.next().expect("a piece has parameters, gradient and all moments");
        let (mut parameters, gradient) = (next(), next());
        match self {
            // Loshchilov and Hutter 2019, algorithm 2 (with schedule multiplier 1 and learning rate alpha =
            // `rate`, which also scales the decay, as in PyTorch).
            Self::Adamw(adamw) => {
                let (mut first, mut second) = (next(), next());
                let _ = first.f_lerp_(&gradient, 1.0 - adamw.beta1)?;
                let _ = second.f_lerp_(&gradient.f_square()?, 1.0 - adamw.beta2)?;
                let (correct1, correct2) = (1.0 - adamw.beta1.powf(steps), 1.0 - adamw.beta2.powf(steps));
                let mut root = second.f_div_scalar(correct2)?;
                let _ = root.f_sqrt_()?.f_add_scalar_(adamw.epsilon)?;
                if decay > 0.0 {
                    let _ = parameters.f_mul_scalar_(1.0 - rate * decay)?;
                }
                let _ = parameters.f_sub_(&first.f_div(&root)?.f_mul_scalar_(rate / correct1)?)?;
            }
            // Sutskever et al. 2013, equations 7 and 8, with the gradient taken at the look-ahead point, which is
            // then what is stored; the form that PyTorch and TensorFlow use.
            Self::Sgd(sgd) => {
                let mut velocity = next();
                let mut gradient = gradient.f_add(&parameters.f_mul_scalar(decay)?)?;
                let _ = velocity.f_mul_scalar_(sgd.momentum)?.f_add_(&gradient)?;
                let _ = gradient.f_add_(&velocity.f_mul_scalar(sgd.momentum)?)?;
                let _ = parameters.f_sub_(&gradient.f_mul_scalar_(rate)?)?;
            }
        }
        Ok(())
    }
}

impl OptimizerParams {
    /// The same as [`update`](Self::update) in one pass over the numbers, which are copied out and back: libtorch makes
    /// a pass for each operation, and a small network's step on a CPU spends more time in them than in its matrices.
    fn update_at_once(&self, mut tensors: Vec<Tensor>, rate: f64, decay: f64, steps: f64) -> Result<(), TchError> {
        let mut scratch = Vec::new();
        for tensor in &tensors {
            let mut numbers = vec![0.0; tensor.numel()];
            tensor.f_copy_data(&mut numbers, tensor.numel())?;
            scratch.push(numbers);
        }
        let [parameters, gradient, moments @ ..] = &mut scratch[..] else { unreachable!("every piece has both") };
        match (self, moments) {
            (Self::Adamw(adamw), [first, second]) => {
                let (correct1, correct2) = (1.0 - adamw.beta1.powf(steps), 1.0 - adamw.beta2.powf(steps));
                let numbers = AdamwNumbers {
                    new1: (1.0 - adamw.beta1) as f32,
                    new2: (1.0 - adamw.beta2) as f32,
                    unbias: (1.0 / correct2) as f32,
                    epsilon: adamw.epsilon as f32,
                    keep: (1.0 - rate * decay) as f32,
                    length: (rate / correct1) as f32,
                };
                adamw_pass(numbers, parameters, gradient, first, second);
            }
            (Self::Sgd(sgd), [velocity]) => {
                sgd_pass([rate, decay, sgd.momentum].map(|x| x as f32), parameters, gradient, velocity);
            }
            _ => unreachable!("the optimizer was made with its own moments"),
        }
        for (place, (numbers, tensor)) in scratch.iter().zip(&mut tensors).enumerate() {
            // The gradient, in second place, has not changed.
            if place != 1 {
                tensor.f_copy_(&Tensor::f_from_slice(numbers)?)?;
            }
        }
        Ok(())
    }
}

/// What is the same for all parameters of a step.
#[derive(Clone, Copy)]
struct AdamwNumbers {
    new1: f32,
    new2: f32,
    unbias: f32,
    epsilon: f32,
    keep: f32,
    length: f32,
}

fn adamw_pass(with: AdamwNumbers, parameters: &mut [f32], gradient: &[f32], first: &mut [f32], second: &mut [f32]) {
    let AdamwNumbers { new1, new2, unbias, epsilon, keep, length } = with;
    for (((x, &g), m), v) in parameters.iter_mut().zip(gradient).zip(first).zip(second) {
        *m = without_dust(*m + new1 * (g - *m));
        *v = without_dust(*v + new2 * (g * g - *v));
        *x = keep * *x - length * *m / ((unbias * *v).sqrt() + epsilon);
    }
}

fn sgd_pass([rate, decay, momentum]: [f32; 3], parameters: &mut [f32], gradient: &[f32], velocity: &mut [f32]) {
    for ((x, &g), v) in parameters.iter_mut().zip(gradient).zip(velocity) {
        let g = g + decay * *x;
        *v = without_dust(momentum * *v + g);
        *x -= rate * (g + momentum * *v);
    }
}

/// A moment, or 0 where it is too small to move any weight. The moments of an input that is always 0 fade into subnormal
/// numbers and stay there, and CPUs take a hundred times as long for these.
#[inline(always)]
fn without_dust(moment: f32) -> f32 {
    if moment.abs() < 1e-30 { 0.0 } else { moment }
}

/// Numbers in a piece: an update passes over them a dozen times, which should find them in the core's own cache.
const PIECE: i64 = 1 << 14;

/// The places `range` of flat tensors in pieces, each holding that part of every tensor.
pub(super) fn pieces<'a>(
    range: std::ops::Range<i64>,
    tensors: impl Iterator<Item = &'a Tensor> + Clone,
) -> Result<Vec<Vec<Tensor>>, TchError> {
    let starts = range.clone().step_by(PIECE as usize);
    let piece = |start: i64| {
        let len = PIECE.min(range.end - start);
        tensors.clone().map(|tensor| tensor.f_narrow(0, start, len)).collect()
    };
    starts.map(piece).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::layout::to_vec;
    use crate::train::params::{AdamwParams, SgdParams};
    use crate::train::testing;
    use crate::util::rng::Stream;

    fn adamw() -> OptimizerParams {
        OptimizerParams::Adamw(AdamwParams { beta1: 0.8, beta2: 0.97, epsilon: 1e-6 })
    }

    fn sgd() -> OptimizerParams {
        OptimizerParams::Sgd(SgdParams { momentum: 0.7 })
    }

    fn random(stream: &mut Stream, len: i64) -> Tensor {
        let numbers: Vec<f32> = (0..len).map(|_| stream.normal() as f32).collect();
        Tensor::from_slice(&numbers)
    }

    /// The formulas of the papers in plain double precision, number by number.
    fn by_hand(rule: &OptimizerParams, decay: f64, start: f64, gradients: &[f64], rates: &[f64]) -> f64 {
        let (mut x, mut m, mut v) = (start, 0.0, 0.0);
        for (t, (&g, &rate)) in gradients.iter().zip(rates).enumerate() {
            match rule {
                OptimizerParams::Adamw(p) => {
                    m = p.beta1 * m + (1.0 - p.beta1) * g;
                    v = p.beta2 * v + (1.0 - p.beta2) * g * g;
                    let m_hat = m / (1.0 - p.beta1.powi(t as i32 + 1));
                    let v_hat = v / (1.0 - p.beta2.powi(t as i32 + 1));
                    x -= rate * (m_hat / (v_hat.sqrt() + p.epsilon) + decay * x);
                }
                OptimizerParams::Sgd(p) => {
                    let g = g + decay * x;
                    v = p.momentum * v + g;
                    x -= rate * (g + p.momentum * v);
                }
            }
        }
        x
    }

    #[test]
    fn one_and_three_steps_equal_the_formulas() {
        let layout = Layout::new(&testing::wide_mlp());
        assert!(layout.decayed() > PIECE && layout.decayed() < layout.trainable());
        let crew = testing::crew();
        let rates = [0.1, 0.03, 0.2];
        for rule in [adamw(), sgd()] {
            for count in [1, 3] {
                let mut stream = Stream::test(count as u64);
                let start = random(&mut stream, layout.trainable());
                let gradients: Vec<Tensor> = (0..count).map(|_| random(&mut stream, layout.trainable())).collect();
                let mut optimizer = Optimizer::new(rule.clone(), 0.05, &layout, Device::Cpu).unwrap();
                let parameters = start.copy();
                for (gradient, &rate) in gradients.iter().zip(&rates) {
                    optimizer.step(&parameters, gradient, rate, &crew).unwrap();
                }
                assert_eq!(optimizer.steps(), count as u64);
                let (start, end) = (to_vec(&start).unwrap(), to_vec(&parameters).unwrap());
                let gradients: Vec<Vec<f32>> = gradients.iter().map(|g| to_vec(g).unwrap()).collect();
                for i in 0..start.len() {
                    let decay = if (i as i64) < layout.decayed() { 0.05 } else { 0.0 };
                    let column: Vec<f64> = gradients.iter().map(|g| f64::from(g[i])).collect();
                    let expected = by_hand(&rule, decay, f64::from(start[i]), &column, &rates);
                    let error = (f64::from(end[i]) - expected).abs();
                    assert!(error < 1e-6, "{rule:?}, {count} steps, {i}: {} instead of {expected}", end[i]);
                }
            }
        }
    }

    #[test]
    fn one_step_equals_numbers_worked_out_on_paper() {
        let layout = Layout::new(&testing::small_mlp());
        let step = |rule: OptimizerParams| {
            let parameters = Tensor::ones([layout.trainable()], (Kind::Float, Device::Cpu));
            let gradient = parameters.f_mul_scalar(2.0).unwrap();
            let mut optimizer = Optimizer::new(rule, 0.5, &layout, Device::Cpu).unwrap();
            optimizer.step(&parameters, &gradient, 0.1, &testing::crew()).unwrap();
            let end = to_vec(&parameters).unwrap();
            (end[0], end[end.len() - 1])
        };
        // The first AdamW step moves by the rate whatever the gradient: 1 - 0.1 * 0.5 * 1 - 0.1 and 1 - 0.1.
        let (kernel, bias) = step(OptimizerParams::default());
        assert!((kernel - 0.85).abs() < 1e-6 && (bias - 0.9).abs() < 1e-6, "{kernel} {bias}");
        // SGD: the gradient with decay is 2.5 and 2; the step 0.1 * 1.7 of it.
        let (kernel, bias) = step(sgd());
        assert!((kernel - 0.575).abs() < 1e-6 && (bias - 0.66).abs() < 1e-6, "{kernel} {bias}");
    }

    #[test]
    fn both_ways_of_a_step_agree() {
        let mut stream = Stream::test(3);
        for rule in [adamw(), sgd()] {
            let moments = if matches!(rule, OptimizerParams::Adamw(_)) { 2 } else { 1 };
            let piece: Vec<Tensor> = (0..2 + moments).map(|_| random(&mut stream, 1000).f_square().unwrap()).collect();
            let other: Vec<Tensor> = piece.iter().map(Tensor::copy).collect();
            let handles = |tensors: &[Tensor]| tensors.iter().map(Tensor::shallow_clone).collect::<Vec<_>>();
            rule.update(handles(&piece), 0.1, 0.05, 3.0).unwrap();
            rule.update_at_once(handles(&other), 0.1, 0.05, 3.0).unwrap();
            for (a, b) in piece.iter().zip(&other) {
                let (a, b) = (to_vec(a).unwrap(), to_vec(b).unwrap());
                assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 1e-5 * (1.0 + a.abs())), "{rule:?}");
            }
        }
    }

    #[test]
    fn a_restored_optimizer_goes_on_bit_for_bit() {
        let (layout, crew) = (Layout::new(&testing::small_mlp()), testing::crew());
        for rule in [adamw(), sgd()] {
            let mut stream = Stream::test(7);
            let parameters = random(&mut stream, layout.trainable());
            let gradients: Vec<Tensor> = (0..6).map(|_| random(&mut stream, layout.trainable())).collect();
            let mut whole = Optimizer::new(rule.clone(), 0.05, &layout, Device::Cpu).unwrap();
            let mut resumed = Optimizer::new(rule, 0.05, &layout, Device::Cpu).unwrap();
            gradients[..3].iter().for_each(|g| whole.step(&parameters, g, 0.1, &crew).unwrap());
            let saved: Vec<Tensor> = whole.moments().iter().map(|(_, moment)| moment.copy()).collect();
            let copy = parameters.copy();
            gradients[3..].iter().for_each(|g| whole.step(&parameters, g, 0.1, &crew).unwrap());
            resumed.restore(3, &saved).unwrap();
            gradients[3..].iter().for_each(|g| resumed.step(&copy, g, 0.1, &crew).unwrap());
            assert_eq!(to_vec(&copy).unwrap(), to_vec(&parameters).unwrap());
        }
    }
}
