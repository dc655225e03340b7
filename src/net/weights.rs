//! The numbers of a network, by name.

use std::collections::BTreeMap;

use crate::net::spec::{NORM_EPSILON, NetSpec, Role, SpecError, TensorInfo};
use crate::util::rng::Stream;

/// One tensor: its dimensions and its numbers, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightTensor {
    /// Dimensions.
    pub shape: Vec<usize>,
    /// As many numbers as the dimensions' product.
    pub data: Vec<f32>,
}

/// The numbers that little-endian bytes hold.
pub(crate) fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

/// Every tensor of a network, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weights(pub BTreeMap<String, WeightTensor>);

/// Weights that do not belong to a network, or hold a number that is not finite.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WeightsError {
    /// The tensors are not those of the network.
    #[error("the weights do not fit the network ({spec}): {}", .problems.join("; "))]
    Mismatch {
        /// The network in words.
        spec: String,
        /// Each tensor that is missing, unexpected or of another shape.
        problems: Vec<String>,
    },
    /// A number is infinite, not a number, or a negative variance.
    #[error("tensor `{tensor}` holds {value} at index {index}; the weights are damaged or training diverged")]
    BadNumber {
        /// Which tensor.
        tensor: String,
        /// Where in it, row-major.
        index: usize,
        /// The number.
        value: String,
    },
    /// The network itself is impossible.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

impl Weights {
    /// The first weights of a network: a pure function of the description and the stream.
    pub fn init(spec: &NetSpec, random: &mut Stream) -> Self {
        let mut tensors = BTreeMap::new();
        for info in spec.tensors() {
            let data = match info.role {
                Role::Kernel { fan_in, gain } => {
                    let deviation = f64::from(gain) * (2.0 / fan_in as f64).sqrt();
                    (0..info.len()).map(|_| (random.normal() * deviation) as f32).collect()
                }
                Role::Bias | Role::Mean => vec![0.0; info.len()],
                Role::Scale | Role::Variance => vec![1.0; info.len()],
            };
            tensors.insert(info.name, WeightTensor { shape: info.shape, data });
        }
        Self(tensors)
    }

    /// Weights of zeros whose normalisations do nothing: `(y - 0) / sqrt(variance + epsilon) * 1 + 0`, where the root is 1 to within
    /// the rounding of a float32, so that folding changes no bit of a kernel.
    pub(crate) fn identity(spec: &NetSpec) -> Self {
        let tensor = |info: TensorInfo| {
            let number = match info.role {
                Role::Kernel { .. } | Role::Bias | Role::Mean => 0.0,
                Role::Scale => 1.0,
                Role::Variance => (1.0 - NORM_EPSILON) as f32,
            };
            (info.name.clone(), WeightTensor { data: vec![number; info.len()], shape: info.shape })
        };
        Self(spec.tensors().into_iter().map(tensor).collect())
    }

    /// Those of the tensors that `spec` has.
    pub fn part(&self, spec: &NetSpec) -> Self {
        let found = |info: TensorInfo| self.0.get(&info.name).map(|tensor| (info.name.clone(), tensor.clone()));
        Self(spec.tensors().into_iter().filter_map(found).collect())
    }

    /// Whether the normalisations are folded into the layers before them, as in exported files: they are those of
    /// `identity`, which no training leaves. Such weights serve, but training would go wrong with them.
    pub fn is_folded(&self, spec: &NetSpec) -> bool {
        let identity = Self::identity(spec);
        let mut variances = spec.tensors().into_iter().filter(|info| info.role == Role::Variance).peekable();
        variances.peek().is_some() && variances.all(|info| self.data(&info.name) == identity.data(&info.name))
    }

    /// Checks that these are exactly the tensors of `spec` and that every number is finite (and no variance
    /// negative).
    ///
    /// # Errors
    /// Lists every tensor that is missing, unexpected or misshapen, or names the first bad number.
    pub fn check(&self, spec: &NetSpec) -> Result<(), WeightsError> {
        spec.validate()?;
        let infos = spec.tensors();
        let mut problems = Vec::new();
        for info in &infos {
            match self.0.get(&info.name) {
                None => problems.push(format!("`{}` is missing", info.name)),
                Some(found) if found.shape != info.shape => {
                    problems.push(format!("`{}` has shape {:?} instead of {:?}", info.name, found.shape, info.shape));
                }
                Some(found) if found.data.len() != info.len() => {
                    let (have, want) = (found.data.len(), info.len());
                    problems.push(format!("`{}` has {have} numbers instead of {want}", info.name));
                }
                Some(_) => {}
            }
        }
        let known: std::collections::BTreeSet<&str> = infos.iter().map(|info| info.name.as_str()).collect();
        problems.extend(
            self.0.keys().filter(|name| !known.contains(name.as_str())).map(|name| format!("`{name}` is unexpected")),
        );
        if !problems.is_empty() {
            return Err(WeightsError::Mismatch { spec: spec.to_string(), problems });
        }
        for info in &infos {
            let data = &self.0[&info.name].data;
            let bad = |x: &f32| !x.is_finite() || (info.role == Role::Variance && *x < 0.0);
            if let Some(index) = data.iter().position(bad) {
                let value = data[index].to_string();
                return Err(WeightsError::BadNumber { tensor: info.name.clone(), index, value });
            }
        }
        Ok(())
    }

