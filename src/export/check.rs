//! An exported file against the network it was made from, over positions of self-play.

use serde::Serialize;

use super::ExportError;
use crate::eval::{Evaluations, Evaluator as _, Leaves};
use crate::game::{Game, legal_list};
use crate::net::{
    self, Checkpoint, DeviceName, Engine, EngineChoice, Inference, InferenceFactory, NetEvaluator, OpenError,
    Precision, VALUE_OUTPUTS,
};
use crate::util::rng::{Purpose, Stream};

/// Sizes of the batches in which positions are evaluated, over and over.
pub const BATCHES: [usize; 4] = [1, 2, 7, 256];

/// Games of self-play that go on side by side.
const GAMES: usize = 16;

/// Largest difference and share of equal best moves that are let through.
struct Bounds {
    difference: f64,
    same_best: f64,
}

const SINGLE: Bounds = Bounds { difference: 1e-4, same_best: 0.999 };
const HALF: Bounds = Bounds { difference: 2e-2, same_best: 0.99 };

/// Positions, ready for a network.
pub struct Batch<'a> {
    /// `[size, C, H, W]`.
    pub planes: &'a [f32],
    /// Which moves are legal, `[size, A]`.
    pub legal: &'a [bool],
    /// Positions.
    pub size: usize,
}

/// Policy, `[batch, A]`, and value, `[batch, 3]`.
pub type Outputs = [Vec<f32>; 2];

/// Something that runs an exported file.
pub trait Runtime {
    /// What it is called.
    fn name(&self) -> &'static str;

    /// Whether outputs are probabilities, else logits.
    fn gives_probabilities(&self) -> bool {
        false
    }

    /// Runs the file.
    ///
    /// # Errors
    /// When it cannot.
    fn run(&mut self, batch: &Batch<'_>) -> Result<Outputs, String>;
}

impl Runtime for net::Script {
    fn name(&self) -> &'static str {
        "libtorch"
    }

    fn run(&mut self, batch: &Batch<'_>) -> Result<Outputs, String> {
        net::Script::run(self, batch.planes, batch.size)
    }
}

/// A network served by this program with libtorch, in float32 on the CPU.
pub struct Served(Box<dyn Inference>);

impl Served {
    /// A network that was opened.
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn new(source: &InferenceFactory) -> Result<Self, OpenError> {
        Ok(Self(source.worker()?))
    }
}

/// The network of a checkpoint, in libtorch.
///
/// # Errors
/// When libtorch fails.
pub fn source(checkpoint: &Checkpoint) -> Result<InferenceFactory, OpenError> {
    let choice = EngineChoice { engine: Engine::Libtorch, precision: Precision::F32, device: DeviceName::Cpu };
    InferenceFactory::open(&checkpoint.info.network, &checkpoint.weights, &choice)
}

impl Runtime for Served {
    fn name(&self) -> &'static str {
        "libtorch"
    }

    fn run(&mut self, batch: &Batch<'_>) -> Result<Outputs, String> {
        let mut outputs = [Vec::new(), Vec::new()];
        let plane_len = batch.planes.len() / batch.size;
        let most = self.0.max_batch();
        for planes in batch.planes.chunks(most * plane_len) {
            let size = planes.len() / plane_len;
            self.0.input(size).map_err(|error| error.to_string())?.copy_from_slice(planes);
            let heads = self.0.run(size).map_err(|error| error.to_string())?;
            outputs[0].extend_from_slice(heads.policy);
            outputs[1].extend_from_slice(heads.value);
        }
        Ok(outputs)
    }
}

/// How far two sets of numbers are apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Difference {
    /// The largest.
    pub largest: f64,
    /// The mean.
    pub mean: f64,
    /// Numbers that were compared.
    #[serde(skip)]
    count: u64,
}

impl Difference {
    fn add(&mut self, a: f64, b: f64) {
        let apart = (a - b).abs();
        // What is no number is as far off as can be.
        self.largest = if apart.is_nan() { f64::INFINITY } else { self.largest.max(apart) };
        self.count += 1;
        self.mean += (apart - self.mean) / self.count as f64;
    }
}

