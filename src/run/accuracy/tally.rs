//! Counts of how a player compares with perfect play.

use serde::Serialize;

use crate::game::{Action, Outcome, Player, Solved, WdlAbs};

/// Some positions, counted by what the player's moves make of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// Positions.
    pub positions: usize,
    /// Positions in which some move gives something away.
    pub choices: usize,
    /// The move draws a won position.
    pub wins_drawn: usize,
    /// The move loses a won position.
    pub wins_lost: usize,
    /// The move loses a drawn position.
    pub draws_lost: usize,
    /// Positions of which the player has an opinion, and the sum of how far it is off.
    values: usize,
    value_errors: f64,
}

impl Tally {
    /// One position in which `mover` makes the move `action` and takes it to be worth `value`. `None` when the move is not
    /// legal.
    pub(super) fn of(mover: Player, solved: &Solved, action: Action, value: Option<WdlAbs>) -> Option<Self> {
        let [before, after] = [solved.outcome(), solved.outcome_of(action)?].map(|outcome| outcome.points(mover));
        let won = before == Outcome::Win(mover).points(mover);
        let is = usize::from;
        Some(Self {
            positions: 1,
            choices: is(solved.is_choice()),
            wins_drawn: is(won && after == 0.5),
            wins_lost: is(won && after == 0.0),
            draws_lost: is(before == 0.5 && after == 0.0),
            values: is(value.is_some()),
            value_errors: value.map_or(0.0, |value| (f64::from(value.pov(mover).points()) - before).abs()),
        })
    }

    /// Positions in which the move keeps the result of perfect play.
    pub fn optimal(&self) -> usize {
        self.positions - self.wins_drawn - self.wins_lost - self.draws_lost
    }

    /// The share of them; `None` without positions.
    pub fn optimal_share(&self) -> Option<f64> {
        share(self.optimal(), self.positions)
    }

    /// The same share among the positions in which some move gives something away.
    pub fn optimal_choice_share(&self) -> Option<f64> {
        // Where no move gives anything away, every one is optimal.
        share(self.optimal() - (self.positions - self.choices), self.choices)
    }

    /// Mean absolute difference between the points (win 1, draw 1/2) that the player to move expects and those that it gets
    /// under perfect play, in [0, 1]; `None` for a player that has no opinion.
    pub fn value_error(&self) -> Option<f64> {
        (self.values > 0).then(|| self.value_errors / self.values as f64)
    }
}

fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, more: Self) {
        self.positions += more.positions;
        self.choices += more.choices;
        self.wins_drawn += more.wins_drawn;
        self.wins_lost += more.wins_lost;
        self.draws_lost += more.draws_lost;
        self.values += more.values;
        self.value_errors += more.value_errors;
    }
}

impl Serialize for Tally {
    /// Counts, and the figures that follow from them.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct as _;
        let mut fields = serializer.serialize_struct("Tally", 9)?;
        fields.serialize_field("positions", &self.positions)?;
        fields.serialize_field("optimal", &self.optimal())?;
        fields.serialize_field("optimal_share", &self.optimal_share())?;
        fields.serialize_field("choices", &self.choices)?;
        fields.serialize_field("optimal_choice_share", &self.optimal_choice_share())?;
        fields.serialize_field("wins_drawn", &self.wins_drawn)?;
        fields.serialize_field("wins_lost", &self.wins_lost)?;
        fields.serialize_field("draws_lost", &self.draws_lost)?;
        fields.serialize_field("value_error", &self.value_error())?;
        fields.end()
    }
}

/// The positions after so many plies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PlyTally {
    /// Plies made.
    pub plies: usize,
    /// How the player compares there.
    #[serde(flatten)]
    pub tally: Tally,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::SolvedMove;

    #[test]
    fn moves_and_values_are_counted() {
        let mover = Player::Second;
        let solved = |outcomes: &[Outcome]| {
            let moves = outcomes.iter().zip(0..).map(|(&outcome, index)| SolvedMove { action: Action(index), outcome });
            Solved::new(mover, moves.collect())
        };
        let (win, loss) = (Outcome::Win(mover), Outcome::Win(mover.other()));
        let mut all = Tally::default();
        assert_eq!((all.optimal_share(), all.optimal_choice_share(), all.value_error()), (None, None, None));
        let won = solved(&[win, Outcome::Draw, loss]);
        for action in 0..3 {
            all += Tally::of(mover, &won, Action(action), Some(win.wdl())).unwrap();
        }
        assert_eq!(Tally::of(mover, &won, Action(3), None), None);
        assert_eq!((all.wins_drawn, all.wins_lost, all.draws_lost, all.optimal()), (1, 1, 0, 1));
        assert_eq!(all.value_error(), Some(0.0));
        // Half a point off, and no opinion.
        let drawn = solved(&[loss, Outcome::Draw]);
        all += Tally::of(mover, &drawn, Action(0), Some(loss.wdl())).unwrap();
        all += Tally::of(mover, &drawn, Action(1), None).unwrap();
        assert_eq!((all.draws_lost, all.value_error()), (1, Some(0.125)));
        // Lost whatever is played: nothing to choose.
        all += Tally::of(mover, &solved(&[loss, loss]), Action(0), None).unwrap();
        assert_eq!((all.positions, all.choices, all.optimal()), (6, 5, 3));
        assert_eq!((all.optimal_share(), all.optimal_choice_share()), (Some(0.5), Some(0.4)));
    }
}
