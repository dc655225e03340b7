//! Training steps, batches being prepared meanwhile, as in a run.

use std::cell::RefCell;

use super::records::replay_window;
use super::{Bench, BenchError, Figure, Rows, thread_counts};
use crate::data::{Batch, FurtherTargets, SampleKey, Sampler};
use crate::game::Game;
use crate::net::{Weights, torch_device};
use crate::run::learn::Lesson;
use crate::train::{BatchView, EagerTrainer, Trainer};
use crate::util::rate::Meter;
use crate::util::rng::{Purpose, Stream};

pub(super) fn measure<G: Game>(bench: &Bench<'_, G>, rows: &mut Rows<'_>) -> Result<(), BenchError> {
    let (network, config) = (bench.network()?, bench.config);
    let device = torch_device(network.factory.resolved().device);
    let window = replay_window(bench)?;
    let sampler = Sampler::new(bench.game.clone(), config.samples.clone());
    let batch = config.training.batch_size;
    let ended = || BenchError::Inconsistent("training ended before it was measured");
    let spec = config.training.spec(&bench.game, config.network.clone());
    let weights = Weights::init(&spec, &mut Stream::keyed(config.seed, Purpose::Weights, &[]));
    for (threads, on) in thread_counts() {
        let mut trainer = Trainer::new(&spec, &weights, config.training.clone(), device, threads)?;
        let meter = RefCell::new((Meter::new(bench.measure), true));
        let stop = || !meter.borrow().1;
        let mut report = |_, _| {
            let (meter, go_on) = &mut *meter.borrow_mut();
            *go_on = meter.tick(batch as u64);
        };
        let lesson = Lesson {
            game: &bench.game,
            sampler: &sampler,
            window: &window,
            seed: config.seed,
            generation: 0,
            batch_size: batch,
        };
        lesson.teach(&mut trainer, 0..u64::MAX, &stop, &mut report, &mut |_| false)?;
        let figure = Figure::of(meter.into_inner().0.rates()).ok_or_else(ended)?;
        rows.add(&format!("batch {batch}, {on}"), "samples/s", figure);
    }
    // The baseline is spared the work of preparing batches.
    let mut fixed = Batch::new(&bench.game, batch, FurtherTargets::default());
    sampler.fill(&window, SampleKey { seed: config.seed, generation: 0, step: 0 }, &mut fixed)?;
    for (threads, on) in thread_counts() {
        let mut trainer = EagerTrainer::new(&network.spec, &network.weights, &config.training, threads)?;
        let mut meter = Meter::new(bench.measure);
        loop {
            trainer.step(BatchView::from(&fixed))?;
            if !meter.tick(batch as u64) {
                break;
            }
        }
        let figure = Figure::of(meter.rates()).ok_or_else(ended)?;
        rows.add(&format!("libtorch eager f32, batch {batch}, {on}"), "samples/s", figure);
    }
    Ok(())
}