/// How an exported file compares with the network it was made from.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Comparison {
    /// Positions of self-play.
    pub positions: usize,
    /// Sizes of the batches in which they were evaluated.
    pub batches: [usize; 4],
    /// Probabilities of legal moves.
    pub policy: Difference,
    /// Probabilities of win, draw and loss.
    pub value: Difference,
    /// All logits, where the file gives logits; in units of the logit where that is larger than 1.
    pub logits: Option<Difference>,
    /// Positions with the same best move.
    pub same_best_move: usize,
}

impl Comparison {
    /// What is too far off to be let through: differences of 1e-4 in float32 (all numbers) or 2e-2 in float16 (probabilities), or
    /// other best moves in more than 0.1 or 1 % of the positions.
    pub fn problem(&self, half: bool) -> Option<String> {
        let bounds = if half { HALF } else { SINGLE };
        let logits = self.logits.filter(|_| !half).unwrap_or_default();
        for (what, found) in [("policy", self.policy), ("value", self.value), ("logits", logits)] {
            if found.largest > bounds.difference {
                let (largest, allowed) = (found.largest, bounds.difference);
                return Some(format!("the {what} differs by {largest:.1e}, allowed is {allowed:.0e}"));
            }
        }
        let least = (bounds.same_best * self.positions as f64).floor() as usize;
        (self.same_best_move < least).then(|| {
            format!("the best move is the same in {} of {} positions only", self.same_best_move, self.positions)
        })
    }
}

/// Runs `file` and the network of `checkpoint` on the same positions.
///
/// # Errors
/// When one of them fails, or `stop` has become true.
pub fn compare<G: Game>(
    game: &G,
    checkpoint: &Checkpoint,
    file: &mut dyn Runtime,
    positions: usize,
    stop: &dyn Fn() -> bool,
) -> Result<Comparison, ExportError> {
    let source = source(checkpoint)?;
    let leaves = self_play(game, &source, checkpoint.info.step, positions, stop)?;
    let mut source = Served::new(&source)?;
    let (plane_len, actions) = (game.plane_shape().len(), game.action_count());
    let mut found = Comparison { positions, batches: BATCHES, ..Comparison::default() };
    found.logits = (!file.gives_probabilities()).then(Difference::default);
    let mut first = 0;
    for size in BATCHES.into_iter().cycle() {
        let size = size.min(positions - first);
        if size == 0 {
            break;
        }
        if stop() {
            return Err(ExportError::Interrupted);
        }
        let (mut planes, mut legal) = (vec![0.0; size * plane_len], vec![false; size * actions]);
        for index in 0..size {
            game.encode(leaves.state(first + index), &mut planes[index * plane_len..][..plane_len]);
            leaves.legal(first + index).iter().for_each(|action| legal[index * actions + action.index()] = true);
        }
        let batch = Batch { planes: &planes, legal: &legal, size };
        let runtime = file.name();
        let failed = |problem| ExportError::Runtime { runtime, problem };
        let (ours, theirs) = (source.run(&batch).map_err(failed)?, file.run(&batch).map_err(failed)?);
        let wanted = [size * actions, size * VALUE_OUTPUTS];
        if [theirs[0].len(), theirs[1].len()] != wanted {
            let problem = format!("it gives {} and {} numbers instead of {wanted:?}", theirs[0].len(), theirs[1].len());
            return Err(failed(problem));
        }
        for index in 0..size {
            let row = |outputs: &Outputs, head: usize| {
                let length = wanted[head] / size;
                outputs[head][index * length..][..length].iter().map(|&x| f64::from(x)).collect::<Vec<f64>>()
            };
            let (mut a, mut b) = ([row(&ours, 0), row(&ours, 1)], [row(&theirs, 0), row(&theirs, 1)]);
            if let Some(logits) = &mut found.logits {
                for (x, y) in a.iter().flatten().zip(b.iter().flatten()) {
                    let scale = x.abs().max(1.0);
                    logits.add(x / scale, y / scale);
                }
            }
            let mask = &legal[index * actions..][..actions];
            let all = [true; VALUE_OUTPUTS];
            for (head, mask) in [mask, &all[..]].into_iter().enumerate() {
                softmax(&mut a[head], mask);
                if !file.gives_probabilities() {
                    softmax(&mut b[head], mask);
                }
            }
            a[0].iter().zip(&b[0]).for_each(|(&x, &y)| found.policy.add(x, y));
            a[1].iter().zip(&b[1]).for_each(|(&x, &y)| found.value.add(x, y));
            let best = |shares: &[f64]| (0..actions).max_by(|&i, &j| shares[i].total_cmp(&shares[j]));
            found.same_best_move += usize::from(best(&a[0]) == best(&b[0]));
        }
        first += size;
    }
    Ok(found)
}

