//! The threads that train.

use std::sync::Arc;

use rayon::prelude::*;
use tch::TchError;

/// Threads that live on from step to step: libtorch allocates much on a thread's first use.
///
/// A step runs on one of them from beginning to end ([`lead`](Crew::lead)), which does a share of all work itself and looks
/// for more while it waits: to wake a thread that sleeps takes as long as a small network's matrices.
#[derive(Clone, Debug)]
pub struct Crew(Arc<rayon::ThreadPool>);

impl Crew {
    /// A crew of `threads`, at least 1. What OpenMP may use is each thread's own setting; theirs, and the caller's, is set to one.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub fn new(threads: usize) -> Result<Self, rayon::ThreadPoolBuildError> {
        tch::set_num_threads(1);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.max(1))
            .thread_name(|index| format!("trainer-{index}"))
            .start_handler(|_| tch::set_num_threads(1))
            .build()?;
        Ok(Self(Arc::new(pool)))
    }

    /// Runs `work`, which hands out shares of itself by [`map`](Self::map), on a thread of the crew.
    pub fn lead<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.0.install(work)
    }

    /// Does `work` on every item, and returns the answers in the order of the items.
    pub fn map<T: Send, R: Send>(&self, items: Vec<T>, work: impl Fn(T) -> R + Send + Sync) -> Vec<R> {
        self.lead(|| items.into_par_iter().map(work).collect())
    }

    /// [`map`](Self::map) for work that may fail.
    ///
    /// # Errors
    /// The first failure in the order of the items, when all is done.
    pub fn try_each<T: Send>(
        &self,
        items: Vec<T>,
        work: impl Fn(T) -> Result<(), TchError> + Send + Sync,
    ) -> Result<(), TchError> {
        self.map(items, work).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_in_the_order_of_the_items_whatever_the_threads() {
        for threads in 1..=4 {
            let crew = Crew::new(threads).unwrap();
            for count in 0..10 {
                let items: Vec<usize> = (0..count).collect();
                assert_eq!(
                    crew.map(items.clone(), |item| item * item),
                    items.iter().map(|i| i * i).collect::<Vec<_>>()
                );
            }
        }
    }

    #[test]
    fn every_thread_takes_part_and_the_leader_is_one() {
        let crew = Crew::new(2).unwrap();
        let together = std::sync::Barrier::new(2);
        let (leader, ids) = crew.lead(|| {
            let ids = crew.map(vec![(), ()], |()| {
                together.wait();
                std::thread::current().id()
            });
            (std::thread::current().id(), ids)
        });
        assert!(ids[0] == leader && ids[1] != leader && leader != std::thread::current().id());
    }

    #[test]
    fn a_failure_is_returned() {
        let crew = Crew::new(2).unwrap();
        let work = |item: u32| if item == 3 { Err(TchError::Kind("three".to_owned())) } else { Ok(()) };
        assert!(crew.try_each(vec![1, 2], work).is_ok());
        assert!(crew.try_each(vec![1, 2, 3, 4], work).unwrap_err().to_string().contains("three"));
    }
}
