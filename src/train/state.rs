//! The file in which training is interrupted and goes on: one safetensors file with the weights, their average,
//! the optimizer's moments and the counters.
//!
//! Tensors are named `weights/NAME`, `average/NAME` and `MOMENT/NAME`, float32. The metadata holds, under the key
//! [`KEY`], a JSON document: the [`Header`] with its format number and a CRC-32 of everything else.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, Metadata, View};
use serde::{Deserialize, Serialize};

use crate::net::{NetSpec, TensorInfo, WeightTensor, Weights, WeightsError, is_auxiliary};
use crate::util::publish::{PublishError, write_atomic};

/// Raised when the meaning of the file changes.
pub const STATE_FORMAT: u32 = 1;

/// Where in the file's metadata the header lies.
const KEY: &str = "sparring_training_state";

/// Groups of tensors that every state has; the optimizer's moments follow.
const WEIGHTS: &str = "weights";
const AVERAGE: &str = "average";

/// A training state could not be saved or taken up. Nothing is ever taken up in part.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The file could not be read or written, is damaged, or has another format.
    #[error(transparent)]
    File(#[from] PublishError),
    /// The file is sound but belongs to another network.
    #[error("the training state {} is of another network: {source}", .file.display())]
    Network {
        /// The file.
        file: PathBuf,
        /// Which tensors differ.
        source: WeightsError,
    },
    /// The file is sound but its optimizer is another one.
    #[error(
        "the training state {} is of the optimizer `{found}`, the config says `{expected}`: set it back, or start \
         training anew from the checkpoint", .file.display()
    )]
    Optimizer {
        /// The file.
        file: PathBuf,
        /// Name of its optimizer.
        found: String,
        /// Name of the configured one.
        expected: String,
    },
    /// A moment has not the tensors of the network's parameters, or a number that cannot be.
    #[error("the training state {} does not fit: {}", .file.display(), .problems.join("; "))]
    Contents {
        /// The file.
        file: PathBuf,
        /// Everything that is wrong.
        problems: Vec<String>,
    },
    /// libtorch failed on the way.
    #[error("libtorch: {0}")]
    Torch(#[from] tch::TchError),
}

/// Everything that training goes on from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    /// Training steps made.
    pub step: u64,
    /// Steps of the optimizer.
    pub optimizer_steps: u64,
    /// Steps in the average.
    pub average_steps: u64,
    /// Name of the optimizer, as in the config.
    pub optimizer: String,
    /// The weights that are trained.
    pub weights: Weights,
    /// Their average, which plays.
    pub average: Weights,
    /// The optimizer's moments: name, and one tensor for each trainable one of the network.
    pub moments: Vec<(String, Weights)>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: u32,
    step: u64,
    optimizer_steps: u64,
    average_steps: u64,
    optimizer: String,
    moments: Vec<String>,
    checksum: String,
}

/// Only the number that says whether the rest can be understood.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

impl Header {
    fn of(state: &State) -> Self {
        let mut header = Self {
            format: STATE_FORMAT,
            step: state.step,
            optimizer_steps: state.optimizer_steps,
            average_steps: state.average_steps,
            optimizer: state.optimizer.clone(),
            moments: state.moments.iter().map(|(name, _)| name.clone()).collect(),
            checksum: String::new(),
        };
        header.checksum = header.sum(state);
        header
    }

    /// CRC-32 of this header without its checksum, and of every tensor's name, shape and numbers.
    fn sum(&self, state: &State) -> String {
        let mut sum = crc32fast::Hasher::new();
        let head = (self.format, self.step, self.optimizer_steps, self.average_steps, &self.optimizer, &self.moments);
        sum.update(format!("{head:?}").as_bytes());
        for (name, tensor) in state.tensors() {
            sum.update(format!("{name}{:?}", tensor.shape).as_bytes());
            sum.update(&tensor.bytes());
        }
        format!("{:08x}", sum.finalize())
    }
}

