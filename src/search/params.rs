//! Parameters of a search, one config section.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the tree is searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Algorithm {
    /// PUCT with Dirichlet noise at the root (Silver et al. 2018, AlphaZero).
    Puct,
    /// Gumbel root search with sequential halving and completed Q values (Danihelka et al. 2022).
    #[default]
    Gumbel,
}

/// How a tree is searched; the same in self-play, matches and analysis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SearchParams {
    /// Which rules choose the moves inside the tree and the policy target.
    #[schemars(extend("x-paper" = "puct (AlphaZero), gumbel (Gumbel MuZero)"))]
    pub algorithm: Algorithm,
    /// PUCT: weight of the prior against the value, for values in [-1, 1].
    #[schemars(range(min = 0.0, max = 100.0), extend("x-unit" = "none", "x-paper" = "1.25 for values in [0, 1] (AlphaZero), 1.1 (KataGo)"))]
    pub c_puct: f32,
    /// PUCT: visits at which the weight of the prior starts to grow, `c_puct + ln((1 + N + base) / base)`.
    #[schemars(range(min = 1.0, max = 1e9), extend("x-unit" = "visits", "x-paper" = "19652 (AlphaZero)"))]
    pub c_puct_base: f32,
    /// PUCT: an unvisited move is taken to be worth the value of its parent less this times the root of the
    /// prior that has been visited (first-play urgency).
    #[schemars(range(min = 0.0, max = 2.0), extend("x-unit" = "value", "x-paper" = "0.2 (KataGo)"))]
    pub fpu_reduction: f32,
    /// The same at the root while noise is on, where every move should get its chance.
    #[schemars(range(min = 0.0, max = 2.0), extend("x-unit" = "value", "x-paper" = "0 (KataGo)"))]
    pub fpu_reduction_root: f32,
    /// PUCT: while noise is on, a root move that has a visit gets at least the root of (this times its prior, noise included, times the
    /// visits of all), and what is not worth its visits is taken out of the policy target again (forced playouts and policy target
    /// pruning, Wu 2019, section 3.2). 0 for neither.
    #[schemars(range(min = 0.0, max = 100.0), extend("x-unit" = "none", "x-paper" = "2 (KataGo), 0 (AlphaZero)"))]
    pub forced_playouts: f32,
    /// What a draw is worth to the player who chooses, from -1 (as a loss) to 1 (as a win).
    #[schemars(range(min = -1.0, max = 1.0), extend("x-unit" = "value", "x-paper" = "0 (AlphaZero)"))]
    pub draw_score: f32,
    /// Propagate proven wins, draws and losses through the tree (MCTS-Solver, Winands et al. 2008); a proven root ends the search.
    pub solver: bool,
    /// Keep the part of the tree below the move that was played.
    #[schemars(extend("x-paper" = "true (AlphaGo Zero)"))]
    pub reuse: bool,
    /// Gumbel: root moves considered in the first phase of sequential halving.
    #[schemars(range(min = 1, max = 4096), extend("x-unit" = "moves", "x-paper" = "16 (Gumbel MuZero)"))]
    pub gumbel_considered: u32,
    /// Gumbel: `c_visit` of the paper's sigma.
    #[schemars(range(min = 0.0, max = 1e6), extend("x-unit" = "visits", "x-paper" = "50 (Gumbel MuZero)"))]
    pub gumbel_visit: f32,
    /// Gumbel: `c_scale` of the paper's sigma, for values in [0, 1].
    #[schemars(range(min = 0.0, max = 100.0), extend("x-unit" = "none", "x-paper" = "1 (Gumbel MuZero)"))]
    pub gumbel_scale: f32,
    /// Nodes a tree may hold; the search ends with the best answer so far when they are used up.
    #[schemars(range(min = 100, max = 100_000_000), extend("x-unit" = "nodes"))]
    pub max_nodes: u32,
}

impl Default for SearchParams {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::default(),
            c_puct: 1.5,
            c_puct_base: 19_652.0,
            fpu_reduction: 0.3,
            fpu_reduction_root: 0.0,
            forced_playouts: 0.0,
            draw_score: 0.0,
            solver: true,
            reuse: true,
            gumbel_considered: 16,
            gumbel_visit: 50.0,
            gumbel_scale: 1.0,
            max_nodes: 2_000_000,
        }
    }
}

/// The rule by which a descent chooses moves: [`SearchParams`] resolved, or plain UCB1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rule {
    Puct,
    Gumbel,
    /// UCB1 with rewards in [0, 1] (Auer et al. 2002; Kocsis & Szepesvari 2006): `mean + c sqrt(ln N / n)`.
    Ucb1 {
        c: f32,
    },
}

/// Dirichlet noise mixed into the priors of the root: `(1 - fraction) * prior + fraction * noise`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RootNoise {
    /// Share of the noise.
    pub fraction: f32,
    /// Concentration of all moves together; each gets this divided by their number.
    pub concentration: f32,
}
