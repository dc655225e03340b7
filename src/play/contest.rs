//! Matches: two players over paired games, each opening played from both sides.

use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use super::opening::Openings;
use super::pool::{Finished, PoolError, PoolParams, PoolStats, Table, Tables, play_pool};
use super::seat::Player;
use crate::game::{Game, Outcome, Player as Side};
use crate::util::rng::{Purpose, Stream};
use crate::util::stats::{GameCounts, PairCounts, Sprt, Verdict};

/// How a match is played.
#[derive(Clone, Copy, Debug)]
pub struct MatchParams {
    /// Pairs of games at most; each pair plays one opening with sides swapped.
    pub pairs: usize,
    /// Random moves at the beginning of each pair.
    pub opening_plies: usize,
    /// Ends the match as soon as this test has decided.
    pub sprt: Option<Sprt>,
    /// Seeds openings and players.
    pub seed: u64,
    /// Threads and games at once.
    pub pool: PoolParams,
}

/// Results of the first player of a match.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct MatchTally {
    /// Games in which it moved first.
    pub as_first: GameCounts,
    /// Games in which it moved second.
    pub as_second: GameCounts,
    /// Pairs of games from one opening.
    pub pairs: PairCounts,
}

impl MatchTally {
    /// Results over both sides.
    pub fn games(&self) -> GameCounts {
        let [a, b] = [self.as_first, self.as_second];
        GameCounts { wins: a.wins + b.wins, draws: a.draws + b.draws, losses: a.losses + b.losses }
    }

    fn add_pair(&mut self, first: Outcome, second: Outcome) {
        count(&mut self.as_first, first, Side::First);
        count(&mut self.as_second, second, Side::Second);
        self.pairs.add(first.points(Side::First), second.points(Side::Second));
    }
}

fn count(counts: &mut GameCounts, outcome: Outcome, side: Side) {
    match outcome {
        Outcome::Win(winner) if winner == side => counts.wins += 1,
        Outcome::Win(_) => counts.losses += 1,
        Outcome::Draw => counts.draws += 1,
    }
}

/// What came out of a match.
#[derive(Debug)]
pub struct MatchReport {
    /// Results of the first player, complete pairs only.
    pub tally: MatchTally,
    /// The games of those pairs, in order.
    pub games: Vec<Finished>,
    /// Number of games that differ in start or moves.
    pub distinct: usize,
    /// What the sequential test says after the last counted pair.
    pub verdict: Option<Verdict>,
    /// Whether the match was stopped before its end.
    pub interrupted: bool,
}

/// Pairs as they come in, counted strictly in order, so that the verdict does not depend on which game was ready first.
struct Desk {
    pending: BTreeMap<u64, [Option<Finished>; 2]>,
    next: u64,
    tally: MatchTally,
    games: Vec<Finished>,
    verdict: Option<Verdict>,
}

impl Desk {
    fn take(&mut self, finished: Finished, sprt: Option<&Sprt>) -> bool {
        let pair = self.pending.entry(finished.index / 2).or_default();
        let side = (finished.index % 2) as usize;
        pair[side] = Some(finished);
        while self.pending.get(&self.next).is_some_and(|pair| pair.iter().all(Option::is_some)) {
            let pair = self.pending.remove(&self.next).expect("just seen");
            self.next += 1;
            let [Some(first), Some(second)] = pair else { unreachable!("both are there") };
            self.tally.add_pair(first.record.end.outcome, second.record.end.outcome);
            self.games.extend([first, second]);
            if let Some(sprt) = sprt {
                let verdict = sprt.status(&self.tally.pairs);
                self.verdict = Some(verdict);
                if verdict != Verdict::Continue {
                    return true;
                }
            }
        }
        false
    }
}

struct Pairs<'a, G: Game> {
    game: &'a G,
    openings: Mutex<Openings<G>>,
    pairs: usize,
    next: AtomicUsize,
    seed: u64,
}

impl<G: Game> Tables<G> for Pairs<'_, G> {
    fn next(&self) -> Option<Table<G>> {
        let index = self.next.fetch_add(1, Relaxed);
        if index / 2 >= self.pairs {
            return None;
        }
        let mut openings = self.openings.lock().expect("drawing an opening does not panic");
        let opening = openings.get(self.game, index / 2).clone();
        drop(openings);
        let seats = if index.is_multiple_of(2) { [0, 1] } else { [1, 0] };
        Some(Table {
            index: index as u64,
            seats,
            start: opening.start,
            opening: opening.moves,
            random: Stream::keyed(self.seed, Purpose::Match, &[index as u64]),
        })
    }
}

/// Plays a match between `players[0]` and `players[1]`. `progress` is told of every game that ends, with the tally so far.
///
/// The result depends on the seed alone, not on threads: pairs are counted in order, and with a sequential test those
/// after the decision do not count.
///
/// # Errors
/// When an evaluator fails.
pub fn play_match<G: Game>(
    game: &G,
    players: &[Player<G>; 2],
    params: &MatchParams,
    stop: &(dyn Fn() -> bool + Sync),
    stats: &PoolStats,
    progress: &(dyn Fn(&MatchTally) + Sync),
) -> Result<MatchReport, PoolError> {
    let openings = Openings::new(params.opening_plies, Stream::keyed(params.seed, Purpose::Opening, &[]));
    let openings = Mutex::new(openings);
    let tables = Pairs { game, openings, pairs: params.pairs, next: AtomicUsize::new(0), seed: params.seed };
    let decided = AtomicBool::new(false);
    let desk = Mutex::new(Desk {
        pending: BTreeMap::new(),
        next: 0,
        tally: MatchTally::default(),
        games: Vec::new(),
        verdict: None,
    });
    play_pool(game, players, &tables, params.pool, &|| decided.load(Relaxed) || stop(), stats, &|finished| {
        let mut desk = desk.lock().expect("no thread panics while it holds the desk");
        if !decided.load(Relaxed) && desk.take(finished, params.sprt.as_ref()) {
            decided.store(true, Relaxed);
        }
        progress(&desk.tally);
    })?;
    let desk = desk.into_inner().expect("all threads have ended");
    let distinct =
        desk.games.iter().map(|g| (&g.record.start, moves(g))).collect::<HashSet<(&String, Vec<u16>)>>().len();
    let interrupted = !decided.load(Relaxed) && desk.games.len() < 2 * params.pairs;
    Ok(MatchReport { tally: desk.tally, distinct, verdict: desk.verdict, interrupted, games: desk.games })
}

fn moves(game: &Finished) -> Vec<u16> {
    game.record.plies.iter().map(|ply| ply.action.0).collect()
}
