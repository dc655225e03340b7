//! The sequential probability ratio test: play until the results decide between two hypotheses.

use super::{Tally, deviance, score_of_elo, shares};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the bounds of a test are measured in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EloScale {
    /// The usual Elo: a function of the expected score alone.
    #[default]
    Logistic,
    /// Elo in units of the results' standard deviation, which makes tests of drawish and of decisive games equally
    /// long (Van den Bergh 2020, "Normalized Elo"). For games without draws and near equality both scales agree.
    Normalized,
}

/// A test of H0 "the player is `elo0` stronger" against H1 "the player is `elo1` stronger".
///
/// It is the generalised sequential probability ratio test: Wald's bounds (Wald 1945, "Sequential tests of statistical
/// hypotheses") on the ratio of the likelihoods maximised under each hypothesis (Li, Liu and Ying 2014,
/// "Generalized sequential probability ratio test for separate families of hypotheses"), in the form that the
/// testing framework of Stockfish uses for game pairs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Sprt {
    /// Elo difference under H0, below `elo1`.
    pub elo0: f64,
    /// Elo difference under H1.
    pub elo1: f64,
    /// Largest share of tests that accept H1 though H0 is true, in (0, 0.5).
    pub alpha: f64,
    /// Largest share of tests that accept H0 though H1 is true, in (0, 0.5).
    pub beta: f64,
    /// What `elo0` and `elo1` are measured in.
    pub scale: EloScale,
}

impl Default for Sprt {
    fn default() -> Self {
        Self { elo0: 0.0, elo1: 20.0, alpha: 0.05, beta: 0.05, scale: EloScale::Logistic }
    }
}

/// How a test stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Undecided: play on.
    Continue,
    /// The player is not as strong as H1 says.
    AcceptH0,
    /// The player is stronger than H0 says.
    AcceptH1,
}

/// A test that cannot be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SprtError {
    /// The hypotheses are not two finite numbers in order.
    #[error("elo0 = {0} and elo1 = {1}: both must be between -1000 and 1000, and elo0 the smaller one")]
    Hypotheses(f64, f64),
    /// An error rate is out of range.
    #[error("{0} = {1}, but an error rate must be above 0 and below 0.5")]
    ErrorRate(&'static str, f64),
}

/// Normalised Elo of a game result that is one standard deviation above ½ (Van den Bergh 2020): 800 / ln 10.
const NORMALIZED_UNIT: f64 = 800.0 / std::f64::consts::LN_10;

impl Sprt {
    /// A test with the usual Elo and 5 % errors of either kind.
    pub fn new(elo0: f64, elo1: f64) -> Self {
        Self { elo0, elo1, ..Self::default() }
    }

    /// Whether such a test can be made.
    ///
    /// # Errors
    /// Names the number that is out of range and the range.
    pub fn check(&self) -> Result<(), SprtError> {
        let usable = |elo: f64| (-1000.0..=1000.0).contains(&elo);
        if !(usable(self.elo0) && usable(self.elo1) && self.elo0 < self.elo1) {
            return Err(SprtError::Hypotheses(self.elo0, self.elo1));
        }
        for (name, rate) in [("alpha", self.alpha), ("beta", self.beta)] {
            if !(rate > 0.0 && rate < 0.5) {
                return Err(SprtError::ErrorRate(name, rate));
            }
        }
        Ok(())
    }

    /// The log-likelihood ratios at which H0 and H1 are accepted: ln(β / (1 - α)) and ln((1 - β) / α).
    pub fn bounds(&self) -> (f64, f64) {
        ((self.beta / (1.0 - self.alpha)).ln(), ((1.0 - self.beta) / self.alpha).ln())
    }

    /// The log-likelihood ratio of H1 against H0; 0 without results.
    ///
    /// With usual Elo it is exact: the ratio of the likelihoods of the two best distributions with the expected scores
    /// of the hypotheses. With normalised Elo it is `n/2 ln((1 + (t - t0)²) / (1 + (t - t1)²))`, where `t` is
    /// the mean of the results less ½ in units of their standard deviation (Van den Bergh, "Normalized Elo in
    /// practice", an approximation good to a few per cent; results that did not occur count 1/1000 so that the
    /// deviation is never 0).
    pub fn llr(&self, tally: &impl Tally) -> f64 {
        let counts = tally.counts();
        if counts.iter().all(|&count| count == 0) {
            return 0.0;
        }
        match self.scale {
            EloScale::Logistic => {
                deviance(&counts, score_of_elo(self.elo0)) - deviance(&counts, score_of_elo(self.elo1))
            }
            EloScale::Normalized => {
                // A pair is the mean of two games: its deviation is smaller by √2, its t the larger.
                let games = (counts.len() - 1) / 2;
                let t_of = |elo: f64| elo / NORMALIZED_UNIT * (games as f64).sqrt();
                let weighted = || shares(&counts).map(|(score, count)| (score, count.max(1e-3)));
                let total: f64 = weighted().map(|(_, count)| count).sum();
                let mean = weighted().map(|(score, count)| score * count).sum::<f64>() / total;
                let variance =
                    weighted().map(|(score, count)| (score - mean) * (score - mean) * count).sum::<f64>() / total;
                let t = (mean - 0.5) / variance.sqrt();
                let loss = |hypothesis: f64| ((t - hypothesis) * (t - hypothesis)).ln_1p();
                total / 2.0 * (loss(t_of(self.elo0)) - loss(t_of(self.elo1)))
            }
        }
    }

    /// How the test stands after these results.
    pub fn status(&self, tally: &impl Tally) -> Verdict {
        let (lower, upper) = self.bounds();
        match self.llr(tally) {
            llr if llr <= lower => Verdict::AcceptH0,
            llr if llr >= upper => Verdict::AcceptH1,
            _ => Verdict::Continue,
        }
    }
}
