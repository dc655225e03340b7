//! The baseline of measurements: training in libtorch just as it is written down.

use tch::{Device, TchError, Tensor};

use crate::net::{NetSpec, TorchNet, Weights};
use crate::train::batch::BatchView;
use crate::train::params::{OptimizerParams, TrainParams};
use crate::train::trainer::TrainError;

/// Training as a short libtorch program would do it on the CPU: float32, losses and optimizer operation by operation and tensor by
/// tensor, all parallelism left to libtorch. For measuring what [`Trainer`](super::Trainer) gains over that, not for training.
#[derive(Debug)]
pub struct EagerTrainer {
    net: TorchNet,
    rule: OptimizerParams,
    rate: f64,
    decay: f64,
    value_weight: f64,
    /// Each trainable tensor with its moments, and whether it decays.
    parameters: Vec<(Vec<Tensor>, bool)>,
    steps: u64,
    /// Threads inside of libtorch's operations.
    threads: i32,
}

impl EagerTrainer {
    /// A trainer of the network with these weights; libtorch's operations may use so many threads.
    ///
    /// # Errors
    /// When the weights are not those of `spec`, or libtorch fails.
    pub fn new(spec: &NetSpec, weights: &Weights, params: &TrainParams, threads: usize) -> Result<Self, TrainError> {
        let net = TorchNet::new(spec, weights, Device::Cpu)?;
        let moments = params.optimizer.moment_names().len();
        let parameters = net.parameters().into_iter().map(|parameter| {
            let zeros = (0..moments).map(|_| parameter.tensor.f_zeros_like());
            let tensors = std::iter::once(Ok(parameter.tensor.shallow_clone())).chain(zeros);
            Ok((tensors.collect::<Result<Vec<_>, TchError>>()?, parameter.decay))
        });
        Ok(Self {
            parameters: parameters.collect::<Result<_, TchError>>()?,
            net,
            rule: params.optimizer.clone(),
            rate: params.learning_rate,
            decay: params.weight_decay,
            value_weight: params.value_loss_weight,
            threads: i32::try_from(threads).unwrap_or(i32::MAX),
            steps: 0,
        })
    }

    /// One training step.
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn step(&mut self, batch: BatchView<'_>) -> Result<(), TrainError> {
        tch::set_num_threads(self.threads);
        let size = batch.size as i64;
        let tensor = |numbers: &[f32]| Tensor::f_from_slice(numbers)?.f_view([size, -1]);
        let planes = batch.planes_on(self.net.spec(), Device::Cpu)?;
        let heads = self.net.forward(&planes, true)?;
        // Illegal moves get no share of the softmax.
        let illegal = tensor(batch.legal)?.f_sub_scalar(1.0)?.f_mul_scalar(1e9)?;
        let logs = heads.policy.f_add(&illegal)?.f_log_softmax(-1, None)?;
        let weight = tensor(batch.weight)?;
        let policy_weight = tensor(batch.policy_weight)?.f_mul(&weight)?;
        let policy = tensor(batch.policy)?.f_mul(&logs)?.f_mul(&policy_weight)?.f_sum(None)?;
        let policy = policy.f_div(&policy_weight.f_sum(None)?.f_clamp_min(1e-9)?)?;
        let value = tensor(batch.value)?.f_mul(&heads.value.f_log_softmax(-1, None)?)?.f_mul(&weight)?.f_sum(None)?;
        let value = value.f_div(&weight.f_sum(None)?)?;
        let loss = policy.f_add(&value.f_mul_scalar(self.value_weight)?)?.f_neg()?;
        loss.f_backward()?;
        self.steps += 1;
        let _guard = tch::no_grad_guard();
        for (tensors, decays) in &mut self.parameters {
            let mut gradient = tensors[0].f_grad()?;
            if gradient.defined() {
                let mut all: Vec<Tensor> = tensors.iter().map(Tensor::shallow_clone).collect();
                all.insert(1, gradient.f_detach()?);
                let decay = if *decays { self.decay } else { 0.0 };
                self.rule.update(all, self.rate, decay, self.steps as f64)?;
                let _ = gradient.f_zero_()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::Trainer;
    use crate::train::params::SgdParams;
    use crate::train::testing::{batch, small_resnet};
    use crate::util::rng::Stream;

    #[test]
    fn the_baseline_makes_the_steps_of_the_trainer() {
        let spec = small_resnet();
        let weights = Weights::init(&spec, &mut Stream::test(11));
        let params = TrainParams {
            optimizer: OptimizerParams::Sgd(SgdParams::default()),
            learning_rate: 0.05,
            warmup_steps: 0,
            gradient_clip: 1e6,
            ..TrainParams::default()
        };
        let mut eager = EagerTrainer::new(&spec, &weights, &params, 1).unwrap();
        let mut trainer = Trainer::new(&spec, &weights, params, Device::Cpu, 1).unwrap();
        for seed in 0..4 {
            let mut batch = batch(&spec, 16, seed);
            batch.weight[3] = 0.5;
            batch.policy_weight[5] = 0.0;
            eager.step(batch.view()).unwrap();
            trainer.step(batch.view()).unwrap();
        }
        let (one, two) = (eager.net.to_weights().unwrap(), trainer.raw_weights().unwrap());
        let farthest = |other: &Weights| {
            let tensors = one.0.iter().flat_map(|(name, tensor)| tensor.data.iter().zip(&other.0[name].data));
            tensors.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
        };
        assert!(farthest(&two) < 1e-4, "{}", farthest(&two));
        assert!(farthest(&weights) > 1e-2, "{}", farthest(&weights));
    }
}
