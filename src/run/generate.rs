//! The first phase of a generation: self-play with the best network.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::{OldGame, ReplayWindow};
use crate::eval::SymmetryMode;
use crate::game::Game;
use crate::play::{
    EvaluatorSource, FastMoves, Finished, Opening, Player, PoolError, PoolParams, PoolStats, ResignParams, SearchSeat,
    Seat, Table, Tables, Teaching, Temperature, play_pool, random_opening,
};
use crate::search::{RootNoise, SearchParams};
use crate::util::rng::{Purpose, Stream};

/// How the network sees the positions of self-play.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum View {
    /// As they are.
    #[default]
    AsIs,
    /// Each through a symmetry of the game that its content and the generation choose, so that the network's one-sided
    /// habits even out.
    Random,
    /// Each in its canonical form, so that symmetric positions share an evaluation. Worth it for games with few
    /// symmetries that return to symmetric positions.
    Canonical,
    /// Each through every symmetry of the game, and the judgements averaged: better ones, at the price of that many
    /// evaluations.
    Averaged,
}

impl View {
    /// The symmetry that evaluators apply in `generation` of a run with this seed.
    pub fn mode(self, seed: u64, generation: u32) -> SymmetryMode {
        match self {
            Self::AsIs => SymmetryMode::None,
            Self::Random => {
                let indices = [u64::from(generation)];
                SymmetryMode::Hashed { seed: Stream::keyed(seed, Purpose::Symmetry, &indices).bits() }
            }
            Self::Canonical => SymmetryMode::Canonical,
            Self::Averaged => SymmetryMode::Averaged,
        }
    }
}

/// Self-play: how many games a generation has and how they are played.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SelfPlayParams {
    /// Games of a generation.
    #[schemars(range(min = 1, max = 10_000_000), extend("x-unit" = "games", "x-paper" = "25000 (AlphaGo Zero)"))]
    pub games: u32,
    /// Simulations of a full search, which trains the policy. With Gumbel search 16 to 64 are enough to improve.
    #[schemars(
        range(min = 1, max = 1_000_000),
        extend("x-unit" = "simulations", "x-paper" = "800 (AlphaZero), 600 to 1000 (KataGo)")
    )]
    pub simulations: u32,
    /// Share of moves with a full search (playout cap randomisation, Wu 2019, section 3.1). 1 searches every move in full.
    #[schemars(range(min = 0.01, max = 1.0), extend("x-unit" = "share of the moves", "x-paper" = "0.25 (KataGo), 1 (AlphaZero)"))]
    pub full_share: f32,
    /// Simulations of the other moves, which have no noise and train only the value.
    #[schemars(range(min = 0, max = 1_000_000), extend("x-unit" = "simulations", "x-paper" = "100 to 200 (KataGo)"))]
    pub fast_simulations: u32,
    /// Whether a game ends when a search has proven its result, rather than when the rules end it.
    #[schemars(extend("x-paper" = "false (AlphaZero)"))]
    pub end_proven: bool,
    /// When players give up; null for never.
    pub resign: Option<ResignParams>,
    /// Share of the weight of a game's full searches that is dealt out by how much each changed the prior (policy surprise weighting,
    /// Wu, KataGo's methods): such positions are drawn more often.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-unit" = "share of the weight", "x-paper" = "0.5 (KataGo), 0 (AlphaZero)"))]
    pub surprise_share: f32,
    /// Temperature of the first plies: 1 draws moves in proportion to the searched policy, 0 takes the best.
    #[schemars(range(min = 0.0, max = 100.0), extend("x-unit" = "none", "x-paper" = "1 (AlphaZero), 0.8 (KataGo)"))]
    pub temperature: f32,
    /// Plies that `temperature` holds for.
    #[schemars(range(min = 0, max = 100_000), extend("x-unit" = "plies", "x-paper" = "30 (AlphaGo Zero)"))]
    pub temperature_plies: u32,
    /// Temperature of the later plies.
    #[schemars(range(min = 0.0, max = 100.0), extend("x-unit" = "none", "x-paper" = "0 (AlphaGo Zero), 0.2 (KataGo)"))]
    pub temperature_later: f32,
    /// PUCT: share of Dirichlet noise in the priors of the root.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-unit" = "share of the prior", "x-paper" = "0.25 (AlphaZero)"))]
    pub noise_fraction: f32,
    /// PUCT: concentration of the Dirichlet noise, shared evenly by the legal moves.
    #[schemars(range(min = 0.01, max = 10_000.0), extend("x-unit" = "none", "x-paper" = "10.83 (KataGo)"))]
    pub noise_concentration: f32,
    /// Share of games that are old ones of the replay window, whose moves and result stay while the network of now searches every
    /// position anew (reanalysis).
    #[schemars(range(min = 0.0, max = 1.0), extend("x-unit" = "share of the games", "x-paper" = "0 (AlphaZero)"))]
    pub reanalysed_share: f32,
    /// Share of games that begin with random moves.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-unit" = "share of the games", "x-paper" = "0 (AlphaZero)"))]
    pub opening_share: f32,
    /// Random moves of such a game: uniformly between 1 and this.
    #[schemars(range(min = 1, max = 1000), extend("x-unit" = "plies"))]
    pub opening_plies: u32,
    /// Worker threads; null takes as many cores as a short measurement finds useful.
    #[schemars(range(min = 1, max = 4096), extend("x-unit" = "threads"))]
    pub threads: Option<u32>,
    /// Games that each worker plays at once, which is its largest batch; null takes what a short measurement finds best.
    #[schemars(range(min = 1, max = 65_536), extend("x-unit" = "games"))]
    pub parallel_games: Option<u32>,
    /// Memory for evaluations of positions met before, shared by all games of a generation; 0 for none.
    #[schemars(range(min = 0, max = 1_000_000), extend("x-unit" = "MiB"))]
    pub cache_megabytes: u32,
    /// How the network sees positions.
    #[schemars(extend("x-paper" = "random (AlphaGo Zero), as_is (AlphaZero)"))]
    pub view: View,
}

