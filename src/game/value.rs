//! Players, outcomes and the two kinds of win-draw-loss values.
//!
//! [`WdlAbs`] names the players and lives in trees and records; [`WdlPov`] is seen by one of them and
//! lives in networks and losses. [`WdlAbs::pov`] and [`WdlPov::abs`] are the only bridges, and neither type
//! can be negated, so a sign cannot be lost where a player moves twice in a row.

use serde::{Deserialize, Serialize};

/// One of the two players. The first player makes the first move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Player {
    /// Makes the first move of the game ("p1").
    First,
    /// The other one ("p2").
    Second,
}

impl Player {
    /// Both players, first then second.
    pub const BOTH: [Player; 2] = [Player::First, Player::Second];

    /// The opponent.
    #[inline]
    pub const fn other(self) -> Self {
        match self {
            Player::First => Player::Second,
            Player::Second => Player::First,
        }
    }

    /// 0 for the first player, 1 for the second.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// The result of a finished game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// This player won.
    Win(Player),
    /// Nobody won.
    Draw,
}

impl Outcome {
    /// Points of `player`: 1 for a win, 0.5 for a draw, 0 for a loss.
    pub fn points(self, player: Player) -> f64 {
        match self {
            Outcome::Win(winner) if winner == player => 1.0,
            Outcome::Win(_) => 0.0,
            Outcome::Draw => 0.5,
        }
    }

    /// The certain value of this outcome.
    #[inline]
    pub const fn wdl(self) -> WdlAbs {
        match self {
            Outcome::Win(Player::First) => WdlAbs { first: 1.0, draw: 0.0, second: 0.0 },
            Outcome::Draw => WdlAbs { first: 0.0, draw: 1.0, second: 0.0 },
            Outcome::Win(Player::Second) => WdlAbs { first: 0.0, draw: 0.0, second: 1.0 },
        }
    }
}

/// Probabilities that the first player wins, that the game is drawn, that the second player wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WdlAbs {
    /// The first player wins.
    pub first: f32,
    /// Nobody wins.
    pub draw: f32,
    /// The second player wins.
    pub second: f32,
}

impl WdlAbs {
    /// The same value as `player` sees it.
    #[inline]
    pub const fn pov(self, player: Player) -> WdlPov {
        match player {
            Player::First => WdlPov { win: self.first, draw: self.draw, loss: self.second },
            Player::Second => WdlPov { win: self.second, draw: self.draw, loss: self.first },
        }
    }

    /// `self * (1 - share) + other * share`, in each component.
    pub fn mix(self, other: WdlAbs, share: f32) -> WdlAbs {
        WdlAbs {
            first: self.first + (other.first - self.first) * share,
            draw: self.draw + (other.draw - self.draw) * share,
            second: self.second + (other.second - self.second) * share,
        }
    }
}

/// Probabilities that the player whose view this is wins, draws, loses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WdlPov {
    /// The viewing player wins.
    pub win: f32,
    /// Nobody wins.
    pub draw: f32,
    /// The opponent wins.
    pub loss: f32,
}

impl WdlPov {
    /// The same value with the players named, where `player` is the one whose view this is.
    #[inline]
    pub const fn abs(self, player: Player) -> WdlAbs {
        match player {
            Player::First => WdlAbs { first: self.win, draw: self.draw, second: self.loss },
            Player::Second => WdlAbs { first: self.loss, draw: self.draw, second: self.win },
        }
    }

    /// One number in [-1, 1] for the viewing player: win - loss + `draw_score` * draw.
    #[inline]
    pub fn utility(self, draw_score: f32) -> f32 {
        self.win - self.loss + draw_score * self.draw
    }

    /// Expected points in [0, 1]: win + draw / 2.
    #[inline]
    pub fn points(self) -> f32 {
        self.win + 0.5 * self.draw
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bridges_invert_each_other() {
        let abs = WdlAbs { first: 0.5, draw: 0.3, second: 0.2 };
        for player in Player::BOTH {
            assert_eq!(abs.pov(player).abs(player), abs);
        }
        assert_eq!(abs.pov(Player::First), WdlPov { win: 0.5, draw: 0.3, loss: 0.2 });
        assert_eq!(abs.pov(Player::Second), WdlPov { win: 0.2, draw: 0.3, loss: 0.5 });
    }

    #[test]
    fn outcomes_as_values_and_points() {
        for player in Player::BOTH {
            let win = Outcome::Win(player).wdl();
            assert_eq!(win.pov(player).utility(0.0), 1.0);
            assert_eq!(win.pov(player.other()).utility(0.0), -1.0);
            assert_eq!(Outcome::Win(player).points(player.other()), 0.0);
        }
        assert_eq!(Outcome::Draw.wdl().pov(Player::Second).utility(-0.2), -0.2);
        assert_eq!(Outcome::Draw.points(Player::First), 0.5);
    }
}
