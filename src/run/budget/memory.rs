//! Memory, part by part.

use super::{Outlook, Part};
use crate::data::PlyRecord;
use crate::net::{Architecture, DeviceName, Engine, NetSpec, has_amx};
use crate::run::gate::GateMode;
use crate::train::{OptimizerParams, TrainPrecision};

/// What the program and its libraries take before any work: code that is loaded, and what the libraries set up.
const LIBRARIES: u64 = 200 << 20;
/// What OpenVINO takes besides.
const OPENVINO: u64 = 40 << 20;
/// What the libraries for GPUs take of the machine's own memory.
const GPU_LIBRARIES: u64 = 3 << 30;
/// What a network takes that is made ready for one worker, besides its weights and numbers in passing.
const COPY: u64 = 4 << 20;
/// Batches that `learn` has drawn before they are needed.
const AHEAD: u64 = 4;
/// A thread with its stack and its share of the allocator.
const THREAD: u64 = 1 << 20;
/// Positions in the largest batch of inference on a CPU.
const MOST_BATCH: u64 = 128;
/// Bytes of a node and of an edge of a tree.
const NODE: f64 = 48.0;
const EDGE: f64 = 24.0;
/// A tree that is kept from move to move holds so many times the nodes of one search.
const KEPT: u64 = 4;

/// Everything that is there at the same time. Memory that was freed stays with the process, so parts of different phases count
/// together.
pub(super) fn parts(outlook: &Outlook<'_>) -> Vec<Part> {
    let part = |what, bytes, keys| Part { what, bytes, keys };
    let config = outlook.config;
    vec![
        part("libraries", libraries(outlook), &[] as &[_]),
        part("training", training(outlook), &["training.batch_size", "the network"]),
        part("batches", batches(outlook), &["training.batch_size"]),
        part("networks for evaluation", copies(outlook), &["selfplay.threads", "the network"]),
        part("evaluation cache", u64::from(config.selfplay.cache_megabytes) << 20, &["selfplay.cache_megabytes"]),
        part("search trees", trees(outlook), &["selfplay.parallel_games", "selfplay.simulations", "search.max_nodes"]),
        part("replay window", window(outlook), &["replay.max_bytes", "replay.min_positions"]),
        part("games of a generation", games(outlook), &["selfplay.games"]),
    ]
}

fn on_cpu(outlook: &Outlook<'_>) -> bool {
    matches!(outlook.engine.device, DeviceName::Cpu | DeviceName::Auto)
}

fn libraries(outlook: &Outlook<'_>) -> u64 {
    let openvino = if outlook.engine.engine == Engine::Openvino { OPENVINO } else { 0 };
    let gpu = if on_cpu(outlook) { 0 } else { GPU_LIBRARIES };
    let threads = outlook.config.training_threads() as u64 + outlook.pool()[0] + 3;
    LIBRARIES + openvino + gpu + threads * THREAD
}

/// Weights, average, moments and gradients; what a step computes on the way; the state that is written. On a GPU only the last.
fn training(outlook: &Outlook<'_>) -> u64 {
    let config = outlook.config;
    let [trainable, all] = outlook.numbers();
    let moments = match config.training.optimizer {
        OptimizerParams::Adamw(_) => 2,
        OptimizerParams::Sgd(_) => 1,
    };
    let state = 2 * all + moments * trainable;
    // Read from the device, named tensor by tensor, and as the bytes of a file.
    let written = 3 * state;
    if !on_cpu(outlook) {
        return 4 * written;
    }
    // A gradient of its own for each thread and the one that libtorch makes, and the tensors that the thread's network began with.
    let shards = (config.training_threads() as u64).min(config.training.batch_size as u64);
    4 * (state + shards * (2 * trainable + all) + written) + config.training.batch_size as u64 * activations(outlook)
}

/// What a step holds for each position of its batch until it has the gradients: two results of each convolution (before and after
/// normalisation), in passing a third, and what is derived by them.
fn activations(outlook: &Outlook<'_>) -> u64 {
    let spec = &outlook.spec;
    let cells = spec.input.cells() as u64;
    let heads = 8 * (spec.action_count() as u64 + 3 + further(spec));
    let (conv, linear) = match &spec.architecture {
        Architecture::Resnet(net) => {
            let trunk = (2 * net.blocks as u64 + 1) * net.channels as u64;
            (4 * (trunk + 2 * net.policy_channels as u64 + net.value_channels as u64) + 4 * net.channels as u64, 64)
        }
        Architecture::Mlp(net) => (0, 3 * net.hidden.iter().sum::<usize>() as u64),
    };
    let half = match outlook.config.training.precision {
        TrainPrecision::Bf16 => true,
        TrainPrecision::Auto => has_amx(),
        TrainPrecision::F32 => false,
    };
    conv * cells * if half { 2 } else { 4 } + 4 * (linear + heads + spec.input.len() as u64)
}

