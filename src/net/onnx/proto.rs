//! The needed subset of `onnx.proto` (ONNX 1.12, IR version 8); field numbers are those of the schema.

use prost::DecodeError;
use prost::encoding::{self, DecodeContext, WireType};

#[derive(Clone, PartialEq, prost::Message)]
pub struct Model {
    #[prost(int64, tag = "1")]
    pub ir_version: i64,
    #[prost(string, tag = "2")]
    pub producer_name: String,
    #[prost(string, tag = "3")]
    pub producer_version: String,
    #[prost(string, tag = "6")]
    pub doc_string: String,
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
    #[prost(string, tag = "10")]
    pub doc_string: String,
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "13")]
    pub value_info: Vec<ValueInfo>,
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
    #[prost(string, tag = "3")]
    pub doc_string: String,
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

/// What a message holds, for [`Weigh`]: nothing below a `Leaf` has messages of its own.
#[derive(Clone, Copy)]
enum Kind {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
    ValueInfo,
    Type,
    TensorType,
    Shape,
    Leaf,
}

impl Kind {
    /// The kind of message in a field, if messages are in it.
    fn within(self, field: u32) -> Option<Self> {
        Some(match (self, field) {
            (Self::Model, 7) => Self::Graph,
            (Self::Model, 8 | 14) | (Self::Shape, 1) => Self::Leaf,
            (Self::Graph, 1) => Self::Node,
            (Self::Graph, 5) => Self::Tensor,
            (Self::Graph, 11..=13) => Self::ValueInfo,
            (Self::Node, 5) => Self::Attribute,
            (Self::ValueInfo, 2) => Self::Type,
            (Self::Type, 1) => Self::TensorType,
            (Self::TensorType, 2) => Self::Shape,
            _ => return None,
        })
    }

    /// Whether a field holds numbers that may be packed: each byte can become a number of eight.
    fn packs(self, field: u32) -> bool {
        matches!((self, field), (Self::Tensor, 1) | (Self::Attribute, 8))
    }

    /// Whether the messages above have such a field.
    fn knows(self, field: u32) -> bool {
        match self {
            Self::Model => matches!(field, 1 | 2 | 3 | 6 | 7 | 8 | 14),
            Self::Graph => matches!(field, 1 | 2 | 5 | 10..=13),
            Self::Node => matches!(field, 1..=5),
            Self::Attribute => matches!(field, 1 | 3 | 8 | 20),
            Self::Tensor => matches!(field, 1 | 2 | 8 | 9),
            Self::ValueInfo => matches!(field, 1..=3),
            Self::Type => field == 1,
            Self::TensorType | Self::Leaf => matches!(field, 1 | 2),
            Self::Shape => field == 1,
        }
    }
}

/// What is in the bytes of a [`Model`], counted before anything is made of them: a field of two bytes becomes a message of more
/// than a hundred.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Weigh {
    /// Fields in all messages, and numbers that may lie packed in them.
    pub fields: usize,
    /// The first field that none of these messages has, by its number.
    pub unknown: Option<u32>,
}

impl Weigh {
    /// Looks through the bytes of a model.
    ///
    /// # Errors
    /// When they are no messages.
    pub fn model(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut found = Self::default();
        found.message(Kind::Model, bytes)?;
        Ok(found)
    }

    fn message(&mut self, kind: Kind, mut rest: &[u8]) -> Result<(), DecodeError> {
        while !rest.is_empty() {
            let (field, wire) = encoding::decode_key(&mut rest)?;
            self.fields += 1;
            if !kind.knows(field) {
                self.unknown.get_or_insert(field);
            }
            let mut content = rest;
            encoding::skip_field(wire, field, &mut rest, DecodeContext::default())?;
            if wire != WireType::LengthDelimited {
                continue;
            }
            content = &content[..content.len() - rest.len()];
            encoding::decode_varint(&mut content)?;
            if let Some(inner) = kind.within(field) {
                self.message(inner, content)?;
            } else if kind.packs(field) {
                self.fields += content.len();
            }
        }
        Ok(())
    }
}
