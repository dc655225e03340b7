//! ONNX files run by tract, a runtime in Rust that shares nothing with the code that writes them.

use std::io::Cursor;
use std::sync::Arc;

use tract_onnx::prelude::{
    Framework as _, InferenceModelExt as _, IntoRunnable as _, Tensor, TractResult, TypedRunnableModel, tvec,
};

use super::check::{Batch, Outputs, Runtime};
use crate::net::{NetSpec, OnnxForm};

/// An ONNX file, ready for batches of any size.
pub struct Tract {
    shape: [usize; 3],
    actions: usize,
    form: OnnxForm,
    plan: Arc<TypedRunnableModel>,
}

impl Tract {
    /// Makes a file ready to run.
    ///
    /// # Errors
    /// When tract does not understand it.
    pub fn new(bytes: &[u8], spec: &NetSpec, form: OnnxForm) -> Result<Self, String> {
        let read = || tract_onnx::onnx().model_for_read(&mut Cursor::new(bytes))?.into_optimized()?.into_runnable();
        let input = spec.input;
        let shape = [input.channels, input.height, input.width];
        let plan = read().map_err(|error| format!("{error:#}"))?;
        Ok(Self { shape, actions: spec.action_count(), form, plan })
    }

    fn run_batch(&self, batch: &Batch<'_>) -> TractResult<Outputs> {
        let [channels, height, width] = self.shape;
        let planes = Tensor::from_shape(&[batch.size, channels, height, width], batch.planes)?;
        let mut inputs = tvec![planes.into()];
        if self.form.mask {
            inputs.push(Tensor::from_shape(&[batch.size, self.actions], batch.legal)?.into());
        }
        let outputs = self.plan.run(inputs)?;
        let numbers = |index: usize| -> TractResult<Vec<f32>> {
            Ok(outputs[index].to_plain_array_view::<f32>()?.iter().copied().collect())
        };
        Ok([numbers(0)?, numbers(1)?])
    }
}

impl Runtime for Tract {
    fn name(&self) -> &'static str {
        "tract"
    }

    fn gives_probabilities(&self) -> bool {
        self.form.mask
    }

    fn run(&mut self, batch: &Batch<'_>) -> Result<Outputs, String> {
        self.run_batch(batch).map_err(|error| format!("{error:#}"))
    }
}
