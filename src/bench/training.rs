//! Training steps, batches being prepared meanwhile, as in a run.

use std::cell::RefCell;

use super::records::replay_window;
use super::{Bench, BenchError, Figure, Rows, thread_counts};
use crate::data::Sampler;
use crate::game::Game;
use crate::net::torch_device;
use crate::run::learn::learn;
use crate::train::Trainer;
use crate::util::rate::Meter;

pub(super) fn measure<G: Game>(bench: &Bench<'_, G>, rows: &mut Rows<'_>) -> Result<(), BenchError> {
    let (network, config) = (bench.network()?, bench.config);
    let device = torch_device(network.factory.resolved().device);
    let window = replay_window(bench)?;
    let sampler = Sampler::new(bench.game.clone(), config.samples.clone());
    let batch = config.training.batch_size;
    for (threads, on) in thread_counts() {
        let mut trainer = Trainer::new(&network.spec, &network.weights, config.training.clone(), device, threads)?;
        let meter = RefCell::new((Meter::new(bench.measure), true));
        let stop = || !meter.borrow().1;
        let mut report = |_, _| {
            let (meter, go_on) = &mut *meter.borrow_mut();
            *go_on = meter.tick(batch as u64);
        };
        learn(&mut trainer, &sampler, &window, &bench.game, config.seed, 0, batch, 0..u64::MAX, &stop, &mut report)?;
        let figure = Figure::of(meter.into_inner().0.rates());
        let figure = figure.ok_or(BenchError::Inconsistent("training ended before it was measured"))?;
        rows.add(&format!("batch {batch}, {on}"), "samples/s", figure);
    }
    Ok(())
}
