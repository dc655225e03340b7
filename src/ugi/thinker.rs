//! The thinker that searches: any player of `sparring pit` behind the engine protocol.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::{Info, Limits, OptionKind, Position, Thinker, UgiOption, clock};
use crate::analyze::{Bounds, Searcher};
use crate::game::{Action, Game, Outcome, legal_list};
use crate::play::{Mover, Player, Seat, Turn};
use crate::search::Tree;
use crate::util::machine::cores;
use crate::util::rng::{Purpose, Stream};

/// Between two info lines.
const INFO_EVERY: Duration = Duration::from_millis(500);

/// The most that the option `Simulations` takes.
const MOST_SIMULATIONS: i64 = 100_000_000;

/// The highest temperature; the choice is all but even there.
const MOST_TEMPERATURE: f32 = 100.0;

/// Moves of the expected line that are told.
const LONGEST_LINE: usize = 20;

/// Opens the network that the option `Checkpoint` names; the error says in words why it cannot be had.
pub type NetworkLoader<G> = Box<dyn Fn(&str) -> Result<Player<G>, String> + Send>;

/// Thinks like a [`Player`].
pub struct SeatThinker<G: Game> {
    /// As it was given; the network of the option `Checkpoint` may take its place.
    player: Player<G>,
    mind: Mind<G>,
    load: Option<NetworkLoader<G>>,
    /// Simulations where `go` gives no limit.
    simulations: u32,
    temperature: f32,
    /// Threads that evaluate for a network.
    threads: usize,
    /// The tree of the last search, with the start and the moves that led to its root.
    kept: Option<(Tree<G>, G::State, Vec<Action>)>,
    searches: u64,
}

/// What finds the moves.
enum Mind<G: Game> {
    Searcher(Box<Searcher<G>>),
    Mover(Box<dyn Mover<G>>),
}

impl<G: Game> Mind<G> {
    fn of(player: &Player<G>) -> Self {
        match &player.seat {
            Seat::Mover(new) => Self::Mover(new()),
            _ => Self::Searcher(Box::new(Searcher::new(player.clone()).expect("all but movers search"))),
        }
    }
}

impl<G: Game> SeatThinker<G> {
    /// A thinker that plays as `player` does.
    pub fn new(player: Player<G>) -> Self {
        let mind = Mind::of(&player);
        let simulations = match &mind {
            Mind::Searcher(searcher) => searcher.simulations(),
            Mind::Mover(_) => 0,
        };
        let temperature = match &player.seat {
            Seat::Search(seat) => seat.temperature.initial,
            _ => 0.0,
        };
        let threads = cores();
        Self { player, mind, load: None, simulations, temperature, threads, kept: None, searches: 0 }
    }

    /// With the option `Checkpoint`, whose networks `load` opens.
    pub fn with_networks(self, load: NetworkLoader<G>) -> Self {
        Self { load: Some(load), ..self }
    }

    /// Takes another network, or with an empty name the player that it was made with.
    fn set_checkpoint(&mut self, name: &str) -> Result<(), String> {
        let player = match &self.load {
            Some(load) if !name.is_empty() => load(name)?,
            _ => self.player.clone(),
        };
        let Ok(mut searcher) = Searcher::new(player) else {
            return Err(format!("{name:?} is no network"));
        };
        searcher.set_threads(self.threads);
        searcher.open().map_err(|error| error.to_string())?;
        self.mind = Mind::Searcher(Box::new(searcher));
        self.kept = None;
        Ok(())
    }

    fn set_temperature(&mut self, text: &str) -> Result<(), String> {
        let number = text.parse().ok().filter(|number| (0.0..=MOST_TEMPERATURE).contains(number));
        let wrong = || format!("Temperature {text:?}: expected a number from 0 (the best move) to {MOST_TEMPERATURE}");
        self.temperature = number.ok_or_else(wrong)?;
        Ok(())
    }
}

/// The tree for `position`: that of the last search, moved on, where the game simply went on from there.
fn tree_for<G: Game>(
    kept: Option<(Tree<G>, G::State, Vec<Action>)>,
    searcher: &Searcher<G>,
    game: &G,
    position: &Position<'_, G>,
) -> Tree<G> {
    if let Some((mut tree, start, moves)) = kept
        && start == *position.start
        && let Some(rest) = position.moves.strip_prefix(&moves[..])
    {
        rest.iter().for_each(|&action| tree.advance(game, action));
        return tree;
    }
    searcher.tree(position.state)
}

