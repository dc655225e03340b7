//! Resignation: games of self-play that are lost beyond doubt need not be played to their end, and in some they are, so that it is
//! known how often giving up would have been wrong (Silver et al. 2017, "Mastering the game of Go without human knowledge",
//! Methods, "Self-play").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::{Finish, GameRecord, PlyKind, quant};
use crate::game::{Game, Outcome, Player as Side, WdlAbs};

/// When a player gives up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ResignParams {
    /// A search is hopeless when its player may expect fewer points than this, a win being 1 and a draw 1/2.
    #[schemars(range(min = 0.0, max = 0.5), extend("x-unit" = "points", "x-paper" = "chosen so that under 5 % are wrong (AlphaGo Zero)"))]
    pub score: f32,
    /// Hopeless searches of a player in a row after which it gives up.
    #[schemars(range(min = 1, max = 1000), extend("x-unit" = "searches", "x-paper" = "1 (AlphaGo Zero)"))]
    pub searches: u32,
    /// Share of games in which nobody gives up. In them it is counted how often that would have been wrong.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-unit" = "share of the games", "x-paper" = "0.1 (AlphaGo Zero)"))]
    pub play_on: f32,
}

impl Default for ResignParams {
    fn default() -> Self {
        Self { score: 0.03, searches: 2, play_on: 0.1 }
    }
}

/// The hopeless searches that each player has behind it in a row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Despair([u32; 2]);

impl Despair {
    /// Takes in what a search of `side` has come to; whether `side` has reason to give up.
    pub(super) fn after(&mut self, params: ResignParams, side: Side, value: WdlAbs) -> bool {
        // As records keep it: who looks at them later comes to the same.
        let value = quant::value(quant::value_parts(value)).expect("parts of a value make a value").pov(side);
        let count = &mut self.0[side.index()];
        *count = if value.win + value.draw / 2.0 < params.score { *count + 1 } else { 0 };
        *count >= params.searches
    }
}

/// What giving up has come to in some games.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resignations {
    /// Games in which somebody gave up.
    pub resigned: u64,
    /// Those that were played on although somebody had reason to give up.
    pub played_on: u64,
    /// Those of them that this player did not lose.
    pub wrong: u64,
}

impl Resignations {
    /// Counts them in the games of `records`, which were played with `params`.
    pub fn of<'a, G: Game>(game: &G, params: ResignParams, records: impl IntoIterator<Item = &'a GameRecord>) -> Self {
        let mut found = Self::default();
        for record in records {
            if record.end.reason == Finish::Resigned {
                found.resigned += 1;
            } else if let Some(side) = gives_up(game, params, record) {
                found.played_on += 1;
                found.wrong += u64::from(record.end.outcome != Outcome::Win(side.other()));
            }
        }
        found
    }

    /// Share of the games that were played on in which giving up would have been wrong; `None` without such a game.
    pub fn wrong_share(&self) -> Option<f64> {
        (self.played_on > 0).then(|| self.wrong as f64 / self.played_on as f64)
    }
}

/// Who first has reason to give up before the game is over.
fn gives_up<G: Game>(game: &G, params: ResignParams, record: &GameRecord) -> Option<Side> {
    let mut despair = Despair::default();
    let before_last = record.plies.len().saturating_sub(1);
    // Records of this program's own games can be replayed.
    let mut plies = record.replay(game).ok()?.take(before_last);
    plies.find_map(|(state, ply)| {
        let side = game.to_move(&state);
        let searched = matches!(ply.kind, PlyKind::Full | PlyKind::Fast);
        (searched && despair.after(params, side, ply.value)).then_some(side)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hopeless_searches_of_a_player_count_in_a_row() {
        let params = ResignParams { score: 0.1, searches: 2, play_on: 0.0 };
        let first_loses = WdlAbs { first: 0.02, draw: 0.1, second: 0.88 };
        let open = WdlAbs { first: 0.05, draw: 0.11, second: 0.84 };
        let mut despair = Despair::default();
        assert!(!despair.after(params, Side::First, first_loses));
        assert!(!despair.after(params, Side::Second, first_loses), "the other one wins");
        assert!(!despair.after(params, Side::First, open), "a tenth is not below a tenth");
        assert!(!despair.after(params, Side::First, first_loses));
        assert!(!despair.after(params, Side::Second, open));
        assert!(despair.after(params, Side::First, first_loses));
    }
}
