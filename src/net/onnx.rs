//! The network in ONNX form, written by own code from the served graph: no Python, no exporter.
//!
//! The message types are the part of `onnx.proto` (ONNX 1.12, IR version 8) that such a network needs; field
//! numbers are those of the schema.

use prost::Message as _;

use crate::net::graph::{Affine, Graph, Op};
use crate::net::spec::{NetSpec, VALUE_OUTPUTS};
use crate::net::weights::{Weights, WeightsError};

/// Name of the input: encoded positions, `[batch, C, H, W]`, float32.
pub const INPUT: &str = "planes";
/// Name of the first output: policy logits, `[batch, A]`.
pub const POLICY: &str = "policy";
/// Name of the second output: logits of win, draw, loss of the player to move, `[batch, 3]`.
pub const VALUE: &str = "value";

/// Version of the operator set.
const OPSET: i64 = 17;
/// Version of the file format that belongs to it.
const IR_VERSION: i64 = 8;

/// The bytes of an `.onnx` file: dynamic batch axis, normalisation folded, `metadata` as its key-value properties.
/// The same arguments always give the same bytes.
///
/// # Errors
/// When the weights are not those of the network.
pub fn to_onnx(spec: &NetSpec, weights: &Weights, metadata: &[(String, String)]) -> Result<Vec<u8>, WeightsError> {
    Ok(model(spec, &Graph::new(spec, weights)?, metadata, env!("CARGO_PKG_VERSION")).encode_to_vec())
}

fn model(spec: &NetSpec, graph: &Graph, metadata: &[(String, String)], version: &str) -> proto::Model {
    let (input, policy) = (spec.input, spec.action_count());
    proto::Model {
        ir_version: IR_VERSION,
        producer_name: "sparring".into(),
        producer_version: version.into(),
        graph: Some(proto::Graph {
            name: "policy_value_network".into(),
            input: vec![value_info(INPUT, &[input.channels, input.height, input.width])],
            output: vec![value_info(POLICY, &[policy]), value_info(VALUE, &[VALUE_OUTPUTS])],
            ..lower(graph)
        }),
        opset_import: vec![proto::OperatorSetId { domain: String::new(), version: OPSET }],
        metadata_props: metadata
            .iter()
            .map(|(key, value)| proto::StringStringEntry { key: key.clone(), value: value.clone() })
            .collect(),
    }
}

/// The nodes and initializers of the graph.
fn lower(graph: &Graph) -> proto::Graph {
    let name = |index: usize| match index {
        0 => INPUT.to_owned(),
        _ if index == graph.policy => POLICY.to_owned(),
        _ if index == graph.value => VALUE.to_owned(),
        _ => graph.nodes[index - 1].name.clone(),
    };
    let mut out = proto::Graph::default();
    for (index, node) in graph.nodes.iter().enumerate() {
        let mut inputs: Vec<String> = node.inputs.iter().map(|&input| name(input)).collect();
        let output = name(index + 1);
        let (op_type, attributes) = match &node.op {
            Op::Conv(affine) => {
                inputs.extend(out.add_affine(&node.name, affine));
                ("Conv", conv_attributes(affine.shape[2]))
            }
            Op::Linear(affine) => {
                inputs.extend(out.add_affine(&node.name, affine));
                ("Gemm", vec![int("transB", 1)])
            }
            Op::Relu => ("Relu", vec![]),
            Op::Add => ("Add", vec![]),
            Op::Flatten => ("Flatten", vec![int("axis", 1)]),
            Op::Concat => ("Concat", vec![int("axis", 1)]),
            Op::Pool => {
                let [mean, peak] = ["mean", "max"].map(|kind| format!("{}.{kind}", node.name));
                out.node.push(proto_node("GlobalAveragePool", &mean, inputs.clone(), vec![]));
                out.node.push(proto_node("GlobalMaxPool", &peak, inputs, vec![]));
                inputs = vec![mean, peak];
                ("Concat", vec![int("axis", 1)])
            }
        };
        out.node.push(proto_node(op_type, &output, inputs, attributes));
    }
    out
}