impl Default for SelfPlayParams {
    fn default() -> Self {
        Self {
            games: 1000,
            simulations: 64,
            full_share: 1.0,
            fast_simulations: 16,
            end_proven: false,
            resign: None,
            surprise_share: 0.0,
            temperature: 1.0,
            temperature_plies: 16,
            temperature_later: 0.2,
            noise_fraction: 0.25,
            noise_concentration: 10.83,
            reanalysed_share: 0.0,
            opening_share: 0.1,
            opening_plies: 4,
            threads: None,
            parallel_games: None,
            cache_megabytes: 256,
            view: View::AsIs,
        }
    }
}

impl SelfPlayParams {
    /// The one player of self-play.
    pub fn player<G: Game>(&self, search: &SearchParams, evaluators: Arc<dyn EvaluatorSource<G>>) -> Player<G> {
        let noise = RootNoise { fraction: self.noise_fraction, concentration: self.noise_concentration };
        let fast = FastMoves { full_share: self.full_share, simulations: self.fast_simulations };
        let seat = SearchSeat {
            evaluators,
            search: search.clone(),
            simulations: self.simulations,
            time: None,
            temperature: Temperature {
                initial: self.temperature,
                plies: self.temperature_plies,
                later: self.temperature_later,
            },
            noise: Some(noise),
            gumbel_noise: true,
            fast: (self.full_share < 1.0).then_some(fast),
            teaching: Teaching {
                end_proven: self.end_proven,
                resign: self.resign,
                surprise_share: self.surprise_share,
            },
        };
        Player::new("self", Seat::Search(seat))
    }

    /// Whether a game of this stream, at its beginning, is to be an old one.
    fn looks_back(&self, random: &mut Stream) -> bool {
        let share = f64::from(self.reanalysed_share);
        share > 0.0 && random.unit() < share
    }

