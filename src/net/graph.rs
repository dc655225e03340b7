//! The network as it is served: a list of plain operations with batch normalisation folded into the convolutions.
//!
//! Both the ONNX form and libtorch inference are made from this list, so that they cannot differ in structure.

use crate::net::spec::{Architecture, NORM_EPSILON, NetSpec, Resnet};
use crate::net::weights::{Weights, WeightsError};

/// What an operation computes from the outputs of earlier ones.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Op {
    /// Convolution with padding that keeps the board's size, plus bias: kernel `[O, I, k, k]`, `k` odd.
    Conv(Affine),
    /// Linear layer, `x W^T + b`: weight `[O, I]`.
    Linear(Affine),
    /// `max(x, 0)`. Nothing else reads its input, so it may be computed in place.
    Relu,
    /// Sum of two, the second broadcast over the board where it is `[B, C, 1, 1]`.
    Add,
    /// Mean, then maximum over the board: `[B, C, H, W]` to `[B, 2 C, 1, 1]`.
    Pool,
    /// `[B, C, H, W]` to `[B, C * H * W]`.
    Flatten,
    /// The inputs side by side along dimension 1.
    Concat,
}

/// Weights and bias of a layer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Affine {
    /// Dimensions of the weight; the first is the number of outputs.
    pub shape: Vec<usize>,
    /// Row-major.
    pub weight: Vec<f32>,
    /// One for each output.
    pub bias: Vec<f32>,
}

/// One operation. Its output has the index of the node plus one; index 0 is the network's input.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    /// A name for people and for ONNX.
    pub name: String,
    /// What it computes.
    pub op: Op,
    /// Indices of its inputs.
    pub inputs: Vec<usize>,
}

/// A network for evaluation only.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Graph {
    /// In an order in which they can be computed.
    pub nodes: Vec<Node>,
    /// Index of the policy logits, `[B, A]`.
    pub policy: usize,
    /// Index of the value logits, `[B, 3]`.
    pub value: usize,
}

impl Node {
    /// Its name and weights, where it has any.
    pub fn layer(&self) -> Option<(&str, &Affine)> {
        match &self.op {
            Op::Conv(affine) | Op::Linear(affine) => Some((&self.name, affine)),
            _ => None,
        }
    }
}

impl Graph {
    /// The network with its normalisations folded: a convolution with kernel `k` followed by
    /// `scale * (y - mean) / sqrt(variance + epsilon) + shift` is one with kernel `f k` and bias `shift - f mean`,
    /// where `f = scale / sqrt(variance + epsilon)`. Folding computes in float64.
    ///
    /// # Errors
    /// When the weights are not those of the network.
    pub fn new(spec: &NetSpec, weights: &Weights) -> Result<Self, WeightsError> {
        weights.check(spec)?;
        let mut builder = Builder { weights, nodes: Vec::new() };
        let (policy, value) = match &spec.architecture {
            Architecture::Resnet(net) => builder.resnet(spec, net),
            Architecture::Mlp(net) => builder.mlp(net.hidden.len()),
        };
        Ok(Self { nodes: builder.nodes, policy, value })
    }

    /// The operations that have weights, by name.
    pub fn layers(&self) -> impl Iterator<Item = (&str, &Affine)> {
        self.nodes.iter().filter_map(Node::layer)
    }

    /// The same, to be changed.
    pub fn layers_mut(&mut self) -> impl Iterator<Item = (&str, &mut Affine)> {
        self.nodes.iter_mut().filter_map(|node| match &mut node.op {
            Op::Conv(affine) | Op::Linear(affine) => Some((&*node.name, affine)),
            _ => None,
        })
    }

    /// Rounds all numbers to float16.
    pub fn round_to_half(&mut self) {
        let numbers = self.layers_mut().flat_map(|(_, affine)| affine.weight.iter_mut().chain(&mut affine.bias));
        numbers.for_each(|x| *x = half::f16::from_f32(*x).to_f32());
    }

