//! `sparring bench`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Failure, Outcome, print};
use crate::eval::Uniform;
use crate::game::Game;
use crate::games::{self, GameVisitor};
use crate::net::{Architecture, EngineChoice, InferenceFactory, NetSpec, Resnet, Weights, available};
use crate::play::{EvaluatorSource, PoolParams, PoolStats, Table, Tables, play_pool};
use crate::run::engine::NetSource;
use crate::run::generate::{SelfPlayParams, cores};
use crate::search::SearchParams;
use crate::util::rng::{Purpose, Stream};

/// Measure the speed of rules, search, inference and self-play of a game on this machine
#[derive(clap::Args)]
#[command(after_help = "Example:\n  sparring bench uttt --json")]
pub struct Bench {
    /// The game
    #[arg(default_value = "uttt")]
    game: String,
    /// Residual blocks of the network
    #[arg(long, default_value_t = 6)]
    blocks: usize,
    /// Channels of the network
    #[arg(long, default_value_t = 64)]
    channels: usize,
    /// Seconds for each measurement
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// One JSON document instead of text
    #[arg(long)]
    json: bool,
}

impl Bench {
    pub(super) fn run(self) -> Outcome {
        if !(self.seconds > 0.0 && self.seconds <= 3600.0) {
            return Err(Failure::Usage("--seconds must be above 0 and at most 3600".to_owned()));
        }
        games::dispatch(&self.game.clone(), self).map_err(|error| Failure::Usage(error.to_string()))?
    }

    /// How often a second `work`, which returns what it has done, gets something done.
    fn rate(&self, mut work: impl FnMut() -> u64) -> f64 {
        work();
        let (began, mut done) = (Instant::now(), 0);
        while began.elapsed() < Duration::from_secs_f64(self.seconds) {
            done += work();
        }
        done as f64 / began.elapsed().as_secs_f64()
    }
}

/// Games without end.
struct Endless<'a, G: Game> {
    game: &'a G,
    next: AtomicUsize,
}

impl<G: Game> Tables<G> for Endless<'_, G> {
    fn next(&self) -> Option<Table<G>> {
        let index = self.next.fetch_add(1, Relaxed) as u64;
        let mut random = Stream::keyed(0, Purpose::SelfPlay, &[index]);
        let start = self.game.start(&mut random);
        Some(Table { index, seats: [0, 0], start, opening: Vec::new(), random })
    }
}

impl GameVisitor for Bench {
    type Output = Outcome;

    fn visit<G: Game>(self, game: G) -> Outcome {
        let mut rows: Vec<(String, f64, &str)> = Vec::new();
        let mut random = Stream::keyed(0, Purpose::Analysis, &[]);
        let mut scratch = Vec::new();
        rows.push((
            "random games, one thread".into(),
            self.rate(|| {
                for _ in 0..100 {
                    let mut state = game.start(&mut random);
                    game.playout(&mut state, &mut random, &mut scratch);
                }
                100
            }),
            "games/s",
        ));

        let architecture =
            Architecture::Resnet(Resnet { blocks: self.blocks, channels: self.channels, ..Resnet::default() });
        let spec = NetSpec::for_game(&game, architecture);
        spec.validate().map_err(|error| Failure::Usage(error.to_string()))?;
        let weights = Weights::init(&spec, &mut Stream::keyed(0, Purpose::Weights, &[]));
        let resolved = EngineChoice::default().resolve(&available())?;
        let factory = Arc::new(InferenceFactory::open_with(&spec, &weights, resolved)?);
        for batch in [1, 64] {
            let mut worker = factory.worker()?;
            let mut failure = None;
            let rate = self.rate(|| {
                let run = worker.input(batch).map(|_| ()).and_then(|()| worker.run(batch).map(|_| ()));
                failure = failure.take().or(run.err());
                batch as u64
            });
            if let Some(error) = failure {
                return Err(error.into());
            }
            rows.push((format!("inference, one thread, batch {batch}"), rate, "positions/s"));
        }

        let uniform: Arc<dyn EvaluatorSource<G>> = Arc::new(|| Uniform);
        let plain = Arc::new(NetSource::new(factory.clone(), 0));
        let cached = Arc::new(NetSource::new(factory.clone(), 256));
        let sources: [(&str, usize, Arc<dyn EvaluatorSource<G>>); 4] = [
            ("uniform evaluator, one thread", 1, uniform),
            ("network, no cache, one thread", 1, plain.clone()),
            ("network, no cache, all cores", cores(), plain),
            ("network and cache, all cores", cores(), cached),
        ];
        for (name, threads, evaluators) in sources {
            let params = SelfPlayParams { simulations: 100, ..SelfPlayParams::default() };
            let player = params.player(&SearchParams::default(), evaluators);
            let tables = Endless { game: &game, next: AtomicUsize::new(0) };
            let (stats, began) = (PoolStats::default(), Instant::now());
            let limit = Duration::from_secs_f64(self.seconds * 2.0);
            let pool = PoolParams { threads, slots: 64 };
            play_pool(&game, &[player], &tables, pool, &|| began.elapsed() > limit, &stats, &|_| {})?;
            let per_second =
                |count: &std::sync::atomic::AtomicU64| count.load(Relaxed) as f64 / began.elapsed().as_secs_f64();
            rows.push((format!("self-play, {name}"), per_second(&stats.simulations), "simulations/s"));
            rows.push((format!("self-play, {name}"), per_second(&stats.evaluations), "evaluations/s"));
        }
        if self.json {
            let rows: Vec<Value> =
                rows.iter().map(|(name, value, unit)| json!({"measure": name, "value": value, "unit": unit})).collect();
            let document = json!({
                "game": G::NAME, "blocks": self.blocks, "channels": self.channels,
                "engine": factory.to_string(), "rows": rows,
            });
            return print(&format!("{document:#}\n"));
        }
        let mut out = format!("{} with {} blocks of {} channels; {factory}\n", G::NAME, self.blocks, self.channels);
        for (name, value, unit) in rows {
            out.push_str(&format!("  {name:<48} {value:>12.0} {unit}\n"));
        }
        print(&out)
    }
}
