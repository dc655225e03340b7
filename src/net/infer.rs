//! Inference: batches of encoded positions in, logits out, on whichever engine was chosen.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use crate::eval::EvalError;
use crate::net::choice::{Available, ChoiceError, DeviceName, Engine, EngineChoice, Precision, Resolved};
use crate::net::graph::Graph;
use crate::net::onnx::{OnnxForm, to_onnx};
use crate::net::openvino::{self, OpenVinoInference};
use crate::net::spec::NetSpec;
use crate::net::torch_infer::TorchInference;
use crate::net::weights::{Weights, WeightsError};
use crate::util::machine;

/// What the network says about a batch of `B` positions.
#[derive(Clone, Copy, Debug)]
pub struct Heads<'a> {
    /// Policy logits, `[B, A]`.
    pub policy: &'a [f32],
    /// Logits of win, draw and loss of the player to move, `[B, 3]`.
    pub value: &'a [f32],
}

/// One worker's access to a network. The result for a position does not depend on the size of the batch, on its
/// order or on what else is in it.
pub trait Inference: Send {
    /// The most positions of one call; more are possible only in several calls.
    fn max_batch(&self) -> usize;

    /// The buffer for the planes of `batch` positions, `[batch, C, H, W]`, all zero.
    ///
    /// # Errors
    /// When the engine cannot make room.
    fn input(&mut self, batch: usize) -> Result<&mut [f32], EvalError>;

    /// Evaluates the planes last written into [`input`](Self::input) for the same `batch`.
    ///
    /// # Errors
    /// When the engine fails.
    fn run(&mut self, batch: usize) -> Result<Heads<'_>, EvalError>;
}

/// Inference could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The weights are not those of the network.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// The choice cannot be met on this machine.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EvalError),
}

/// A network ready to be served: makes one [`Inference`] for each worker thread.
pub struct InferenceFactory {
    spec: NetSpec,
    resolved: Resolved,
    plan: Plan,
    /// The worker that was made to see that all works, until it is handed out.
    first: Mutex<Option<Box<dyn Inference>>>,
}

/// What workers are made from.
enum Plan {
    /// The network's ONNX form.
    OpenVino(Vec<u8>),
    /// The served graph.
    Torch(Graph),
}

/// What this machine offers. Looks for OpenVINO and loads it.
pub fn available() -> Available {
    Available {
        cuda: usize::try_from(tch::Cuda::device_count()).unwrap_or(0),
        mps: tch::utils::has_mps(),
        openvino: openvino::load(),
        bfloat16: fast_bfloat16(),
    }
}

impl InferenceFactory {
    /// Prepares the network with these weights as `choice` says, and makes one worker to see that it works.
    ///
    /// # Errors
    /// When the weights do not fit, or the machine cannot do what was asked for.
    pub fn open(spec: &NetSpec, weights: &Weights, choice: &EngineChoice) -> Result<Self, OpenError> {
        Self::open_with(spec, weights, choice.resolve(&available())?)
    }

    /// [`open`](Self::open) with everything decided: for a new checkpoint of a run that goes on.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(spec: &NetSpec, weights: &Weights, resolved: Resolved) -> Result<Self, OpenError> {
        let plan = match resolved.engine {
            Engine::Openvino => Plan::OpenVino(to_onnx(spec, weights, OnnxForm::default(), &[])?),
            Engine::Auto | Engine::Libtorch => Plan::Torch(Graph::new(spec, weights)?),
        };
        let mut factory = Self { spec: spec.clone(), resolved, plan, first: Mutex::new(None) };
        let first = factory.worker()?;
        factory.first = Mutex::new(Some(first));
        Ok(factory)
    }

    /// Inference for one worker thread: its own memory and, on the CPU, one thread's worth of work.
    ///
    /// # Errors
    /// When the engine fails.
    pub fn worker(&self) -> Result<Box<dyn Inference>, OpenError> {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(worker) = first {
            return Ok(worker);
        }
        Ok(match &self.plan {
            Plan::OpenVino(onnx) => Box::new(OpenVinoInference::new(&self.spec, onnx, self.resolved.precision)?),
            Plan::Torch(graph) => {
                let (device, kind) = (torch_device(self.resolved.device), torch_kind(self.resolved.precision));
                Box::new(TorchInference::new(&self.spec, graph, device, kind)?)
            }
        })
    }

    /// The network.
    pub fn spec(&self) -> &NetSpec {
        &self.spec
    }

    /// What was chosen, and why.
    pub fn resolved(&self) -> &Resolved {
        &self.resolved
    }
}

impl fmt::Debug for InferenceFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InferenceFactory").field("spec", &self.spec).field("resolved", &self.resolved).finish()
    }
}

impl fmt::Display for InferenceFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.resolved)
    }
}

/// libtorch's name of a device; `auto` is the CPU.
pub fn torch_device(device: DeviceName) -> tch::Device {
    match device {
        DeviceName::Auto | DeviceName::Cpu => tch::Device::Cpu,
        DeviceName::Cuda(index) => tch::Device::Cuda(index),
        DeviceName::Mps => tch::Device::Mps,
    }
}

fn torch_kind(precision: Precision) -> tch::Kind {
    match precision {
        Precision::Auto | Precision::F32 => tch::Kind::Float,
        Precision::Bf16 => tch::Kind::BFloat16,
        Precision::F16 => tch::Kind::Half,
    }
}

/// The ability to multiply bfloat16 matrices.
const AMX: &str = "amx_bf16";

/// Whether the CPU evaluates networks faster in bfloat16 than in float32: with AMX, and on AMD's with AVX512-BF16 (Zen 4: 1.8 times
/// as fast in OpenVINO, 1.7 times in libtorch; 6x64 on 9x9). AVX512-BF16 on Intel's does not count: there, measured on Sapphire
/// Rapids without AMX, it takes more than twice the time of float32.
pub fn fast_bfloat16() -> bool {
    let cpu = machine::cpu();
    let has = |feature| cpu.features.contains(&feature);
    has(AMX) || (cpu.vendor == "AuthenticAMD" && has("avx512_bf16"))
}

/// Whether the CPU has AMX for bfloat16 and the operating system lets programs use it: the kernel lists the ability only
/// when it has enabled the registers.
pub fn has_amx() -> bool {
    machine::cpu().features.contains(&AMX)
}

#[cfg(test)]
#[path = "infer_tests.rs"]
mod tests;