    /// Weights of the network whose served graph is this one, number for number: each normalisation does nothing but add what
    /// was folded into its convolution's bias.
    ///
    /// # Errors
    /// When the graph is not that of such a network.
    pub fn unfolded(&self, spec: &NetSpec) -> Result<Weights, String> {
        let mut weights = Weights::identity(spec);
        let mut set = |name: String, data: &[f32]| match weights.0.get_mut(&name) {
            Some(tensor) if tensor.data.len() == data.len() => {
                tensor.data.copy_from_slice(data);
                Ok(())
            }
            _ => Err(format!("`{name}` is not a tensor of such a network")),
        };
        for (name, affine) in self.layers() {
            set(format!("{name}.weight"), &affine.weight)?;
            match name.rsplit_once(".conv") {
                Some((place, number)) => set(format!("{place}.norm{number}.bias"), &affine.bias)?,
                None if name.ends_with(".pool") => {
                    if affine.bias.iter().any(|&x| x != 0.0) {
                        return Err(format!("`{name}` has a bias, which such a network has not"));
                    }
                }
                None => set(format!("{name}.bias"), &affine.bias)?,
            }
        }
        Ok(weights)
    }
}

struct Builder<'a> {
    weights: &'a Weights,
    nodes: Vec<Node>,
}

