//! A hash of what fixed searches find: equal before and after a change that is meant to change nothing.
//!
//! Judged by the hash evaluator, so that no network and no engine has a part in it. It holds for one build on one kind of
//! machine: mathematical functions may round differently elsewhere.

use std::hash::Hasher as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::BenchError;
use super::records::self_play;
use crate::data::GameRecord;
use crate::eval::{EvalError, HashEval, KeyHasher};
use crate::game::{Game, Outcome, WdlAbs};
use crate::games::{self, GameVisitor};
use crate::play::PoolStats;
use crate::run::generate::SelfPlayParams;
use crate::search::{Algorithm, Budget, RootNoise, SearchParams, SearchSummary, Solo, Tree};
use crate::util::rng::{Purpose, Stream};

/// Moves searched in a row, the tree being kept.
const MOVES: u64 = 4;
/// Simulations of each of them.
const SIMULATIONS: u32 = 120;
/// Leaves in flight: one, and several.
const WIDTHS: [usize; 2] = [1, 8];
/// The hash evaluator's seed, and the random streams'.
const SEED: u64 = 7;

/// Games of self-play, and how they are played.
fn self_play_params(threads: usize) -> SelfPlayParams {
    SelfPlayParams {
        games: 6,
        simulations: 24,
        full_share: 0.5,
        fast_simulations: 8,
        opening_share: 0.5,
        threads: Some(threads as u32),
        parallel_games: Some(2),
        ..SelfPlayParams::default()
    }
}

/// What all fixed searches together come to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// The hash of everything, 16 hexadecimal digits.
    pub hash: String,
    /// One hash for each game and algorithm, so that a difference can be traced.
    pub parts: Vec<Part>,
}

/// The searches of one game by one algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// `uttt puct`.
    pub name: String,
    /// 16 hexadecimal digits.
    pub hash: String,
}

impl Signature {
    /// Searches and plays all games with default parameters; `threads` for the games, which makes no difference.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub fn compute(threads: usize) -> Result<Self, BenchError> {
        Self::of(&SearchParams::default(), threads)
    }

    /// As [`compute`](Self::compute), by PUCT and by Gumbel search with other numbers of `params`.
    pub(super) fn of(params: &SearchParams, threads: usize) -> Result<Self, BenchError> {
        let mut whole = KeyHasher::default();
        let mut parts = Vec::new();
        for name in games::NAMES {
            for (algorithm, called) in [(Algorithm::Puct, "puct"), (Algorithm::Gumbel, "gumbel")] {
                let params = SearchParams { algorithm, ..params.clone() };
                let hash = games::dispatch(name, Fixed { params, threads })??;
                whole.write_u64(hash);
                parts.push(Part { name: format!("{name} {called}"), hash: format!("{hash:016x}") });
            }
        }
        Ok(Self { hash: format!("{:016x}", whole.finish()), parts })
    }
}

/// The fixed searches and games of one game.
struct Fixed {
    params: SearchParams,
    threads: usize,
}

impl GameVisitor for Fixed {
    type Output = Result<u64, BenchError>;

    fn visit<G: Game>(self, game: G) -> Self::Output {
        let mut hasher = KeyHasher::default();
        for width in WIDTHS {
            searches(&game, &self.params, width, &mut hasher)?;
        }
        let params = self_play_params(self.threads);
        let judge = Arc::new(|| HashEval::new(SEED));
        let records = self_play(&game, &params, &self.params, SEED, judge, &PoolStats::default())?;
        records.iter().for_each(|record| write_record(record, &mut hasher));
        Ok(hasher.finish())
    }
}

/// Searches a few moves in a row.
fn searches<G: Game>(game: &G, params: &SearchParams, width: usize, hasher: &mut KeyHasher) -> Result<(), EvalError> {
    let noise = Some(RootNoise { fraction: 0.25, concentration: 10.0 });
    let mut tree = Tree::new(params.clone(), game.startpos());
    for ply in 0..MOVES {
        let budget = Budget { simulations: SIMULATIONS, noise, gumbel_noise: true };
        tree.begin(budget, Stream::keyed(SEED, Purpose::Analysis, &[ply]));
        Solo::default().search(&mut tree, game, &mut HashEval::new(SEED), |_| width, |_| true)?;
        let Some(summary) = tree.summary() else { break };
        write_summary(&summary, hasher);
        hasher.write_usize(tree.node_count());
        tree.advance(game, summary.moves[summary.best].action);
    }
    Ok(())
}

fn write_float(number: f32, hasher: &mut KeyHasher) {
    hasher.write_u32(number.to_bits());
}

fn write_value(value: WdlAbs, hasher: &mut KeyHasher) {
    [value.first, value.draw, value.second].into_iter().for_each(|part| write_float(part, hasher));
}

/// Visits, values to the bit, proven results, the move that is chosen.
fn write_summary(summary: &SearchSummary, hasher: &mut KeyHasher) {
    let proven = |outcome: Option<Outcome>, hasher: &mut KeyHasher| match outcome {
        Some(outcome) => write_value(outcome.wdl(), hasher),
        None => hasher.write_u8(0),
    };
    hasher.write_usize(summary.best);
    hasher.write_u32(summary.simulations);
    write_value(summary.value, hasher);
    proven(summary.proven, hasher);
    for one in &summary.moves {
        hasher.write_u16(one.action.0);
        hasher.write_u32(one.visits);
        write_float(one.prior, hasher);
        write_float(one.policy, hasher);
        write_value(one.value, hasher);
        proven(one.proven, hasher);
    }
}

/// A game of self-play: its moves, what was thought of them, how it ended.
fn write_record(record: &GameRecord, hasher: &mut KeyHasher) {
    hasher.write_u32(record.index);
    hasher.write(record.start.as_bytes());
    write_value(record.end.outcome.wdl(), hasher);
    hasher.write_usize(record.plies.len());
    for ply in &record.plies {
        hasher.write_u16(ply.action.0);
        write_value(ply.value, hasher);
        hasher.write_usize(ply.policy.len());
        ply.policy.iter().for_each(|&part| write_float(part, hasher));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_repeats_whatever_the_threads_and_tells_what_has_changed() {
        let usual = Signature::compute(1).unwrap();
        assert_eq!(usual, Signature::compute(3).unwrap());
        assert_eq!(usual.parts.len(), 2 * games::NAMES.len());
        let distinct: std::collections::BTreeSet<&str> = usual.parts.iter().map(|part| &part.hash[..]).collect();
        assert_eq!(distinct.len(), usual.parts.len(), "no two searches are alike");

        let other = Signature::of(&SearchParams { c_puct: 1.6, ..SearchParams::default() }, 2).unwrap();
        assert_ne!(usual.hash, other.hash);
        for (part, changed) in usual.parts.iter().zip(&other.parts) {
            // The constant is none of Gumbel's, but no PUCT search is without it.
            assert_eq!(part.hash == changed.hash, part.name.ends_with("gumbel"), "{}", part.name);
        }
        let scaled = Signature::of(&SearchParams { gumbel_scale: 1.1, ..SearchParams::default() }, 2).unwrap();
        for (part, changed) in usual.parts.iter().zip(&scaled.parts) {
            assert_eq!(part.hash == changed.hash, part.name.ends_with("puct"), "{}", part.name);
        }
    }
}
