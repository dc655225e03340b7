//! Policy/value networks: their description, their weights, the checkpoint file, and inference.
//!
//! A [`NetSpec`] says what a network is, [`Weights`] hold its numbers, a [`Checkpoint`] is both in one file.
//! [`TorchNet`] trains it. For play, [`InferenceFactory`] folds the normalisation into the convolutions and serves
//! it on the chosen engine, and [`NetEvaluator`] answers a search's leaves.

mod checkpoint;
mod choice;
mod eager;
mod evaluator;
mod graph;
mod infer;
mod onnx;
mod openvino;
mod spec;
#[cfg(test)]
mod testing;
mod torch;
mod torch_infer;
mod weights;

pub use checkpoint::{Checkpoint, CheckpointError, CheckpointInfo, FORMAT, GameMismatch, description_digest};
pub use choice::{Available, ChoiceError, DeviceName, Engine, EngineChoice, Precision, Resolved};
pub use eager::EagerInference;
pub use evaluator::NetEvaluator;
pub use infer::{Heads, Inference, InferenceFactory, OpenError, available, has_amx, torch_device};
pub use onnx::{INPUT, POLICY, VALUE, to_onnx};
pub use openvino::openvino_version;
pub use spec::{Architecture, Mlp, NORM_EPSILON, NetSpec, Resnet, Role, SpecError, TensorInfo, VALUE_OUTPUTS};
pub use torch::{NORM_MOMENTUM, Parameter, TorchError, TorchHeads, TorchNet};
pub use weights::{WeightTensor, Weights, WeightsError};
