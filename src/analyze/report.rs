//! What an analysis says, with moves and players as text.

use std::time::Duration;

use serde::Serialize;

use super::searcher::Ended;
use crate::game::{Game, Outcome, Place, Player, WdlPov, full_name};
use crate::search::{Insight, Proven, Tree};

/// The longest line that is told.
const LONGEST_LINE: usize = 40;

/// Whose analysis it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speaker {
    /// The player's name.
    pub name: String,
    /// Whether it has a network, and so priors that mean something.
    pub is_network: bool,
}

/// A result that is certain, as the player to move in the analysed position sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Certain {
    /// What it is.
    pub result: Verdict,
    /// Single moves until then, counted from the analysed position; of a draw none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plies: Option<u32>,
}

/// How a game ends for a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The player wins.
    Win,
    /// Nobody wins.
    Draw,
    /// The opponent wins.
    Loss,
}

impl Certain {
    /// `proven` as `player` sees it.
    pub fn of(proven: Proven, player: Player) -> Self {
        let result = match proven.outcome {
            Outcome::Draw => return Self { result: Verdict::Draw, plies: None },
            Outcome::Win(winner) if winner == player => Verdict::Win,
            Outcome::Win(_) => Verdict::Loss,
        };
        Self { result, plies: Some(proven.plies) }
    }
}

/// One legal move of the analysed position.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MoveReport {
    /// The move.
    #[serde(rename = "move")]
    pub text: String,
    /// Simulations that went through it.
    pub visits: u32,
    /// Their share among all moves, from 0 to 1.
    pub share: f64,
    /// The network's probability for it; absent without a network.
    pub prior: Option<f32>,
    /// How the game ends after it, as the player to move in the analysed position sees it.
    pub value: WdlPov,
    /// The result that it leads to for certain.
    pub proven: Option<Certain>,
    /// What is expected to follow, the move itself first.
    pub line: Vec<String>,
}

/// The analysis of one position.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// File and line that the position is from.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// The game with its options.
    pub game: String,
    /// Who analyses.
    pub player: String,
    /// The position (fen).
    pub position: String,
    /// Who is to move, as the game calls the player.
    pub to_move: &'static str,
    /// How the game ends, as the player to move sees it.
    pub value: WdlPov,
    /// The result that is certain.
    pub proven: Option<Certain>,
    /// Simulations of the search.
    pub simulations: u32,
    /// Nodes of the tree.
    pub nodes: usize,
    /// Plies of the longest path that was searched.
    pub depth: u32,
    /// Mean length of the simulations in plies.
    pub mean_depth: f64,
    /// Wall time; of all positions together where several shared a search.
    pub seconds: f64,
    /// Simulations of each second; of all positions together where several shared a search.
    pub simulations_per_second: f64,
    /// Why the search ended; absent while it goes on.
    pub ended: Option<Ended>,
    /// The legal moves from best to worst.
    pub moves: Vec<MoveReport>,
}

impl Analysis {
    /// What the search of `tree` has found out; `None` as long as that is nothing at all.
    pub fn of<G: Game>(
        game: &G,
        speaker: &Speaker,
        place: &Place<G>,
        tree: &Tree<G>,
        ended: Option<Ended>,
    ) -> Option<Self> {
        let Insight { summary, proven, lines, ranked } = tree.insight(game, LONGEST_LINE)?;
        let mover = summary.mover;
        let visits: u64 = summary.moves.iter().map(|m| u64::from(m.visits)).sum();
        let moves = ranked.into_iter().map(|index| {
            let (m, line) = (&summary.moves[index], &lines[index]);
            MoveReport {
                text: game.action_text(m.action),
                visits: m.visits,
                share: if visits == 0 { 0.0 } else { f64::from(m.visits) / visits as f64 },
                prior: speaker.is_network.then_some(m.prior),
                value: m.value.pov(mover),
                proven: line.proven.map(|proven| Certain::of(proven, mover)),
                line: line.moves.iter().map(|&action| game.action_text(action)).collect(),
            }
        });
        Some(Self {
            source: place.source.clone(),
            game: full_name(game),
            player: speaker.name.clone(),
            position: game.state_text(&place.state),
            to_move: game.player_names()[mover.index()],
            value: summary.value.pov(mover),
            proven: proven.map(|proven| Certain::of(proven, mover)),
            simulations: summary.simulations,
            nodes: tree.node_count(),
            depth: tree.depth(),
            mean_depth: tree.mean_depth(),
            seconds: 0.0,
            simulations_per_second: 0.0,
            ended,
            moves: moves.collect(),
        })
    }

    /// The same with the time that it took for so many simulations, those of other positions included.
    pub fn timed(self, simulations: u64, time: Duration) -> Self {
        let seconds = time.as_secs_f64();
        let simulations_per_second = if seconds > 0.0 { simulations as f64 / seconds } else { 0.0 };
        Self { seconds, simulations_per_second, ..self }
    }
}
