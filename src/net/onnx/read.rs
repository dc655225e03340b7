//! ONNX files of ours, read back: their weights are taken, nothing in them is executed.
//!
//! A file is accepted only when its graph is, node by node, the one that this program writes for the network that the file says
//! it holds. So whatever serves a network serves it, on every engine and in every precision.

use half::f16;
use prost::Message as _;

use super::{OnnxForm, element, lower, proto, transposed};
use crate::net::graph::{Affine, Graph};
use crate::net::spec::NetSpec;
use crate::net::weights::{Weights, floats};

/// Whether the bytes begin as an ONNX file: IR version, then another field.
pub(crate) fn looks_like(bytes: &[u8]) -> bool {
    // The next field of a model may be any of producer, domain, version, text, graph, operator sets, metadata.
    matches!(bytes, [0x08, 1..=0x7f, 0x12 | 0x1a | 0x22 | 0x28 | 0x32 | 0x3a | 0x42 | 0x72, ..])
}

/// An ONNX file, before its graph is looked at.
pub(crate) struct OnnxFile {
    model: proto::Model,
    /// A field that no file of ours has.
    unknown: Option<u32>,
}

/// Fields in all messages of a file: more than any network of ours has (80 blocks: some ten thousand), and few enough that what
/// is made of them stays below half a gigabyte.
const MOST_FIELDS: usize = 2_000_000;

/// The messages of an ONNX file.
///
/// # Errors
/// When it is none, or cut short.
pub(crate) fn parse(bytes: &[u8]) -> Result<OnnxFile, String> {
    let broken = |error| format!("it is cut short or no ONNX file ({error})");
    let weighed = proto::Weigh::model(bytes).map_err(broken)?;
    if weighed.fields > MOST_FIELDS {
        return Err(format!("{} fields are more than a network of sparring has", weighed.fields));
    }
    let model = proto::Model::decode(bytes).map_err(broken)?;
    Ok(OnnxFile { model, unknown: weighed.unknown })
}

impl OnnxFile {
    /// An entry of its metadata.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        self.model.metadata_props.iter().find(|entry| entry.key == key).map(|entry| entry.value.as_str())
    }

    /// The form of the file.
    pub fn form(&self) -> OnnxForm {
        let graph = self.model.graph.as_ref();
        OnnxForm {
            half: graph
                .and_then(|graph| graph.initializer.first())
                .is_some_and(|first| first.data_type == element::FLOAT16),
            mask: graph.is_some_and(|graph| graph.input.len() > 1),
        }
    }

    /// The weights, normalisations folded away, if the file holds the network `spec` as this program writes it.
    ///
    /// # Errors
    /// Says what differs.
    pub fn weights(&self, spec: &NetSpec) -> Result<Weights, String> {
        if let Some(field) = self.unknown {
            return Err(format!("it has something that no file of sparring has (field {field} of a message)"));
        }
        if self.model.opset_import != super::opsets() {
            return Err("its operator sets are not those that this version of sparring writes".into());
        }
        let graph = self.model.graph.as_ref().ok_or("it holds no graph")?;
        spec.validate().map_err(|error| error.to_string())?;
        // Before anything of the size that the description asks for is made.
        let (asked, held) = (spec.parameter_count(), graph.initializer.iter().map(|t| t.raw_data.len()).sum::<usize>());
        if asked / 2 > held {
            return Err(format!("it describes a network of {asked} numbers and holds {held} bytes of them"));
        }
        let mut served = Graph::new(spec, &Weights::identity(spec)).map_err(|error| error.to_string())?;
        let expected = lower(spec, &served, self.form());
        for (what, same) in [
            ("operations", graph.node == expected.node),
            ("inputs", graph.input == expected.input),
            ("outputs", graph.output == expected.output),
        ] {
            if !same {
                return Err(format!(
                    "its {what} are not those that this version of sparring writes for such a network"
                ));
            }
        }
        let head = |tensor: &proto::Tensor| (tensor.name.clone(), tensor.dims.clone(), tensor.data_type);
        if graph.initializer.iter().map(head).ne(expected.initializer.iter().map(head)) {
            return Err("its tensors are not those of such a network".into());
        }
        let mut tensors = graph.initializer.iter();
        let mut fill = |data: &mut Vec<f32>| -> Result<(), String> {
            let tensor = tensors.next().ok_or("a tensor is missing")?;
            let numbers: Vec<f32> = if tensor.data_type == element::FLOAT16 {
                tensor.raw_data.chunks_exact(2).map(|b| f16::from_le_bytes([b[0], b[1]]).to_f32()).collect()
            } else {
                floats(&tensor.raw_data)
            };
            if numbers.len() != data.len() {
                return Err(format!(
                    "tensor `{}` has {} numbers instead of {}",
                    tensor.name,
                    numbers.len(),
                    data.len()
                ));
            }
            *data = numbers;
            Ok(())
        };
        let half = self.form().half;
        for (_, affine) in served.layers_mut() {
            fill(&mut affine.weight)?;
            fill(&mut affine.bias)?;
            // Linear layers lie the other way round there.
            if let ([outputs, inputs], true) = (&affine.shape[..], half) {
                let stored = Affine { shape: vec![*inputs, *outputs], ..affine.clone() };
                affine.weight = transposed(&stored).weight;
            }
        }
        served.unfolded(spec)
    }
}
