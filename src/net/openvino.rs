//! Inference with OpenVINO on CPUs, fed with the network's ONNX form from memory.
//!
//! Each worker compiles its own copy with one stream of one thread: the work then runs in the calling thread,
//! workers share nothing, and two of them do twice as much as one. Core pinning is off, because every stream
//! would be pinned to the same core.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use openvino::{
    Core, DeviceType, ElementType, InferRequest, InferenceError, PropertyKey, RwPropertyKey, Shape, Tensor,
};

use crate::eval::EvalError;
use crate::net::choice::Precision;
use crate::net::infer::{Heads, Inference};
use crate::net::onnx::{POLICY, VALUE};
use crate::net::spec::{NetSpec, VALUE_OUTPUTS};
use crate::util::places;
use crate::util::text::one_line;

/// The largest batch: beyond it the activations of a typical network no longer fit into a core's cache, and
/// throughput falls.
const MAX_BATCH: usize = 128;

/// Loads the library, once for the process.
///
/// # Errors
/// Says why it cannot be used, as a clause to put behind a comma.
pub(crate) fn load() -> Result<(), String> {
    static LOADED: OnceLock<Result<(), String>> = OnceLock::new();
    LOADED.get_or_init(|| load_from(&places::openvino_dir().ok_or("it is not installed")?)).clone()
}

fn load_from(folder: &Path) -> Result<(), String> {
    let library =
        places::openvino_c_library(folder).ok_or_else(|| format!("{} holds no libopenvino_c", folder.display()))?;
    openvino_sys::library::load_from(library)
}

/// Loads the library of `folder` with its CPU part and says its version (`2026.4.1`).
///
/// # Errors
/// Says why it cannot be used.
pub fn openvino_version(folder: &Path) -> Result<String, String> {
    load_from(folder)?;
    let core = Core::new().map_err(|error| one_line(&error.to_string()))?;
    core.versions("CPU").map_err(|error| format!("its CPU part does not load ({})", one_line(&error.to_string())))?;
    // "2026.4.1-22982-e213a147257-releases/2026/4": the rest is of interest to its makers.
    let build = openvino::version().build_number;
    Ok(build.split('-').next().unwrap_or(&build).to_owned())
}

/// One worker's compiled network.
pub(crate) struct OpenVinoInference {
    plane_len: usize,
    shape: [i64; 3],
    action_count: usize,
    request: InferRequest,
    sizes: Sizes,
    /// Input tensors by number of positions.
    inputs: BTreeMap<usize, Tensor>,
    /// The outputs of the last run, kept so that they can be read in place.
    outputs: Option<[Tensor; 2]>,
}

impl OpenVinoInference {
    /// Compiles the network; `onnx` is its ONNX form.
    ///
    /// # Errors
    /// When OpenVINO cannot be used, or the CPU lacks the precision.
    pub fn new(spec: &NetSpec, onnx: &[u8], precision: Precision) -> Result<Self, EvalError> {
        load().map_err(|why| EvalError(format!("OpenVINO cannot be used, {why}")))?;
        let setup = |error: &dyn std::fmt::Display| {
            EvalError(format!("OpenVINO cannot be started: {}", one_line(&error.to_string())))
        };
        let mut core = Core::new().map_err(|error| setup(&error))?;
        let hint = match precision {
            Precision::Auto | Precision::F32 => "f32",
            Precision::Bf16 => "bf16",
            Precision::F16 => "f16",
        };
        for (key, value) in [
            (RwPropertyKey::NumStreams, "1"),
            (RwPropertyKey::InferenceNumThreads, "1"),
            (RwPropertyKey::HintEnableCpuPinning, "NO"),
            (RwPropertyKey::HintInferencePrecision, hint),
        ] {
            core.set_property(&DeviceType::CPU, &key, value).map_err(failed)?;
        }
        let model = core.read_model_from_buffer(onnx, None).map_err(failed)?;
        let mut compiled = core.compile_model(&model, DeviceType::CPU).map_err(failed)?;
        let used = compiled.get_property(&PropertyKey::Rw(RwPropertyKey::HintInferencePrecision)).map_err(failed)?;
        if used != hint {
            let advice = "choose `precision` auto or f32";
            return Err(EvalError(format!("OpenVINO computes in {used} instead of {hint} on this CPU: {advice}")));
        }
        let input = spec.input;
        Ok(Self {
            plane_len: input.len(),
            shape: [input.channels, input.height, input.width].map(|size| size as i64),
            action_count: spec.action_count(),
            request: compiled.create_infer_request().map_err(failed)?,
            sizes: Sizes::default(),
            inputs: BTreeMap::new(),
            outputs: None,
        })
    }
}

