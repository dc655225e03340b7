//! The one game loop: many games in lockstep, one batch of evaluations for each round.
//!
//! Every worker thread steps its own set of games: each game contributes the leaf it waits for, one batch
//! evaluates them all, each tree takes its answer. A game draws from its own random stream only, and
//! evaluations do not depend on the batch, so what is played does not depend on threads or slots.
//! Self-play, gate, matches and benchmarks differ in players, tables and sinks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::running::{Desks, Running, Step};
use super::seat::{Mover, Player};
use crate::data::{GameRecord, OldGame};
use crate::eval::{EvalError, EvalWork, Evaluations, Evaluator, Leaves};
use crate::game::{Game, WdlAbs};
use crate::search::Ticket;
use crate::util::rng::Stream;

/// A game to be played.
#[derive(Clone, Debug)]
pub struct Table<G: Game> {
    /// Number of the game, handed back with the record.
    pub index: u64,
    /// Which player of the pool moves first and which second (the same one twice in self-play).
    pub seats: [usize; 2],
    /// Where it starts.
    pub start: G::State,
    /// Moves made before the players take over.
    pub opening: Vec<crate::game::Action>,
    /// What is played, where the game has been played before and is only searched anew.
    pub script: Option<OldGame>,
    /// Feeds every random decision of the game.
    pub random: Stream,
}

/// Hands out the games of a pool.
pub trait Tables<G: Game>: Sync {
    /// The next game, `None` when there are no more.
    fn next(&self) -> Option<Table<G>>;
}

/// How long a player thought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// Time spent on its moves. Of evaluations that many games share, each has its part.
    pub thinking: Duration,
    /// Moves that it decided on.
    pub moves: u64,
}

impl Clock {
    /// The average time of a move; `None` without moves.
    pub fn average(&self) -> Option<Duration> {
        Some(Duration::from_secs_f64(self.thinking.as_secs_f64() / (self.moves > 0).then_some(self.moves)? as f64))
    }
}

/// A game that a pool has finished.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The number from its [`Table`].
    pub index: u64,
    /// Which player of the pool moved first and which second.
    pub seats: [usize; 2],
    /// The game; `generation`, `index` and seed are the caller's to fill in.
    pub record: GameRecord,
    /// What went wrong with a mover, when that decided the game.
    pub fault: Option<String>,
    /// The time of who moved first and of who moved second; in self-play nothing is measured.
    pub clocks: [Clock; 2],
    /// What the player to move thought of the position before each ply, where it had an opinion; nothing in self-play, whose records
    /// hold the values.
    pub opinions: Vec<Option<WdlAbs>>,
}

/// Counters of a running pool, readable while it works.
#[derive(Debug, Default)]
pub struct PoolStats {
    /// Games finished.
    pub games: AtomicU64,
    /// Plies played by the players.
    pub moves: AtomicU64,
    /// Descents of search trees, counted as they are made.
    pub simulations: AtomicU64,
    /// Positions sent to evaluators.
    pub evaluations: AtomicU64,
    /// Batches sent to evaluators.
    pub batches: AtomicU64,
    /// Positions that a network was run for; fewer than `evaluations` where some were remembered.
    pub inferences: AtomicU64,
    /// Nanoseconds spent in evaluators, all workers together.
    pub evaluation_ns: AtomicU64,
    /// Those of them that positions were encoded in.
    pub encode_ns: AtomicU64,
    /// Those of them that a network was run in.
    pub inference_ns: AtomicU64,
    /// Nanoseconds of all workers together.
    pub total_ns: AtomicU64,
}

/// How a pool works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolParams {
    /// Worker threads.
    pub threads: usize,
    /// Games that each worker steps at once; the largest batch.
    pub slots: usize,
}

/// Why a pool stopped before its tables were empty.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// An evaluator failed.
    #[error("evaluation failed: {0}")]
    Eval(#[from] EvalError),
    /// The system gave no threads.
    #[error("no threads to play on: {0}")]
    Threads(String),
    /// A worker thread panicked, which is a bug.
    #[error("a self-play thread ended unexpectedly: {0}")]
    Panic(String),
}

/// Plays games until `tables` has no more or `stop` says so; every finished one goes to `finished`, in no
/// particular order. Games in flight at a stop are dropped.
///
/// # Errors
/// When an evaluator cannot be opened or fails; the games finished before have been handed over.
pub fn play_pool<G: Game>(
    game: &G,
    players: &[Player<G>],
    tables: &dyn Tables<G>,
    params: PoolParams,
    stop: &(dyn Fn() -> bool + Sync),
    stats: &PoolStats,
    finished: &(dyn Fn(Finished) + Sync),
) -> Result<(), PoolError> {
    let failed = AtomicBool::new(false);
    let workers = rayon::ThreadPoolBuilder::new()
        .num_threads(params.threads.max(1))
        .thread_name(|index| format!("games-{index}"))
        .build()
        .map_err(|error| PoolError::Threads(error.to_string()))?;
    let work = || {
        workers.broadcast(|_| {
            let result = Worker::new(game, players, params.slots)
                .and_then(|mut worker| worker.run(tables, &|| stop() || failed.load(Relaxed), stats, finished));
            if result.is_err() {
                failed.store(true, Relaxed);
            }
            result
        })
    };
    // A panic is a bug; it must not take the run's state along.
    let results = catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        PoolError::Panic(text.unwrap_or("no message").to_owned())
    })?;
    results.into_iter().collect::<Result<(), EvalError>>().map_err(PoolError::from)
}

