//! How a rate is measured: warm up, then several repetitions of some seconds each.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use super::{BenchError, Figure};

/// How long and how often each row is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// Seconds of each repetition, above 0. A piece of work that has begun is finished.
    pub seconds: f64,
    /// Repetitions, at least 1.
    pub repeats: usize,
}

/// Measures from within work that goes on: told after each piece of it.
pub(super) struct Meter {
    measure: Measure,
    began: Option<Instant>,
    done: u64,
    rates: Vec<f64>,
}

impl Meter {
    /// A meter that starts at the first [`tick`](Self::tick): what comes before it is warming up.
    pub fn new(measure: Measure) -> Self {
        Self { measure, began: None, done: 0, rates: Vec::new() }
    }

    /// `amount` more was done. Returns whether to go on.
    pub fn tick(&mut self, amount: u64) -> bool {
        let Some(began) = self.began else {
            self.began = Some(Instant::now());
            return true;
        };
        self.done += amount;
        let passed = began.elapsed();
        if passed >= self.measure.duration() {
            self.rates.push(std::mem::take(&mut self.done) as f64 / passed.as_secs_f64());
            self.began = Some(Instant::now());
        }
        self.rates.len() < self.measure.repeats
    }

    /// What was done in each second, one number for each repetition.
    pub fn rates(self) -> Vec<f64> {
        self.rates
    }
}

/// Lets the others go on, however this thread got on.
struct Arrival<'a>(&'a Barrier);

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        self.0.wait();
    }
}

impl Measure {
    /// The time of one repetition.
    pub(super) fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    /// How much gets done in a second when `threads` threads, each with a worker of its own, do `work` over and over.
    /// `work` returns what it has done; its first run on each thread is warming up.
    pub(super) fn rate<W>(
        &self,
        threads: usize,
        worker: &(impl Fn() -> Result<W, BenchError> + Sync),
        work: &(impl Fn(&mut W) -> Result<u64, BenchError> + Sync),
    ) -> Result<Figure, BenchError> {
        let barrier = Barrier::new(threads);
        let on_thread = || -> Result<Vec<f64>, BenchError> {
            let warm = {
                let _together = Arrival(&barrier);
                worker().and_then(|mut worker| work(&mut worker).map(|_| worker))
            };
            let (mut worker, mut meter) = (warm?, Meter::new(*self));
            meter.tick(0);
            while meter.tick(work(&mut worker)?) {}
            Ok(meter.rates())
        };
        let results: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(on_thread)).collect();
            let joined = threads.into_iter().map(|thread| thread.join());
            joined.map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        });
        let rates = results.into_iter().collect::<Result<Vec<_>, _>>()?;
        let of_all = (0..self.repeats).map(|repeat| rates.iter().map(|own| own[repeat]).sum());
        Figure::of(of_all).ok_or(BenchError::Inconsistent("there are no repetitions"))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;
    use crate::eval::EvalError;

    #[test]
    fn rates_of_threads_add_up() {
        let measure = Measure { seconds: 0.01, repeats: 3 };
        let made = AtomicUsize::new(0);
        let worker = || Ok(made.fetch_add(1, Relaxed));
        let work = |_: &mut usize| {
            std::thread::sleep(Duration::from_millis(1));
            Ok(5)
        };
        let one = measure.rate(1, &worker, &work).unwrap();
        // A sleep takes at least its time; how much longer is up to the machine.
        assert!(one.low > 0.0 && one.low <= one.value && one.value <= one.high && one.high <= 5000.0, "{one:?}");
        let four = measure.rate(4, &worker, &work).unwrap();
        assert!(four.high <= 20_000.0 && made.load(Relaxed) == 5, "{four:?}");
    }

    #[test]
    fn a_failure_on_one_thread_ends_the_measurement() {
        let measure = Measure { seconds: 0.01, repeats: 1 };
        let number = AtomicUsize::new(0);
        let worker = || Ok(number.fetch_add(1, Relaxed));
        for fails_after in [0, 3] {
            number.store(0, Relaxed);
            let runs = AtomicUsize::new(0);
            let work = |worker: &mut usize| {
                if *worker == 1 && runs.fetch_add(1, Relaxed) >= fails_after {
                    return Err(EvalError("gone".to_owned()).into());
                }
                Ok(1)
            };
            let error = measure.rate(2, &worker, &work).unwrap_err();
            assert_eq!(error.to_string(), "gone");
        }
    }
}
