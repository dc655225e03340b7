//! The network in libtorch, for training: explicit tensors, master weights in float32, errors as results.

use std::collections::BTreeMap;

use tch::{Device, Kind, TchError, Tensor};

use crate::game::PolicyShape;
use crate::net::spec::{Architecture, NORM_EPSILON, NetSpec, Resnet};
use crate::net::torch_infer::channels_last;
use crate::net::weights::{WeightTensor, Weights, WeightsError};
use crate::util::text::one_line;

/// Share of the batch's statistics in the running mean and variance after each training step.
pub const NORM_MOMENTUM: f64 = 0.1;

/// A network could not be built or run in libtorch.
#[derive(Debug, thiserror::Error)]
pub enum TorchError {
    /// The weights are not those of the network.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// libtorch refused: out of memory, a device that is not there, shapes that do not fit.
    #[error("libtorch: {}", one_line(&.0.to_string()))]
    Torch(#[from] TchError),
}

/// What the network says about a batch of positions.
#[derive(Debug)]
pub struct TorchHeads {
    /// Policy logits, `[B, A]`, float32.
    pub policy: Tensor,
    /// Logits of win, draw and loss of the player to move, `[B, 3]`, float32.
    pub value: Tensor,
    /// Logits of what will hold in the final position, `[B, E]`, float32, where the network has that head.
    pub ending: Option<Tensor>,
    /// Logits of the opponent's next move, `[B, A]`, float32, where the network has that head.
    pub reply: Option<Tensor>,
}

/// A trainable tensor.
#[derive(Debug)]
pub struct Parameter {
    /// Its name in [`Weights`].
    pub name: String,
    /// A handle that shares storage and gradient with the network.
    pub tensor: Tensor,
    /// Whether weight decay applies.
    pub decay: bool,
}

/// A network with trainable weights on one device.
///
/// Weights stay float32; convolutions may compute in bfloat16 (see [`TorchNet::set_precision`]).
#[derive(Debug)]
pub struct TorchNet {
    spec: NetSpec,
    device: Device,
    precision: Kind,
    tensors: BTreeMap<String, Tensor>,
}

impl TorchNet {
    /// The network with these weights on `device`; trainable tensors require gradients.
    ///
    /// # Errors
    /// When the weights are not those of `spec`, or the device fails.
    pub fn new(spec: &NetSpec, weights: &Weights, device: Device) -> Result<Self, TorchError> {
        weights.check(spec)?;
        let mut tensors = BTreeMap::new();
        for info in spec.tensors() {
            let shape: Vec<i64> = info.shape.iter().map(|&d| d as i64).collect();
            let tensor = Tensor::f_from_slice(weights.data(&info.name))?.f_reshape(shape)?.f_to_device(device)?;
            tensors.insert(info.name, tensor.f_set_requires_grad(info.role.is_trainable())?);
        }
        Ok(Self { spec: spec.clone(), device, precision: Kind::Float, tensors })
    }

    /// The network's description.
    pub fn spec(&self) -> &NetSpec {
        &self.spec
    }

    /// Where its tensors are.
    pub fn device(&self) -> Device {
        self.device
    }

    /// The kind in which convolutions compute: `Kind::Float` (at first) or `Kind::BFloat16`. Weights, sums of
    /// gradients, batch statistics and heads stay float32.
    pub fn set_precision(&mut self, precision: Kind) {
        self.precision = precision;
    }

    /// Evaluates `planes` (`[B, C, H, W]`, float32, on the network's device). With `train`, batch normalisation
    /// uses the batch's own statistics and updates the running ones; without, it uses the running ones.
    ///
    /// # Errors
    /// When shapes do not fit or the device fails.
    pub fn forward(&self, planes: &Tensor, train: bool) -> Result<TorchHeads, TorchError> {
        match &self.spec.architecture {
            Architecture::Resnet(net) => self.forward_resnet(net, planes, train),
            Architecture::Mlp(net) => self.forward_mlp(net.hidden.len(), planes),
        }
    }

