//! Inference with libtorch: on GPUs, and on CPUs without OpenVINO.

use tch::{Device, Kind, TchError, Tensor};

use crate::eval::EvalError;
use crate::net::graph::{Affine, Graph, Op};
use crate::net::infer::{Heads, Inference};
use crate::net::openvino::missing_input;
use crate::net::spec::{NetSpec, VALUE_OUTPUTS};
use crate::util::text::one_line;

/// The largest batch on the CPU, as for the other engine.
const MAX_BATCH_CPU: usize = 128;
/// The largest batch on a GPU.
const MAX_BATCH_GPU: usize = 4096;

/// One worker's network: folded, without gradients, in the precision and memory layout of serving.
pub(crate) struct TorchInference {
    shape: [i64; 3],
    device: Device,
    kind: Kind,
    /// Whether layers call oneDNN directly. Left to itself, libtorch takes another path for batches below 16,
    /// whose results differ in the last bits; and linear layers, which go to a matrix library that does the same,
    /// are written as 1x1 convolutions over one cell.
    onednn: bool,
    nodes: Vec<(Layer, Vec<usize>)>,
    /// Value indices of the policy and the value logits.
    heads: [usize; 2],
    planes: Vec<f32>,
    batch: usize,
    policy: Vec<f32>,
    value: Vec<f32>,
    action_count: usize,
}

/// An operation with its weights on the device.
enum Layer {
    Conv { weight: Tensor, bias: Tensor, padding: i64 },
    Linear { weight: Tensor, bias: Tensor },
    Relu,
    Add,
    Pool,
    Flatten,
    Concat,
}

impl TorchInference {
    /// The served network on `device`, computing in `kind`.
    ///
    /// # Errors
    /// When the device fails.
    pub fn new(spec: &NetSpec, graph: &Graph, device: Device, kind: Kind) -> Result<Self, EvalError> {
        let onednn = device == Device::Cpu && tch::utils::has_mkldnn();
        let layer = |op: &Op| -> Result<Layer, TchError> {
            Ok(match op {
                Op::Conv(affine) => {
                    let (weight, bias) = upload(affine, device, kind)?;
                    Layer::Conv { weight: channels_last(&weight)?, bias, padding: affine.shape[2] as i64 / 2 }
                }
                Op::Linear(affine) => {
                    let (weight, bias) = upload(affine, device, kind)?;
                    if onednn {
                        Layer::Conv { weight: weight.f_unsqueeze(-1)?.f_unsqueeze(-1)?, bias, padding: 0 }
                    } else {
                        Layer::Linear { weight, bias }
                    }
                }
                Op::Relu => Layer::Relu,
                Op::Add => Layer::Add,
                Op::Pool => Layer::Pool,
                Op::Flatten => Layer::Flatten,
                Op::Concat => Layer::Concat,
            })
        };
        let nodes = graph.nodes.iter().map(|node| Ok((layer(&node.op)?, node.inputs.clone())));
        let input = spec.input;
        Ok(Self {
            shape: [input.channels, input.height, input.width].map(|size| size as i64),
            device,
            kind,
            onednn,
            nodes: nodes.collect::<Result<_, _>>().map_err(failed)?,
            heads: [graph.policy, graph.value],
            planes: Vec::new(),
            batch: 0,
            policy: Vec::new(),
            value: Vec::new(),
            action_count: spec.action_count(),
        })
    }

    fn forward(&self) -> Result<[Tensor; 2], TchError> {
        let [channels, height, width] = self.shape;
        let planes = Tensor::f_from_slice(&self.planes)?.f_view([self.batch as i64, channels, height, width])?;
        let planes = planes.f_to_device(self.device)?.f_to_kind(self.kind)?;
        let mut values = Vec::with_capacity(self.nodes.len() + 1);
        values.push(channels_last(&planes)?);
        for (layer, inputs) in &self.nodes {
            let value = layer.apply(&values, inputs, self.onednn)?;
            values.push(value);
        }
        let head = |index: usize| values[index].f_to_kind(Kind::Float)?.f_to_device(Device::Cpu)?.f_contiguous();
        Ok([head(self.heads[0])?, head(self.heads[1])?])
    }
}

