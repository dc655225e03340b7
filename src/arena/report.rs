//! The report of a match, as text and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::data::Finish;
use crate::play::{MatchReport, MatchTally};
use crate::util::stats::{Anchor, Encounter, Estimate, RatingError, Sprt, Tally as _, Verdict, rate};
use crate::util::text::plain;

/// Drawn games added between any two who met when several players are rated, so that a whitewash leaves a finite rating.
const PRIOR_DRAWS: f64 = 1.0;

/// A match that was played, with what belongs to its report.
#[derive(Debug)]
pub struct Summary<'a> {
    /// The game with its options.
    pub game: &'a str,
    /// The players' names.
    pub players: &'a [String],
    /// What came out.
    pub report: &'a MatchReport,
    /// The sequential test.
    pub sprt: Option<Sprt>,
    /// The seed.
    pub seed: u64,
    /// The player at Elo 0 when several are rated.
    pub anchor: usize,
    /// How many pairs each encounter has played from the same openings because there were no more.
    pub repeated_openings: bool,
    /// Time since the match began.
    pub seconds: f64,
}

fn reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Rules => "rules",
        Finish::Repetition => "repetition",
        Finish::PlyCap => "ply limit",
        Finish::Proven => "proven",
        Finish::Resigned => "resigned",
        Finish::Adjudicated => "forfeit",
    }
}

fn per_cent(share: &Estimate) -> String {
    let [value, low, high] = [share.value, share.low, share.high].map(|share| 100.0 * share);
    format!("{value:.1} % (95 %: {low:.1} to {high:.1})")
}

/// A rounded difference. Nothing is less than zero by nothing.
pub fn signed(elo: f64) -> String {
    format!("{:+.0}", if elo.abs() < 0.5 { 0.0 } else { elo })
}

/// A rounded difference and its interval.
pub fn signed_interval(elo: &Estimate) -> String {
    format!("{} ({} to {})", signed(elo.value), signed(elo.low), signed(elo.high))
}

fn elo(elo: &Estimate) -> String {
    format!("{} (95 %: {} to {})", signed(elo.value), signed(elo.low), signed(elo.high))
}

/// The ratings of all players from all their games, with `anchor` at 0.
///
/// # Errors
/// When no chain of games links a player to the anchor.
pub(super) fn ratings(report: &MatchReport, players: usize, anchor: usize) -> Result<Vec<Estimate>, RatingError> {
    let encounters: Vec<Encounter> = report
        .encounters
        .iter()
        .zip(&report.tallies)
        .map(|(&[a, b], tally)| {
            let games = tally.games();
            let points = games.wins as f64 + 0.5 * games.draws as f64;
            Encounter { a, b, points, games: games.total() as f64 }
        })
        .collect();
    rate(players, Anchor { player: anchor, elo: 0.0 }, &encounters, PRIOR_DRAWS)
}

