//! The moving average of all weights, running statistics included: what plays.

use tch::{TchError, Tensor};

use crate::train::crew::Crew;
use crate::train::optim::pieces;

/// An exponential moving average with a bias-corrected start (as Adam's moments: Kingma and Ba 2015, section 3),
/// so that the first steps are not pulled towards the random weights that training began with.
///
/// After step t it is `sum d^(t-i) w_i / sum d^(t-i)` over i = 1..t, where d is the decay and w_i the weights
/// after step i. Without any step it is the weights it was made with.
#[derive(Debug)]
pub struct Ema {
    decay: f64,
    steps: u64,
    average: Tensor,
}

impl Ema {
    /// An average over nothing yet, which reads as `start` (flat).
    ///
    /// # Errors
    /// When the device is out of memory.
    pub fn new(decay: f64, start: &Tensor) -> Result<Self, TchError> {
        Ok(Self { decay, steps: 0, average: start.f_detach_copy()? })
    }

    /// Steps in the average.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The average, flat.
    pub fn average(&self) -> &Tensor {
        &self.average
    }

    /// Goes on from a saved state.
    ///
    /// # Errors
    /// When the saved average has another length.
    pub fn restore(&mut self, steps: u64, average: &Tensor) -> Result<(), TchError> {
        let _guard = tch::no_grad_guard();
        self.average.f_copy_(average)?;
        self.steps = steps;
        Ok(())
    }

    /// Takes in the weights after a step, piece by piece by `crew`.
    ///
    /// # Errors
    /// When `weights` has another length.
    pub fn update(&mut self, weights: &Tensor, crew: &Crew) -> Result<(), TchError> {
        self.steps += 1;
        // (1 - d) / (1 - d^t): the share of the newest weights in the corrected average.
        let share = (1.0 - self.decay) / (1.0 - self.decay.powf(self.steps as f64));
        let work = pieces(0..weights.size1()?, [&self.average, weights].into_iter())?;
        crew.try_each(work, |mut tensors| {
            let _guard = tch::no_grad_guard();
            let (average, weights) = tensors.split_at_mut(1);
            average[0].f_lerp_(&weights[0], share).map(drop)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::layout::to_vec;
    use crate::train::testing;

    #[test]
    fn the_average_is_the_weighted_mean_of_all_steps() {
        let decay: f64 = 0.75;
        let weights = [[1.0f32, -4.0], [2.0, 0.5], [-3.0, 8.0], [0.25, 0.0]];
        let mut ema = Ema::new(decay, &Tensor::from_slice(&[100.0f32, 100.0])).unwrap();
        assert_eq!(to_vec(ema.average()).unwrap(), [100.0, 100.0]);
        for t in 1..=weights.len() {
            ema.update(&Tensor::from_slice(&weights[t - 1]), &testing::crew()).unwrap();
            let factor = |i: usize| decay.powi((t - 1 - i) as i32);
            let total: f64 = (0..t).map(factor).sum();
            for (k, x) in to_vec(ema.average()).unwrap().into_iter().enumerate() {
                let mean = (0..t).map(|i| factor(i) * f64::from(weights[i][k])).sum::<f64>() / total;
                assert!((f64::from(x) - mean).abs() < 1e-6, "step {t}: {x} instead of {mean}");
            }
        }
        assert_eq!(ema.steps(), 4);
    }

    #[test]
    fn without_decay_it_is_the_newest_weights() {
        let mut ema = Ema::new(0.0, &Tensor::from_slice(&[1.0f32])).unwrap();
        for x in [3.0f32, -2.0] {
            ema.update(&Tensor::from_slice(&[x]), &testing::crew()).unwrap();
            assert_eq!(to_vec(ema.average()).unwrap(), [x]);
        }
    }
}
