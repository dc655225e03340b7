//! Ratings of several players on one scale, from all their games at once.

use super::{Estimate, Z95};

/// The games of two players against each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Encounter {
    /// One player.
    pub a: usize,
    /// The other one.
    pub b: usize,
    /// Points of `a`; a draw is half a point to each.
    pub points: f64,
    /// Number of games.
    pub games: f64,
}

/// The player whose rating is given, to which all others are relative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Anchor {
    /// The player.
    pub player: usize,
    /// Its rating.
    pub elo: f64,
}

/// Why there are no ratings.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RatingError {
    /// No chain of games leads from this player to the anchor.
    #[error("player {0} has met neither the anchor nor, through others, anyone who has: its rating is open")]
    Unconnected(usize),
    /// Only ever won, or only ever lost, on the way to the anchor.
    #[error("the games leave the rating of player {0} unbounded: it needs a point from, or a loss to, the others")]
    Unbounded(usize),
    /// An encounter that cannot be.
    #[error("encounter {0} is impossible: players must be two different known ones, points between 0 and the games")]
    Impossible(usize),
}

/// Elo points for one unit of the logistic scale.
const ELO_UNIT: f64 = 400.0 / std::f64::consts::LN_10;

/// The ratings of `players` players with 95 % intervals that maximise the likelihood of all `encounters` jointly.
///
/// The model is that of Bradley and Terry (1952, "Rank analysis of incomplete block designs"): `a` is expected to score
/// `1 / (1 + 10^((elo_b - elo_a) / 400))`, draws counting half. The likelihood is concave; Newton's method with
/// step halving finds its maximum. The intervals are ±1.96 standard errors of the difference to the anchor, from the
/// inverse of the Hessian; with many draws, or games in pairs, they are wider than they need be.
///
/// `prior_draws` drawn games are added between every two players who have met (Coulom's BayesElo does alike). 0 is plain
/// maximum likelihood; then a player who won or lost everything has no finite rating.
///
/// # Errors
/// When the games do not determine a player's rating, or an encounter is impossible.
pub fn rate(
    players: usize,
    anchor: Anchor,
    encounters: &[Encounter],
    prior_draws: f64,
) -> Result<Vec<Estimate>, RatingError> {
    let points = points_matrix(players, anchor, encounters, prior_draws)?;
    let games = |a: usize, b: usize| points[a][b] + points[b][a];
    if let Some(player) = unreached(players, anchor.player, |a, b| games(a, b) > 0.0) {
        return Err(RatingError::Unconnected(player));
    }
    // Ford 1957: the maximum is finite exactly when everyone is linked to everyone by points in both directions.
    let unbounded = unreached(players, anchor.player, |a, b| points[a][b] > 0.0)
        .or_else(|| unreached(players, anchor.player, |a, b| points[b][a] > 0.0));
    if let Some(player) = unbounded {
        return Err(RatingError::Unbounded(player));
    }

    // The anchor is no unknown: `free` lists the others.
    let free: Vec<usize> = (0..players).filter(|&player| player != anchor.player).collect();
    let mut strength = vec![0.0; players];
    let mut likelihood = log_likelihood(&points, &strength);
    let hessian = |strength: &[f64]| -> Vec<Vec<f64>> {
        let weight = |a: usize, b: usize| {
            let expected = logistic(strength[a] - strength[b]);
            games(a, b) * expected * (1.0 - expected)
        };
        let total = |a: usize| (0..players).filter(|&b| b != a).map(|b| weight(a, b)).sum::<f64>();
        free.iter().map(|&a| free.iter().map(|&b| if a == b { total(a) } else { -weight(a, b) }).collect()).collect()
    };
    for _ in 0..200 {
        let gradient = |a: usize| {
            let surplus = |b: usize| points[a][b] - games(a, b) * logistic(strength[a] - strength[b]);
            (0..players).filter(|&b| b != a).map(surplus).sum::<f64>()
        };
        let step = solve(hessian(&strength), free.iter().map(|&a| gradient(a)).collect());
        let largest = step.iter().fold(0.0, |largest: f64, part| largest.max(part.abs()));
        let mut scale = 1.0;
        let moved = loop {
            let mut next = strength.clone();
            for (&player, part) in free.iter().zip(&step) {
                next[player] += scale * part;
            }
            let value = log_likelihood(&points, &next);
            if value >= likelihood {
                likelihood = value;
                strength = next;
                break true;
            }
            scale /= 2.0;
            if scale < 1e-6 {
                break false;
            }
        };
        if !moved || largest < 1e-10 {
            break;
        }
    }

    let hessian = hessian(&strength);
    let mut ratings = vec![Estimate { value: anchor.elo, low: anchor.elo, high: anchor.elo }; players];
    for (index, &player) in free.iter().enumerate() {
        let mut unit = vec![0.0; free.len()];
        unit[index] = 1.0;
        let variance = solve(hessian.clone(), unit)[index];
        let value = anchor.elo + ELO_UNIT * (strength[player] - strength[anchor.player]);
        let reach = ELO_UNIT * Z95 * variance.max(0.0).sqrt();
        ratings[player] = Estimate { value, low: value - reach, high: value + reach };
    }
    Ok(ratings)
}