impl Layer {
    fn apply(&self, values: &[Tensor], inputs: &[usize], onednn: bool) -> Result<Tensor, TchError> {
        let x = &values[inputs[0]];
        match self {
            Layer::Conv { weight, bias, padding } => {
                let padding = [*padding, *padding];
                if onednn {
                    x.f_mkldnn_convolution(weight, Some(bias), padding, [1, 1], [1, 1], 1)
                } else {
                    x.f_conv2d(weight, Some(bias), [1, 1], padding, [1, 1], 1)
                }
            }
            Layer::Linear { weight, bias } => x.f_linear(weight, Some(bias)),
            Layer::Add => x.f_add(&values[inputs[1]]),
            Layer::Flatten if onednn => x.f_contiguous()?.f_view([x.size()[0], -1, 1, 1]),
            Layer::Flatten => x.f_contiguous()?.f_flatten(1, -1),
            Layer::Concat => {
                let parts: Vec<&Tensor> = inputs.iter().map(|&input| &values[input]).collect();
                Tensor::f_cat(&parts, 1)
            }
            Layer::Pool => {
                let mean = x.f_mean_dim([2i64, 3].as_slice(), true, None)?;
                Tensor::f_cat(&[mean, x.f_amax([2i64, 3], true)?], 1)
            }
            // In place: nothing else reads what a ReLU reads.
            Layer::Relu => x.shallow_clone().f_relu_(),
        }
    }
}

impl Inference for TorchInference {
    fn max_batch(&self) -> usize {
        if self.device == Device::Cpu { MAX_BATCH_CPU } else { MAX_BATCH_GPU }
    }

    fn input(&mut self, batch: usize) -> Result<&mut [f32], EvalError> {
        let most = self.max_batch();
        if batch == 0 || batch > most {
            return Err(EvalError(format!("a batch of {batch} positions; allowed are 1 to {most}")));
        }
        self.batch = batch;
        self.planes.clear();
        self.planes.resize(batch * self.shape.iter().product::<i64>() as usize, 0.0);
        Ok(&mut self.planes)
    }

    fn run(&mut self, batch: usize) -> Result<Heads<'_>, EvalError> {
        if batch != self.batch {
            return Err(missing_input(batch));
        }
        if self.device == Device::Cpu && tch::get_num_threads() != 1 {
            // One thread for each worker. libtorch keeps this per thread; training sets its own number.
            tch::set_num_threads(1);
        }
        let _guard = tch::no_grad_guard();
        let [policy, value] = self.forward().map_err(failed)?;
        self.policy.resize(batch * self.action_count, 0.0);
        self.value.resize(batch * VALUE_OUTPUTS, 0.0);
        policy.f_copy_data(&mut self.policy, batch * self.action_count).map_err(failed)?;
        value.f_copy_data(&mut self.value, batch * VALUE_OUTPUTS).map_err(failed)?;
        Ok(Heads { policy: &self.policy, value: &self.value })
    }
}

fn upload(affine: &Affine, device: Device, kind: Kind) -> Result<(Tensor, Tensor), TchError> {
    let shape: Vec<i64> = affine.shape.iter().map(|&size| size as i64).collect();
    let put = |data: &[f32]| Tensor::f_from_slice(data)?.f_to_device(device)?.f_to_kind(kind);
    Ok((put(&affine.weight)?.f_view(shape.as_slice())?, put(&affine.bias)?))
}

/// The same tensor with channels innermost in memory, the layout in which CPUs and GPUs convolve fastest.
pub(crate) fn channels_last(x: &Tensor) -> Result<Tensor, TchError> {
    x.f_permute([0, 2, 3, 1])?.f_contiguous()?.f_permute([0, 3, 1, 2])
}

fn failed(error: TchError) -> EvalError {
    EvalError(format!("libtorch failed: {}", one_line(&error.to_string())))
}
