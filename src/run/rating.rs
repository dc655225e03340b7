//! The Elo scale of a run: all generations and an anchor that never changes, rated jointly from all their games.

use serde::{Deserialize, Serialize};

use crate::util::stats::{Anchor, Encounter, Estimate, GameCounts, rate};

/// Who took part in rated games.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rated {
    /// The anchor, at Elo 0.
    Anchor,
    /// The network of a generation.
    Generation(u32),
}

/// The games of two of them, as the first sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meeting {
    /// The first.
    pub a: Rated,
    /// The second.
    pub b: Rated,
    /// Results of the first.
    pub games: GameCounts,
}

/// Drawn games added between any two who met, so that a whitewash leaves a finite rating.
const PRIOR_DRAWS: f64 = 1.0;

/// Elo of `who` with its 95 % interval; `None` while no chain of games links it to the anchor.
pub fn elo(meetings: &[Meeting], who: Rated) -> Option<Estimate> {
    let mut players: Vec<Rated> = meetings.iter().flat_map(|meeting| [meeting.a, meeting.b]).collect();
    players.sort_unstable();
    players.dedup();
    let place = |player: Rated| players.binary_search(&player).ok();
    let anchor = Anchor { player: place(Rated::Anchor)?, elo: 0.0 };
    let encounters: Vec<Encounter> = meetings
        .iter()
        .map(|meeting| {
            let GameCounts { wins, draws, losses } = meeting.games;
            Some(Encounter {
                a: place(meeting.a)?,
                b: place(meeting.b)?,
                points: wins as f64 + 0.5 * draws as f64,
                games: (wins + draws + losses) as f64,
            })
        })
        .collect::<Option<_>>()?;
    let ratings = rate(players.len(), anchor, &encounters, PRIOR_DRAWS).ok()?;
    ratings.get(place(who)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_are_rated_through_each_other() {
        let met = |a, b, wins, losses| Meeting { a, b, games: GameCounts { wins, draws: 0, losses } };
        let meetings = [
            met(Rated::Generation(0), Rated::Anchor, 10, 30),
            met(Rated::Generation(1), Rated::Generation(0), 30, 10),
            met(Rated::Generation(2), Rated::Generation(1), 40, 0),
        ];
        let value = |who| elo(&meetings, who).unwrap().value;
        assert_eq!(value(Rated::Anchor), 0.0);
        assert!(value(Rated::Generation(0)) < -150.0);
        assert!(value(Rated::Generation(1)).abs() < 20.0);
        assert!(value(Rated::Generation(2)) > 300.0);
        assert_eq!(elo(&meetings, Rated::Generation(7)), None);
        assert_eq!(elo(&meetings[1..], Rated::Generation(1)), None);
    }
}
