//! The baseline of measurements: the network in libtorch just as it is written down.

use tch::{Device, Tensor};

use super::openvino::missing_input;
use crate::eval::EvalError;
use crate::net::infer::{Heads, Inference, OpenError};
use crate::net::spec::{NetSpec, VALUE_OUTPUTS};
use crate::net::torch::{TorchError, TorchNet};
use crate::net::weights::Weights;

/// As for the other engines on the CPU.
const MAX_BATCH: usize = 128;

/// Inference as a short libtorch program would do it: float32 on one CPU thread, operation by operation, nothing folded. For
/// measuring what the engines gain over that, not for play.
pub struct EagerInference {
    net: TorchNet,
    planes: Vec<f32>,
    batch: usize,
    policy: Vec<f32>,
    value: Vec<f32>,
}

impl EagerInference {
    /// The network with these weights.
    ///
    /// # Errors
    /// When the weights are not those of `spec`, or libtorch fails.
    pub fn new(spec: &NetSpec, weights: &Weights) -> Result<Self, OpenError> {
        let net = TorchNet::new(spec, weights, Device::Cpu).map_err(failed)?;
        Ok(Self { net, planes: Vec::new(), batch: 0, policy: Vec::new(), value: Vec::new() })
    }

    fn forward(&mut self) -> Result<(), TorchError> {
        let input = self.net.spec().input;
        let shape = [self.batch, input.channels, input.height, input.width].map(|size| size as i64);
        let planes = Tensor::f_from_slice(&self.planes)?.f_view(shape)?;
        let heads = self.net.forward(&planes, false)?;
        let actions = self.net.spec().action_count();
        for (tensor, numbers, width) in
            [(heads.policy, &mut self.policy, actions), (heads.value, &mut self.value, VALUE_OUTPUTS)]
        {
            numbers.resize(self.batch * width, 0.0);
            tensor.f_contiguous()?.f_copy_data(numbers, self.batch * width)?;
        }
        Ok(())
    }
}

impl Inference for EagerInference {
    fn max_batch(&self) -> usize {
        MAX_BATCH
    }

    fn input(&mut self, batch: usize) -> Result<&mut [f32], EvalError> {
        if batch == 0 || batch > MAX_BATCH {
            return Err(EvalError(format!("a batch of {batch} positions; allowed are 1 to {MAX_BATCH}")));
        }
        self.batch = batch;
        self.planes.clear();
        self.planes.resize(batch * self.net.spec().input.len(), 0.0);
        Ok(&mut self.planes)
    }

    fn run(&mut self, batch: usize) -> Result<Heads<'_>, EvalError> {
        if batch != self.batch {
            return Err(missing_input(batch));
        }
        if tch::get_num_threads() != 1 {
            // libtorch keeps this per thread.
            tch::set_num_threads(1);
        }
        let _guard = tch::no_grad_guard();
        self.forward().map_err(failed)?;
        Ok(Heads { policy: &self.policy, value: &self.value })
    }
}

fn failed(error: TorchError) -> EvalError {
    EvalError(error.to_string())
}

#[test]
fn it_says_what_the_served_network_says() {
    use crate::net::choice::{DeviceName, Engine, EngineChoice, Precision};
    use crate::net::testing::{planes, specs, trained};

    let choice = EngineChoice { engine: Engine::Libtorch, precision: Precision::F32, device: DeviceName::Cpu };
    for spec in specs() {
        let weights = trained(&spec, 1);
        let numbers = planes(&spec, 7, 2);
        let served = crate::net::InferenceFactory::open(&spec, &weights, &choice).unwrap().worker().unwrap();
        let workers: [Box<dyn Inference>; 2] = [served, Box::new(EagerInference::new(&spec, &weights).unwrap())];
        let [expected, found] = workers.map(|mut worker| {
            assert!(worker.run(3).is_err(), "nothing was written");
            worker.input(7).unwrap().copy_from_slice(&numbers);
            let heads = worker.run(7).unwrap();
            [heads.policy, heads.value].concat()
        });
        assert_eq!(expected.len(), found.len());
        assert!(expected.iter().zip(&found).all(|(a, b)| (a - b).abs() < 1e-3 * (1.0 + a.abs())));
    }
}
