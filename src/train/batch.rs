//! Training positions as slices, whole or in shards, and as tensors on a device.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use safetensors::tensor::{Dtype, TensorView};
use tch::{Device, TchError, Tensor};

use crate::data::Batch;
use crate::net::NetSpec;
use crate::util::publish::{PublishError, write_atomic};

/// A batch of `B` training positions, borrowed; flat and row-major.
#[derive(Clone, Copy, Debug)]
pub struct BatchView<'a> {
    /// Positions in the batch, `B`.
    pub size: usize,
    /// Encoded positions, `[B, C, H, W]`.
    pub planes: &'a [f32],
    /// 1 for legal moves, 0 for others, `[B, A]`.
    pub legal: &'a [f32],
    /// Policy targets, `[B, A]`: each row sums to 1 over legal moves, or is all zero where its policy weight is 0.
    pub policy: &'a [f32],
    /// How much each row counts in the policy loss, times its weight, `[B]`; not negative.
    pub policy_weight: &'a [f32],
    /// Value targets, `[B, 3]`: win, draw, loss of the player to move; each row sums to 1.
    pub value: &'a [f32],
    /// How much each row counts, `[B]`; not negative.
    pub weight: &'a [f32],
    /// What the auxiliary heads should say.
    pub auxiliary: AuxiliaryView<'a>,
}

/// Targets of a network's auxiliary heads; the lists of a head that the network has not are empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct AuxiliaryView<'a> {
    /// What holds in the final position, `[B, E]`, 0 or 1.
    pub ending: &'a [f32],
    /// How much each row counts for that, times its weight, `[B]`; not negative.
    pub ending_weight: &'a [f32],
    /// The opponent's next move, `[B, A]`: each row sums to 1, or is all zero where its weight is 0.
    pub reply: &'a [f32],
    /// How much each row counts for that, times its weight, `[B]`; not negative.
    pub reply_weight: &'a [f32],
}

/// A batch whose parts have not the lengths that the network needs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the batch's `{part}` has {found} numbers; the network needs {expected} for {size} positions")]
pub struct BatchError {
    /// Which part.
    pub part: &'static str,
    /// Its length.
    pub found: usize,
    /// The length that it should have.
    pub expected: usize,
    /// Positions in the batch.
    pub size: usize,
}

impl<'a> From<&'a Batch> for BatchView<'a> {
    fn from(batch: &'a Batch) -> Self {
        Self {
            size: batch.size,
            planes: &batch.planes,
            legal: &batch.legal,
            policy: &batch.policy,
            policy_weight: &batch.policy_weight,
            value: &batch.value,
            weight: &batch.weight,
            auxiliary: AuxiliaryView {
                ending: &batch.ending,
                ending_weight: &batch.ending_weight,
                reply: &batch.reply,
                reply_weight: &batch.reply_weight,
            },
        }
    }
}

impl<'a> BatchView<'a> {
    /// Checks every length.
    ///
    /// # Errors
    /// Names the first part of another length; an empty batch is one whose `size` should not be 0.
    pub fn check(&self, spec: &NetSpec) -> Result<(), BatchError> {
        let (size, actions) = (self.size, spec.action_count());
        if size == 0 {
            return Err(BatchError { part: "size", found: 0, expected: 1, size });
        }
        let (endings, replies) = (spec.ending_count(), if spec.auxiliary.reply { actions } else { 0 });
        let auxiliary = [endings, endings.min(1), replies, replies.min(1)];
        let widths = [spec.input.len(), actions, actions, 1, 3, 1].into_iter().chain(auxiliary);
        for ((part, slice), per_row) in self.parts().into_iter().zip(widths) {
            if slice.len() != size * per_row {
                return Err(BatchError { part, found: slice.len(), expected: size * per_row, size });
            }
        }
        Ok(())
    }

