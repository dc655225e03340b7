//! The network in ONNX form, written by own code from the served graph and read back: no Python, no exporter.
//!
//! The message types are the part of `onnx.proto` (ONNX 1.12, IR version 8) that such a network needs.

mod proto;
mod read;

use half::f16;
use prost::Message as _;

use crate::net::graph::{Affine, Graph, Op};
use crate::net::spec::{NetSpec, VALUE_OUTPUTS};
use crate::net::weights::{Weights, WeightsError};

pub(crate) use read::{looks_like, parse};

/// Name of the input: encoded positions, `[batch, C, H, W]`, float32.
pub const INPUT: &str = "planes";
/// Name of the second input of files with a mask: which moves are legal, `[batch, A]`, bool.
pub const LEGAL: &str = "legal";
/// Name of the first output, `[batch, A]`: policy logits; with a mask the shares of the legal moves.
pub const POLICY: &str = "policy";
/// Name of the second output, `[batch, 3]`: logits of win, draw, loss of the player to move; with a mask their probabilities.
pub const VALUE: &str = "value";

/// Version of the operator set.
pub const OPSET: i64 = 17;
/// Version of the file format that belongs to it.
const IR_VERSION: i64 = 8;

/// What an ONNX file of a network looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OnnxForm {
    /// Whether weights and arithmetic are float16; inputs and outputs stay float32.
    pub half: bool,
    /// Whether legal moves are a second input, and the outputs probabilities instead of logits.
    pub mask: bool,
}

/// In place of the logits of moves that are not legal: their exponential is zero, and where no move is legal all get equal shares.
const ILLEGAL: f32 = -1e30;

/// Numbers of the schema for types of elements.
mod element {
    pub const FLOAT: i32 = 1;
    pub const BOOL: i32 = 9;
    pub const FLOAT16: i32 = 10;
}

/// The bytes of an `.onnx` file: dynamic batch axis, normalisation folded, shapes of all values, `metadata` as its key-value
/// properties. The same arguments always give the same bytes.
///
/// # Errors
/// When the weights are not those of the network.
pub fn to_onnx(
    spec: &NetSpec,
    weights: &Weights,
    form: OnnxForm,
    metadata: &[(String, String)],
) -> Result<Vec<u8>, WeightsError> {
    Ok(model(spec, &Graph::new(spec, weights)?, form, metadata, env!("CARGO_PKG_VERSION")).encode_to_vec())
}

fn model(spec: &NetSpec, graph: &Graph, form: OnnxForm, metadata: &[(String, String)], version: &str) -> proto::Model {
    proto::Model {
        ir_version: IR_VERSION,
        producer_name: "sparring".into(),
        producer_version: version.into(),
        doc_string: format!("Policy/value network: {spec}"),
        graph: Some(lower(spec, graph, form)),
        opset_import: opsets(),
        metadata_props: metadata
            .iter()
            .map(|(key, value)| proto::StringStringEntry { key: key.clone(), value: value.clone() })
            .collect(),
    }
}

/// The operators that the graphs are made of: the standard ones.
fn opsets() -> Vec<proto::OperatorSetId> {
    vec![proto::OperatorSetId { domain: String::new(), version: OPSET }]
}

/// The whole ONNX graph.
fn lower(spec: &NetSpec, graph: &Graph, form: OnnxForm) -> proto::Graph {
    let (planes, policy) = (spec.input, spec.action_count());
    let input = [planes.channels, planes.height, planes.width];
    let float = element::FLOAT;
    let kind = if form.mask { "probabilities" } else { "logits" };
    let mut inputs =
        vec![described(INPUT, float, &input, "encoded positions, one plane for each metadata entry `planes`")];
    if form.mask {
        inputs.push(described(
            LEGAL,
            element::BOOL,
            &[policy],
            "legal moves, in the order of metadata entry `actions`",
        ));
    }
    let outputs = vec![
        described(POLICY, float, &[policy], &format!("{kind} of the moves, in the order of metadata entry `actions`")),
        described(VALUE, float, &[VALUE_OUTPUTS], &format!("{kind} of win, draw, loss of the player to move")),
    ];
    let start = proto::Graph {
        name: "policy_value_network".into(),
        doc_string: "policy and value of board positions, seen by the player to move".into(),
        input: inputs,
        output: outputs,
        ..proto::Graph::default()
    };
    let mut lowering = Lowering { out: start, form, values: Vec::new() };
    lowering.input(&input);
    for (index, node) in graph.nodes.iter().enumerate() {
        let name = match index + 1 {
            at if at == graph.policy => inner(POLICY, form),
            at if at == graph.value => inner(VALUE, form),
            _ => node.name.clone(),
        };
        lowering.node(&node.name, &name, &node.op, &node.inputs);
    }
    lowering.heads();
    // What is declared as output needs no declaration besides.
    let mut out = lowering.out;
    out.value_info.retain(|info| out.output.iter().all(|output| output.name != info.name));
    out
}