/// Shares of the allowed entries; the others get none.
fn softmax(logits: &mut [f64], allowed: &[bool]) {
    let most = logits.iter().zip(allowed).filter(|(_, allowed)| **allowed).map(|(x, _)| *x).fold(f64::MIN, f64::max);
    for (x, &allowed) in logits.iter_mut().zip(allowed) {
        *x = if allowed { (*x - most).exp() } else { 0.0 };
    }
    let sum: f64 = logits.iter().sum();
    logits.iter_mut().for_each(|x| *x /= sum);
}

/// Positions of games that the network plays with itself, each move drawn from its policy.
fn self_play<G: Game>(
    game: &G,
    source: &InferenceFactory,
    seed: u64,
    count: usize,
    stop: &dyn Fn() -> bool,
) -> Result<Leaves<G>, ExportError> {
    let mut evaluator = NetEvaluator::<G>::new(source)?;
    let mut random = Stream::keyed(seed, Purpose::Analysis, &[]);
    let mut games: Vec<G::State> = (0..GAMES).map(|_| game.start(&mut random)).collect();
    let (mut all, mut turn, mut answers) = (Leaves::default(), Leaves::default(), Evaluations::default());
    while all.len() < count {
        if stop() {
            return Err(ExportError::Interrupted);
        }
        turn.clear();
        for state in &mut games {
            if game.end(state).is_some() {
                *state = game.start(&mut random);
            }
            let legal = legal_list(game, state);
            turn.push(state, &legal);
            if all.len() < count {
                all.push(state, &legal);
            }
        }
        evaluator.evaluate(game, &turn, &mut answers).map_err(OpenError::from)?;
        for (index, state) in games.iter_mut().enumerate() {
            let (legal, priors) = (turn.legal(index), &answers.priors[turn.span(index)]);
            let mut left = random.unit() as f32;
            let drawn = priors.iter().position(|&share| {
                left -= share;
                left < 0.0
            });
            game.play(state, legal[drawn.unwrap_or(legal.len() - 1)]);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_and_bounds() {
        let mut found = Difference::default();
        [(1.0, 1.5), (0.0, 0.0), (-1.0, 0.0)].iter().for_each(|&(a, b)| found.add(a, b));
        assert_eq!((found.largest, found.mean), (1.0, 0.5));
        let mut shares = [0.0, 5.0, (2.0f64).ln()];
        softmax(&mut shares, &[true, false, true]);
        assert!((shares[0] - 1.0 / 3.0).abs() < 1e-12 && shares[1] == 0.0 && (shares[2] - 2.0 / 3.0).abs() < 1e-12);

        let good = Comparison { positions: 1000, same_best_move: 999, ..Comparison::default() };
        assert_eq!(good.problem(false), None);
        let with = |edit: &dyn Fn(&mut Comparison)| {
            let mut other = good.clone();
            edit(&mut other);
            (other.problem(false).is_some(), other.problem(true).is_some())
        };
        let far = Difference { largest: 1e-3, mean: 0.0, count: 1 };
        assert_eq!(with(&|other| other.policy = far), (true, false));
        assert_eq!(with(&|other| other.logits = Some(far)), (true, false));
        assert_eq!(with(&|other| other.same_best_move = 998), (true, false));
        assert_eq!(with(&|other| other.same_best_move = 989), (true, true));
        found.add(0.0, f64::NAN);
        assert_eq!(with(&|other| other.value = found), (true, true));
    }
}