    /// Every trainable tensor, in the order in which data flows.
    pub fn parameters(&self) -> Vec<Parameter> {
        let trainable = self.spec.tensors().into_iter().filter(|info| info.role.is_trainable());
        trainable
            .map(|info| Parameter {
                tensor: self.tensor(&info.name).shallow_clone(),
                decay: info.role.decays(),
                name: info.name,
            })
            .collect()
    }

    /// Every running statistic (name, tensor), in the order in which data flows.
    pub fn buffers(&self) -> Vec<(String, Tensor)> {
        let buffers = self.spec.tensors().into_iter().filter(|info| !info.role.is_trainable());
        buffers.map(|info| (info.name.clone(), self.tensor(&info.name).shallow_clone())).collect()
    }

    /// A copy of all tensors.
    ///
    /// # Errors
    /// When reading from the device fails.
    pub fn to_weights(&self) -> Result<Weights, TorchError> {
        let mut weights = BTreeMap::new();
        for info in self.spec.tensors() {
            let flat = self.tensor(&info.name).f_detach()?.f_to_device(Device::Cpu)?.f_reshape([-1])?;
            let data = Vec::<f32>::try_from(&flat.f_contiguous()?)?;
            weights.insert(info.name, WeightTensor { shape: info.shape, data });
        }
        Ok(Weights(weights))
    }

    /// Overwrites all tensors with these weights; handles from [`parameters`](Self::parameters) stay valid.
    ///
    /// # Errors
    /// When the weights are not those of the network, or the device fails.
    pub fn load(&mut self, weights: &Weights) -> Result<(), TorchError> {
        weights.check(&self.spec)?;
        let _guard = tch::no_grad_guard();
        for (name, tensor) in &mut self.tensors {
            let source = Tensor::f_from_slice(weights.data(name))?.f_reshape(tensor.size())?;
            tensor.f_copy_(&source.f_to_device(self.device)?)?;
        }
        Ok(())
    }

    fn forward_resnet(&self, net: &Resnet, planes: &Tensor, train: bool) -> Result<TorchHeads, TorchError> {
        let input = channels_last(&planes.f_to_kind(self.precision)?)?;
        let mut x = self.conv_norm("stem", "", &input, train)?.f_relu()?;
        for block in 0..net.blocks {
            let name = format!("blocks.{block}");
            let mut y = self.conv_norm(&name, "1", &x, train)?;
            if net.pools(block) {
                let mean = x.f_mean_dim([2i64, 3].as_slice(), false, Kind::Float)?;
                let peak = x.f_amax([2i64, 3], false)?.f_to_kind(Kind::Float)?;
                let pooled = Tensor::f_cat(&[mean, peak], 1)?;
                let bias = pooled.f_linear::<&Tensor>(self.tensor(&format!("{name}.pool.weight")), None)?;
                y = y.f_add(&bias.f_to_kind(self.precision)?.f_unsqueeze(-1)?.f_unsqueeze(-1)?)?;
            }
            let y = self.conv_norm(&name, "2", &y.f_relu()?, train)?;
            x = y.f_add(&x)?.f_relu()?;
        }
        let features = self.conv_norm("policy", "", &x, train)?.f_relu()?;
        let policy = self.slots("policy", self.spec.policy, &features)?;
        let value = self.value_head(&x, train)?;
        if !self.spec.auxiliary.any() {
            return Ok(TorchHeads { policy, value, ending: None, reply: None });
        }
        let features = self.conv_norm("auxiliary", "", &x, train)?.f_relu()?;
        let head = |name| self.auxiliary_shape(name).map(|shape| self.slots(name, shape, &features)).transpose();
        Ok(TorchHeads { policy, value, ending: head("ending")?, reply: head("reply")? })
    }

    /// The shape of an auxiliary head, where there is one of this name.
    fn auxiliary_shape(&self, name: &str) -> Option<PolicyShape> {
        self.spec.auxiliary_heads().find(|(known, _)| *known == name).map(|(_, shape)| shape)
    }

