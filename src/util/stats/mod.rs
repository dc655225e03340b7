//! What results of games say about strength, and how sure that is.
//!
//! A [`Tally`] counts results: single games ([`GameCounts`]) or pairs of games from one opening with sides
//! swapped ([`PairCounts`]). The two games of a pair are not independent, so a match played in pairs is to be
//! judged by pairs. From a tally come a score, an Elo difference with its 95 % interval, the likelihood of
//! superiority, and the sequential test [`Sprt`]; [`rate`] puts several players on one scale.

mod rating;
mod sprt;

pub use rating::{Anchor, Encounter, RatingError, rate};
pub use sprt::{EloScale, Sprt, SprtError, Verdict};

use serde::{Deserialize, Serialize};

/// The two-sided 95 % point of the standard normal distribution.
pub const Z95: f64 = 1.959_963_984_540_054;

/// A number with its 95 % interval. An end that the results leave open is infinite.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The best guess.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Estimate {
    fn map(self, f: impl Fn(f64) -> f64) -> Self {
        Self { value: f(self.value), low: f(self.low), high: f(self.high) }
    }
}

/// Results of single games, as one player sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GameCounts {
    /// Games won.
    pub wins: u64,
    /// Games drawn.
    pub draws: u64,
    /// Games lost.
    pub losses: u64,
}

impl std::fmt::Display for GameCounts {
    /// Wins, draws and losses as `W-D-L`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}-{}", self.wins, self.draws, self.losses)
    }
}

impl std::ops::Add for GameCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { wins: self.wins + other.wins, draws: self.draws + other.draws, losses: self.losses + other.losses }
    }
}

/// Results of game pairs, as one player sees them: the numbers of pairs that brought 0, ½, 1, 1½ and 2 points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairCounts(pub [u64; 5]);

impl PairCounts {
    /// Adds a pair in which the player made `first` and `second` points (each 0, ½ or 1).
    ///
    /// # Panics
    /// When these are no points of a game.
    pub fn add(&mut self, first: f64, second: f64) {
        let valid = |points: f64| [0.0, 0.5, 1.0].contains(&points);
        assert!(valid(first) && valid(second), "a game brings 0, 0.5 or 1 points, not {first} and {second}");
        self.0[((first + second) * 2.0) as usize] += 1;
    }
}

/// Counts of results that are worth equally spaced points from 0 to all.
pub trait Tally {
    /// How often each result occurred, from no points to full points.
    fn counts(&self) -> Vec<u64>;

    /// Number of results.
    fn total(&self) -> u64 {
        self.counts().iter().sum()
    }

    /// The mean score in [0, 1]; `None` without results.
    fn score(&self) -> Option<f64> {
        let total = self.total() as f64;
        (total > 0.0).then(|| shares(&self.counts()).map(|(score, count)| score * count).sum::<f64>() / total)
    }

    /// The score with its 95 % interval; `None` without results.
    ///
    /// The interval holds the scores that the likelihood ratio test does not reject: where twice the log-likelihood
    /// lost by the best distribution with that mean stays below the 95 % point of chi-squared with one degree of
    /// freedom (Owen 1988, "Empirical likelihood ratio confidence intervals for a single functional", applied
    /// to the multinomial on the full scale of results). Other than the usual `mean ± 1.96 standard errors` it
    /// stays inside [0, 1] and is honest when all results are alike.
    fn score_interval(&self) -> Option<Estimate> {
        let counts = self.counts();
        let value = self.score()?;
        let inside = |score: f64| deviance(&counts, score) <= Z95 * Z95 / 2.0;
        let low = if value > 0.0 { boundary(0.0, value, |score| !inside(score)) } else { 0.0 };
        let high = if value < 1.0 { boundary(value, 1.0, inside) } else { 1.0 };
        Some(Estimate { value, low, high })
    }

    /// The Elo difference with its 95 % interval; `None` without results. Infinite where the score is 0 or 1.
    fn elo(&self) -> Option<Estimate> {
        Some(self.score_interval()?.map(elo_of_score))
    }