/// What waits for one player's evaluator.
struct Queue {
    /// (slot, tree, ticket) of each leaf, in the order of the batch.
    waiting: Vec<(usize, usize, Ticket)>,
    answers: Evaluations,
}

struct Worker<'a, G: Game> {
    game: &'a G,
    players: &'a [Player<G>],
    // One entry for each player in each of these.
    evaluators: Vec<Option<Box<dyn Evaluator<G>>>>,
    movers: Vec<Option<Box<dyn Mover<G>>>>,
    leaves: Vec<Leaves<G>>,
    queues: Vec<Queue>,
    slots: Vec<Option<Running<G>>>,
    round: Round,
}

/// What a worker did in one round. It is added to the statistics when the round is over: threads meet there seldom, and what
/// is read there fits together.
#[derive(Default)]
struct Round {
    simulations: u64,
    evaluations: u64,
    batches: u64,
    evaluation_ns: u64,
    work: EvalWork,
}

impl Round {
    /// Adds a round that took `total` to `stats`.
    fn add_to(self, stats: &PoolStats, total: Duration) {
        let Self { simulations, evaluations, batches, evaluation_ns, work } = self;
        for (counter, amount) in [
            (&stats.simulations, simulations),
            (&stats.evaluations, evaluations),
            (&stats.batches, batches),
            (&stats.inferences, work.positions),
            (&stats.evaluation_ns, evaluation_ns),
            (&stats.encode_ns, work.encode_ns),
            (&stats.inference_ns, work.inference_ns),
            (&stats.total_ns, nanoseconds(total)),
        ] {
            counter.fetch_add(amount, Relaxed);
        }
    }
}

/// Enough for 584 years.
fn nanoseconds(time: Duration) -> u64 {
    time.as_nanos() as u64
}

impl<'a, G: Game> Worker<'a, G> {
    fn new(game: &'a G, players: &'a [Player<G>], slots: usize) -> Result<Self, EvalError> {
        let mut worker = Self {
            game,
            players,
            evaluators: Vec::new(),
            movers: Vec::new(),
            leaves: players.iter().map(|_| Leaves::default()).collect(),
            queues: players.iter().map(|_| Queue { waiting: Vec::new(), answers: Evaluations::default() }).collect(),
            slots: (0..slots.max(1)).map(|_| None).collect(),
            round: Round::default(),
        };
        for player in players {
            let evaluator = player.seat.batched().map(|seat| seat.evaluators.worker()).transpose()?;
            worker.evaluators.push(evaluator);
            worker.movers.push(player.seat.mover());
        }
        Ok(worker)
    }

    fn run(
        &mut self,
        tables: &dyn Tables<G>,
        stop: &dyn Fn() -> bool,
        stats: &PoolStats,
        finished: &dyn Fn(Finished),
    ) -> Result<(), EvalError> {
        let mut tables_left = true;
        let mut clock = Instant::now();
        loop {
            for slot in 0..self.slots.len() {
                // A game goes on until it needs an evaluation; a finished one makes room for the next at once.
                while !stop() {
                    if self.slots[slot].is_none() {
                        let table = if tables_left { tables.next() } else { None };
                        tables_left = table.is_some();
                        let Some(table) = table else { break };
                        self.slots[slot] = Some(Running::new(self.game, self.players, table));
                    }
                    match self.step(slot, stats, stop) {
                        Some(Step::Leaf { player, tree, ticket }) => {
                            self.queues[player].waiting.push((slot, tree, ticket));
                            break;
                        }
                        Some(Step::Over) => {
                            let running = self.slots[slot].take().expect("it has just ended");
                            stats.games.fetch_add(1, Relaxed);
                            finished(running.finish(self.game, self.players));
                        }
                        Some(Step::Stopped) | None => break,
                    }
                }
            }
            let over = stop() || self.queues.iter().all(|queue| queue.waiting.is_empty());
            if !over {
                self.answer()?;
            }
            let now = Instant::now();
            std::mem::take(&mut self.round).add_to(stats, now - clock);
            clock = now;
            if over {
                return Ok(());
            }
        }
    }

    fn step(&mut self, slot: usize, stats: &PoolStats, stop: &dyn Fn() -> bool) -> Option<Step> {
        let mut desks = Desks {
            game: self.game,
            players: self.players,
            movers: &mut self.movers,
            leaves: &mut self.leaves,
            simulations: &mut self.round.simulations,
            stats,
            stop,
        };
        self.slots[slot].as_mut().map(|running| running.step(&mut desks))
    }

    /// Evaluates everything that waits, one batch for each player, and hands out the answers.
    fn answer(&mut self) -> Result<(), EvalError> {
        for (player, queue) in self.queues.iter_mut().enumerate().filter(|(_, queue)| !queue.waiting.is_empty()) {
            let leaves = &mut self.leaves[player];
            let evaluator = self.evaluators[player].as_mut().expect("only searching players leave leaves");
            let began = Instant::now();
            evaluator.evaluate(self.game, leaves, &mut queue.answers)?;
            let elapsed = began.elapsed();
            self.round.evaluation_ns += nanoseconds(elapsed);
            let share = elapsed / leaves.len().max(1) as u32;
            self.round.work += evaluator.take_work();
            self.round.evaluations += leaves.len() as u64;
            self.round.batches += 1;
            for (row, (slot, tree, ticket)) in queue.waiting.drain(..).enumerate() {
                let running = self.slots[slot].as_mut().expect("a game that waits is running");
                let priors = &queue.answers.priors[leaves.span(row)];
                running.apply(tree, ticket, queue.answers.values[row], priors, share);
            }
            leaves.clear();
        }
        Ok(())
    }
}
