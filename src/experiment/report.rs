//! What an experiment has shown: a table, two pictures, all numbers.

use std::fmt::Write as _;

use serde::Serialize;

use super::plan::Plan;
use crate::arena::{Curve, Plot, plot, signed, signed_interval};
use crate::util::stats::Estimate;

/// A rated checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Its generation.
    pub generation: u32,
    /// Positions that its run had played by then.
    pub positions: u64,
    /// Hours of work of its run.
    pub hours: f64,
    /// Hours of processor time of its run.
    pub cpu_hours: f64,
    /// Elo relative to the anchor at 0; the interval is that of the games.
    pub elo: Estimate,
}

/// A training with its rated checkpoints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Run {
    /// Number of its variant.
    pub variant: usize,
    /// Its seed.
    pub seed: u64,
    /// The checkpoints, in order.
    pub points: Vec<Point>,
}

/// What a variant came to, over all seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The variant.
    pub variant: String,
    /// Its overrides.
    pub set: Vec<String>,
    /// Mean positions at the end.
    pub positions: f64,
    /// Mean hours of processor time at the end.
    pub cpu_hours: f64,
    /// Elo at the end: the mean over the seeds, with an interval that holds both the error of the games and the difference
    /// between seeds.
    pub elo: Estimate,
    /// Lowest and highest Elo of a seed.
    pub seeds: [f64; 2],
    /// Elo less that of the first variant; none for that itself.
    pub difference: Option<Estimate>,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The question.
    pub question: String,
    /// The game with its options.
    pub game: String,
    /// Simulations of the checkpoints in rated games.
    pub simulations: u32,
    /// Rated games.
    pub games: usize,
    /// The anchors by name.
    pub anchors: Vec<String>,
    /// Their Elo.
    pub anchor_elo: Vec<Estimate>,
    /// The variants.
    pub rows: Vec<Row>,
    /// All runs.
    pub runs: Vec<Run>,
}

/// Standard errors on each side of a 95 % interval.
const SIDES: f64 = 1.96;

/// The mean of several ratings of equal weight. Its variance is that of the games plus what the seeds differ more than the games
/// explain (random effects, method of moments; DerSimonian and Laird 1986 with equal weights).
fn mean(ratings: &[Estimate]) -> Estimate {
    let count = ratings.len() as f64;
    let value = ratings.iter().map(|rating| rating.value).sum::<f64>() / count;
    let error = |rating: &Estimate| ((rating.high - rating.low) / (2.0 * SIDES)).powi(2);
    let games = ratings.iter().map(error).sum::<f64>() / count;
    let between = match ratings.len() {
        1 => 0.0,
        _ => ratings.iter().map(|rating| (rating.value - value).powi(2)).sum::<f64>() / (count - 1.0),
    };
    let half = SIDES * (games.max(between) / count).sqrt();
    Estimate { value, low: value - half, high: value + half }
}

/// The difference of two ratings that are taken for independent; those from one pool are less uncertain if anything.
fn difference(a: Estimate, b: Estimate) -> Estimate {
    let half = ((a.high - a.value).powi(2) + (b.high - b.value).powi(2)).sqrt();
    let value = a.value - b.value;
    Estimate { value, low: value - half, high: value + half }
}

