//! The network alone: positions a second on every engine, in every batch size, on one thread and all.

use std::fmt;

use super::{Bench, BenchError, Network, Rows, thread_counts};
use crate::game::Game;
use crate::net::{Available, DeviceName, EagerInference, Engine, Inference, InferenceFactory, Precision, Resolved};
use crate::util::rng::{Purpose, Stream};

/// Positions of one piece of work. Engines cut what is more than they take at once.
const BATCHES: [usize; 4] = [1, 8, 64, 256];

/// A way to run the network.
enum Setup {
    Served(Resolved),
    /// libtorch without any preparation, in float32 on the CPU: what the others are measured by.
    Eager,
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setup::Served(resolved) => write!(f, "{} {} on {}", resolved.engine, resolved.precision, resolved.device),
            Setup::Eager => f.write_str("libtorch eager f32 on cpu"),
        }
    }
}

/// Everything that makes sense here: on CPUs both engines, bfloat16 only where the CPU is faster with it;
/// on other devices libtorch. What the config chose is among them whatever it is.
fn setups(available: &Available, chosen: &Resolved) -> Vec<Setup> {
    let device = chosen.device;
    let on_cpu = matches!(device, DeviceName::Auto | DeviceName::Cpu);
    let engines = [Engine::Openvino, Engine::Libtorch];
    let engines = engines.into_iter().filter(|&e| e == Engine::Libtorch || (on_cpu && available.openvino.is_ok()));
    let precisions: &[Precision] = match device {
        DeviceName::Auto | DeviceName::Cpu if available.bfloat16 => &[Precision::F32, Precision::Bf16],
        DeviceName::Auto | DeviceName::Cpu => &[Precision::F32],
        DeviceName::Cuda(_) => &[Precision::F32, Precision::Bf16, Precision::F16],
        DeviceName::Mps => &[Precision::F32, Precision::F16],
    };
    let mut pairs: Vec<(Engine, Precision)> =
        engines.flat_map(|engine| precisions.iter().map(move |&precision| (engine, precision))).collect();
    let own = (chosen.engine, chosen.precision);
    if !pairs.contains(&own) {
        pairs.push(own);
    }
    let served = |(engine, precision)| Setup::Served(Resolved { engine, precision, device, reasons: Vec::new() });
    let mut setups: Vec<Setup> = pairs.into_iter().map(served).collect();
    setups.push(Setup::Eager);
    setups
}

/// A way to run the network, prepared once for all threads.
enum Source<'a> {
    Served(Box<InferenceFactory>),
    Eager(&'a Network),
}

impl<'a> Source<'a> {
    fn new(setup: &Setup, network: &'a Network) -> Result<Self, BenchError> {
        Ok(match setup {
            Setup::Served(resolved) => {
                let Network { spec, weights, .. } = network;
                Self::Served(Box::new(InferenceFactory::open_with(spec, weights, resolved.clone())?))
            }
            Setup::Eager => Self::Eager(network),
        })
    }

    fn worker(&self) -> Result<Box<dyn Inference>, BenchError> {
        Ok(match self {
            Self::Served(factory) => factory.worker()?,
            Self::Eager(network) => Box::new(EagerInference::new(&network.spec, &network.weights)?),
        })
    }
}

/// Encodings of positions from random games, `count * plane_shape().len()` numbers.
fn positions<G: Game>(game: &G, count: usize) -> Vec<f32> {
    let each = game.plane_shape().len();
    let mut planes = vec![0.0; count * each];
    for (index, planes) in planes.chunks_exact_mut(each).enumerate() {
        let mut random = Stream::keyed(0, Purpose::Analysis, &[index as u64]);
        let plies = random.below(game.max_plies().min(40));
        let opening = crate::play::random_opening(game, plies, &mut random);
        game.encode(&opening.position(game), planes);
    }
    planes
}

/// Runs the network on all of `planes`, in pieces of what it takes at once.
fn run(inference: &mut dyn Inference, planes: &[f32], each: usize) -> Result<u64, BenchError> {
    for piece in planes.chunks(inference.max_batch() * each) {
        let batch = piece.len() / each;
        inference.input(batch)?.copy_from_slice(piece);
        inference.run(batch)?;
    }
    Ok((planes.len() / each) as u64)
}

pub(super) fn measure<G: Game>(bench: &Bench<'_, G>, rows: &mut Rows<'_>) -> Result<(), BenchError> {
    let network = bench.network()?;
    let each = network.spec.input.len();
    let planes = positions(&bench.game, BATCHES.into_iter().max().unwrap_or(1));
    for setup in setups(bench.available, network.factory.resolved()) {
        let source = Source::new(&setup, network)?;
        for (batch, (threads, on)) in BATCHES.into_iter().flat_map(|b| thread_counts().into_iter().map(move |t| (b, t)))
        {
            let work = |worker: &mut Box<dyn Inference>| run(worker.as_mut(), &planes[..batch * each], each);
            let figure = bench.rate(threads, &|| source.worker(), &work)?;
            rows.add(&format!("{setup}, batch {batch}, {on}"), "positions/s", figure);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setups_are_those_that_make_sense() {
        let names = |available: &Available, engine, precision, device| {
            let chosen = Resolved { engine, precision, device, reasons: Vec::new() };
            setups(available, &chosen).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let plain = Available { cuda: 0, mps: false, openvino: Ok(()), bfloat16: false };
        let (ov, torch) = (Engine::Openvino, Engine::Libtorch);
        let eager = "libtorch eager f32 on cpu";
        assert_eq!(
            names(&plain, ov, Precision::F32, DeviceName::Cpu),
            ["openvino f32 on cpu", "libtorch f32 on cpu", eager]
        );
        // Slow here, but asked for.
        assert_eq!(
            names(&plain, ov, Precision::Bf16, DeviceName::Cpu),
            ["openvino f32 on cpu", "libtorch f32 on cpu", "openvino bf16 on cpu", eager]
        );
        let alone = Available { openvino: Err("gone".to_owned()), bfloat16: true, ..plain.clone() };
        assert_eq!(
            names(&alone, torch, Precision::Bf16, DeviceName::Cpu),
            ["libtorch f32 on cpu", "libtorch bf16 on cpu", eager]
        );
        let cuda = Available { cuda: 1, ..plain };
        let found = names(&cuda, torch, Precision::F16, DeviceName::Cuda(0));
        assert_eq!(found, ["libtorch f32 on cuda:0", "libtorch bf16 on cuda:0", "libtorch f16 on cuda:0", eager],);
    }
}
