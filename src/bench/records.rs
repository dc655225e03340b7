//! Games of self-play without a network: what memory and training are measured on.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Bench, BenchError};
use crate::data::{GameRecord, ReplayParams, ReplayWindow, SampleParams};
use crate::eval::Uniform;
use crate::game::Game;
use crate::play::{EvaluatorSource, PoolParams, PoolStats};
use crate::run::config::RunConfig;
use crate::run::generate::{Generate, SelfPlayParams};
use crate::search::SearchParams;
use crate::util::machine::cores;

/// Games played.
const GAMES: u32 = 64;
/// No search is larger, or games of some configs would take minutes.
const MOST_SIMULATIONS: u32 = 100;

/// The games of one generation as a run plays them, in order of their numbers; counted in `stats`.
pub(super) fn self_play<G: Game>(
    game: &G,
    params: &SelfPlayParams,
    search: &SearchParams,
    seed: u64,
    evaluators: Arc<dyn EvaluatorSource<G>>,
    stats: &PoolStats,
) -> Result<Vec<GameRecord>, BenchError> {
    let records = Mutex::new(Vec::new());
    let threads = params.threads.map_or_else(cores, |threads| threads as usize);
    let pool = PoolParams { threads, slots: (params.games as usize / threads).max(1) };
    let window = &ReplayWindow::new(ReplayParams::default(), SampleParams::default());
    let generate = Generate { game, params, search, window, seed, generation: 0, evaluators, pool };
    generate.run(&HashSet::new(), &|| false, stats, &|finished| {
        records.lock().unwrap_or_else(PoisonError::into_inner).push(finished.record);
    })?;
    let mut records = records.into_inner().unwrap_or_else(PoisonError::into_inner);
    records.sort_by_key(|record| record.index);
    Ok(records)
}

/// A replay window with games of the config's self-play, judged by the uniform evaluator: the same on every machine.
pub(super) fn replay_window<G: Game>(bench: &Bench<'_, G>) -> Result<ReplayWindow, BenchError> {
    let RunConfig { selfplay, search, seed, replay, samples, .. } = bench.config;
    let least = |simulations: u32| simulations.min(MOST_SIMULATIONS);
    let params = SelfPlayParams {
        games: GAMES,
        simulations: least(selfplay.simulations),
        fast_simulations: least(selfplay.fast_simulations),
        ..selfplay.clone()
    };
    let records = self_play(&bench.game, &params, search, *seed, Arc::new(|| Uniform), &PoolStats::default())?;
    let mut window = ReplayWindow::new(replay.clone(), samples.clone());
    window.push(&bench.game, &records)?;
    Ok(window)
}