impl Summary<'_> {
    /// The players from best to worst with their ratings; `None` for two, whose Elo difference says it, and when games are missing.
    fn ranking(&self) -> Option<Vec<(usize, Estimate)>> {
        let ratings = (self.players.len() > 2).then(|| ratings(self.report, self.players.len(), self.anchor))?.ok()?;
        let mut ranking: Vec<(usize, Estimate)> = ratings.into_iter().enumerate().collect();
        ranking.sort_by(|a, b| b.1.value.total_cmp(&a.1.value));
        Some(ranking)
    }

    fn mean(&self, plies: u64) -> f64 {
        plies as f64 / self.report.games.max(1) as f64
    }

    /// What should make a reader doubt the result.
    pub fn warnings(&self) -> Vec<String> {
        let report = self.report;
        let mut warnings = Vec::new();
        if report.distinct * 2 < report.games {
            warnings.push("most games repeat each other; use more openings, or a larger --opening-plies".to_owned());
        }
        if self.repeated_openings {
            warnings.push("there are fewer openings than pairs of games: openings repeat".to_owned());
        }
        let own = self.mean(report.own_plies);
        if report.games > 0 && own < 4.0 && report.faults.is_empty() {
            warnings.push(format!("openings leave the players {own:.1} plies on average; use shorter ones"));
        }
        warnings
    }

    /// For people.
    pub fn text(&self) -> String {
        let report = self.report;
        let mut out = match self.players {
            [a, b] => format!("{}: {a} against {b}\n", self.game),
            players => format!("{}: {} players, {} encounters\n", self.game, players.len(), report.encounters.len()),
        };
        let mut line = |text: String| writeln!(out, "  {text}").expect("writing to a string");
        if report.interrupted {
            line("interrupted; the pairs of games that are complete:".to_owned());
        }
        if self.players.len() == 2 {
            encounter_lines(report.tally(), &mut line);
            if let Some(sprt) = &self.sprt {
                line(sprt_line(sprt, report));
            }
        } else {
            self.table(&mut line);
        }
        line(format!("distinct  {} of {} games differ in their moves", report.distinct, report.games));
        for warning in self.warnings() {
            line(format!("warning: {warning}"));
        }
        let reasons: Vec<String> =
            report.reasons.iter().map(|(&finish, games)| format!("{} {games}", reason(finish))).collect();
        line(format!("endings   {}", if reasons.is_empty() { "none".to_owned() } else { reasons.join(", ") }));
        line(format!("length    {:.1} plies, {:.1} s in all", self.mean(report.plies), self.seconds));
        for (name, clock) in self.players.iter().zip(&report.clocks) {
            if let Some(time) = clock.average() {
                line(format!("time      {} a move, {name}", short(time.as_secs_f64())));
            }
        }
        for (fault, games) in report.faults.iter().take(10) {
            let fault = plain(fault);
            line(format!("fault     {fault} ({games} game{})", if *games == 1 { "" } else { "s" }));
        }
        out
    }

    /// Ratings and encounters of more than two players.
    fn table(&self, line: &mut dyn FnMut(String)) {
        let report = self.report;
        let width = self.players.iter().map(|name| name.chars().count()).max().unwrap_or(0).min(40);
        let name = |player: usize| -> String { self.players[player].chars().take(40).collect() };
        match self.ranking() {
            Some(ranking) => {
                line(format!(
                    "{:<4}{:<width$}  {:>6}  {:>15}  {:>6}  {:>7}",
                    "", "player", "Elo", "95 %", "games", "score"
                ));
                for (place, (player, rating)) in ranking.into_iter().enumerate() {
                    let (games, points) = self.total(player);
                    let interval = if player == self.anchor {
                        "anchor".to_owned()
                    } else {
                        format!("{} to {}", signed(rating.low), signed(rating.high))
                    };
                    line(format!(
                        "{:<4}{:<width$}  {:>6}  {interval:>15}  {games:>6}  {:>5.1} %",
                        format!("{}.", place + 1),
                        name(player),
                        signed(rating.value),
                        100.0 * points / (games as f64).max(1.0),
                    ));
                }
            }
            None => line("no ratings yet: too few games".to_owned()),
        }
        for (&[a, b], tally) in report.encounters.iter().zip(&report.tallies) {
            let score = tally.pairs.score_interval().map_or_else(|| "no games".to_owned(), |score| per_cent(&score));
            line(format!("{} against {}: {}, {score}", name(a), name(b), tally.games()));
        }
    }

    /// Games and points of a player over all encounters.
    fn total(&self, player: usize) -> (u64, f64) {
        let (mut games, mut points) = (0, 0.0);
        for (&[a, b], tally) in self.report.encounters.iter().zip(&self.report.tallies) {
            let counts = tally.games();
            if player == a || player == b {
                games += counts.total();
                let won = if player == a { counts.wins } else { counts.losses };
                points += won as f64 + 0.5 * counts.draws as f64;
            }
        }
        (games, points)
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let report = self.report;
        let encounters: Vec<Value> = report
            .encounters
            .iter()
            .zip(&report.tallies)
            .map(|(&[a, b], tally)| {
                let mut value = encounter_json(tally);
                value["players"] = json!([self.players[a], self.players[b]]);
                value
            })
            .collect();
        let ratings = self.ranking().map(|ranking| {
            let entry = |&(player, rating): &(usize, Estimate)| {
                let (games, points) = self.total(player);
                json!({"player": self.players[player], "elo": rating, "anchor": player == self.anchor, "games": games,
                    "points": points})
            };
            ranking.iter().map(entry).collect::<Vec<_>>()
        });
        let times: Vec<Option<f64>> =
            report.clocks.iter().map(|clock| clock.average().map(|time| time.as_secs_f64())).collect();
        let reasons: serde_json::Map<String, Value> =
            report.reasons.iter().map(|(&finish, &games)| (reason(finish).to_owned(), games.into())).collect();
        let mut value = json!({
            "game": self.game,
            "players": self.players,
            "seed": self.seed,
            "encounters": encounters,
            "ratings": ratings,
            "sprt": self.sprt.map(|sprt| json!({
                "elo0": sprt.elo0, "elo1": sprt.elo1, "alpha": sprt.alpha, "beta": sprt.beta, "bounds": sprt.bounds(),
            })),
            "llr": self.sprt.map(|sprt| sprt.llr(&report.tally().pairs)),
            "verdict": report.verdict,
            "games_played": report.games,
            "distinct": report.distinct,
            "warnings": self.warnings(),
            "endings": reasons,
            "mean_plies": self.mean(report.plies),
            // What differs from run to run.
            "time": {"seconds": self.seconds, "seconds_per_move": times},
            "faults": report.faults,
            "interrupted": report.interrupted,
        });
        // Of two players the one encounter is the result.
        if let ([tally], Some(object)) = (&report.tallies[..], value.as_object_mut())
            && let Value::Object(flat) = encounter_json(tally)
        {
            object.extend(flat);
        }
        value
    }
}

fn encounter_json(tally: &MatchTally) -> Value {
    json!({
        "games": tally.games(),
        "as_first": tally.as_first,
        "as_second": tally.as_second,
        "pairs": tally.pairs.0,
        "score": tally.pairs.score_interval(),
        "elo": tally.pairs.elo(),
        "los": tally.pairs.los(),
    })
}

fn encounter_lines(tally: &MatchTally, line: &mut dyn FnMut(String)) {
    let games = tally.games();
    line(format!("games     {} (wins-draws-losses {games})", games.total()));
    line(format!("by side   first {}, second {}", tally.as_first, tally.as_second));
    line(format!("pairs     {} (0, 1/2, 1, 3/2, 2 points)", tally.pairs.0.map(|n| n.to_string()).join(" ")));
    if let (Some(score), Some(difference)) = (tally.pairs.score_interval(), tally.pairs.elo()) {
        line(format!("score     {}", per_cent(&score)));
        line(format!("Elo       {}", elo(&difference)));
        line(format!(
            "superior  {:.1} % (chance that the first player is the stronger one)",
            100.0 * tally.pairs.los()
        ));
    }
}

fn sprt_line(sprt: &Sprt, report: &MatchReport) -> String {
    let (low, high) = sprt.bounds();
    let verdict = match report.verdict {
        Some(Verdict::AcceptH1) => "the first player is stronger",
        Some(Verdict::AcceptH0) => "the first player is not stronger",
        _ => "undecided",
    };
    format!("SPRT      {verdict} (llr {:.2}, bounds {low:.2} {high:.2})", sprt.llr(&report.tally().pairs))
}

/// Seconds in a fitting unit.
fn short(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.1} us", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}