impl Builder<'_> {
    fn resnet(&mut self, spec: &NetSpec, net: &Resnet) -> (usize, usize) {
        let stem = self.conv("stem", "", 0);
        let mut x = self.push("stem.relu", Op::Relu, &[stem]);
        for block in 0..net.blocks {
            let name = format!("blocks.{block}");
            let mut y = self.conv(&name, "1", x);
            if net.pools(block) {
                let pooled = self.push(&format!("{name}.pooled"), Op::Pool, &[x]);
                let weight = self.weights.data(&format!("{name}.pool.weight")).to_vec();
                let shape = vec![net.channels, 2 * net.channels, 1, 1];
                let affine = Affine { shape, weight, bias: vec![0.0; net.channels] };
                let bias = self.push(&format!("{name}.pool"), Op::Conv(affine), &[pooled]);
                y = self.push(&format!("{name}.biased"), Op::Add, &[y, bias]);
            }
            let y = self.push(&format!("{name}.relu1"), Op::Relu, &[y]);
            let y = self.conv(&name, "2", y);
            let sum = self.push(&format!("{name}.sum"), Op::Add, &[y, x]);
            x = self.push(&format!("{name}.relu2"), Op::Relu, &[sum]);
        }
        (self.policy_head(spec, net, x), self.value_head(x))
    }

    fn policy_head(&mut self, spec: &NetSpec, net: &Resnet, trunk: usize) -> usize {
        let features = self.conv("policy", "", trunk);
        let features = self.push("policy.relu", Op::Relu, &[features]);
        let mut parts = Vec::new();
        if spec.policy.planes > 0 {
            let shape = vec![spec.policy.planes, net.policy_channels, 1, 1];
            let affine = self.affine("policy.spatial", shape);
            let planes = self.push("policy.spatial", Op::Conv(affine), &[features]);
            parts.push(self.push("policy.spatial.flatten", Op::Flatten, &[planes]));
        }
        if spec.policy.flat > 0 {
            let flat = self.push("policy.flatten", Op::Flatten, &[features]);
            parts.push(self.linear("policy.flat", flat));
        }
        match parts[..] {
            [only] => only,
            _ => self.push("policy.concat", Op::Concat, &parts),
        }
    }

    fn value_head(&mut self, trunk: usize) -> usize {
        let features = self.conv("value", "", trunk);
        let features = self.push("value.relu", Op::Relu, &[features]);
        let flat = self.push("value.flatten", Op::Flatten, &[features]);
        let hidden = self.linear("value.hidden", flat);
        let hidden = self.push("value.hidden.relu", Op::Relu, &[hidden]);
        self.linear("value.out", hidden)
    }

    fn mlp(&mut self, layers: usize) -> (usize, usize) {
        let mut x = self.push("flatten", Op::Flatten, &[0]);
        for layer in 0..layers {
            x = self.linear(&format!("layers.{layer}"), x);
            x = self.push(&format!("layers.{layer}.relu"), Op::Relu, &[x]);
        }
        (self.linear("policy.out", x), self.linear("value.out", x))
    }

    fn push(&mut self, name: &str, op: Op, inputs: &[usize]) -> usize {
        self.nodes.push(Node { name: name.to_owned(), op, inputs: inputs.to_vec() });
        self.nodes.len()
    }

    fn conv(&mut self, name: &str, suffix: &str, input: usize) -> usize {
        let kernel = &self.weights.0[&format!("{name}.conv{suffix}.weight")];
        let part = |part: &str| self.weights.data(&format!("{name}.norm{suffix}.{part}"));
        let (scale, shift) = (part("weight"), part("bias"));
        let (mean, variance) = (part("running_mean"), part("running_var"));
        let per_output = kernel.data.len() / scale.len();
        let mut weight = Vec::with_capacity(kernel.data.len());
        let mut bias = Vec::with_capacity(scale.len());
        for (output, row) in kernel.data.chunks(per_output).enumerate() {
            let factor = f64::from(scale[output]) / (f64::from(variance[output]) + NORM_EPSILON).sqrt();
            weight.extend(row.iter().map(|&x| (f64::from(x) * factor) as f32));
            bias.push((f64::from(shift[output]) - f64::from(mean[output]) * factor) as f32);
        }
        let affine = Affine { shape: kernel.shape.clone(), weight, bias };
        self.push(&format!("{name}.conv{suffix}"), Op::Conv(affine), &[input])
    }

    fn linear(&mut self, name: &str, input: usize) -> usize {
        let shape = self.weights.0[&format!("{name}.weight")].shape.clone();
        let affine = self.affine(name, shape);
        self.push(name, Op::Linear(affine), &[input])
    }

    fn affine(&self, name: &str, shape: Vec<usize>) -> Affine {
        let part = |part: &str| self.weights.data(&format!("{name}.{part}")).to_vec();
        Affine { shape, weight: part("weight"), bias: part("bias") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::testing::{specs, trained};

    #[test]
    fn nodes_read_earlier_ones_and_a_relu_has_its_input_alone() {
        for spec in specs() {
            let graph = Graph::new(&spec, &trained(&spec, 1)).unwrap();
            let readers = |index| graph.nodes.iter().filter(|node| node.inputs.contains(&index)).count();
            for (index, node) in graph.nodes.iter().enumerate() {
                assert!(node.inputs.iter().all(|&input| input <= index), "{}", node.name);
                assert!(node.op != Op::Relu || readers(node.inputs[0]) == 1, "{}", node.name);
            }
            assert_eq!((readers(graph.policy), readers(graph.value)), (0, 0));
        }
    }

    #[test]
    fn what_is_folded_can_be_unfolded_without_a_bit_of_difference() {
        for spec in specs() {
            let graph = Graph::new(&spec, &trained(&spec, 3)).unwrap();
            let weights = graph.unfolded(&spec).unwrap();
            assert_eq!(weights.check(&spec), Ok(()));
            assert!(Graph::new(&spec, &weights).unwrap() == graph, "{spec}");
        }
        let (one, other) = (&specs()[0], &specs()[3]);
        assert!(Graph::new(one, &trained(one, 3)).unwrap().unfolded(other).is_err());
    }

    #[test]
    fn folding_by_hand() {
        let spec = &specs()[0];
        let mut weights = trained(spec, 2);
        for (part, value) in [("weight", 3.0), ("bias", 0.5), ("running_mean", 2.0), ("running_var", 4.0)] {
            weights.0.get_mut(&format!("stem.norm.{part}")).unwrap().data[1] = value;
        }
        let graph = Graph::new(spec, &weights).unwrap();
        let Op::Conv(folded) = &graph.nodes[0].op else { panic!("the stem is a convolution") };
        let factor = 3.0 / (4.0f64 + 1e-5).sqrt();
        let (row, per_output) = (&weights.0["stem.conv.weight"].data, 3 * 9);
        for (index, &weight) in folded.weight[per_output..2 * per_output].iter().enumerate() {
            assert_eq!(weight, (f64::from(row[per_output + index]) * factor) as f32);
        }
        assert_eq!(folded.bias[1], (0.5 - 2.0 * factor) as f32);
    }
}