/// Numbers of the auxiliary targets of a position, with their weights.
fn further(spec: &NetSpec) -> u64 {
    spec.auxiliary_heads().map(|(_, shape)| shape.slots(spec.input.cells()) as u64 + 1).sum()
}

/// Batches that are drawn ahead, one that is trained on, and one that is being filled.
fn batches(outlook: &Outlook<'_>) -> u64 {
    let row = outlook.spec.input.len() as u64 + 2 * outlook.spec.action_count() as u64 + 5 + further(&outlook.spec);
    (AHEAD + 3) * outlook.config.training.batch_size as u64 * 4 * row
}

/// A copy for each worker, of two networks in the gate, as weights and as the engine lays them out, with room for a batch.
fn copies(outlook: &Outlook<'_>) -> u64 {
    let [_, all] = outlook.numbers();
    let networks = if outlook.config.gate.mode == GateMode::Sprt { 2 } else { 1 };
    let [threads, games] = outlook.pool();
    let spec = &outlook.spec;
    let width = match &spec.architecture {
        Architecture::Resnet(net) => (4 * net.channels + net.policy_channels + net.value_channels) * spec.input.cells(),
        Architecture::Mlp(net) => 2 * net.hidden.iter().sum::<usize>(),
    } as u64;
    let batch = games.min(MOST_BATCH);
    // Inputs and outputs of every size of batch that came up.
    let sizes = 4 * batch * (spec.input.len() + spec.action_count() + 3) as u64;
    let one = COPY + 4 * (2 * all + batch * width + sizes);
    // The checkpoint as it is read, and what copies are made from.
    networks * (threads * one + 4 * 4 * all)
}

/// Trees of all games that are played at once, in the phase that has the largest.
fn trees(outlook: &Outlook<'_>) -> u64 {
    let config = outlook.config;
    let (play, gate) = (&config.selfplay, &config.gate);
    let [threads, games] = outlook.pool();
    let kept = if config.search.reuse { KEPT } else { 1 };
    // Lists grow by doubling, and what is kept is copied to a second set of them.
    let node = (NODE + EDGE * outlook.nature.moves) * if config.search.reuse { 4.0 } else { 2.0 };
    let tree = |simulations: u32, kept: u64| {
        let nodes = (u64::from(simulations) * kept + 1).min(u64::from(config.search.max_nodes));
        (nodes as f64 * node) as u64
    };
    let positions = (outlook.nature.plies * ply(outlook)) as u64 + 16 * outlook.nature.state;
    let simulations = play.simulations.max(if play.full_share < 1.0 { play.fast_simulations } else { 0 });
    let self_play = threads * games * (tree(simulations, kept) + positions);
    // As `gate` shares them out.
    let at_once = |games: u32| threads * (u64::from(games) / threads).clamp(1, 64);
    let matches = |games: u32, trees: u64| at_once(games) * (trees * tree(gate.simulations, kept) + positions);
    let gated = if gate.mode == GateMode::Sprt { matches(gate.games, 2) } else { 0 };
    let rated = if gate.anchor_games > 0 {
        matches(gate.anchor_games, 1) + threads * tree(gate.anchor_simulations, 1)
    } else {
        0
    };
    self_play.max(gated).max(rated)
}

/// Bytes of a ply of a record in memory.
fn ply(outlook: &Outlook<'_>) -> f64 {
    size_of::<PlyRecord>() as f64 + 16.0 + 4.0 * outlook.nature.moves
}

/// The window when the run ends, or at its bound.
fn window(outlook: &Outlook<'_>) -> u64 {
    let bound = outlook.config.replay.max_bytes;
    let Some(generations) = outlook.generations else { return bound };
    let nature = &outlook.nature;
    // A game has a place in a list and a block on the heap.
    let position = 12.0 + 4.0 * nature.moves + 200.0 / nature.mean_plies;
    bound.min((outlook.window_positions(generations) * position) as u64)
}

/// The games of the newest generation as records, and as bytes on their way to the disk and back.
fn games(outlook: &Outlook<'_>) -> u64 {
    (outlook.positions() * (ply(outlook) + 2.0 * super::disk::raw_ply(outlook))) as u64
}
