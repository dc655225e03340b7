//! Disk space, part by part.

use super::{Disk, Outlook, Part, UNKNOWN, sum};
use crate::run::cycle::States;
use crate::run::keep::KeepGames;
use crate::train::OptimizerParams;

/// What a file takes besides its bytes: file systems give whole blocks.
const BLOCK: u64 = 4096;
/// The description of a tensor in a file.
const TENSOR: u64 = 120;
/// Steps of one `train` event, and what it takes in `metrics.jsonl` and on the charts.
const STEPS_PER_EVENT: f64 = 20.0;
const TRAIN_EVENT: f64 = 1500.0;
/// A histogram there, for each trainable tensor one of weights and one of gradients.
const HISTOGRAM: u64 = 2 * 2600;
/// All other events of a generation.
const OTHER_EVENTS: u64 = 16 << 10;
/// What a generation adds to a state: counters and rated games.
const STATE_EACH: u64 = 300;
/// Descriptions of charts, notices at a start.
const ONCE: u64 = 24 << 10;

/// Bytes of a ply in a file of games before compression; it makes at most a few per cent more of them.
pub(super) fn raw_ply(outlook: &Outlook<'_>) -> f64 {
    11.0 + 2.0 * outlook.nature.moves * f64::from(outlook.config.selfplay.full_share)
}

pub(super) fn predict(outlook: &Outlook<'_>) -> Disk {
    let done = outlook.done;
    let end = outlook.generations.unwrap_or(done.max(UNKNOWN)).max(done);
    let total = |generations| sum(&parts(outlook, generations));
    let parts_at_end = parts(outlook, end);
    // Where everything that is bounded has reached its bound.
    let late = end.max(100) * 100;
    let each = (total(late + 100) - total(late)) / 100;
    let passing = games_of(outlook).max(state_file(outlook)) + checkpoint(outlook);
    let next = (total(done + 1) - if done == 0 { 0 } else { total(done) }) + passing;
    let rest = total(end) - if done == 0 { 0 } else { total(done) };
    let missing = if outlook.generations.is_some() { rest.max(if end > done { next } else { 0 }) } else { next };
    Disk { generations: outlook.generations, parts: parts_at_end, each, missing, next }
}

/// Everything when `generations` are done.
fn parts(outlook: &Outlook<'_>, generations: u64) -> Vec<Part> {
    let part = |what, bytes, keys| Part { what, bytes, keys };
    let mut parts = vec![
        part("games", games(outlook, generations), &["keep.games", "selfplay.games"] as &[_]),
        part("checkpoints", checkpoints(outlook, generations), &["keep.checkpoints", "the network"]),
        part("states to go on from", states(outlook, generations), &["the network"]),
        part("charts and metrics", events(outlook, generations), &[]),
    ];
    parts.sort_by_key(|part| std::cmp::Reverse(part.bytes));
    parts
}

/// The file of a generation's games.
fn games_of(outlook: &Outlook<'_>) -> u64 {
    let each = outlook.positions() * raw_ply(outlook) + f64::from(outlook.config.selfplay.games) * 80.0;
    each as u64 + BLOCK
}

fn games(outlook: &Outlook<'_>, generations: u64) -> u64 {
    let all = games_of(outlook).saturating_mul(generations);
    match outlook.config.keep.games {
        KeepGames::All => all,
        KeepGames::Window => {
            // The window as it was at the oldest end that the run can go back to, in whole files.
            let positions = outlook.window_positions(generations) + (States::ENDS + 2) as f64 * outlook.positions();
            all.min((positions / outlook.positions() * games_of(outlook) as f64) as u64)
        }
    }
}

fn checkpoint(outlook: &Outlook<'_>) -> u64 {
    let [_, all] = outlook.numbers();
    4 * all + TENSOR * outlook.spec.tensors().len() as u64 + 2 * BLOCK
}

fn checkpoints(outlook: &Outlook<'_>, generations: u64) -> u64 {
    let keep = &outlook.config.keep;
    let all = generations + 1;
    let kept = keep.checkpoints.map_or(all, |newest| {
        let regular = keep.every.map_or(0, |every| generations / u64::from(every) + 1);
        // The best ones of the states that the run can go back to stay as well.
        all.min(u64::from(newest) + regular + States::ENDS as u64 + 1)
    });
    // The best one is copied.
    checkpoint(outlook).saturating_mul(kept + 1)
}

fn state_file(outlook: &Outlook<'_>) -> u64 {
    let [trainable, all] = outlook.numbers();
    let moments = match outlook.config.training.optimizer {
        OptimizerParams::Adamw(_) => 2,
        OptimizerParams::Sgd(_) => 1,
    };
    4 * (2 * all + moments * trainable) + (2 + moments) * TENSOR * outlook.spec.tensors().len() as u64 + BLOCK
}

/// What training goes on from, at the ends that the run can go back to and now.
fn states(outlook: &Outlook<'_>, generations: u64) -> u64 {
    let ends = generations.min(States::ENDS as u64) + 1;
    ends * (state_file(outlook) + BLOCK + STATE_EACH * generations)
}

fn events(outlook: &Outlook<'_>, generations: u64) -> u64 {
    let config = outlook.config;
    let steps = outlook.positions() * config.replay.reuse / config.training.batch_size as f64;
    let trainable = outlook.spec.tensors().iter().filter(|tensor| tensor.role.is_trainable()).count() as u64;
    // A drawing of a game.
    let sample = BLOCK + 8 * outlook.nature.plies as u64;
    let each = ((steps / STEPS_PER_EVENT + 1.0) * TRAIN_EVENT) as u64 + trainable * HISTOGRAM + OTHER_EVENTS + sample;
    ONCE + each.saturating_mul(generations)
}