impl Inference for OpenVinoInference {
    fn max_batch(&self) -> usize {
        MAX_BATCH
    }

    fn input(&mut self, batch: usize) -> Result<&mut [f32], EvalError> {
        let size = self.sizes.padded(batch)?;
        let tensor = match self.inputs.entry(size) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                let [channels, height, width] = self.shape;
                let shape = Shape::new(&[size as i64, channels, height, width]).map_err(failed)?;
                entry.insert(Tensor::new(ElementType::F32, &shape).map_err(failed)?)
            }
        };
        let planes = tensor.get_data_mut::<f32>().map_err(failed)?;
        let planes = &mut planes[..batch * self.plane_len];
        planes.fill(0.0);
        Ok(planes)
    }

    fn run(&mut self, batch: usize) -> Result<Heads<'_>, EvalError> {
        let size = self.sizes.last;
        let input = self.inputs.get(&size).filter(|_| batch <= size).ok_or_else(|| missing_input(batch))?;
        self.request.set_input_tensor(input).map_err(failed)?;
        self.request.infer().map_err(failed)?;
        let output = |name| self.request.get_tensor(name).map_err(failed);
        let [policy, value] = self.outputs.insert([output(POLICY)?, output(VALUE)?]);
        let (policy, value) = (policy.get_data::<f32>().map_err(failed)?, value.get_data::<f32>().map_err(failed)?);
        let wanted = (size * self.action_count, size * VALUE_OUTPUTS);
        if (policy.len(), value.len()) != wanted {
            return Err(EvalError(format!("OpenVINO gave {} and {} numbers", policy.len(), value.len())));
        }
        Ok(Heads { policy: &policy[..batch * self.action_count], value: &value[..batch * VALUE_OUTPUTS] })
    }
}

fn failed(error: InferenceError) -> EvalError {
    EvalError(format!("OpenVINO failed: {}", one_line(&error.to_string())))
}

pub(crate) fn missing_input(batch: usize) -> EvalError {
    EvalError(format!("the planes of {batch} positions were not written before they were evaluated"))
}

/// For how many positions the network is run.
///
/// OpenVINO makes code for each batch size when it first meets it, which takes as long as thousands of
/// evaluations. So batches are padded to a few sizes; one that comes back often gets its own.
#[derive(Debug, Default)]
struct Sizes {
    last: usize,
    /// How often each size was asked for.
    asked: BTreeMap<usize, u32>,
}

impl Sizes {
    /// After so many requests a size is no longer padded.
    const OFTEN: u32 = 200;

    fn padded(&mut self, batch: usize) -> Result<usize, EvalError> {
        if batch == 0 || batch > MAX_BATCH {
            return Err(EvalError(format!("a batch of {batch} positions; allowed are 1 to {MAX_BATCH}")));
        }
        let asked = self.asked.entry(batch).or_default();
        *asked = asked.saturating_add(1);
        self.last = if *asked > Self::OFTEN { batch } else { ladder(batch) };
        Ok(self.last)
    }
}

/// The next of 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, ...: at most a third is padding.
fn ladder(batch: usize) -> usize {
    let power = batch.next_power_of_two();
    let between = power / 4 * 3;
    if power >= 4 && batch <= between { between } else { power }
}
