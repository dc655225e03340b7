//! From games and counters to the figures that observers are told.

use std::collections::HashSet;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use super::event::{self, GamesSummary, SelfPlay};
use crate::data::{Finish, GameRecord, PlyKind};
use crate::game::{Outcome, Player as Side};
use crate::play::{MatchReport, PoolParams, PoolStats, Resignations};
use crate::util::stats::{Tally as _, Verdict};

fn per_second(count: u64, began: Instant) -> f64 {
    count as f64 / began.elapsed().as_secs_f64().max(1e-9)
}

/// How fast a pool plays, for the live line.
pub(super) fn speed_note(stats: &PoolStats, began: Instant) -> String {
    let [moves, simulations] = [&stats.moves, &stats.simulations].map(|n| per_second(n.load(Relaxed), began));
    format!("{moves:.0} moves/s, {simulations:.0} simulations/s")
}

impl GamesSummary {
    /// The summary of `records`; shares are of all games, and 0 where there are none.
    pub fn of(records: &[GameRecord]) -> Self {
        let games = records.len().max(1) as f64;
        let share = |of: &dyn Fn(&GameRecord) -> bool| records.iter().filter(|r| of(r)).count() as f64 / games;
        let positions: u64 = records.iter().map(|record| record.plies.len() as u64).sum();
        let distinct: HashSet<(&str, Vec<u16>)> =
            records.iter().map(|r| (r.start.as_str(), r.plies.iter().map(|p| p.action.0).collect())).collect();
        Self {
            games: records.len() as u64,
            positions,
            policy_positions: records.iter().flat_map(|r| &r.plies).filter(|p| p.kind == PlyKind::Full).count() as u64,
            mean_length: positions as f64 / games,
            first_share: share(&|r| r.end.outcome == Outcome::Win(Side::First)),
            draw_share: share(&|r| r.end.outcome == Outcome::Draw),
            second_share: share(&|r| r.end.outcome == Outcome::Win(Side::Second)),
            capped_share: share(&|r| r.end.reason == Finish::PlyCap),
            repetition_share: share(&|r| r.end.reason == Finish::Repetition),
            distinct_share: distinct.len() as f64 / games,
        }
    }
}

/// The figures of a generation's self-play. Rates are those of this process, shares those of all games.
pub(super) fn self_play(
    records: &[GameRecord],
    resignations: Option<Resignations>,
    generation: u32,
    stats: &PoolStats,
    hit_share: Option<f64>,
    pool: PoolParams,
    began: Instant,
) -> SelfPlay {
    let [evaluations, batches, busy, all] =
        [&stats.evaluations, &stats.batches, &stats.evaluation_ns, &stats.total_ns].map(|n| n.load(Relaxed));
    let ratio = |a: u64, b: u64| if b == 0 { 0.0 } else { a as f64 / b as f64 };
    SelfPlay {
        generation,
        played: GamesSummary::of(records),
        resignations,
        games_per_second: per_second(stats.games.load(Relaxed), began),
        positions_per_second: per_second(stats.moves.load(Relaxed), began),
        simulations_per_second: per_second(stats.simulations.load(Relaxed), began),
        evaluations_per_second: per_second(evaluations, began),
        batch_fill: ratio(evaluations, batches) / pool.slots as f64,
        cache_hit_rate: hit_share,
        waiting_share: ratio(busy, all),
    }
}

/// The figures of a gate match.
pub(super) fn gate_event(generation: u32, report: &MatchReport, accepted: bool, llr: f64) -> event::Gate {
    let games = report.tally().games();
    let score = games.score().unwrap_or(0.5);
    let difference = report.tally().pairs.elo();
    event::Gate {
        generation,
        wins: games.wins,
        draws: games.draws,
        losses: games.losses,
        score,
        elo: difference.map_or(0.0, |elo| elo.value),
        elo_interval: difference.map_or((f64::NEG_INFINITY, f64::INFINITY), |elo| (elo.low, elo.high)),
        llr,
        distinct_games: report.distinct,
        verdict: match (accepted, report.verdict) {
            (true, _) => event::Verdict::Accepted,
            (false, Some(Verdict::AcceptH0)) => event::Verdict::Rejected,
            (false, _) => event::Verdict::Undecided,
        },
    }
}