    /// The first part that holds a number which is infinite or not a number.
    pub fn not_finite(&self) -> Option<&'static str> {
        let bad = |(_, numbers): &(&str, &[f32])| numbers.iter().any(|number| !number.is_finite());
        self.parts().into_iter().find(bad).map(|(name, _)| name)
    }

    fn parts(&self) -> [(&'static str, &'a [f32]); 10] {
        [
            ("planes", self.planes),
            ("legal", self.legal),
            ("policy", self.policy),
            ("policy_weight", self.policy_weight),
            ("value", self.value),
            ("weight", self.weight),
            ("ending", self.auxiliary.ending),
            ("ending_weight", self.auxiliary.ending_weight),
            ("reply", self.auxiliary.reply),
            ("reply_weight", self.auxiliary.reply_weight),
        ]
    }

    /// Publishes the batch as a safetensors file for inspection, the parts by the names of the fields; the entry `about` of
    /// its metadata says what it is.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn save(&self, path: &Path, about: &str) -> Result<(), PublishError> {
        let parts = self.parts().into_iter().filter(|(_, numbers)| !numbers.is_empty()).map(|(name, numbers)| {
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            (name, vec![self.size, numbers.len() / self.size.max(1)], bytes)
        });
        let parts: Vec<_> = parts.collect();
        let views = parts.iter().map(|(name, shape, bytes)| {
            let view = TensorView::new(Dtype::F32, shape.clone(), bytes);
            (*name, view.expect("the shape is that of the numbers"))
        });
        let metadata = HashMap::from([("about".to_owned(), about.to_owned())]);
        let bytes = safetensors::serialize(views, Some(metadata))
            .map_err(|error| PublishError::writing(path, "encode", std::io::Error::other(error.to_string())))?;
        write_atomic(path, &bytes)
    }

    /// Some of the positions of a [`check`](Self::check)ed batch.
    pub fn rows(&self, rows: Range<usize>) -> BatchView<'a> {
        let cut = |slice: &'a [f32]| {
            let per_row = slice.len() / self.size;
            &slice[rows.start * per_row..rows.end * per_row]
        };
        BatchView {
            size: rows.len(),
            planes: cut(self.planes),
            legal: cut(self.legal),
            policy: cut(self.policy),
            policy_weight: cut(self.policy_weight),
            value: cut(self.value),
            weight: cut(self.weight),
            auxiliary: AuxiliaryView {
                ending: cut(self.auxiliary.ending),
                ending_weight: cut(self.auxiliary.ending_weight),
                reply: cut(self.auxiliary.reply),
                reply_weight: cut(self.auxiliary.reply_weight),
            },
        }
    }

    /// Copies the planes to `device`, as `[B, C, H, W]` of `spec`.
    ///
    /// # Errors
    /// When the lengths do not fit or the device is out of memory.
    pub(crate) fn planes_on(self, spec: &NetSpec, device: Device) -> Result<Tensor, TchError> {
        let [channels, height, width] = [spec.input.channels, spec.input.height, spec.input.width].map(|n| n as i64);
        Tensor::f_from_slice(self.planes)?.f_view([self.size as i64, channels, height, width])?.f_to_device(device)
    }
}

/// The total weights that losses are divided by: those of the whole batch, also where its rows are dealt to
/// several threads, so that the shards' losses and gradients just add up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Totals {
    /// Sum of weight times policy weight.
    pub policy: f64,
    /// Sum of weights.
    pub value: f64,
    /// Sum of weight times ending weight.
    pub ending: f64,
    /// Sum of weight times reply weight.
    pub reply: f64,
}

impl Totals {
    /// The total weights of a batch.
    pub fn of(batch: &BatchView<'_>) -> Self {
        let of = |weights: &[f32]| batch.weight.iter().zip(weights).map(|(&w, &p)| f64::from(w) * f64::from(p)).sum();
        Self {
            policy: of(batch.policy_weight),
            value: batch.weight.iter().map(|&w| f64::from(w)).sum(),
            ending: of(batch.auxiliary.ending_weight),
            reply: of(batch.auxiliary.reply_weight),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::testing;

    #[test]
    fn lengths_are_checked_and_rows_cut_every_part() {
        let spec = testing::small_mlp();
        let batch = testing::batch(&spec, 5, 1);
        let view = batch.view();
        assert_eq!(view.check(&spec), Ok(()));
        let part = view.rows(1..3);
        assert_eq!(part.check(&spec), Ok(()));
        assert_eq!(part.value, &view.value[3..9]);
        assert_eq!(part.planes, &view.planes[spec.input.len()..3 * spec.input.len()]);
        let short = BatchView { policy: &view.policy[1..], ..view };
        let actions = spec.action_count();
        let expected = BatchError { part: "policy", found: 5 * actions - 1, expected: 5 * actions, size: 5 };
        assert_eq!(short.check(&spec), Err(expected));
        assert_eq!(BatchView { size: 0, ..view }.check(&spec).unwrap_err().part, "size");
    }

    #[test]
    fn totals_multiply_the_two_weights() {
        let batch = testing::batch(&testing::small_mlp(), 3, 1);
        let view = BatchView { weight: &[1.0, 2.0, 0.5], policy_weight: &[1.0, 0.0, 0.5], ..batch.view() };
        assert_eq!(Totals::of(&view), Totals { policy: 1.25, value: 3.5, ending: 0.0, reply: 0.0 });
    }
}
