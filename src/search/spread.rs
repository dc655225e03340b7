//! One batch of evaluations on several threads, for the search of a single position.

use crate::eval::{EvalError, EvalWork, Evaluations, Evaluator, Leaves};
use crate::game::Game;

/// Deals the positions of a batch to several evaluators, each on a thread of its own.
///
/// Where many games are played, every thread plays its own; where there is one position only, its tree is searched
/// by one thread, and the evaluations, which take most of the time, are spread. An evaluator's answer for a position
/// does not depend on its batch, so the search finds the same whatever the number of threads.
///
/// The thread that asks evaluates a share itself: to wake one that sleeps takes as long as a small network's batch.
pub struct Spread<G: Game, E> {
    shares: Vec<Share<G, E>>,
    /// A thread for each share but the first.
    pool: rayon::ThreadPool,
}

/// What one thread works with.
struct Share<G: Game, E> {
    evaluator: E,
    leaves: Leaves<G>,
    answers: Evaluations,
}

impl<G: Game, E: Evaluator<G>> Spread<G, E> {
    /// Spreads over `evaluators`, which answer alike: workers of one network.
    ///
    /// # Errors
    /// When the system gives no threads, or there is no evaluator.
    pub fn new(evaluators: Vec<E>) -> Result<Self, EvalError> {
        if evaluators.is_empty() {
            return Err(EvalError("a search needs at least one thread".to_owned()));
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads((evaluators.len() - 1).max(1))
            .thread_name(|index| format!("evaluate-{index}"))
            .build()
            .map_err(|error| EvalError(format!("no threads to evaluate on: {error}")))?;
        let share = |evaluator| Share { evaluator, leaves: Leaves::default(), answers: Evaluations::default() };
        Ok(Self { shares: evaluators.into_iter().map(share).collect(), pool })
    }
}

impl<G: Game, E: Evaluator<G>> Evaluator<G> for Spread<G, E> {
    fn evaluate(&mut self, game: &G, leaves: &Leaves<G>, out: &mut Evaluations) -> Result<(), EvalError> {
        let (shares, total) = (self.shares.len(), leaves.len());
        if shares == 1 || total <= 1 {
            return self.shares[0].evaluator.evaluate(game, leaves, out);
        }
        let rows = |share: usize| share * total / shares..(share + 1) * total / shares;
        let work = |index: usize, share: &mut Share<G, E>| {
            share.leaves.clear();
            rows(index).for_each(|row| share.leaves.push(leaves.state(row), leaves.legal(row)));
            if share.leaves.is_empty() {
                return Ok(());
            }
            share.evaluator.evaluate(game, &share.leaves, &mut share.answers)
        };
        let mut done: Vec<Result<(), EvalError>> = (0..shares).map(|_| Ok(())).collect();
        let (own, others) = self.shares.split_first_mut().expect("there is an evaluator");
        let (own_done, others_done) = done.split_first_mut().expect("one for each share");
        self.pool.in_place_scope(|scope| {
            for (index, (share, done)) in others.iter_mut().zip(others_done).enumerate() {
                let work = &work;
                scope.spawn(move |_| *done = work(index + 1, share));
            }
            *own_done = work(0, own);
        });
        done.into_iter().collect::<Result<(), _>>()?;
        out.reset(leaves);
        for (index, share) in self.shares.iter().enumerate() {
            for (from, row) in rows(index).enumerate() {
                out.values[row] = share.answers.values[from];
                out.priors[leaves.span(row)].copy_from_slice(&share.answers.priors[share.leaves.span(from)]);
            }
        }
        Ok(())
    }

    fn take_work(&mut self) -> EvalWork {
        let mut all = EvalWork::default();
        self.shares.iter_mut().for_each(|share| all += share.evaluator.take_work());
        all
    }
}
