//! Self-play in steady state, with the config's own parameters.
//!
//! The first games of the pool are already under way, at random plies, as they are in the middle of a generation;
//! and new ones go on coming, so that batches are as full as they get.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::records::self_play;
use super::{Bench, BenchError, Figure, Measure, Rows, thread_counts};
use crate::eval::Uniform;
use crate::game::{Action, Game};
use crate::play::{EvaluatorSource, Opening, PoolParams, PoolStats, Table, Tables, play_pool};
use crate::run::config::RunConfig;
use crate::run::engine::NetSource;
use crate::run::generate::SelfPlayParams;
use crate::run::tune::tune;
use crate::util::machine::cpu_seconds;
use crate::util::rng::{Purpose, Stream};

/// Batches that each thread has evaluated before anything is measured: engines make code for a batch size when they
/// first see it.
const WARM_BATCHES: u64 = 4;

/// Games that are played to their ends: as many as have together so many simulations for each move, within limits.
const MOST_MOVE_SIMULATIONS: u32 = 6400;

/// How often the pool is looked at while something is awaited.
const LOOK: Duration = Duration::from_micros(500);

/// Games without end.
struct Endless<'a, G: Game> {
    game: &'a G,
    params: &'a SelfPlayParams,
    seed: u64,
    next: AtomicU64,
    /// So many games begin under way.
    under_way: u64,
}

impl<G: Game> Tables<G> for Endless<'_, G> {
    fn next(&self) -> Option<Table<G>> {
        let index = self.next.fetch_add(1, Relaxed);
        let mut random = Stream::keyed(self.seed, Purpose::SelfPlay, &[0, index]);
        let opening = if index < self.under_way {
            part_of_a_game(self.game, &mut random)
        } else {
            self.params.opening(self.game, &mut random)
        };
        Some(Table { index, seats: [0, 0], start: opening.start, opening: opening.moves, script: None, random })
    }
}

/// The first moves of a random game, as many as a look at a random moment would find.
fn part_of_a_game<G: Game>(game: &G, random: &mut Stream) -> Opening<G> {
    let start = game.start(random);
    let (mut state, mut moves, mut scratch) = (start.clone(), Vec::<Action>::new(), Vec::new());
    while game.end(&state).is_none() {
        moves.push(game.random_action(&state, random, &mut scratch));
        game.play(&mut state, moves[moves.len() - 1]);
    }
    moves.truncate(random.below(moves.len().max(1)));
    Opening { start, moves }
}

/// The counters of a pool at one moment.
#[derive(Clone, Copy)]
struct Seen {
    at: Instant,
    /// Processor time of the process.
    cpu: Option<f64>,
    games: f64,
    moves: f64,
    simulations: f64,
    evaluations: f64,
    inferences: f64,
    batches: f64,
    evaluation_ns: f64,
    encode_ns: f64,
    inference_ns: f64,
    total_ns: f64,
}

impl Seen {
    fn now(stats: &PoolStats) -> Self {
        let get = |counter: &AtomicU64| counter.load(Relaxed) as f64;
        Self {
            at: Instant::now(),
            cpu: cpu_seconds(),
            games: get(&stats.games),
            moves: get(&stats.moves),
            simulations: get(&stats.simulations),
            evaluations: get(&stats.evaluations),
            inferences: get(&stats.inferences),
            batches: get(&stats.batches),
            evaluation_ns: get(&stats.evaluation_ns),
            encode_ns: get(&stats.encode_ns),
            inference_ns: get(&stats.inference_ns),
            total_ns: get(&stats.total_ns),
        }
    }
}

/// What a game takes, from games played to their ends with the uniform evaluator. In the time of a measurement many games
/// together make few moves or none, and only those that end soonest are over.
#[derive(Clone, Copy)]
struct Takes {
    simulations_per_move: f64,
    moves_per_game: f64,
}

impl Takes {
    fn of<G: Game>(bench: &Bench<'_, G>) -> Result<Self, BenchError> {
        let RunConfig { selfplay, search, seed, .. } = bench.config;
        let games = (MOST_MOVE_SIMULATIONS / selfplay.simulations).clamp(8, 64);
        let params = SelfPlayParams { games, threads: None, ..selfplay.clone() };
        let stats = PoolStats::default();
        self_play(&bench.game, &params, search, *seed, Arc::new(|| Uniform), &stats)?;
        let Seen { games, moves, simulations, .. } = Seen::now(&stats);
        Ok(Self { simulations_per_move: share(simulations, moves), moves_per_game: share(moves, games) })
    }
}

/// One repetition: what the pool did between two moments.
struct Window {
    from: Seen,
    to: Seen,
    pool: PoolParams,
    takes: Takes,
}

/// `part` of `whole`, 0 of nothing.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

impl Window {
    fn seconds(&self) -> f64 {
        (self.to.at - self.from.at).as_secs_f64()
    }

    fn change(&self, of: fn(&Seen) -> f64) -> f64 {
        of(&self.to) - of(&self.from)
    }

    fn per_second(&self, of: fn(&Seen) -> f64) -> f64 {
        share(self.change(of), self.seconds())
    }

    fn moves_per_second(&self) -> f64 {
        share(self.per_second(|seen| seen.simulations), self.takes.simulations_per_move)
    }

    fn games_per_second(&self) -> f64 {
        share(self.moves_per_second(), self.takes.moves_per_game)
    }

    /// Percent of the workers' time.
    fn time_share(&self, of: fn(&Seen) -> f64) -> f64 {
        100.0 * share(self.change(of), self.change(|seen| seen.total_ns))
    }

