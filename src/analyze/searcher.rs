//! How a player searches a position outside of matches: the one way, of `sparring analyze` and of the engine protocol.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::report::Speaker;
use crate::eval::{EvalError, Evaluations, Evaluator, Leaves, Rollout};
use crate::game::{Game, legal_list};
use crate::play::{Player, Seat};
use crate::search::{Algorithm, Budget, SearchParams, Solo, Spread, Tree, width_of};
use crate::util::machine::{cores, memory};
use crate::util::rng::{Purpose, Stream};

/// Nodes of a tree whose player does not say how many. Memory ends a search before that on most machines.
const MAX_NODES: u32 = 100_000_000;

/// What trees may take where the system does not tell how much memory there is.
const MEMORY_IF_UNKNOWN: u64 = 2 << 30;

/// How long to search a position. Whatever is reached first ends the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Simulations; `u32::MAX` for no limit.
    pub simulations: u32,
    /// Wall time. Where several positions share a search, each adds as much.
    pub time: Option<Duration>,
    /// Plies that simulations are to be longer than on average.
    pub depth: Option<u32>,
}

impl Bounds {
    /// A search of so many simulations.
    pub fn simulations(simulations: u32) -> Self {
        Self { simulations, time: None, depth: None }
    }
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// All simulations are made.
    Simulations,
    /// The time is over.
    Time,
    /// Simulations are as long as was asked for.
    Depth,
    /// The result of the position is proven.
    Proven,
    /// The tree holds as many nodes as the player's `max_nodes` allows.
    Nodes,
    /// Trees take a quarter of the machine's memory.
    Memory,
    /// It was stopped from outside.
    Stopped,
}

impl Ended {
    /// What a person should know of a search that ended before it was over; `None` where it ended as was asked for.
    pub fn remark(self) -> Option<&'static str> {
        match self {
            Self::Nodes => {
                Some("the search has ended early: the tree is full (`@max_nodes=` behind a network allows more)")
            }
            Self::Memory => Some("the search has ended early: the tree takes a quarter of the machine's memory"),
            Self::Simulations | Self::Time | Self::Depth | Self::Proven | Self::Stopped => None,
        }
    }
}

/// A player that answers without a search cannot be asked what it thinks of other moves.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the player {0:?} does not search, so there is nothing to analyse; name a checkpoint, a run or mcts:SIMULATIONS"
)]
pub struct NoSearch(pub String);

/// Searches positions as a player does, without noise; a network by PUCT, because sequential halving must know beforehand
/// when a search ends.
pub struct Searcher<G: Game> {
    player: Player<G>,
    threads: usize,
    /// Of a network, once it is opened.
    evaluator: Option<Box<dyn Evaluator<G>>>,
    /// Whether the evaluator has seen batches of each size.
    is_warm: bool,
    solo: Solo<G>,
}

impl<G: Game> Searcher<G> {
    /// A searcher with the thoughts of `player`, on all cores.
    ///
    /// # Errors
    /// When the player does not search.
    pub fn new(player: Player<G>) -> Result<Self, NoSearch> {
        match player.seat {
            Seat::Mover(_) => Err(NoSearch(player.name)),
            _ => Ok(Self { player, threads: cores(), evaluator: None, is_warm: false, solo: Solo::default() }),
        }
    }

    /// Whose analyses these are.
    pub fn speaker(&self) -> Speaker {
        Speaker { name: self.player.name.clone(), is_network: self.is_network() }
    }

    /// Whether a network judges positions, rather than random games.
    pub fn is_network(&self) -> bool {
        matches!(self.player.seat, Seat::Search(_))
    }

    /// The simulations that the player makes for a move.
    pub fn simulations(&self) -> u32 {
        match &self.player.seat {
            Seat::Search(seat) => seat.simulations,
            Seat::Mcts { simulations, .. } => *simulations,
            Seat::Mover(_) => 0,
        }
    }

    /// The wall time that the player takes for a move at most, where it has one.
    pub fn time(&self) -> Option<Duration> {
        match &self.player.seat {
            Seat::Search(seat) => seat.time,
            Seat::Mcts { time, .. } => *time,
            Seat::Mover(_) => None,
        }
    }