    /// Likelihood of superiority: the probability that the player is the stronger one, by the normal approximation
    /// with the variance of equally strong players; for games it is `Φ((wins − losses) / √(wins + losses))`.
    /// 0.5 without results or when all are even.
    fn los(&self) -> f64 {
        let counts = self.counts();
        let (mut lead, mut variance) = (0.0, 0.0);
        for (score, count) in shares(&counts) {
            lead += count * (score - 0.5);
            variance += count * (score - 0.5) * (score - 0.5);
        }
        if variance > 0.0 { normal_cdf(lead / variance.sqrt()) } else { 0.5 }
    }
}

impl Tally for GameCounts {
    fn counts(&self) -> Vec<u64> {
        vec![self.losses, self.draws, self.wins]
    }
}

impl Tally for PairCounts {
    fn counts(&self) -> Vec<u64> {
        self.0.to_vec()
    }
}

/// The expected score in (0, 1) of a player who is `elo` stronger: 1 / (1 + 10^(-elo / 400)).
pub fn score_of_elo(elo: f64) -> f64 {
    1.0 / (1.0 + 10f64.powf(-elo / 400.0))
}

/// The Elo difference that explains an expected score; infinite for 0 and 1.
pub fn elo_of_score(score: f64) -> f64 {
    400.0 * (score / (1.0 - score)).log10()
}

/// A share `hits / total` with its 95 % interval (Wilson 1927, "Probable inference, the law of succession, and
/// statistical inference"). Half hits are allowed; `None` when `total` is not positive.
pub fn wilson(hits: f64, total: f64) -> Option<Estimate> {
    if total.is_nan() || total <= 0.0 {
        return None;
    }
    let (share, z2) = (hits / total, Z95 * Z95);
    let centre = share + z2 / (2.0 * total);
    let spread = Z95 * (share * (1.0 - share) / total + z2 / (4.0 * total * total)).sqrt();
    let scale = 1.0 + z2 / total;
    let (low, high) = ((centre - spread) / scale, (centre + spread) / scale);
    Some(Estimate { value: share, low: low.max(0.0), high: high.min(1.0) })
}

/// The distribution function of the standard normal distribution to 1e-15 (Marsaglia 2004, "Evaluating the normal
/// distribution": a Taylor series about 0).
pub fn normal_cdf(x: f64) -> f64 {
    if x.abs() > 8.0 {
        return if x > 0.0 { 1.0 } else { 0.0 };
    }
    let (mut sum, mut term, mut odd) = (x, x, 1.0);
    loop {
        odd += 2.0;
        term *= x * x / odd;
        let next = sum + term;
        if next == sum {
            break;
        }
        sum = next;
    }
    0.5 + sum * (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

/// Each result's score in [0, 1] with its count.
fn shares(counts: &[u64]) -> impl Iterator<Item = (f64, f64)> + '_ {
    let last = (counts.len() - 1) as f64;
    counts.iter().enumerate().map(move |(index, &count)| (index as f64 / last, count as f64))
}

/// Log-likelihood that the best distribution with mean `score`, in (0, 1), loses against the counts themselves.
///
/// That distribution is `p_i = c_i / (n (1 + x (a_i - score)))` (Van den Bergh, "The support MLE of a
/// multinomial distribution", proposition 1.1; also Owen 1988), where `x` maximises the concave
/// `sum c_i ln(1 + x (a_i - score))`, whose maximum is the loss. Both ends of the scale belong to the support also
/// when they were not observed: then the maximum may lie at the end of the range of `x`.
fn deviance(counts: &[u64], score: f64) -> f64 {
    let observed: Vec<(f64, f64)> =
        shares(counts).filter(|&(_, count)| count > 0.0).map(|(a, count)| (a - score, count)).collect();
    let slope = |x: f64| observed.iter().map(|(a, count)| count * a / (1.0 + x * a)).sum::<f64>();
    let x = boundary(-1.0 / (1.0 - score), 1.0 / score, |x| slope(x) > 0.0);
    observed.iter().map(|(a, count)| count * (x * a).ln_1p()).sum()
}

/// Where `before` turns from true to false between `low` and `high`: bisection, to about 1e-16 of their distance.
fn boundary(mut low: f64, mut high: f64, before: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..54 {
        let middle = low + (high - low) / 2.0;
        *(if before(middle) { &mut low } else { &mut high }) = middle;
    }
    low + (high - low) / 2.0
}

#[cfg(test)]
mod tests;