    /// A 128-bit digest of names, shapes and numbers (bit patterns) as 32 hexadecimal digits. It tells networks
    /// apart; it is no protection against forgery.
    pub fn digest(&self) -> String {
        let mut hash = Digest::default();
        for (name, tensor) in &self.0 {
            hash.bytes(name.as_bytes());
            hash.word(tensor.shape.len() as u64);
            tensor.shape.iter().for_each(|&dimension| hash.word(dimension as u64));
            tensor.data.iter().for_each(|x| hash.word(u64::from(x.to_bits())));
        }
        hash.to_string()
    }

    /// The tensor's numbers.
    ///
    /// # Panics
    /// When there is no such tensor: callers have [`check`](Self::check)ed the weights.
    pub(crate) fn data(&self, name: &str) -> &[f32] {
        &self.0.get(name).unwrap_or_else(|| panic!("checked weights hold `{name}`")).data
    }
}

/// A 128-bit digest: two chained 64-bit mixes with different start values.
pub(crate) struct Digest(u64, u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344)
    }
}

impl Digest {
    fn word(&mut self, word: u64) {
        use crate::util::rng::mix;
        self.0 = mix(self.0 ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.1 = mix(self.1.rotate_left(29).wrapping_add(word)) ^ self.0;
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}{:016x}", self.0, self.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::testing::specs;

    #[test]
    fn first_weights_are_he_normal_and_a_pure_function_of_the_stream() {
        let spec = NetSpec { architecture: crate::net::spec::Architecture::default(), ..specs()[0].clone() };
        let weights = Weights::init(&spec, &mut Stream::test(1));
        assert_eq!(weights, Weights::init(&spec, &mut Stream::test(1)));
        assert_ne!(weights.digest(), Weights::init(&spec, &mut Stream::test(2)).digest());
        let deviation = |name: &str| {
            let data = weights.data(name);
            (data.iter().map(|x| f64::from(x * x)).sum::<f64>() / data.len() as f64).sqrt()
        };
        let he = (2.0 / (64.0 * 9.0f64)).sqrt();
        assert!((deviation("blocks.3.conv1.weight") / he - 1.0).abs() < 0.02);
        let head = 0.1 * (2.0 / 32.0f64).sqrt();
        assert!((deviation("policy.spatial.weight") / head - 1.0).abs() < 0.4);
        assert!(weights.data("stem.norm.weight").iter().all(|&x| x == 1.0));
        assert!(weights.data("value.out.bias").iter().all(|&x| x == 0.0));
    }

    #[test]
    fn every_mismatch_is_listed_by_name() {
        let spec = &specs()[0];
        let mut weights = Weights::init(spec, &mut Stream::test(1));
        assert_eq!(weights.check(spec), Ok(()));
        let stem = weights.0.remove("stem.conv.weight").unwrap();
        weights.0.insert("stem.conv.wait".into(), stem);
        weights.0.get_mut("value.out.bias").unwrap().shape = vec![4];
        weights.0.get_mut("value.out.weight").unwrap().data.pop();
        let WeightsError::Mismatch { problems, .. } = weights.check(spec).unwrap_err() else { panic!("a mismatch") };
        let expected = [
            "`stem.conv.weight` is missing",
            "`value.out.weight` has 47 numbers instead of 48",
            "`value.out.bias` has shape [4] instead of [3]",
            "`stem.conv.wait` is unexpected",
        ];
        assert_eq!(problems, expected);
    }

    #[test]
    fn the_digest_sees_names_shapes_and_bits() {
        let weights = Weights::init(&specs()[0], &mut Stream::test(1));
        let changed = |edit: &dyn Fn(&mut Weights)| {
            let mut other = weights.clone();
            edit(&mut other);
            assert_ne!(other.digest(), weights.digest());
        };
        changed(&|w| w.0.get_mut("value.out.bias").unwrap().data[2] = -0.0);
        changed(&|w| w.0.get_mut("value.out.bias").unwrap().shape = vec![3, 1]);
        changed(&|w| {
            let tensor = w.0.remove("stem.norm.bias").unwrap();
            w.0.insert("stem.norm.bios".into(), tensor);
        });
    }
}