impl State {
    fn groups(&self) -> impl Iterator<Item = (&str, &Weights)> {
        let moments = self.moments.iter().map(|(name, moment)| (name.as_str(), moment));
        [(WEIGHTS, &self.weights), (AVERAGE, &self.average)].into_iter().chain(moments)
    }

    fn tensors(&self) -> impl Iterator<Item = (String, Named<'_>)> {
        self.groups().flat_map(|(group, weights)| {
            weights.0.iter().map(move |(name, tensor)| (format!("{group}/{name}"), Named(tensor)))
        })
    }

    /// Writes the state: the file appears whole or not at all, and an older one stays until then.
    pub(crate) fn save(&self, path: &Path) -> Result<(), StateError> {
        let header = serde_json::to_string(&Header::of(self)).expect("a header of numbers and names is JSON");
        // One entry: the order of several would not be the same each time.
        let metadata = HashMap::from([(KEY.to_owned(), header)]);
        let bytes = safetensors::serialize(self.tensors(), Some(metadata))
            .map_err(|error| PublishError::writing(path, "encode", std::io::Error::other(error.to_string())))?;
        Ok(write_atomic(path, &bytes)?)
    }

    /// Reads a state and checks all of it: format, checksum, that it is of this network and optimizer with all
    /// `moments`, and that every number is finite. Its auxiliary heads become those of `spec`: what is missing is taken from `fresh`.
    pub(crate) fn load(
        path: &Path,
        spec: &NetSpec,
        fresh: &Weights,
        optimizer: &str,
        moments: &[&str],
    ) -> Result<Self, StateError> {
        let bytes = std::fs::read(path).map_err(|source| PublishError::reading(path, source))?;
        let mut state = Self::decode(path, &bytes)?;
        state.adapt(spec, fresh);
        let file = path.to_owned();
        if state.optimizer != optimizer {
            return Err(StateError::Optimizer { file, found: state.optimizer, expected: optimizer.to_owned() });
        }
        for weights in [&state.weights, &state.average] {
            weights.check(spec).map_err(|source| StateError::Network { file: file.clone(), source })?;
        }
        let problems = state.moment_problems(spec, moments);
        if problems.is_empty() { Ok(state) } else { Err(StateError::Contents { file, problems }) }
    }

    /// Leaves the auxiliary heads that `spec` has not, and adds those that are new, with moments of zero.
    fn adapt(&mut self, spec: &NetSpec, fresh: &Weights) {
        let own: Vec<TensorInfo> = spec.tensors().into_iter().filter(|info| info.is_auxiliary()).collect();
        let moments = self.moments.iter_mut().map(|(_, moment)| (moment, false));
        for (group, is_weights) in [(&mut self.weights, true), (&mut self.average, true)].into_iter().chain(moments) {
            group.0.retain(|name, tensor| {
                let known = || own.iter().any(|info| info.name == *name && info.shape == tensor.shape);
                !is_auxiliary(name) || known()
            });
            for info in own.iter().filter(|info| is_weights || info.role.is_trainable()) {
                let zeros = || WeightTensor { shape: info.shape.clone(), data: vec![0.0; info.len()] };
                let tensor = || if is_weights { fresh.0[&info.name].clone() } else { zeros() };
                group.0.entry(info.name.clone()).or_insert_with(tensor);
            }
        }
    }