impl Report {
    pub(super) fn new(plan: &Plan, game: &str, runs: Vec<Run>, anchor_elo: Vec<Estimate>, games: usize) -> Self {
        let mut rows: Vec<Row> = Vec::new();
        for (at, variant) in plan.variants.iter().enumerate() {
            let ends: Vec<Point> =
                runs.iter().filter(|run| run.variant == at).filter_map(|run| run.points.last().copied()).collect();
            let count = ends.len() as f64;
            let elos: Vec<Estimate> = ends.iter().map(|end| end.elo).collect();
            let elo = mean(&elos);
            let values = || elos.iter().map(|elo| elo.value);
            rows.push(Row {
                variant: variant.name.clone(),
                set: variant.set.clone(),
                positions: ends.iter().map(|end| end.positions as f64).sum::<f64>() / count,
                cpu_hours: ends.iter().map(|end| end.cpu_hours).sum::<f64>() / count,
                elo,
                seeds: [values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max)],
                difference: rows.first().map(|first| difference(elo, first.elo)),
            });
        }
        Self {
            question: plan.question.clone(),
            game: game.to_owned(),
            simulations: plan.rating.simulations,
            games,
            anchors: plan.rating.anchors.clone(),
            anchor_elo,
            rows,
            runs,
        }
    }

    /// A table in Markdown.
    pub fn markdown(&self) -> String {
        let first = self.rows.first().map_or("", |row| row.variant.as_str());
        let mut out = String::new();
        let mut line = |text: String| writeln!(out, "{text}").expect("a string takes everything");
        line(format!("| variant | positions | CPU hours | Elo (95 %) | seeds | against `{first}` |"));
        line("|---|---|---|---|---|---|".to_owned());
        for (at, row) in self.rows.iter().enumerate() {
            let seeds = match self.runs.iter().filter(|run| run.variant == at).count() {
                1 => "1".to_owned(),
                count => format!("{count}: {} to {}", signed(row.seeds[0]), signed(row.seeds[1])),
            };
            line(format!(
                "| `{}` | {:.0} | {:.2} | {} | {seeds} | {} |",
                row.variant,
                row.positions,
                row.cpu_hours,
                signed_interval(&row.elo),
                row.difference.as_ref().map_or("-".to_owned(), signed_interval)
            ));
        }
        let anchors: Vec<String> = self
            .anchors
            .iter()
            .zip(&self.anchor_elo)
            .map(|(anchor, elo)| format!("`{anchor}` {}", signed(elo.value)))
            .collect();
        line(String::new());
        line(format!(
            "{}, {} simulations, {} games; anchors: {}",
            self.game,
            self.simulations,
            self.games,
            anchors.join(", ")
        ));
        out
    }

    /// Elo over positions and over hours of processor time, as SVG.
    pub(super) fn pictures(&self) -> Result<[String; 2], String> {
        let thousands = |point: &Point| point.positions as f64 / 1000.0;
        let cpu_hours = |point: &Point| point.cpu_hours;
        let draw = |axis: &str, place: &dyn Fn(&Point) -> f64| {
            plot(&Plot {
                title: format!("{} ({} simulations)", self.game, self.simulations),
                axis,
                curves: self.curves(place),
                lines: self.anchors.iter().cloned().zip(self.anchor_elo.iter().copied()).collect(),
            })
        };
        Ok([draw("thousand positions", &thousands)?, draw("CPU hours", &cpu_hours)?])
    }

    /// One curve for each variant: the means of its seeds' first checkpoints, of the second ones, and so on.
    fn curves(&self, place: &dyn Fn(&Point) -> f64) -> Vec<Curve> {
        let curve = |(at, row): (usize, &Row)| {
            let runs: Vec<&Run> = self.runs.iter().filter(|run| run.variant == at).collect();
            let longest = runs.iter().map(|run| run.points.len()).max().unwrap_or(0);
            let point = |rung: usize| {
                let points: Vec<&Point> = runs.iter().filter_map(|run| run.points.get(rung)).collect();
                let elos: Vec<Estimate> = points.iter().map(|point| point.elo).collect();
                let mean_place = points.iter().map(|point| place(point)).sum::<f64>() / points.len() as f64;
                (mean_place, mean(&elos))
            };
            Curve { name: row.variant.clone(), points: (0..longest).map(point).collect() }
        };
        self.rows.iter().enumerate().map(curve).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rating(value: f64, half: f64) -> Estimate {
        Estimate { value, low: value - half, high: value + half }
    }

    #[test]
    fn seeds_that_agree_add_up_and_others_widen_the_interval() {
        assert_eq!(mean(&[rating(10.0, 20.0)]), rating(10.0, 20.0));
        // Four equal results: half the interval of one.
        let together = mean(&[rating(10.0, 20.0); 4]);
        assert!((together.value - 10.0).abs() < 1e-9 && (together.high - 20.0).abs() < 1e-9, "{together:?}");
        // Two that are 100 apart: variance 5000 between them, standard error 50.
        let apart = mean(&[rating(0.0, 2.0), rating(100.0, 2.0)]);
        assert!((apart.value - 50.0).abs() < 1e-9 && (apart.high - 50.0 - 1.96 * 50.0).abs() < 1e-9, "{apart:?}");
    }

    #[test]
    fn errors_of_a_difference_add_up_by_squares() {
        let found = difference(rating(30.0, 4.0), rating(10.0, 3.0));
        assert_eq!(found, rating(20.0, 5.0));
    }
}