    /// The last layers of a head whose slots lie as `shape` says.
    fn slots(&self, name: &str, shape: PolicyShape, features: &Tensor) -> Result<Tensor, TorchError> {
        let mut parts = Vec::new();
        if shape.planes > 0 {
            let weight = self.tensor(&format!("{name}.spatial.weight")).f_to_kind(self.precision)?;
            let bias = self.tensor(&format!("{name}.spatial.bias")).f_to_kind(self.precision)?;
            let planes = features.f_conv2d(&weight, Some(&bias), [1, 1], [0, 0], [1, 1], 1)?;
            parts.push(flat(&planes)?);
        }
        if shape.flat > 0 {
            parts.push(self.linear(&format!("{name}.flat"), &flat(features)?)?);
        }
        Ok(Tensor::f_cat(&parts, 1)?)
    }

    fn value_head(&self, trunk: &Tensor, train: bool) -> Result<Tensor, TorchError> {
        let features = self.conv_norm("value", "", trunk, train)?.f_relu()?;
        let hidden = self.linear("value.hidden", &flat(&features)?)?.f_relu()?;
        self.linear("value.out", &hidden)
    }

    fn forward_mlp(&self, layers: usize, planes: &Tensor) -> Result<TorchHeads, TorchError> {
        let mut x = planes.f_flatten(1, -1)?;
        for layer in 0..layers {
            x = self.linear(&format!("layers.{layer}"), &x)?.f_relu()?;
        }
        let head = |name| self.auxiliary_shape(name).map(|_| self.linear(&format!("{name}.out"), &x)).transpose();
        let (policy, value) = (self.linear("policy.out", &x)?, self.linear("value.out", &x)?);
        Ok(TorchHeads { policy, value, ending: head("ending")?, reply: head("reply")? })
    }

    /// Convolution that keeps the board's size, then batch normalisation; in and out are of `self.precision`.
    fn conv_norm(&self, name: &str, suffix: &str, x: &Tensor, train: bool) -> Result<Tensor, TorchError> {
        let weight = self.tensor(&format!("{name}.conv{suffix}.weight"));
        let padding = weight.size()[2] / 2;
        let weight = weight.f_to_kind(self.precision)?;
        let y = x.f_conv2d::<&Tensor>(&weight, None, [1, 1], [padding, padding], [1, 1], 1)?;
        let part = |part: &str| Some(self.tensor(&format!("{name}.norm{suffix}.{part}")));
        let (scale, shift) = (part("weight"), part("bias"));
        let (mean, variance) = (part("running_mean"), part("running_var"));
        Ok(y.f_batch_norm(scale, shift, mean, variance, train, NORM_MOMENTUM, NORM_EPSILON, true)?)
    }

    fn linear(&self, name: &str, x: &Tensor) -> Result<Tensor, TorchError> {
        let (weight, bias) = (self.tensor(&format!("{name}.weight")), self.tensor(&format!("{name}.bias")));
        Ok(x.f_linear(weight, Some(bias))?)
    }