/// `points[a][b]`: points of `a` against `b`, with the prior's draws.
fn points_matrix(
    players: usize,
    anchor: Anchor,
    encounters: &[Encounter],
    prior_draws: f64,
) -> Result<Vec<Vec<f64>>, RatingError> {
    let mut points = vec![vec![0.0; players]; players];
    for (index, &Encounter { a, b, points: won, games }) in encounters.iter().enumerate() {
        let possible = a < players && b < players && a != b && won >= 0.0 && won <= games && games.is_finite();
        if !possible || anchor.player >= players {
            return Err(RatingError::Impossible(index));
        }
        points[a][b] += won;
        points[b][a] += games - won;
    }
    let all = (0..players).flat_map(|a| (0..a).map(move |b| (a, b)));
    let met: Vec<(usize, usize)> = all.filter(|&(a, b)| points[a][b] + points[b][a] > 0.0).collect();
    for (a, b) in met {
        points[a][b] += prior_draws / 2.0;
        points[b][a] += prior_draws / 2.0;
    }
    Ok(points)
}

/// The first player that cannot be reached from `start` along `linked`.
fn unreached(players: usize, start: usize, linked: impl Fn(usize, usize) -> bool) -> Option<usize> {
    let mut reached = vec![false; players];
    let mut open = vec![start];
    while let Some(a) = open.pop() {
        if !std::mem::replace(reached.get_mut(a)?, true) {
            open.extend((0..players).filter(|&b| b != a && linked(a, b)));
        }
    }
    reached.iter().position(|&reached| !reached)
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn log_likelihood(points: &[Vec<f64>], strength: &[f64]) -> f64 {
    let mut sum = 0.0;
    for (a, row) in points.iter().enumerate() {
        for (b, &won) in row.iter().enumerate() {
            if won > 0.0 {
                // ln of the logistic function without overflow.
                let x = strength[a] - strength[b];
                sum += won * if x > 0.0 { -(-x).exp().ln_1p() } else { x - x.exp().ln_1p() };
            }
        }
    }
    sum
}

/// Solves a symmetric positive definite system by elimination; such systems need no pivoting.
fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    let size = right.len();
    for pivot in 0..size {
        for row in pivot + 1..size {
            let factor = matrix[row][pivot] / matrix[pivot][pivot];
            if factor != 0.0 {
                let (above, below) = matrix.split_at_mut(row);
                for (entry, over) in below[0][pivot..].iter_mut().zip(&above[pivot][pivot..]) {
                    *entry -= factor * over;
                }
                right[row] -= factor * right[pivot];
            }
        }
    }
    for pivot in (0..size).rev() {
        let known: f64 = (pivot + 1..size).map(|column| matrix[pivot][column] * right[column]).sum();
        right[pivot] = (right[pivot] - known) / matrix[pivot][pivot];
    }
    right
}
