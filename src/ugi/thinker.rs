//! The thinker that searches: any player of `sparring pit` behind the engine protocol.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::{Info, Limits, OptionKind, Position, Thinker, UgiOption};
use crate::eval::{Evaluator, Rollout};
use crate::game::{Action, Game};
use crate::play::{Player, Seat, Turn};
use crate::search::{Algorithm, Budget, Solo, Spread, Tree, width_of};
use crate::util::machine::cores;
use crate::util::rng::{Purpose, Stream};

/// Between two info lines.
const INFO_EVERY: Duration = Duration::from_millis(500);

/// The most that the option `Simulations` takes.
const MOST_SIMULATIONS: i64 = 100_000_000;

/// Nodes of a tree whose search is limited by time alone.
const MAX_NODES: u32 = 20_000_000;

/// Thinks like a [`Player`].
pub struct SeatThinker<G: Game> {
    player: Player<G>,
    /// Simulations where `go` gives no limit.
    simulations: u32,
    /// Threads that evaluate for a network.
    threads: usize,
    evaluator: Option<Box<dyn Evaluator<G>>>,
    solo: Solo<G>,
    /// The tree of the last search, with the start and the moves that led to its root.
    kept: Option<(Tree<G>, G::State, Vec<Action>)>,
    searches: u64,
}

impl<G: Game> SeatThinker<G> {
    /// A thinker that plays as `player` does.
    pub fn new(player: Player<G>) -> Self {
        let simulations = match &player.seat {
            Seat::Search(seat) => seat.simulations,
            Seat::Mcts { simulations, .. } => *simulations,
            Seat::Mover(_) => 0,
        };
        let threads = cores();
        Self { player, simulations, threads, evaluator: None, solo: Solo::default(), kept: None, searches: 0 }
    }

    /// The tree for `position`: that of the last search, moved on, where the game simply went on from there.
    fn tree(&mut self, game: &G, position: &Position<'_, G>) -> Tree<G> {
        if let Some((mut tree, start, moves)) = self.kept.take()
            && start == *position.start
            && let Some(rest) = position.moves.strip_prefix(&moves[..])
        {
            rest.iter().for_each(|&action| tree.advance(game, action));
            return tree;
        }
        match &self.player.seat {
            Seat::Mcts { c, .. } => Tree::ucb1(*c, MAX_NODES, position.state.clone()),
            Seat::Search(seat) => {
                // Sequential halving needs to know its budget; time and other open limits do not tell it.
                let algorithm = Algorithm::Puct;
                let search = crate::search::SearchParams { algorithm, max_nodes: MAX_NODES, ..seat.search.clone() };
                Tree::new(search, position.state.clone())
            }
            Seat::Mover(_) => unreachable!("a mover needs no tree"),
        }
    }
}

/// The time to spend on a move, where time limits it.
fn time_limit(limits: &Limits, mover: usize) -> Option<Duration> {
    let clock = limits.clock.and_then(|clock| {
        let left = clock.left[mover]?;
        // A thirtieth of what is left and most of the increment, but never so much that the clock runs out.
        Some((left / 30 + clock.increment[mover] * 4 / 5).min(left / 2).max(Duration::from_millis(1)))
    });
    [limits.movetime, clock].into_iter().flatten().min()
}

impl<G: Game> Thinker<G> for SeatThinker<G> {
    fn think(
        &mut self,
        game: &G,
        position: &Position<'_, G>,
        limits: &Limits,
        stop: &AtomicBool,
        info: &mut dyn FnMut(Info),
    ) -> Result<Action, String> {
        let mut random = Stream::keyed(0, Purpose::Analysis, &[self.searches]);
        self.searches += 1;
        if let Seat::Mover(new) = &self.player.seat {
            let start = game.state_text(position.start);
            let turn = Turn { start: &start, moves: position.moves, state: position.state };
            return new().choose(game, &turn, random).map(|choice| choice.action);
        }
        let mut evaluator = match (&self.player.seat, self.evaluator.take()) {
            (Seat::Search(_), Some(open)) => open,
            (Seat::Search(seat), None) => {
                let workers = (0..self.threads).map(|_| seat.evaluators.worker()).collect::<Result<_, _>>();
                Box::new(workers.and_then(Spread::new).map_err(|error| error.to_string())?)
            }
            _ => {
                let stream = Stream::keyed(random.bits(), Purpose::Analysis, &[]);
                Box::new(Rollout::new(stream, 1)) as Box<dyn Evaluator<G>>
            }
        };
        let mut tree = self.tree(game, position);
        let deadline = time_limit(limits, game.to_move(position.state).index()).map(|time| Instant::now() + time);
        let simulations = match limits.nodes {
            Some(nodes) => u32::try_from(nodes).unwrap_or(u32::MAX),
            None if limits.infinite || deadline.is_some() => u32::MAX,
            None => self.simulations,
        };
        let is_network = matches!(self.player.seat, Seat::Search(_));
        let (began, mut told) = (Instant::now(), Instant::now());
        tree.begin(Budget::plain(simulations), random);
        let report = |tree: &Tree<G>| Info {
            time: Some(began.elapsed()),
            nodes: Some(u64::from(tree.simulations())),
            // Before the first simulation all that a search without a network has is one random game.
            value: tree
                .summary()
                .filter(|_| is_network || tree.simulations() > 0)
                .map(|summary| summary.value.pov(summary.mover)),
            line: tree.principal_line(20),
            ..Info::default()
        };
        let width = |tree: &Tree<G>| if is_network { width_of(tree) } else { 1 };
        let searched = self.solo.search(&mut tree, game, evaluator.as_mut(), width, |tree| {
            if told.elapsed() >= INFO_EVERY {
                told = Instant::now();
                info(report(tree));
            }
            !stop.load(Relaxed) && deadline.is_none_or(|deadline| Instant::now() < deadline)
        });
        if is_network {
            self.evaluator = Some(evaluator);
        }
        searched.map_err(|error| error.to_string())?;
        info(report(&tree));
        let summary = tree.summary().ok_or("the game is over")?;
        self.kept = Some((tree, position.start.clone(), position.moves.to_vec()));
        Ok(summary.moves[summary.best].action)
    }

    fn new_game(&mut self) {
        self.kept = None;
    }

    fn options(&self) -> Vec<UgiOption> {
        let spin = |name: &str, default: i64, min, max| UgiOption {
            name: name.to_owned(),
            kind: OptionKind::Spin { default, min, max },
        };
        let simulations = |least| spin("Simulations", self.simulations.into(), least, MOST_SIMULATIONS);
        match &self.player.seat {
            Seat::Mover(_) => Vec::new(),
            Seat::Mcts { .. } => vec![simulations(1)],
            Seat::Search(_) => vec![simulations(0), spin("Threads", self.threads as i64, 1, cores() as i64)],
        }
    }

    fn set_option(&mut self, name: &str, value: &str) -> Result<(), String> {
        let number = || value.parse::<u32>().map_err(|_| format!("{name} {value:?}: expected a number"));
        match name {
            "Simulations" => self.simulations = number()?,
            "Threads" => {
                self.threads = number()? as usize;
                self.evaluator = None;
            }
            _ => return Err(format!("no option {name:?}")),
        }
        Ok(())
    }
}