    fn decode(path: &Path, bytes: &[u8]) -> Result<Self, StateError> {
        let damaged = |what: String| PublishError::Damaged { file: path.to_owned(), what };
        let (start, metadata) = safetensors::SafeTensors::read_metadata(bytes).map_err(|e| damaged(e.to_string()))?;
        let header = metadata.metadata().as_ref().and_then(|map| map.get(KEY));
        let header = header.ok_or_else(|| damaged("it is no training state of this program".to_owned()))?;
        let Format { format } = serde_json::from_str(header).map_err(|e| damaged(format!("its header: {e}")))?;
        if format != STATE_FORMAT {
            let file = path.to_owned();
            return Err(PublishError::Format { file, found: format, expected: STATE_FORMAT }.into());
        }
        let header: Header = serde_json::from_str(header).map_err(|e| damaged(format!("its header: {e}")))?;
        let mut groups = read_groups(&metadata, &bytes[start + 8..]).map_err(damaged)?;
        let mut take = |group: &str| groups.remove(group).unwrap_or_default();
        let state = Self {
            step: header.step,
            optimizer_steps: header.optimizer_steps,
            average_steps: header.average_steps,
            optimizer: header.optimizer.clone(),
            weights: take(WEIGHTS),
            average: take(AVERAGE),
            moments: header.moments.iter().map(|name| (name.clone(), take(name))).collect(),
        };
        if let Some(group) = groups.keys().min() {
            return Err(damaged(format!("it holds unknown tensors `{group}/...`")).into());
        }
        if header.sum(&state) != header.checksum {
            return Err(damaged("its checksum is wrong, the contents were altered".to_owned()).into());
        }
        Ok(state)
    }

    fn moment_problems(&self, spec: &NetSpec, moments: &[&str]) -> Vec<String> {
        let names: Vec<&str> = self.moments.iter().map(|(name, _)| name.as_str()).collect();
        if names != moments {
            return vec![format!("its optimizer has the moments {names:?} instead of {moments:?}")];
        }
        let mut problems = Vec::new();
        let infos: Vec<_> = spec.tensors().into_iter().filter(|info| info.role.is_trainable()).collect();
        for (moment, tensors) in &self.moments {
            for info in &infos {
                let name = format!("{moment}/{}", info.name);
                match tensors.0.get(&info.name) {
                    None => problems.push(format!("`{name}` is missing")),
                    Some(found) if found.shape != info.shape => {
                        problems.push(format!("`{name}` has shape {:?} instead of {:?}", found.shape, info.shape));
                    }
                    Some(found) => {
                        if let Some(bad) = found.data.iter().find(|x| !x.is_finite()) {
                            problems.push(format!("`{name}` holds {bad}"));
                        }
                    }
                }
            }
            let unknown = tensors.0.keys().filter(|name| !infos.iter().any(|info| info.name == **name));
            problems.extend(unknown.map(|name| format!("`{moment}/{name}` is unexpected")));
        }
        problems
    }
}

/// The tensors of a file by group; `data` is what lies behind the file's header.
fn read_groups(metadata: &Metadata, data: &[u8]) -> Result<HashMap<String, Weights>, String> {
    let mut groups: HashMap<String, Weights> = HashMap::new();
    for (name, info) in metadata.tensors() {
        let Some((group, tensor)) = name.split_once('/') else {
            return Err(format!("it holds an unknown tensor `{name}`"));
        };
        if info.dtype != Dtype::F32 {
            return Err(format!("its tensor `{name}` is of type {:?} instead of F32", info.dtype));
        }
        let (begin, end) = info.data_offsets;
        let bytes = data.get(begin..end).ok_or_else(|| "it ends too early".to_owned())?;
        let numbers = bytes.chunks_exact(4).map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]));
        let tensor = (tensor.to_owned(), WeightTensor { shape: info.shape.clone(), data: numbers.collect() });
        groups.entry(group.to_owned()).or_default().0.extend([tensor]);
    }
    Ok(groups)
}

/// A tensor as safetensors wants it.
struct Named<'a>(&'a WeightTensor);

impl Named<'_> {
    fn bytes(&self) -> Cow<'_, [u8]> {
        if cfg!(target_endian = "little") {
            Cow::Borrowed(bytemuck::cast_slice(&self.0.data))
        } else {
            Cow::Owned(self.0.data.iter().flat_map(|x| x.to_le_bytes()).collect())
        }
    }
}

impl std::ops::Deref for Named<'_> {
    type Target = WeightTensor;

    fn deref(&self) -> &WeightTensor {
        self.0
    }
}

impl View for Named<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.0.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        self.bytes()
    }

    fn data_len(&self) -> usize {
        4 * self.0.data.len()
    }
}