    /// Whether the game `index` of `generation` is an old one that was searched anew, where there was one.
    pub fn is_reanalysed(&self, seed: u64, generation: u32, index: u32) -> bool {
        self.looks_back(&mut game_stream(seed, generation, u64::from(index)))
    }

    /// The first moves of a game, drawn from its stream before anything else.
    pub fn opening<G: Game>(&self, game: &G, random: &mut Stream) -> Opening<G> {
        if random.unit() < f64::from(self.opening_share) {
            let plies = 1 + random.below(self.opening_plies as usize);
            random_opening(game, plies, random)
        } else {
            Opening { start: game.start(random), moves: Vec::new() }
        }
    }
}

/// What every random decision of a game is drawn from.
fn game_stream(seed: u64, generation: u32, index: u64) -> Stream {
    Stream::keyed(seed, Purpose::SelfPlay, &[u64::from(generation), index])
}

/// The games of one generation that are not yet there.
struct Generation<'a, G: Game> {
    game: &'a G,
    params: &'a SelfPlayParams,
    window: &'a ReplayWindow,
    missing: Vec<u64>,
    next: AtomicUsize,
    seed: u64,
    generation: u32,
}

impl<G: Game> Generation<'_, G> {
    /// The game of the window that is searched anew instead of playing another one, if it is this one's turn.
    fn old_game(&self, random: &mut Stream) -> Option<OldGame> {
        if self.params.looks_back(random) { self.window.old_game(random) } else { None }
    }
}

impl<G: Game> Tables<G> for Generation<'_, G> {
    fn next(&self) -> Option<Table<G>> {
        let &index = self.missing.get(self.next.fetch_add(1, Relaxed))?;
        let mut random = game_stream(self.seed, self.generation, index);
        if let Some(old) = self.old_game(&mut random) {
            let start =
                old.start.as_deref().map(|text| self.game.parse_state(text).expect("games of the window were checked"));
            let start = start.unwrap_or_else(|| self.game.startpos());
            let opening = old.moves[..old.opening].to_vec();
            return Some(Table { index, seats: [0, 0], start, opening, script: Some(old), random });
        }
        let opening = self.params.opening(self.game, &mut random);
        Some(Table { index, seats: [0, 0], start: opening.start, opening: opening.moves, script: None, random })
    }
}

/// What self-play of one generation needs.
pub struct Generate<'a, G: Game> {
    /// The game.
    pub game: &'a G,
    /// Section `selfplay`.
    pub params: &'a SelfPlayParams,
    /// Section `search`.
    pub search: &'a SearchParams,
    /// Games of the generations before.
    pub window: &'a ReplayWindow,
    /// The run's seed.
    pub seed: u64,
    /// Number of the generation.
    pub generation: u32,
    /// Evaluators of the best network.
    pub evaluators: Arc<dyn EvaluatorSource<G>>,
    /// Threads, and games that each plays at once.
    pub pool: PoolParams,
}

impl<G: Game> Generate<'_, G> {
    /// Plays the games of the generation that are not in `done`; each finished one goes to `finished`.
    ///
    /// Game `i` of a generation is the same whatever the threads, and whether or not the generation was interrupted before.
    ///
    /// # Errors
    /// When an evaluator fails.
    pub fn run(
        &self,
        done: &HashSet<u32>,
        stop: &(dyn Fn() -> bool + Sync),
        stats: &PoolStats,
        finished: &(dyn Fn(Finished) + Sync),
    ) -> Result<(), PoolError> {
        let missing = (0..self.params.games).filter(|index| !done.contains(index)).map(u64::from).collect();
        let tables = Generation {
            game: self.game,
            params: self.params,
            window: self.window,
            missing,
            next: AtomicUsize::new(0),
            seed: self.seed,
            generation: self.generation,
        };
        let players = [self.params.player(self.search, self.evaluators.clone())];
        play_pool(self.game, &players, &tables, self.pool, stop, stats, &|mut game| {
            game.record.seed = self.seed;
            game.record.generation = self.generation;
            finished(game);
        })
    }
}
