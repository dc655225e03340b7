//! Who sits at a board: a search with batched evaluations, or a mover that answers by itself.

use std::sync::Arc;
use std::time::Duration;

use super::engine::Engine;
use super::resign::ResignParams;
use super::timed::{MctsMover, TimedMover};
use crate::eval::{EvalError, Evaluator};
use crate::game::{Action, Game, Solver, WdlAbs};
use crate::search::{RootNoise, SearchParams};
use crate::util::rng::Stream;

/// Makes evaluators, one for each worker thread.
pub trait EvaluatorSource<G: Game>: Send + Sync {
    /// A new evaluator. All evaluators of a source give the same answers.
    ///
    /// # Errors
    /// When the engine cannot be opened.
    fn worker(&self) -> Result<Box<dyn Evaluator<G>>, EvalError>;
}

impl<G: Game, E: Evaluator<G> + 'static, F: Fn() -> E + Send + Sync> EvaluatorSource<G> for F {
    fn worker(&self) -> Result<Box<dyn Evaluator<G>>, EvalError> {
        Ok(Box::new(self()))
    }
}

/// A position in which somebody is to move, and how it came about.
pub struct Turn<'a, G: Game> {
    /// Where the game began (fen).
    pub start: &'a str,
    /// The moves made from there on.
    pub moves: &'a [Action],
    /// The position after them, which has not ended.
    pub state: &'a G::State,
    /// Whether to answer at once, with whatever there is: a match drops that answer.
    pub stop: &'a dyn Fn() -> bool,
}

/// What a mover answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// The move to play.
    pub action: Action,
    /// What it thinks of the position, where it has an opinion.
    pub value: Option<WdlAbs>,
}

impl From<Action> for Choice {
    fn from(action: Action) -> Self {
        Self { action, value: None }
    }
}

/// Chooses moves one position at a time (random play, plain MCTS, a solver, another program).
pub trait Mover<G: Game>: Send {
    /// The move to play. `random` belongs to this move of this game.
    ///
    /// # Errors
    /// When it cannot answer; the game is then lost for it.
    fn choose(&mut self, game: &G, turn: &Turn<'_, G>, random: Stream) -> Result<Choice, String>;
}

/// How the searched policy becomes a move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Temperature {
    /// Temperature of the first plies: 1 draws in proportion to the searched policy, 0 takes the best move.
    pub initial: f32,
    /// Plies (counted from the start of the game) that `initial` holds for.
    pub plies: u32,
    /// Temperature afterwards.
    pub later: f32,
}

impl Temperature {
    /// Always the best move.
    pub const GREEDY: Self = Self { initial: 0.0, plies: 0, later: 0.0 };

    /// The temperature at `ply`.
    pub fn at(&self, ply: usize) -> f32 {
        if ply < self.plies as usize { self.initial } else { self.later }
    }
}

/// Playout cap randomisation (Wu 2019, section 3.1): only some moves get the full search and train the policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FastMoves {
    /// Probability of a full search.
    pub full_share: f32,
    /// Simulations of a fast search, without noise.
    pub simulations: u32,
}

/// What games are to teach, in self-play.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Teaching {
    /// Whether a game ends when a search has proven its result.
    pub end_proven: bool,
    /// When players give up; `None` for never.
    pub resign: Option<ResignParams>,
    /// Share of the weight of a game's full searches that is dealt out by how much each changed the prior (policy surprise weighting:
    /// Wu, "Other methods implemented in KataGo"): `weight = 1 - share + share * KL / mean KL`, where `KL` is the divergence of the
    /// searched policy from the prior.
    pub surprise_share: f32,
}

/// A player that searches with a network (or any other evaluator).
#[derive(Clone)]
pub struct SearchSeat<G: Game> {
    /// Where its evaluators come from.
    pub evaluators: Arc<dyn EvaluatorSource<G>>,
    /// How the tree is searched.
    pub search: SearchParams,
    /// Simulations for each move; 0 plays by the prior alone.
    pub simulations: u32,
    /// Wall time for each move at most. With it positions are searched one at a time, and with PUCT: sequential halving would
    /// have to know how many simulations there will be.
    pub time: Option<Duration>,
    /// How a move is drawn from the searched policy.
    pub temperature: Temperature,
    /// Dirichlet noise at the root (PUCT), for self-play.
    pub noise: Option<RootNoise>,
    /// Gumbel noise at the root (Gumbel), for self-play.
    pub gumbel_noise: bool,
    /// Cheap searches between the full ones, for self-play.
    pub fast: Option<FastMoves>,
    /// What its games teach, for self-play.
    pub teaching: Teaching,
}

