//! How many threads play and how many games each plays at once, where the config leaves that to the machine.

use super::generate::SelfPlayParams;
use crate::net::{Inference, InferenceFactory, OpenError};
use crate::play::PoolParams;
use crate::util::machine::cores;
use crate::util::rate::Measure;

/// How long one choice is measured.
const EACH: Measure = Measure { seconds: 0.04, repeats: 1 };
/// The batches that are tried.
const BATCHES: [usize; 7] = [4, 8, 16, 32, 64, 128, 256];
/// A smaller choice is taken where it reaches this share of the best rate: small batches and fewer threads leave less
/// idle at the end of a generation.
const GOOD_ENOUGH: f64 = 0.97;

/// What was chosen for self-play, and why. Choices change the speed of a run and nothing else.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuning {
    /// Threads, and games that each plays at once.
    pub pool: PoolParams,
    /// Why, in words for the log of the run; one line for each matter.
    pub reasons: Vec<String>,
}

/// Chooses what `params` leaves open by measuring `factory`'s network for a fraction of a second.
///
/// # Errors
/// When the engine fails.
pub fn tune(params: &SelfPlayParams, factory: &InferenceFactory) -> Result<Tuning, OpenError> {
    let mut reasons = Vec::new();
    let most_threads = params.threads.map_or_else(cores, |threads| threads as usize);
    if most_threads > cores() {
        reasons.push(format!(
            "selfplay.threads is {most_threads}, more than this process may use ({}): they will wait for each other",
            cores()
        ));
    }
    let slots = match params.parallel_games {
        Some(slots) => slots as usize,
        None => {
            // A generation ends with games that have nobody to share a batch with; four turns keep that short.
            let most = (params.games as usize / (most_threads * 4)).max(1);
            let most_batch = factory.worker()?.max_batch();
            let tried = BATCHES.into_iter().filter(|&batch| batch <= most.min(most_batch));
            let rates =
                tried.map(|batch| Ok((batch, rate(factory, 1, batch)?))).collect::<Result<Vec<_>, OpenError>>()?;
            let chosen = smallest_good(&rates).unwrap_or(most);
            let list: Vec<String> = rates.iter().map(|(batch, rate)| format!("{batch}: {}", rounded(*rate))).collect();
            reasons.push(format!(
                "each thread plays {chosen} games at once (at most {most} for generations of {} games); positions/s \
                 of the network by batch: {}",
                params.games,
                if list.is_empty() { "not measured".to_owned() } else { list.join(", ") }
            ));
            chosen
        }
    };
    let threads = match params.threads {
        Some(threads) => threads as usize,
        None => {
            // Two threads of a core share its arithmetic; where that gains nothing, half of them do.
            let counts: Vec<usize> = if most_threads >= 4 { vec![most_threads / 2, most_threads] } else { vec![] };
            let rates = counts
                .into_iter()
                .map(|count| Ok((count, rate(factory, count, slots)?)))
                .collect::<Result<Vec<_>, OpenError>>()?;
            let chosen = smallest_good(&rates).unwrap_or(most_threads);
            let list: Vec<String> = rates.iter().map(|(count, rate)| format!("{count}: {}", rounded(*rate))).collect();
            reasons.push(match &list[..] {
                [] => format!("{chosen} {} on all cores", if chosen == 1 { "thread plays" } else { "threads play" }),
                list => format!("{chosen} threads play; positions/s of the network by threads: {}", list.join(", ")),
            });
            chosen
        }
    };
    // More than there are games would wait for nothing.
    let games = params.games as usize;
    Ok(Tuning { pool: PoolParams { threads: threads.min(games), slots: slots.min(games) }, reasons })
}

fn rounded(rate: f64) -> String {
    let unit = 10f64.powi((rate.max(1.0).log10().floor() as i32 - 2).max(0));
    format!("{:.0}", (rate / unit).round() * unit)
}

/// The first choice, from small to large, whose rate comes close to the best.
fn smallest_good(rates: &[(usize, f64)]) -> Option<usize> {
    let best = rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    rates.iter().find(|(_, rate)| *rate >= GOOD_ENOUGH * best).map(|(choice, _)| *choice)
}

/// Positions a second of `threads` threads together, each with batches of `batch` positions or the most it takes.
fn rate(factory: &InferenceFactory, threads: usize, batch: usize) -> Result<f64, OpenError> {
    let work = |worker: &mut Box<dyn Inference>| {
        let batch = batch.min(worker.max_batch());
        worker.input(batch)?;
        worker.run(batch)?;
        Ok(batch as u64)
    };
    Ok(EACH.rates(threads, &|| factory.worker(), &work)?.into_iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{Architecture, EngineChoice, Mlp, NetSpec, Weights};
    use crate::util::rng::Stream;

    fn factory() -> InferenceFactory {
        let architecture = Architecture::Mlp(Mlp { hidden: vec![16] });
        let spec = NetSpec::for_game(&crate::games::tictactoe::TicTacToe, architecture);
        let weights = Weights::init(&spec, &mut Stream::test(1));
        InferenceFactory::open(&spec, &weights, &EngineChoice::default()).unwrap()
    }

    #[test]
    fn the_smallest_choice_near_the_best_is_taken() {
        assert_eq!(smallest_good(&[(8, 50.0), (16, 98.0), (32, 100.0)]), Some(16));
        assert_eq!(smallest_good(&[(8, 50.0), (16, 90.0), (32, 100.0), (64, 60.0)]), Some(32));
        assert_eq!(smallest_good(&[]), None);
        assert_eq!(rounded(123_456.0), "123000");
        assert_eq!(rounded(42.4), "42");
    }

    #[test]
    fn what_the_config_says_is_kept_and_the_rest_is_measured_within_its_bounds() {
        let factory = factory();
        let fixed = SelfPlayParams { threads: Some(2), parallel_games: Some(7), ..SelfPlayParams::default() };
        assert_eq!(tune(&fixed, &factory).unwrap().pool, PoolParams { threads: 2, slots: 7 });
        let open = SelfPlayParams { games: 1000, threads: Some(2), ..SelfPlayParams::default() };
        let tuning = tune(&open, &factory).unwrap();
        assert!((4..=125).contains(&tuning.pool.slots), "{tuning:?}");
        assert!(tuning.reasons[0].contains("positions/s"), "{tuning:?}");
        let few = SelfPlayParams { games: 3, threads: Some(1), ..SelfPlayParams::default() };
        assert_eq!(tune(&few, &factory).unwrap().pool, PoolParams { threads: 1, slots: 1 });
        let free = tune(&SelfPlayParams::default(), &factory).unwrap();
        assert!((1..=cores()).contains(&free.pool.threads), "{free:?}");
        let idle = SelfPlayParams { games: 3, threads: Some(9), parallel_games: Some(1 << 16), ..open };
        assert_eq!(tune(&idle, &factory).unwrap().pool, PoolParams { threads: 3, slots: 3 });
        let many = SelfPlayParams { threads: Some(4096), parallel_games: Some(1), ..SelfPlayParams::default() };
        assert!(tune(&many, &factory).unwrap().reasons[0].contains("more than this process may use"));
    }
}
