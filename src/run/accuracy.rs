//! How well a player knows a game that has a solver: its moves and its values against perfect play, by plies.

mod examinee;
mod positions;
mod tally;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use self::examinee::Examinee;
pub use self::tally::{PlyTally, Tally};
use crate::eval::EvalError;
use crate::game::{Game, Solved, Solver};
use crate::games::solved_names;
use crate::play::{Choice, Player};

/// Positions that are drawn where a game has too many and no number is asked for.
pub const DEFAULT_POSITIONS: usize = 1000;

/// Positions that are judged in one batch.
const BATCH: usize = 64;

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub struct AccuracyParams {
    /// Positions at most, spread evenly over the numbers of plies. `None` takes every position of a small game, and
    /// [`DEFAULT_POSITIONS`] of a larger one.
    pub positions: Option<usize>,
    /// Seeds the choice of positions and the player's random decisions.
    pub seed: u64,
    /// Threads, at least 1. The result does not depend on them.
    pub threads: usize,
}

/// What came out.
#[derive(Clone, Debug, PartialEq)]
pub struct AccuracyReport {
    /// All positions together.
    pub total: Tally,
    /// Positions by plies made, ascending; numbers of plies without a position are left out.
    pub by_plies: Vec<PlyTally>,
    /// Positions that the solver refused.
    pub left_out: usize,
    /// Whether it was stopped before the last position.
    pub interrupted: bool,
}

/// Nothing can be measured.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum AccuracyError {
    #[error("{game} has no solver to measure against; the games that have one are {}", solved_names().join(", "))]
    NoSolver { game: &'static str },
    #[error("evaluation failed: {0}")]
    Eval(#[from] EvalError),
    #[error("the player finds no move in {position}: {problem}")]
    NoMove { position: String, problem: String },
    #[error("the player makes the illegal move {text} in {position}")]
    IllegalMove { position: String, text: String },
    #[error("no threads to measure on: {0}")]
    Threads(std::io::Error),
}

impl AccuracyError {
    /// Whether another game would help.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::NoSolver { .. })
    }
}

/// A position with what perfect play makes of it, and what the player does.
struct Judged {
    ply: usize,
    /// `None` where the solver refused.
    tally: Option<Tally>,
}