/// The name of a head's logits as the layers compute them: that of the output, unless something follows.
fn inner(head: &str, form: OnnxForm) -> String {
    match form {
        OnnxForm { half: true, .. } => format!("{head}.half"),
        OnnxForm { mask: true, .. } => logits(head),
        OnnxForm { .. } => head.to_owned(),
    }
}

fn logits(head: &str) -> String {
    format!("{head}.logits")
}

struct Lowering {
    out: proto::Graph,
    form: OnnxForm,
    /// Name and dimensions (without the batch's) of each value of the served graph.
    values: Vec<(String, Vec<usize>)>,
}

impl Lowering {
    fn element(&self) -> i32 {
        if self.form.half { element::FLOAT16 } else { element::FLOAT }
    }

    /// An operation with one output, in the number format of the layers.
    fn op(
        &mut self,
        op_type: &str,
        output: &str,
        inputs: Vec<String>,
        attributes: Vec<proto::Attribute>,
        shape: &[usize],
    ) {
        let element = self.element();
        self.op_of(op_type, output, inputs, attributes, element, shape);
    }

    fn op_of(
        &mut self,
        op_type: &str,
        output: &str,
        input: Vec<String>,
        attribute: Vec<proto::Attribute>,
        element: i32,
        shape: &[usize],
    ) {
        let name = format!("{output}/{op_type}");
        let output = vec![output.to_owned()];
        self.out.value_info.push(described(&output[0], element, shape, ""));
        self.out.node.push(proto::Node { input, output, name, op_type: op_type.to_owned(), attribute });
    }

    fn cast(&mut self, from: &str, to: &str, element: i32, shape: &[usize]) {
        self.op_of("Cast", to, vec![from.to_owned()], vec![int("to", i64::from(element))], element, shape);
    }

    fn input(&mut self, shape: &[usize]) {
        let mut name = INPUT.to_owned();
        if self.form.half {
            name = format!("{INPUT}.half");
            self.cast(INPUT, &name, element::FLOAT16, shape);
        }
        self.values.push((name, shape.to_vec()));
    }

    /// One operation of the served graph, called `label`, with the output `output`.
    fn node(&mut self, label: &str, output: &str, op: &Op, inputs: &[usize]) {
        let mut names: Vec<String> = inputs.iter().map(|&input| self.values[input].0.clone()).collect();
        let mut shape = self.values[inputs[0]].1.clone();
        match op {
            Op::Conv(affine) => {
                names.extend(self.affine(label, affine));
                shape[0] = affine.shape[0];
                self.op("Conv", output, names, conv_attributes(affine.shape[2]), &shape);
            }
            Op::Linear(affine) if self.form.half => {
                // As a product and a sum: tract's Gemm is for float32 alone.
                shape = vec![affine.shape[0]];
                let [weight, bias] = self.affine(label, &transposed(affine));
                let product = format!("{label}.product");
                self.op("MatMul", &product, vec![names.remove(0), weight], vec![], &shape);
                self.op("Add", output, vec![product, bias], vec![], &shape);
            }
            Op::Linear(affine) => {
                names.extend(self.affine(label, affine));
                shape = vec![affine.shape[0]];
                self.op("Gemm", output, names, vec![int("transB", 1)], &shape);
            }
            Op::Relu => self.op("Relu", output, names, vec![], &shape),
            Op::Add => self.op("Add", output, names, vec![], &shape),
            Op::Flatten => {
                shape = vec![shape.iter().product()];
                self.op("Flatten", output, names, vec![int("axis", 1)], &shape);
            }
            Op::Concat => {
                shape[0] = inputs.iter().map(|&input| self.values[input].1[0]).sum();
                self.op("Concat", output, names, vec![int("axis", 1)], &shape);
            }
            Op::Pool => {
                shape = vec![shape[0], 1, 1];
                let [mean, peak] = ["mean", "max"].map(|kind| format!("{label}.{kind}"));
                self.op("GlobalAveragePool", &mean, names.clone(), vec![], &shape);
                self.op("GlobalMaxPool", &peak, names, vec![], &shape);
                shape[0] *= 2;
                self.op("Concat", output, vec![mean, peak], vec![int("axis", 1)], &shape);
            }
        }
        self.values.push((output.to_owned(), shape));
    }

