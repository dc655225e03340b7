//! What comes out of a match: results of each encounter, and what the games were like.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::pool::{Clock, Finished};
use crate::data::{Finish, GameRecord, PlyKind};
use crate::game::{Outcome, Player as Side};
use crate::util::stats::{GameCounts, PairCounts, Sprt, Verdict};

/// Results of the first player of an encounter.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct MatchTally {
    /// Games in which it moved first.
    pub as_first: GameCounts,
    /// Games in which it moved second.
    pub as_second: GameCounts,
    /// Pairs of games from one opening.
    pub pairs: PairCounts,
}

impl MatchTally {
    /// Results over both sides.
    pub fn games(&self) -> GameCounts {
        self.as_first + self.as_second
    }

    fn add_pair(&mut self, first: Outcome, second: Outcome) {
        count(&mut self.as_first, first, Side::First);
        count(&mut self.as_second, second, Side::Second);
        self.pairs.add(first.points(Side::First), second.points(Side::Second));
    }
}

fn count(counts: &mut GameCounts, outcome: Outcome, side: Side) {
    match outcome {
        Outcome::Win(winner) if winner == side => counts.wins += 1,
        Outcome::Win(_) => counts.losses += 1,
        Outcome::Draw => counts.draws += 1,
    }
}

/// What came out of a match. Complete pairs only count.
#[derive(Clone, Debug)]
pub struct MatchReport {
    /// Who met whom.
    pub encounters: Vec<[usize; 2]>,
    /// Results of the first player of each encounter.
    pub tallies: Vec<MatchTally>,
    /// Games counted.
    pub games: u64,
    /// How many of them differ in encounter, start or moves.
    pub distinct: u64,
    /// Why games ended, with their numbers; in order of the reasons.
    pub reasons: BTreeMap<Finish, u64>,
    /// What went wrong with movers, when that decided games, with the numbers of games.
    pub faults: BTreeMap<String, u64>,
    /// Plies of all games.
    pub plies: u64,
    /// Those of them that are not of the openings.
    pub own_plies: u64,
    /// The time of each player.
    pub clocks: Vec<Clock>,
    /// What the sequential test says after the last counted pair of the first encounter.
    pub verdict: Option<Verdict>,
    /// Whether the match was stopped before its end.
    pub interrupted: bool,
}

impl MatchReport {
    /// Results of the first player of the first encounter.
    pub fn tally(&self) -> &MatchTally {
        &self.tallies[0]
    }
}

/// Pairs as they come in, counted strictly in order, so that the verdict does not depend on which game was ready first.
pub(super) struct Desk {
    pending: BTreeMap<u64, [Option<Finished>; 2]>,
    next: u64,
    sprt: Option<Sprt>,
    seen: HashSet<u128>,
    report: MatchReport,
}

/// What tells two games apart, in so many bits that two different ones are never taken for the same.
fn digest(encounter: usize, record: &GameRecord) -> u128 {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, encounter, &record.start).hash(&mut hasher);
        record.plies.iter().for_each(|ply| ply.action.hash(&mut hasher));
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}

impl Desk {
    pub(super) fn new(players: usize, encounters: Vec<[usize; 2]>, sprt: Option<Sprt>) -> Self {
        let report = MatchReport {
            tallies: vec![MatchTally::default(); encounters.len()],
            encounters,
            games: 0,
            distinct: 0,
            reasons: BTreeMap::new(),
            faults: BTreeMap::new(),
            plies: 0,
            own_plies: 0,
            clocks: vec![Clock::default(); players],
            verdict: None,
            interrupted: false,
        };
        Self { pending: BTreeMap::new(), next: 0, sprt, seen: HashSet::new(), report }
    }

    /// Takes a game; whether the sequential test has decided with it.
    pub(super) fn take(&mut self, finished: Finished) -> bool {
        let pair = self.pending.entry(finished.index / 2).or_default();
        let side = (finished.index % 2) as usize;
        pair[side] = Some(finished);
        while self.pending.get(&self.next).is_some_and(|pair| pair.iter().all(Option::is_some)) {
            let pair = self.pending.remove(&self.next).expect("just seen");
            let [Some(first), Some(second)] = pair else { unreachable!("both are there") };
            let encounter = (self.next % self.report.encounters.len() as u64) as usize;
            self.next += 1;
            self.report.tallies[encounter].add_pair(first.record.end.outcome, second.record.end.outcome);
            for game in [first, second] {
                self.count(encounter, game);
            }
            if let Some(sprt) = self.sprt
                && encounter == 0
            {
                let verdict = sprt.status(&self.report.tallies[0].pairs);
                self.report.verdict = Some(verdict);
                if verdict != Verdict::Continue {
                    return true;
                }
            }
        }
        false
    }

    fn count(&mut self, encounter: usize, game: Finished) {
        let (report, record) = (&mut self.report, game.record);
        report.games += 1;
        report.plies += record.plies.len() as u64;
        report.own_plies += record.plies.iter().filter(|ply| ply.kind != PlyKind::Opening).count() as u64;
        *report.reasons.entry(record.end.reason).or_default() += 1;
        if let Some(fault) = game.fault {
            *report.faults.entry(fault).or_default() += 1;
        }
        for (player, clock) in game.seats.into_iter().zip(game.clocks) {
            report.clocks[player].thinking += clock.thinking;
            report.clocks[player].moves += clock.moves;
        }
        report.distinct += u64::from(self.seen.insert(digest(encounter, &record)));
    }

    pub(super) fn tallies(&self) -> &[MatchTally] {
        &self.report.tallies
    }

    pub(super) fn games(&self) -> u64 {
        self.report.games
    }

    pub(super) fn report(mut self, interrupted: bool) -> MatchReport {
        self.report.interrupted = interrupted;
        self.report
    }
}