/// Lets `player` judge positions of `game` and compares with the game's solver. `progress` is told how many positions are done,
/// of how many.
///
/// The result depends on the seed alone, not on threads.
///
/// # Errors
/// When the game has no solver, or the player fails.
pub fn measure<G: Game>(
    game: &G,
    player: &Player<G>,
    params: &AccuracyParams,
    stop: &(dyn Fn() -> bool + Sync),
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<AccuracyReport, AccuracyError> {
    let solver = game.solver().ok_or(AccuracyError::NoSolver { game: G::NAME })?;
    let positions = positions::positions(game, solver.first_ply(), params.positions, params.seed);
    drop(solver);
    let desk = Desk {
        game,
        player,
        positions: &positions,
        seed: params.seed,
        next: AtomicUsize::new(0),
        done: AtomicUsize::new(0),
        failed: AtomicBool::new(false),
        judged: Mutex::new(positions.iter().map(|_| None).collect()),
    };
    let threads = params.threads.clamp(1, positions.len().div_ceil(BATCH).max(1));
    std::thread::scope(|scope| {
        let work = || desk.work(stop, progress).inspect_err(|_| desk.failed.store(true, Relaxed));
        let mut workers = Vec::new();
        for index in 0..threads {
            let builder = std::thread::Builder::new().name(format!("accuracy-{index}"));
            match builder.spawn_scoped(scope, work) {
                Ok(worker) => workers.push(worker),
                Err(error) => {
                    desk.failed.store(true, Relaxed);
                    return Err(AccuracyError::Threads(error));
                }
            }
        }
        let results: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        results.into_iter().try_for_each(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    let judged = desk.judged.into_inner().expect("no thread panicked");
    Ok(report(judged))
}

/// What the threads share.
struct Desk<'a, G: Game> {
    game: &'a G,
    player: &'a Player<G>,
    positions: &'a [G::State],
    seed: u64,
    /// The first position that nobody has taken yet.
    next: AtomicUsize,
    done: AtomicUsize,
    failed: AtomicBool,
    /// One entry for each position.
    judged: Mutex<Vec<Option<Judged>>>,
}

impl<G: Game> Desk<'_, G> {
    fn work(
        &self,
        stop: &(dyn Fn() -> bool + Sync),
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<(), AccuracyError> {
        let stop = || stop() || self.failed.load(Relaxed);
        let mut solver = self.game.solver().expect("a game has a solver always or never");
        let mut examinee = Examinee::new(self.player)?;
        while !stop() {
            let from = self.next.fetch_add(BATCH, Relaxed);
            if from >= self.positions.len() {
                break;
            }
            let batch = &self.positions[from..self.positions.len().min(from + BATCH)];
            let Some(judged) = self.judge(solver.as_mut(), &mut examinee, from, batch, &stop)? else { break };
            let done = self.done.fetch_add(judged.len(), Relaxed) + judged.len();
            let mut all = self.judged.lock().expect("no thread panics while it writes");
            all[from..].iter_mut().zip(judged).for_each(|(slot, judged)| *slot = Some(judged));
            progress(done, self.positions.len());
        }
        Ok(())
    }

    /// `batch` begins with position number `from`; `None` when stopped.
    fn judge(
        &self,
        solver: &mut dyn Solver<G>,
        examinee: &mut Examinee<'_, G>,
        from: usize,
        batch: &[G::State],
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<Judged>>, AccuracyError> {
        let mut known: Vec<Option<Solved>> = Vec::with_capacity(batch.len());
        for state in batch {
            if stop() {
                return Ok(None);
            }
            known.push(solver.solve(state).ok());
        }
        let solved = || known.iter().zip(batch).zip(from..).filter(|((solved, _), _)| solved.is_some());
        let questions: Vec<(usize, &G::State)> = solved().map(|((_, state), index)| (index, state)).collect();
        let Some(answers) = examinee.answer(self.game, self.seed, &questions, stop)? else { return Ok(None) };
        let mut answers = answers.into_iter();
        let mut judged = Vec::with_capacity(batch.len());
        for (solved, state) in known.iter().zip(batch) {
            let tally = match solved {
                Some(solved) => {
                    Some(self.compare(state, solved, answers.next().expect("an answer to each question"))?)
                }
                None => None,
            };
            judged.push(Judged { ply: self.game.ply(state), tally });
        }
        Ok(Some(judged))
    }

    fn compare(&self, state: &G::State, solved: &Solved, answer: Choice) -> Result<Tally, AccuracyError> {
        let mover = self.game.to_move(state);
        Tally::of(mover, solved, answer.action, answer.value).ok_or_else(|| AccuracyError::IllegalMove {
            position: self.game.state_text(state),
            text: self.game.action_text(answer.action),
        })
    }
}

/// Adds up in the order of the positions, so that sums do not depend on who was ready first.
fn report(judged: Vec<Option<Judged>>) -> AccuracyReport {
    let interrupted = judged.iter().any(Option::is_none);
    let mut by_plies: std::collections::BTreeMap<usize, Tally> = std::collections::BTreeMap::new();
    let mut report = AccuracyReport { total: Tally::default(), by_plies: Vec::new(), left_out: 0, interrupted };
    for Judged { ply, tally } in judged.into_iter().flatten() {
        match tally {
            Some(tally) => {
                report.total += tally;
                *by_plies.entry(ply).or_default() += tally;
            }
            None => report.left_out += 1,
        }
    }
    report.by_plies = by_plies.into_iter().map(|(plies, tally)| PlyTally { plies, tally }).collect();
    report
}