    /// What follows the layers: float32 again, the mask, probabilities.
    fn heads(&mut self) {
        for head in [POLICY, VALUE] {
            let name = inner(head, self.form);
            let found = self.values.iter().find(|(value, _)| *value == name).expect("a graph has both heads");
            let shape = found.1.clone();
            let mut last = name;
            if self.form.half {
                let to = if self.form.mask { logits(head) } else { head.to_owned() };
                self.cast(&last, &to, element::FLOAT, &shape);
                last = to;
            }
            if self.form.mask {
                if head == POLICY {
                    let (masked, illegal) = (format!("{POLICY}.masked"), format!("{POLICY}.illegal"));
                    self.out.initializer.push(tensor(&illegal, &[], &[ILLEGAL], false));
                    let names = vec![LEGAL.to_owned(), last, illegal];
                    self.op_of("Where", &masked, names, vec![], element::FLOAT, &shape);
                    last = masked;
                }
                self.op_of("Softmax", head, vec![last], vec![int("axis", 1)], element::FLOAT, &shape);
            }
        }
    }

    /// Adds weight and bias as initializers and returns their names.
    fn affine(&mut self, name: &str, affine: &Affine) -> [String; 2] {
        let names = [format!("{name}.weight"), format!("{name}.bias")];
        self.out.initializer.push(tensor(&names[0], &affine.shape, &affine.weight, self.form.half));
        self.out.initializer.push(tensor(&names[1], &[affine.bias.len()], &affine.bias, self.form.half));
        names
    }
}

/// The same layer with its weight as `[I, O]`.
fn transposed(affine: &Affine) -> Affine {
    let [outputs, inputs] = [affine.shape[0], affine.shape[1]];
    let weight = (0..inputs).flat_map(|i| (0..outputs).map(move |o| affine.weight[o * inputs + i])).collect();
    Affine { shape: vec![inputs, outputs], weight, bias: affine.bias.clone() }
}

fn conv_attributes(size: usize) -> Vec<proto::Attribute> {
    let (size, pad) = (size as i64, (size / 2) as i64);
    vec![ints("kernel_shape", vec![size; 2]), ints("pads", vec![pad; 4]), ints("strides", vec![1; 2])]
}

fn int(name: &str, value: i64) -> proto::Attribute {
    const INT: i32 = 2;
    proto::Attribute { name: name.into(), i: Some(value), ints: vec![], r#type: INT }
}

fn ints(name: &str, values: Vec<i64>) -> proto::Attribute {
    const INTS: i32 = 7;
    proto::Attribute { name: name.into(), i: None, ints: values, r#type: INTS }
}

fn tensor(name: &str, shape: &[usize], data: &[f32], half: bool) -> proto::Tensor {
    let raw_data = if half {
        data.iter().flat_map(|&x| f16::from_f32(x).to_le_bytes()).collect()
    } else {
        data.iter().flat_map(|x| x.to_le_bytes()).collect()
    };
    proto::Tensor {
        dims: shape.iter().map(|&d| d as i64).collect(),
        data_type: if half { element::FLOAT16 } else { element::FLOAT },
        name: name.into(),
        raw_data,
    }
}

/// A value with its type, shape and what a person should know about it.
fn described(name: &str, elem_type: i32, dimensions: &[usize], doc: &str) -> proto::ValueInfo {
    use proto::dimension::Value;
    let batch = Value::DimParam("batch".into());
    let sizes = dimensions.iter().map(|&d| Value::DimValue(d as i64));
    let dim = std::iter::once(batch).chain(sizes).map(|value| proto::Dimension { value: Some(value) }).collect();
    let shape = Some(proto::TensorShape { dim });
    let r#type = Some(proto::Type { tensor_type: Some(proto::TensorType { elem_type, shape }) });
    proto::ValueInfo { name: name.into(), r#type, doc_string: doc.into() }
}

#[cfg(test)]
mod tests;