impl proto::Graph {
    /// Adds weight and bias as initializers and returns their names.
    fn add_affine(&mut self, name: &str, affine: &Affine) -> [String; 2] {
        let names = [format!("{name}.weight"), format!("{name}.bias")];
        self.initializer.push(tensor(&names[0], &affine.shape, &affine.weight));
        self.initializer.push(tensor(&names[1], &affine.shape[..1], &affine.bias));
        names
    }
}

fn conv_attributes(size: usize) -> Vec<proto::Attribute> {
    let (size, pad) = (size as i64, (size / 2) as i64);
    vec![ints("kernel_shape", vec![size; 2]), ints("pads", vec![pad; 4]), ints("strides", vec![1; 2])]
}

fn proto_node(op_type: &str, output: &str, input: Vec<String>, attribute: Vec<proto::Attribute>) -> proto::Node {
    let name = format!("{output}/{op_type}");
    proto::Node { input, output: vec![output.to_owned()], name, op_type: op_type.to_owned(), attribute }
}

fn int(name: &str, value: i64) -> proto::Attribute {
    const INT: i32 = 2;
    proto::Attribute { name: name.into(), i: Some(value), ints: vec![], r#type: INT }
}

fn ints(name: &str, values: Vec<i64>) -> proto::Attribute {
    const INTS: i32 = 7;
    proto::Attribute { name: name.into(), i: None, ints: values, r#type: INTS }
}

const FLOAT: i32 = 1;

fn tensor(name: &str, shape: &[usize], data: &[f32]) -> proto::Tensor {
    proto::Tensor {
        dims: shape.iter().map(|&d| d as i64).collect(),
        data_type: FLOAT,
        name: name.into(),
        raw_data: data.iter().flat_map(|x| x.to_le_bytes()).collect(),
    }
}

fn value_info(name: &str, dimensions: &[usize]) -> proto::ValueInfo {
    use proto::dimension::Value;
    let batch = Value::DimParam("batch".into());
    let sizes = dimensions.iter().map(|&d| Value::DimValue(d as i64));
    let dim = std::iter::once(batch).chain(sizes).map(|value| proto::Dimension { value: Some(value) }).collect();
    let shape = Some(proto::TensorShape { dim });
    let r#type = Some(proto::Type { tensor_type: Some(proto::TensorType { elem_type: FLOAT, shape }) });
    proto::ValueInfo { name: name.into(), r#type }
}

/// The needed subset of `onnx.proto`.
mod proto {
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Model {
        #[prost(int64, tag = "1")]
        pub ir_version: i64,
        #[prost(string, tag = "2")]
        pub producer_name: String,
        #[prost(string, tag = "3")]
        pub producer_version: String,
        #[prost(message, optional, tag = "7")]
        pub graph: Option<Graph>,
        #[prost(message, repeated, tag = "8")]
        pub opset_import: Vec<OperatorSetId>,
        #[prost(message, repeated, tag = "14")]
        pub metadata_props: Vec<StringStringEntry>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct OperatorSetId {
        #[prost(string, tag = "1")]
        pub domain: String,
        #[prost(int64, tag = "2")]
        pub version: i64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct StringStringEntry {
        #[prost(string, tag = "1")]
        pub key: String,
        #[prost(string, tag = "2")]
        pub value: String,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Graph {
        #[prost(message, repeated, tag = "1")]
        pub node: Vec<Node>,
        #[prost(string, tag = "2")]
        pub name: String,
        #[prost(message, repeated, tag = "5")]
        pub initializer: Vec<Tensor>,
        #[prost(message, repeated, tag = "11")]
        pub input: Vec<ValueInfo>,
        #[prost(message, repeated, tag = "12")]
        pub output: Vec<ValueInfo>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Node {
        #[prost(string, repeated, tag = "1")]
        pub input: Vec<String>,
        #[prost(string, repeated, tag = "2")]
        pub output: Vec<String>,
        #[prost(string, tag = "3")]
        pub name: String,
        #[prost(string, tag = "4")]
        pub op_type: String,
        #[prost(message, repeated, tag = "5")]
        pub attribute: Vec<Attribute>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Attribute {
        #[prost(string, tag = "1")]
        pub name: String,
        #[prost(int64, optional, tag = "3")]
        pub i: Option<i64>,
        #[prost(int64, repeated, packed = "false", tag = "8")]
        pub ints: Vec<i64>,
        #[prost(int32, tag = "20")]
        pub r#type: i32,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Tensor {
        #[prost(int64, repeated, packed = "false", tag = "1")]
        pub dims: Vec<i64>,
        #[prost(int32, tag = "2")]
        pub data_type: i32,
        #[prost(string, tag = "8")]
        pub name: String,
        #[prost(bytes = "vec", tag = "9")]
        pub raw_data: Vec<u8>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct ValueInfo {
        #[prost(string, tag = "1")]
        pub name: String,
        #[prost(message, optional, tag = "2")]
        pub r#type: Option<Type>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Type {
        #[prost(message, optional, tag = "1")]
        pub tensor_type: Option<TensorType>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct TensorType {
        #[prost(int32, tag = "1")]
        pub elem_type: i32,
        #[prost(message, optional, tag = "2")]
        pub shape: Option<TensorShape>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct TensorShape {
        #[prost(message, repeated, tag = "1")]
        pub dim: Vec<Dimension>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Dimension {
        #[prost(oneof = "dimension::Value", tags = "1, 2")]
        pub value: Option<dimension::Value>,
    }

    pub mod dimension {
        #[derive(Clone, PartialEq, prost::Oneof)]
        pub enum Value {
            #[prost(int64, tag = "1")]
            DimValue(i64),
            #[prost(string, tag = "2")]
            DimParam(String),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::spec::Role;
    use crate::net::testing::specs;
    use crate::net::weights::{Digest, WeightTensor};

    /// Weights that no random number and no mathematical library has touched.
    fn plain(spec: &NetSpec) -> Weights {
        let tensor = |role: Role, length: usize| -> Vec<f32> {
            let step = |i: usize| (i % 13) as f32 - 6.0;
            let number = |i| if role == Role::Variance { 1.0 + (i % 3) as f32 } else { step(i) / 16.0 };
            (0..length).map(number).collect()
        };
        let infos = spec.tensors().into_iter();
        Weights(
            infos
                .map(|info| {
                    let data = tensor(info.role, info.len());
                    (info.name, WeightTensor { shape: info.shape, data })
                })
                .collect(),
        )
    }

    #[test]
    fn the_bytes_are_the_known_ones() {
        let metadata = [("game".to_owned(), "toy".to_owned())];
        let digests: Vec<String> = specs()
            .iter()
            .map(|spec| {
                let mut digest = Digest::default();
                let graph = Graph::new(spec, &plain(spec)).unwrap();
                digest.bytes(&model(spec, &graph, &metadata, "test").encode_to_vec());
                digest.to_string()
            })
            .collect();
        // They change when the writer or a network's structure does; check the new files with ONNX's own checker
        // before the digests are replaced.
        let known = [
            "63d4687c6498b28e28c418cdc7d355a5",
            "5b1689eeeb13b8ea7985b2ac8368b532",
            "dbcf2d1351263d822d1be013f8243b12",
            "02ea3eb35f176112ba1b1571b650a78e",
        ];
        assert_eq!(digests, known);
    }

    #[test]
    fn the_file_can_be_read_back() {
        let spec = &specs()[0];
        let metadata = [("game".to_owned(), "toy".to_owned())];
        let model = proto::Model::decode(&to_onnx(spec, &plain(spec), &metadata).unwrap()[..]).unwrap();
        assert_eq!((model.ir_version, model.opset_import[0].version), (8, 17));
        assert_eq!((model.metadata_props[0].key.as_str(), model.metadata_props[0].value.as_str()), ("game", "toy"));
        let graph = model.graph.unwrap();
        assert_eq!(graph.input[0].name, INPUT);
        assert_eq!(graph.output.iter().map(|output| output.name.as_str()).collect::<Vec<_>>(), [POLICY, VALUE]);
        // Everything that is read has been written before, and nothing twice.
        let mut known: Vec<&str> = graph.initializer.iter().map(|tensor| tensor.name.as_str()).collect();
        known.push(INPUT);
        for node in &graph.node {
            assert!(node.input.iter().all(|name| known.contains(&name.as_str())), "{}", node.name);
            assert!(!known.contains(&node.output[0].as_str()), "{}", node.name);
            known.push(&node.output[0]);
        }
        assert!(known.contains(&POLICY) && known.contains(&VALUE));
    }
}
