//! How a rate is measured: warm up, then several repetitions of some seconds each, on threads that start together.

use std::sync::Barrier;
use std::time::{Duration, Instant};

/// How long and how often something is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// Seconds of each repetition, above 0. A piece of work that has begun is finished.
    pub seconds: f64,
    /// Repetitions, at least 1.
    pub repeats: usize,
}

/// Measures from within work that goes on: told after each piece of it.
pub struct Meter {
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
    pub fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    /// How much gets done in a second, in each repetition, when `threads` threads, each with a worker of its own, do
    /// `work` over and over. `work` returns what it has done; its first run on each thread is warming up.
    ///
    /// # Errors
    /// The first failure of `worker` or `work`; the other threads end their measurement.
    pub fn rates<W, E: Send>(
        &self,
        threads: usize,
        worker: &(impl Fn() -> Result<W, E> + Sync),
        work: &(impl Fn(&mut W) -> Result<u64, E> + Sync),
    ) -> Result<Vec<f64>, E> {
        let barrier = Barrier::new(threads);
        let on_thread = || -> Result<Vec<f64>, E> {
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
        Ok((0..self.repeats).map(|repeat| rates.iter().map(|own| own[repeat]).sum()).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    #[test]
    fn rates_of_threads_add_up() {
        let measure = Measure { seconds: 0.01, repeats: 3 };
        let made = AtomicUsize::new(0);
        let worker = || Ok::<_, ()>(made.fetch_add(1, Relaxed));
        let work = |_: &mut usize| {
            std::thread::sleep(Duration::from_millis(1));
            Ok(5)
        };
        // A sleep takes at least its time; how much longer is up to the machine.
        let one = measure.rates(1, &worker, &work).unwrap();
        assert!(one.len() == 3 && one.iter().all(|rate| (0.0..=5000.0).contains(rate)), "{one:?}");
        let four = measure.rates(4, &worker, &work).unwrap();
        assert!(four.iter().all(|rate| (0.0..=20_000.0).contains(rate)) && made.load(Relaxed) == 5, "{four:?}");
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
                if *worker == 1 && runs.fetch_add(1, Relaxed) >= fails_after { Err("gone") } else { Ok(1) }
            };
            assert_eq!(measure.rates(2, &worker, &work).unwrap_err(), "gone");
        }
    }
}