    /// Percent of the time in which the workers' threads were not running: they waited for each other, for a device, or for a
    /// processor that something else was using.
    fn waiting(&self) -> Option<f64> {
        let used = self.to.cpu? - self.from.cpu?;
        Some((100.0 * (1.0 - share(used, self.pool.threads as f64 * self.seconds()))).max(0.0))
    }
}

/// What is read off a repetition.
type Reading = fn(&Window) -> Option<f64>;

/// The rows: what is measured, its unit.
const READINGS: [(&str, &str, Reading); 12] = [
    ("simulations", "simulations/s", |w| Some(w.per_second(|seen| seen.simulations))),
    ("evaluations", "evaluations/s", |w| Some(w.per_second(|seen| seen.evaluations))),
    ("network evaluations", "positions/s", |w| Some(w.per_second(|seen| seen.inferences))),
    ("moves", "moves/s", |w| Some(w.moves_per_second())),
    ("games", "games/s", |w| Some(w.games_per_second())),
    ("encode", "% of time", |w| Some(w.time_share(|seen| seen.encode_ns))),
    ("inference", "% of time", |w| Some(w.time_share(|seen| seen.inference_ns))),
    ("cache and softmax", "% of time", |w| {
        Some(w.time_share(|seen| seen.evaluation_ns - seen.encode_ns - seen.inference_ns))
    }),
    ("tree and rules", "% of time", |w| Some(w.time_share(|seen| seen.total_ns - seen.evaluation_ns))),
    ("waiting", "% of time", Window::waiting),
    ("batch fill", "%", |w| {
        let batches = w.change(|seen| seen.batches) * w.pool.slots as f64;
        Some(100.0 * share(w.change(|seen| seen.evaluations), batches))
    }),
    ("cache hits", "%", |w| {
        let remembered = w.change(|seen| seen.evaluations - seen.inferences);
        Some(100.0 * share(remembered, w.change(|seen| seen.evaluations)))
    }),
];

/// Waits until `done`, or until the pool is over.
fn wait_for<T>(pool: &std::thread::ScopedJoinHandle<'_, T>, done: impl Fn() -> bool) {
    while !pool.is_finished() && !done() {
        std::thread::sleep(LOOK);
    }
}

/// Looks at a pool that plays until all repetitions are over.
fn watch<G: Game>(
    bench: &Bench<'_, G>,
    params: &SelfPlayParams,
    pool: PoolParams,
    evaluators: Arc<dyn EvaluatorSource<G>>,
    takes: Takes,
) -> Result<Vec<Window>, BenchError> {
    let RunConfig { search, seed, .. } = bench.config;
    let game = &bench.game;
    let under_way = (pool.threads * pool.slots) as u64;
    let tables = Endless { game, params, seed: *seed, next: AtomicU64::new(0), under_way };
    let players = [params.player(search, evaluators)];
    let (stats, over) = (PoolStats::default(), AtomicBool::new(false));
    let Measure { repeats, .. } = bench.measure;
    std::thread::scope(|scope| {
        let playing = scope.spawn(|| play_pool(game, &players, &tables, pool, &|| over.load(Relaxed), &stats, &|_| {}));
        let batches = |more: u64| {
            let wanted = stats.batches.load(Relaxed) + more;
            let stats = &stats;
            move || stats.batches.load(Relaxed) >= wanted
        };
        wait_for(&playing, batches(WARM_BATCHES * pool.threads as u64));
        let mut windows = Vec::new();
        let mut from = Seen::now(&stats);
        while windows.len() < repeats && !playing.is_finished() {
            // At least one batch, however short the repetition is.
            let some = batches(1);
            wait_for(&playing, || from.at.elapsed() >= bench.measure.duration() && some());
            let to = Seen::now(&stats);
            windows.push(Window { from, to, pool, takes });
            from = to;
        }
        over.store(true, Relaxed);
        playing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(windows)
    })
}

pub(super) fn measure<G: Game>(bench: &Bench<'_, G>, rows: &mut Rows<'_>) -> Result<(), BenchError> {
    let factory = &bench.network()?.factory;
    let own = &bench.config.selfplay;
    let megabytes =
        if own.cache_megabytes > 0 { own.cache_megabytes } else { SelfPlayParams::default().cache_megabytes };
    let takes = Takes::of(bench)?;
    for (threads, on) in thread_counts() {
        for (cache_megabytes, cache) in [(0, "no cache"), (megabytes, "cache")] {
            let params = SelfPlayParams { threads: Some(threads as u32), cache_megabytes, ..own.clone() };
            let view = own.view.mode(bench.config.seed, 0);
            let evaluators = Arc::new(NetSource::new(factory.clone(), cache_megabytes).seen_through(view));
            let windows = watch(bench, &params, tune(&params, factory)?.pool, evaluators, takes)?;
            for (name, unit, reading) in READINGS {
                // What this system cannot tell has no row.
                if let Some(figure) = Figure::of(windows.iter().filter_map(reading)) {
                    rows.add(&format!("{on}, {cache}: {name}"), unit, figure);
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::games::zener::Zener;

    #[test]
    fn games_under_way_are_positions_of_all_ages() {
        let game = Zener::from_options(&[]).unwrap();
        let plies: Vec<usize> = (0..100)
            .map(|index| {
                let opening = part_of_a_game(&game, &mut Stream::test(index));
                let state = opening.position(&game);
                assert!(game.end(&state).is_none());
                opening.moves.len()
            })
            .collect();
        let (youngest, oldest) = (plies.iter().min().unwrap(), plies.iter().max().unwrap());
        assert!(*youngest < 20 && *oldest > 80, "{youngest} to {oldest}");
    }
}