    fn tensor(&self, name: &str) -> &Tensor {
        self.tensors.get(name).unwrap_or_else(|| panic!("the network holds `{name}` by construction"))
    }
}

/// `[B, C, H, W]` to `[B, C * H * W]` in float32, whatever the memory layout.
fn flat(x: &Tensor) -> Result<Tensor, TchError> {
    x.f_to_kind(Kind::Float)?.f_contiguous()?.f_flatten(1, -1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::spec::Mlp;
    use crate::net::testing::spec;
    use crate::util::rng::Stream;

    fn small() -> NetSpec {
        let net = Resnet { blocks: 2, channels: 8, global_pooling: true, ..Resnet::default() };
        spec(Architecture::Resnet(net))
    }

    #[test]
    fn shapes_gradients_and_round_trip() {
        for spec in [small(), spec(Architecture::Mlp(Mlp { hidden: vec![16, 8] }))] {
            let weights = Weights::init(&spec, &mut Stream::test(1));
            let net = TorchNet::new(&spec, &weights, Device::Cpu).unwrap();
            assert_eq!(net.to_weights().unwrap(), weights);
            let planes = Tensor::randn([7, 3, 4, 5], (Kind::Float, Device::Cpu));
            let heads = net.forward(&planes, true).unwrap();
            assert_eq!((heads.policy.size(), heads.value.size()), (vec![7, 43], vec![7, 3]));
            (heads.policy.square().mean(None) + heads.value.square().mean(None)).backward();
            for parameter in net.parameters() {
                let gradient = parameter.tensor.grad();
                assert!(gradient.defined(), "{}", parameter.name);
                assert!(gradient.abs().sum(None).double_value(&[]) > 0.0, "{}", parameter.name);
            }
        }
    }

    #[test]
    fn training_updates_the_running_statistics_and_evaluation_does_not() {
        let spec = small();
        let net = TorchNet::new(&spec, &Weights::init(&spec, &mut Stream::test(1)), Device::Cpu).unwrap();
        let planes = Tensor::randn([64, 3, 4, 5], (Kind::Float, Device::Cpu)) * 3.0 + 1.0;
        let before = net.to_weights().unwrap();
        net.forward(&planes, false).unwrap();
        assert_eq!(net.to_weights().unwrap(), before);
        for _ in 0..200 {
            net.forward(&planes, true).unwrap();
        }
        assert_ne!(net.to_weights().unwrap(), before);
        // Once the running statistics have converged to the batch's, both modes agree (up to n / (n - 1) in
        // the variance, with n = 64 * 20).
        let (train, run) = (net.forward(&planes, true).unwrap(), net.forward(&planes, false).unwrap());
        let difference = (train.policy - run.policy).abs().max().double_value(&[]);
        assert!(difference < 0.01, "{difference}");
    }

    /// The gradients of one step, by parameter.
    fn gradients(spec: &NetSpec, precision: Kind) -> Vec<(String, Vec<f32>)> {
        let mut net = TorchNet::new(spec, &Weights::init(spec, &mut Stream::test(2)), Device::Cpu).unwrap();
        net.set_precision(precision);
        let numbers: Vec<f32> = crate::net::testing::planes(spec, 96, 3);
        let heads = net.forward(&Tensor::from_slice(&numbers).view([96, 3, 4, 5]), true).unwrap();
        assert_eq!((heads.policy.kind(), heads.value.kind()), (Kind::Float, Kind::Float));
        let chosen = |logits: Tensor| -logits.log_softmax(-1, None).select(1, 1).mean(None);
        (chosen(heads.policy) + chosen(heads.value)).backward();
        let numbers = |tensor: Tensor| Vec::<f32>::try_from(tensor.reshape([-1])).unwrap();
        net.parameters().into_iter().map(|p| (p.name, numbers(p.tensor.grad()))).collect()
    }

    #[test]
    fn a_step_repeats_bit_for_bit() {
        assert_eq!(gradients(&small(), Kind::Float), gradients(&small(), Kind::Float));
    }

    #[test]
    fn bfloat16_gradients_point_where_float32_gradients_point() {
        let (exact, rough) = (gradients(&small(), Kind::Float), gradients(&small(), Kind::BFloat16));
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| f64::from(x * y)).sum::<f64>();
        for ((name, a), (_, b)) in exact.iter().zip(&rough) {
            let cosine = dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
            assert!(cosine > 0.98, "{name}: {cosine}");
        }
    }

    #[test]
    fn handles_see_what_is_loaded() {
        let spec = small();
        let first = Weights::init(&spec, &mut Stream::test(1));
        let second = Weights::init(&spec, &mut Stream::test(2));
        let mut net = TorchNet::new(&spec, &first, Device::Cpu).unwrap();
        let stem = net.parameters().swap_remove(0);
        net.load(&second).unwrap();
        let numbers = Vec::<f32>::try_from(stem.tensor.detach().reshape([-1])).unwrap();
        assert_eq!(numbers, second.0[&stem.name].data);
        assert_eq!(net.to_weights().unwrap(), second);
        assert!(net.load(&Weights::default()).is_err());
        assert_eq!(net.to_weights().unwrap(), second, "nothing was loaded in part");
    }
}
