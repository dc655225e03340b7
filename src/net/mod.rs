//! Policy/value networks: their description, their weights, the checkpoint file, and inference.

mod graph;
pub mod onnx;
pub mod spec;
pub mod torch;
pub mod weights;

pub use spec::{Architecture, Mlp, NetSpec, Resnet, SpecError};
pub use torch::{Parameter, TorchError, TorchHeads, TorchNet};
pub use weights::{WeightTensor, Weights, WeightsError};
