//! All tensors of a network as one flat vector, so that an update of everything is a handful of operations.

use tch::{Device, Kind, TchError, Tensor};

use crate::net::{NetSpec, WeightTensor, Weights};

/// One tensor's place in the flat vector.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its name in [`Weights`].
    pub name: String,
    /// Its dimensions.
    pub shape: Vec<i64>,
    /// Where it begins.
    pub offset: i64,
    /// How many numbers it has.
    pub len: i64,
}

/// Where each tensor of a network lies in a flat float32 vector: first the kernels that decay, then the other
/// trainable tensors, then the running statistics; within each of the three in the order of the network.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// Every tensor.
    entries: Vec<Entry>,
    /// Numbers that weight decay applies to: the first ones.
    decayed: i64,
    /// Numbers that the optimizer changes: the first ones.
    trainable: i64,
    /// All numbers.
    total: i64,
}

impl Layout {
    /// The layout for `spec`.
    pub fn new(spec: &NetSpec) -> Self {
        let mut tensors = spec.tensors();
        // A stable sort: the order within each kind stays.
        tensors.sort_by_key(|info| if info.role.decays() { 0 } else { 1 + u8::from(!info.role.is_trainable()) });
        let mut layout = Self { entries: Vec::new(), decayed: 0, trainable: 0, total: 0 };
        for info in tensors {
            let len = info.len() as i64;
            let shape = info.shape.iter().map(|&d| d as i64).collect();
            layout.entries.push(Entry { name: info.name, shape, offset: layout.total, len });
            layout.total += len;
            if info.role.decays() {
                layout.decayed = layout.total;
            }
            if info.role.is_trainable() {
                layout.trainable = layout.total;
            }
        }
        layout
    }

    /// Numbers that weight decay applies to: the first ones.
    pub fn decayed(&self) -> i64 {
        self.decayed
    }

    /// Numbers that the optimizer changes: the first ones.
    pub fn trainable(&self) -> i64 {
        self.trainable
    }

    /// All numbers.
    pub fn total(&self) -> i64 {
        self.total
    }

    /// The trainable tensors.
    pub fn parameters(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().take_while(|entry| entry.offset < self.trainable)
    }

    /// The running statistics.
    pub fn buffers(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().skip_while(|entry| entry.offset < self.trainable)
    }

    /// A view of one tensor in a flat vector.
    pub(crate) fn view(&self, flat: &Tensor, entry: &Entry) -> Result<Tensor, TchError> {
        flat.f_narrow(0, entry.offset, entry.len)?.f_view(entry.shape.as_slice())
    }

    /// Weights, which must be [`check`](Weights::check)ed, as a flat vector on `device`.
    pub(crate) fn flatten(&self, weights: &Weights, device: Device) -> Result<Tensor, TchError> {
        flatten(self.entries.iter(), weights, device)
    }

    /// The trainable ones of checked weights as a flat vector on `device`.
    pub(crate) fn flatten_trainable(&self, weights: &Weights, device: Device) -> Result<Tensor, TchError> {
        flatten(self.parameters(), weights, device)
    }

    /// The named tensors of a flat vector of [`total`](Self::total) numbers, or of the first
    /// [`trainable`](Self::trainable) ones.
    pub(crate) fn unflatten(&self, flat: &Tensor) -> Result<Weights, TchError> {
        let numbers = to_vec(flat)?;
        let mut weights = Weights::default();
        for entry in self.entries.iter().take_while(|entry| entry.offset < numbers.len() as i64) {
            let data = numbers[entry.offset as usize..(entry.offset + entry.len) as usize].to_vec();
            let shape = entry.shape.iter().map(|&d| d as usize).collect();
            weights.0.insert(entry.name.clone(), WeightTensor { shape, data });
        }
        Ok(weights)
    }
}

fn flatten<'a>(
    entries: impl Iterator<Item = &'a Entry>,
    weights: &Weights,
    device: Device,
) -> Result<Tensor, TchError> {
    let mut flat = Vec::new();
    for entry in entries {
        flat.extend_from_slice(&weights.0[&entry.name].data);
    }
    Tensor::f_from_slice(&flat)?.f_to_device(device)
}

/// The numbers of a float32 tensor of any device.
pub(crate) fn to_vec(tensor: &Tensor) -> Result<Vec<f32>, TchError> {
    let flat = tensor.f_detach()?.f_to_device(Device::Cpu)?.f_to_kind(Kind::Float)?.f_contiguous()?.f_view([-1])?;
    Vec::<f32>::try_from(&flat)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::testing;
    use crate::util::rng::Stream;

    #[test]
    fn the_three_kinds_follow_each_other_and_weights_round_trip() {
        let spec = testing::small_resnet();
        let layout = Layout::new(&spec);
        let decays = |name: &str| spec.tensors().iter().any(|t| t.name == name && t.role.decays());
        assert!(layout.entries.iter().all(|e| decays(&e.name) == (e.offset < layout.decayed())));
        assert!(layout.buffers().all(|e| e.name.contains("running_")));
        assert!(layout.parameters().all(|e| !e.name.contains("running_")));
        assert_eq!(layout.trainable() as usize, spec.parameter_count());
        assert_eq!(layout.entries.iter().map(|e| e.len).sum::<i64>(), layout.total());

        let weights = Weights::init(&spec, &mut Stream::test(1));
        let flat = layout.flatten(&weights, Device::Cpu).unwrap();
        assert_eq!(layout.unflatten(&flat).unwrap(), weights);
        let part = layout.unflatten(&flat.narrow(0, 0, layout.trainable())).unwrap();
        assert_eq!(part.0.len(), layout.parameters().count());
    }
}
