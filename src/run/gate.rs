//! The last phase of a generation: the candidate meets the best network so far.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::game::Game;
use crate::play::{MatchParams, MatchReport, Openings, PoolParams};
use crate::util::rng::{Purpose, Stream};
use crate::util::stats::{Sprt, Tally as _, Verdict};

/// Who may become the best network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GateMode {
    /// A candidate that does not lose to the best one.
    #[default]
    Sprt,
    /// Every candidate; no games are played for it.
    Off,
}

/// The gate and the Elo scale.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GateParams {
    /// Whether a candidate must win its place. `sprt`: a sequential test decides, and where it has not decided within
    /// `games`, more than half of the points. `off`: every candidate becomes the best.
    #[schemars(extend("x-paper" = "55 % of the points (AlphaGo Zero), off (AlphaZero)"))]
    pub mode: GateMode,
    /// Games at most, an even number: each opening is played from both sides.
    #[schemars(range(min = 2, max = 1_000_000), extend("x-unit" = "games", "x-paper" = "400 (AlphaGo Zero), 200 (KataGo)"))]
    pub games: u32,
    /// Simulations of each move, without noise.
    #[schemars(range(min = 0, max = 1_000_000), extend("x-unit" = "simulations", "x-paper" = "1600 (AlphaGo Zero)"))]
    pub simulations: u32,
    /// Random plies at the beginning of each pair of games.
    #[schemars(range(min = 0, max = 1000), extend("x-unit" = "plies"))]
    pub opening_plies: u32,
    /// Elo difference that the test takes for "no better".
    #[schemars(range(min = -1000.0, max = 1000.0), extend("x-unit" = "Elo"))]
    pub elo0: f64,
    /// Elo difference that the test takes for "better".
    #[schemars(range(min = -1000.0, max = 1000.0), extend("x-unit" = "Elo"))]
    pub elo1: f64,
    /// Games between each candidate that is let through and the anchor of the Elo scale; 0 rates by gate games alone.
    #[schemars(range(min = 0, max = 100_000), extend("x-unit" = "games"))]
    pub anchor_games: u32,
    /// Simulations of the anchor, a plain Monte Carlo tree search with random rollouts that stands at Elo 0.
    #[schemars(range(min = 1, max = 10_000_000), extend("x-unit" = "simulations"))]
    pub anchor_simulations: u32,
}

impl Default for GateParams {
    fn default() -> Self {
        Self {
            mode: GateMode::Sprt,
            games: 200,
            simulations: 64,
            opening_plies: 4,
            elo0: 0.0,
            elo1: 30.0,
            anchor_games: 40,
            anchor_simulations: 200,
        }
    }
}

impl GateParams {
    /// The sequential test, with 5 % error on either side.
    pub fn sprt(&self) -> Sprt {
        Sprt::new(self.elo0, self.elo1)
    }

    /// Whether a candidate with this result becomes the best. Without enough different games there is no verdict for it.
    pub fn passes(&self, report: &MatchReport) -> bool {
        match report.verdict {
            Some(Verdict::AcceptH1) => true,
            Some(Verdict::AcceptH0) => false,
            _ => report.tally().games().score().is_some_and(|score| score > 0.5),
        }
    }

    /// A match of two players over paired games from distinct openings. `seed` is one for each generation.
    pub fn match_params<G: Game>(&self, games: u32, sprt: Option<Sprt>, seed: u64, pool: PoolParams) -> MatchParams<G> {
        let random = Stream::keyed(seed, Purpose::Opening, &[]);
        MatchParams {
            encounters: vec![[0, 1]],
            pairs: games.div_ceil(2) as usize,
            openings: Openings::random(self.opening_plies as usize, random),
            sprt,
            seed,
            pool,
        }
    }
}