    /// Threads to evaluate on. They change how long a search takes and nothing else.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Sets the [`threads`](Self::threads), at least 1.
    pub fn set_threads(&mut self, threads: usize) {
        self.threads = threads.max(1);
        self.evaluator = None;
        self.is_warm = false;
    }

    /// Opens the network on all threads, so that a later search begins at once.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(&mut self) -> Result<(), EvalError> {
        if let (Seat::Search(seat), None) = (&self.player.seat, &self.evaluator) {
            let workers = (0..self.threads).map(|_| seat.evaluators.worker()).collect::<Result<_, _>>()?;
            self.evaluator = Some(Box::new(Spread::new(workers)?));
        }
        Ok(())
    }

    /// Opens the network and shows it batches of each size that searches use: engines prepare themselves for each,
    /// which would otherwise go off the time of the first moves. Without a network there is nothing to do.
    ///
    /// # Errors
    /// When the network fails.
    pub fn warm_up(&mut self, game: &G) -> Result<(), EvalError> {
        if std::mem::replace(&mut self.is_warm, true) {
            return Ok(());
        }
        self.open()?;
        let Some(evaluator) = &mut self.evaluator else { return Ok(()) };
        let mut random = Stream::keyed(0, Purpose::Analysis, &[u64::MAX]);
        let (mut leaves, mut answers) = (Leaves::default(), Evaluations::default());
        for size in (0..=6).map(|power| 1 << power) {
            leaves.clear();
            let mut state = game.startpos();
            // Different positions, so that no cache answers.
            while leaves.len() < size {
                leaves.push(&state, &legal_list(game, &state));
                let action = game.random_action(&state, &mut random, &mut Vec::new());
                game.play(&mut state, action);
                if game.end(&state).is_some() {
                    state = game.startpos();
                }
            }
            evaluator.evaluate(game, &leaves, &mut answers)?;
        }
        Ok(())
    }

    /// An empty tree for the position `state`.
    pub fn tree(&self, state: &G::State) -> Tree<G> {
        match &self.player.seat {
            Seat::Search(seat) => {
                let given = seat.search.max_nodes;
                let max_nodes = if given == SearchParams::default().max_nodes { MAX_NODES } else { given };
                let search = SearchParams { algorithm: Algorithm::Puct, max_nodes, ..seat.search.clone() };
                Tree::new(search, state.clone())
            }
            Seat::Mcts { c, .. } => Tree::ucb1(*c, MAX_NODES, state.clone()),
            Seat::Mover(_) => unreachable!("a searcher's player searches"),
        }
    }

    /// Searches the position of `tree`. `watch`, asked often, ends the search with `false`.
    ///
    /// # Errors
    /// When the network fails.
    pub fn search(
        &mut self,
        game: &G,
        tree: &mut Tree<G>,
        bounds: &Bounds,
        mut random: Stream,
        watch: &mut dyn FnMut(&Tree<G>) -> bool,
    ) -> Result<Ended, EvalError> {
        self.open()?;
        let mut rollouts = (!self.is_network()).then(|| rollouts(&mut random));
        tree.begin(Budget::plain(bounds.simulations), random);
        let evaluator: &mut dyn Evaluator<G> = match (&mut self.evaluator, &mut rollouts) {
            (Some(network), _) => network.as_mut(),
            (None, rollouts) => rollouts.as_mut().expect("without a network there are rollouts"),
        };
        let trees = std::slice::from_mut(tree);
        let mut watch = |trees: &[Tree<G>]| watch(&trees[0]);
        let cut = drive(&mut self.solo, game, trees, evaluator, bounds, memory_limit(), &mut watch)?;
        Ok(ended(&trees[0], cut))
    }

    /// Searches the positions of all `trees`, each with a copy of `random`, until their searches are over or `stop` says so.
    /// A network judges leaves of all of them in shared batches; random games are played on all threads, a position on
    /// each. With bounds other than time each tree finds exactly what it finds alone.
    ///
    /// # Errors
    /// When the network fails.
    pub fn search_all(
        &mut self,
        game: &G,
        trees: &mut [Tree<G>],
        bounds: &Bounds,
        random: &Stream,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Ended>, EvalError> {
        self.open()?;
        let Some(evaluator) = &mut self.evaluator else {
            return self.play_out_all(game, trees, bounds, random, stop);
        };
        trees.iter_mut().for_each(|tree| tree.begin(Budget::plain(bounds.simulations), random.clone()));
        let time = bounds.time.map(|time| time.saturating_mul(trees.len() as u32));
        let bounds = Bounds { time, ..*bounds };
        let mut watch = |_: &[Tree<G>]| !stop();
        let cut = drive(&mut self.solo, game, trees, evaluator.as_mut(), &bounds, memory_limit(), &mut watch)?;
        Ok(trees.iter().map(|tree| ended(tree, cut)).collect())
    }

    /// [`search_all`](Self::search_all) with random games.
    fn play_out_all(
        &self,
        game: &G,
        trees: &mut [Tree<G>],
        bounds: &Bounds,
        random: &Stream,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Ended>, EvalError> {
        let threads = self.threads.min(trees.len());
        let each = memory_limit() / trees.len().max(1) as u64;
        let done: Vec<Mutex<Option<Result<Ended, EvalError>>>> = trees.iter().map(|_| Mutex::new(None)).collect();
        let waiting = Mutex::new(trees.iter_mut().zip(&done));
        let work = || {
            let mut solo = Solo::default();
            loop {
                let next = waiting.lock().expect("nothing panics while it is held").next();
                let Some((tree, done)) = next else { break };
                let mut random = random.clone();
                let mut evaluator = rollouts(&mut random);
                tree.begin(Budget::plain(bounds.simulations), random);
                let trees = std::slice::from_mut(tree);
                let cut = drive(&mut solo, game, trees, &mut evaluator, bounds, each, &mut |_| !stop());
                *done.lock().expect("no one else has it") = Some(cut.map(|cut| ended(&trees[0], cut)));
            }
        };
        std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
        let results = done.into_iter().map(|done| done.into_inner().expect("all threads have ended"));
        results.map(|result| result.expect("every tree was searched")).collect()
    }
}

/// The evaluator of a player without a network, for one search of one tree.
fn rollouts<G: Game>(random: &mut Stream) -> Rollout<G> {
    Rollout::new(Stream::keyed(random.bits(), Purpose::Analysis, &[]), 1)
}

/// Bytes that trees may take.
fn memory_limit() -> u64 {
    memory().map_or(MEMORY_IF_UNKNOWN, |bytes| bytes / 4)
}

/// Searches trees that have begun; what cut the search off, where the trees did not come to their own end.
fn drive<G: Game>(
    solo: &mut Solo<G>,
    game: &G,
    trees: &mut [Tree<G>],
    evaluator: &mut dyn Evaluator<G>,
    bounds: &Bounds,
    memory_limit: u64,
    watch: &mut dyn FnMut(&[Tree<G>]) -> bool,
) -> Result<Option<Ended>, EvalError> {
    let is_network = trees.first().is_some_and(|tree| tree.is_guided());
    let width = |tree: &Tree<G>| if is_network { width_of(tree) } else { 1 };
    let mut last = Instant::now();
    let deadline = bounds.time.map(|time| last + time);
    let mut cut = None;
    solo.search_all(trees, game, evaluator, width, |trees| {
        let now = Instant::now();
        // The next round takes as long as this one: better to end before it than to be late.
        let round = now - last;
        last = now;
        cut = if !watch(trees) {
            Some(Ended::Stopped)
        } else if deadline.is_some_and(|deadline| now + round >= deadline) {
            Some(Ended::Time)
        } else if bounds.depth.is_some_and(|depth| trees.iter().all(|tree| tree.mean_depth() > f64::from(depth))) {
            Some(Ended::Depth)
        } else if trees.iter().map(|tree| tree.memory().total_bytes as u64).sum::<u64>() > memory_limit {
            Some(Ended::Memory)
        } else {
            None
        };
        cut.is_none()
    })?;
    Ok(cut)
}

/// Why the search of `tree` ended, where everything was cut off by `cut`.
fn ended<G: Game>(tree: &Tree<G>, cut: Option<Ended>) -> Ended {
    match cut {
        Some(cut) if !tree.finished() => cut,
        _ if tree.is_full() => Ended::Nodes,
        _ if tree.is_decided() => Ended::Proven,
        _ => Ended::Simulations,
    }
}