/// What a tree says while it is searched.
fn report<G: Game>(game: &G, tree: &Tree<G>, time: Duration) -> Info {
    // Before the first simulation all that a search without a network has is one random game.
    let summary = tree.summary().filter(|_| tree.is_guided() || tree.simulations() > 0);
    Info {
        time: Some(time),
        depth: Some(tree.mean_depth() as u32),
        seldepth: Some(tree.depth()),
        nodes: Some(u64::from(tree.simulations())),
        value: summary.map(|summary| summary.value.pov(summary.mover)),
        line: tree.principal_line(game, LONGEST_LINE),
        ..Info::default()
    }
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
        let began = Instant::now();
        let random = Stream::keyed(0, Purpose::Analysis, &[self.searches]);
        self.searches += 1;
        let searcher = match &mut self.mind {
            Mind::Mover(mover) => {
                let start = game.state_text(position.start);
                let stop = || stop.load(Relaxed);
                let turn = Turn { start: &start, moves: position.moves, state: position.state, stop: &stop };
                let choice = mover.choose(game, &turn, random)?;
                info(Info {
                    time: Some(began.elapsed()),
                    nodes: Some(0),
                    value: choice.value.map(|value| value.pov(game.to_move(position.state))),
                    ..Info::default()
                });
                return Ok(choice.action);
            }
            Mind::Searcher(searcher) => searcher,
        };
        let choice = Stream::keyed(random.clone().bits(), Purpose::Analysis, &[1]);
        searcher.warm_up(game).map_err(|error| error.to_string())?;
        let mut tree = tree_for(self.kept.take(), searcher, game, position);
        let plies_left = game.max_plies().saturating_sub(game.ply(position.state));
        let mover = game.to_move(position.state).index();
        let by_clock = limits.clock.and_then(|told| clock::share(&told, mover, plies_left));
        // The player's own time holds where nothing else is said.
        let is_told = limits.nodes.is_some() || limits.depth.is_some() || limits.infinite || limits.clock.is_some();
        let own = searcher.time().filter(|_| !is_told && limits.movetime.is_none());
        let time = [limits.movetime, by_clock, own].into_iter().flatten().min();
        let simulations = match limits.nodes {
            // Where there is nothing to choose, a clock had better not run.
            _ if by_clock.is_some() && legal_list(game, position.state).len() == 1 => 1,
            Some(nodes) => u32::try_from(nodes).unwrap_or(u32::MAX),
            None if limits.infinite || (time.is_some() && own.is_none()) => u32::MAX,
            None => self.simulations,
        };
        // What has gone into preparations belongs to the move.
        let time = time.map(|time| time.saturating_sub(began.elapsed()));
        let bounds = Bounds { simulations, time, depth: limits.depth };
        let mut told = Instant::now();
        let mut watch = |tree: &Tree<G>| {
            if told.elapsed() >= INFO_EVERY {
                told = Instant::now();
                info(report(game, tree, began.elapsed()));
            }
            !stop.load(Relaxed)
        };
        let ended = searcher.search(game, &mut tree, &bounds, random, &mut watch).map_err(|error| error.to_string())?;
        let summary = tree.summary().ok_or("the game is over")?;
        let mut last = report(game, &tree, began.elapsed());
        last.text = ended.remark().map(str::to_owned);
        let mut chosen = summary.moves[summary.choose(self.temperature, &mut { choice })].action;
        if let (Some(_), Some(insight)) = (summary.proven, tree.insight(game, 1)) {
            // The fastest win, the slowest loss.
            chosen = summary.moves[insight.best()].action;
            last.mate = insight.proven.and_then(|proven| match proven.outcome {
                Outcome::Draw => None,
                Outcome::Win(winner) if winner == summary.mover => Some(i64::from(proven.plies)),
                Outcome::Win(_) => Some(-i64::from(proven.plies)),
            });
        }
        info(last);
        self.kept = Some((tree, position.start.clone(), position.moves.to_vec()));
        Ok(chosen)
    }

    fn new_game(&mut self) {
        self.kept = None;
    }

    fn prepare(&mut self, game: &G) -> Result<(), String> {
        match &mut self.mind {
            Mind::Searcher(searcher) => searcher.warm_up(game).map_err(|error| error.to_string()),
            Mind::Mover(_) => Ok(()),
        }
    }

    fn options(&self) -> Vec<UgiOption> {
        let option = |name: &str, kind| UgiOption { name: name.to_owned(), kind };
        let spin = |default: i64, min, max| OptionKind::Spin { default, min, max };
        let least = match &self.player.seat {
            Seat::Mover(_) => return Vec::new(),
            Seat::Mcts { .. } => 1,
            Seat::Search(_) => 0,
        };
        let text = |default: String| OptionKind::String { default };
        let mut options = vec![
            option("Simulations", spin(self.simulations.into(), least, MOST_SIMULATIONS)),
            option("Temperature", text(self.temperature.to_string())),
        ];
        if self.load.is_some() || matches!(self.player.seat, Seat::Search(_)) {
            options.push(option("Threads", spin(self.threads as i64, 1, cores() as i64)));
        }
        if self.load.is_some() {
            options.push(option("Checkpoint", text(String::new())));
        }
        options
    }

    fn set_option(&mut self, name: &str, value: &str) -> Result<(), String> {
        let number = || value.parse::<u32>().map_err(|_| format!("{name} {value:?}: expected a number"));
        match name {
            "Simulations" => self.simulations = number()?,
            "Temperature" => return self.set_temperature(value),
            "Threads" => {
                self.threads = number()?.max(1) as usize;
                if let Mind::Searcher(searcher) = &mut self.mind {
                    searcher.set_threads(self.threads);
                }
            }
            "Checkpoint" => return self.set_checkpoint(value),
            _ => return Err(format!("no option {name:?}")),
        }
        Ok(())
    }
}
