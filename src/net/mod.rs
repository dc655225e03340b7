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
mod torchscript;
mod weights;

pub use checkpoint::{
    Checkpoint, CheckpointError, CheckpointInfo, FORMAT, FileKind, GameMismatch, KEY, description_digest,
};
pub use choice::{Available, ChoiceError, DeviceName, Engine, EngineChoice, Precision, Resolved};
pub use eager::EagerInference;
pub use evaluator::NetEvaluator;
pub use infer::{Heads, Inference, InferenceFactory, OpenError, available, fast_bfloat16, has_amx, torch_device};
pub use onnx::{INPUT, LEGAL, OPSET, OnnxForm, POLICY, VALUE, to_onnx};
pub use openvino::openvino_version;
pub use spec::{
    Architecture, AuxiliaryHeads, Mlp, NORM_EPSILON, NetSpec, Resnet, Role, SpecError, TensorInfo, VALUE_OUTPUTS,
    is_auxiliary,
};
pub use torch::{NORM_MOMENTUM, Parameter, TorchError, TorchHeads, TorchNet};
pub use torchscript::{DESCRIPTION, Script, to_torchscript};
pub use weights::{WeightTensor, Weights, WeightsError};

/// The weights that are served: normalisations folded away, and rounded to float16 where `half`. As weights of the same network,
/// whose normalisations then do nothing.
///
/// # Errors
/// When the weights are not those of the network.
pub fn served_weights(spec: &NetSpec, weights: &Weights, half: bool) -> Result<Weights, WeightsError> {
    let mut graph = graph::Graph::new(spec, weights)?;
    if half {
        graph.round_to_half();
    }
    Ok(graph.unfolded(spec).expect("a graph that was made from such weights is that of such a network"))
}