/// How a player finds its moves.
#[derive(Clone)]
pub enum Seat<G: Game> {
    /// Search with evaluations batched over many games.
    Search(SearchSeat<G>),
    /// Plain Monte Carlo tree search, the ruler that every run is measured by: UCB1 and random rollouts, nothing kept
    /// between moves.
    Mcts {
        /// Simulations for each move.
        simulations: u32,
        /// Wall time for each move at most.
        time: Option<Duration>,
        /// Exploration constant, for rewards in [0, 1].
        c: f32,
    },
    /// One position at a time; a new mover for each worker thread.
    Mover(Arc<dyn Fn() -> Box<dyn Mover<G>> + Send + Sync>),
}

/// A named player.
#[derive(Clone)]
pub struct Player<G: Game> {
    /// Its name in reports.
    pub name: String,
    /// What its random decisions belong to: players of the same identity play the same games, whatever they are called.
    pub identity: String,
    /// How it finds its moves.
    pub seat: Seat<G>,
}

impl<G: Game> Player<G> {
    /// A player who is what it is called.
    pub fn new(name: impl Into<String>, seat: Seat<G>) -> Self {
        let name = name.into();
        Self { identity: name.clone(), name, seat }
    }

    /// Uniformly random moves.
    pub fn random() -> Self {
        Self::new("random", Seat::Mover(Arc::new(|| Box::new(RandomMover))))
    }

    /// Perfect play by the game's own solver; `None` for a game without one. Of moves that are equally good it draws one. A
    /// position that the solver refuses loses the game, with the reason.
    pub fn solver(game: &G) -> Option<Self> {
        game.solver()?;
        let game = game.clone();
        let mover = move || -> Box<dyn Mover<G>> {
            Box::new(SolverMover(game.solver().expect("a game has a solver always or never")))
        };
        Some(Self::new("solver", Seat::Mover(Arc::new(mover))))
    }

    /// Another program, named `name`.
    pub fn engine(name: String, engine: Engine) -> Self {
        Self::new(name, Seat::Mover(Arc::new(move || Box::new(engine.mover()))))
    }

    /// Plain Monte Carlo tree search: UCB1 with exploration constant `c`, random rollouts, `simulations` for each move.
    pub fn mcts(simulations: u32, c: f32) -> Self {
        let name = if c == 1.0 { format!("mcts:{simulations}") } else { format!("mcts:{simulations}@c={c}") };
        Self::new(name, Seat::Mcts { simulations, time: None, c })
    }
}

struct RandomMover;

impl<G: Game> Mover<G> for RandomMover {
    fn choose(&mut self, game: &G, turn: &Turn<'_, G>, mut random: Stream) -> Result<Choice, String> {
        Ok(game.random_action(turn.state, &mut random, &mut Vec::new()).into())
    }
}

struct SolverMover<G: Game>(Box<dyn Solver<G>>);

impl<G: Game> Mover<G> for SolverMover<G> {
    fn choose(&mut self, _: &G, turn: &Turn<'_, G>, mut random: Stream) -> Result<Choice, String> {
        let best = self.0.best_moves(turn.state).map_err(|refusal| refusal.to_string())?;
        Ok(best[random.below(best.len())].into())
    }
}

impl<G: Game> Seat<G> {
    /// The search of a player whose evaluations are batched over many games; `None` for one that answers one position at a time.
    pub fn batched(&self) -> Option<&SearchSeat<G>> {
        match self {
            Seat::Search(seat) if seat.time.is_none() => Some(seat),
            _ => None,
        }
    }

    /// The mover of a player that answers one position at a time; `None` for one that is [`batched`](Self::batched).
    pub fn mover(&self) -> Option<Box<dyn Mover<G>>> {
        match self {
            _ if self.batched().is_some() => None,
            Seat::Search(seat) => Some(Box::new(TimedMover::new(seat.clone()))),
            Seat::Mcts { simulations, time, c } => Some(Box::new(MctsMover::new(*simulations, *time, *c))),
            Seat::Mover(new) => Some(new()),
        }
    }
}
