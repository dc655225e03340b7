//! Measurements of speed and memory on this machine, and the signature that tells whether behaviour has changed.
//!
//! ```text
//! target   ->  jobs: a config each, and which groups of rows it is measured in
//! a group  ->  one file; its table of cases is the registry of its rows
//! document ->  what came out, as text or JSON; compare: the same next to an earlier one
//! ```
//! Everything is measured through the code that runs use: the trees and [`Solo`](crate::search::Solo) of `search`, the
//! pool of `play`, self-play and learning of `run`. Nothing is played or searched in a loop of its own.

mod compare;
mod document;
mod figure;
mod inference;
mod memory;
mod records;
mod rules;
mod searching;
mod selfplay;
mod signature;
mod target;
mod training;

use std::sync::Arc;

use crate::data::{ReplayError, SampleError};
use crate::eval::EvalError;
use crate::game::{Game, full_name};
use crate::games::{self, GameNameError, GameVisitor};
use crate::net::{Available, ChoiceError, InferenceFactory, NetSpec, OpenError, Resolved, Weights, available};
use crate::play::PoolError;
use crate::run::config::RunConfig;
use crate::run::learn::LearnError;
use crate::train::TrainError;
use crate::util::machine::cores;
use crate::util::rng::{Purpose, Stream};

pub use crate::util::rate::Measure;
pub use compare::{Agreement, Comparison, Ratio};
pub use document::{Document, DocumentError, FORMAT, Machine, Row, RowName};
pub use figure::Figure;
pub use signature::{Part, Signature};
pub use target::{Job, TargetError, jobs};

/// A group of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// Random games and counted positions.
    Rules,
    /// The network alone, by engine, precision, batch and threads.
    Inference,
    /// Searches of the start position: without a network, with rollouts, with the network.
    Search,
    /// Self-play as the config has it.
    Selfplay,
    /// Training steps at the config's batch size.
    Training,
    /// What trees and stored positions take.
    Memory,
    /// One hash over fixed searches and games; no row.
    Signature,
}

impl Group {
    /// All groups, in the order in which they are measured and shown.
    pub const ALL: [Self; 7] =
        [Self::Rules, Self::Inference, Self::Search, Self::Selfplay, Self::Training, Self::Memory, Self::Signature];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rules => "rules",
            Self::Inference => "inference",
            Self::Search => "search",
            Self::Selfplay => "selfplay",
            Self::Training => "training",
            Self::Memory => "memory",
            Self::Signature => "signature",
        }
    }

    /// Whether some of its rows are measured with a network.
    fn needs_network(self) -> bool {
        match self {
            Self::Inference | Self::Search | Self::Selfplay | Self::Training => true,
            Self::Rules | Self::Memory | Self::Signature => false,
        }
    }
}

impl std::str::FromStr for Group {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|group| group.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("{text:?} is no group; the groups are {names}")
        })
    }
}

/// A measurement failed. What was measured before is lost.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each variant is the error of one layer, which explains itself")]
pub enum BenchError {
    #[error(transparent)]
    Game(#[from] GameNameError),
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Eval(#[from] EvalError),
    #[error(transparent)]
    Pool(#[from] PoolError),
    #[error(transparent)]
    Replay(#[from] ReplayError),
    #[error(transparent)]
    Sample(#[from] SampleError),
    #[error(transparent)]
    Learn(#[from] LearnError),
    #[error(transparent)]
    Train(#[from] TrainError),
    #[error("a bug: {0}")]
    Inconsistent(&'static str),
}

/// Measures all `jobs` in `groups`. `tell` hears what is being measured, one short line for each game and group.
///
/// # Errors
/// When an engine, device or game cannot be had, or fails.
pub fn run(
    jobs: &[Job],
    groups: &[Group],
    measure: Measure,
    tell: &mut dyn FnMut(&str),
) -> Result<Document, BenchError> {
    let available = available();
    let mut document = Document::new(measure);
    for job in jobs {
        let resolved = job.config.engine_choice().resolve(&available)?;
        document.engine.get_or_insert_with(|| resolved.to_string());
        let task =
            Task { job, groups, measure, available: &available, resolved, rows: &mut document.rows, tell: &mut *tell };
        games::dispatch(&job.config.game, task)??;
    }
    // By group first: a table with all games side by side.
    document.rows.sort_by_key(|row| row.group);
    if groups.contains(&Group::Signature) {
        tell(Group::Signature.name());
        document.signature = Some(Signature::compute(cores())?);
    }
    Ok(document)
}

struct Task<'a> {
    job: &'a Job,
    groups: &'a [Group],
    measure: Measure,
    available: &'a Available,
    resolved: Resolved,
    rows: &'a mut Vec<Row>,
    tell: &'a mut dyn FnMut(&str),
}

impl GameVisitor for Task<'_> {
    type Output = Result<(), BenchError>;

    fn visit<G: Game>(self, game: G) -> Self::Output {
        let Self { job, groups, measure, available, resolved, rows, tell } = self;
        let wanted = job.network && groups.iter().any(|&group| group.needs_network());
        let network = wanted.then(|| Network::new(&game, &job.config, resolved)).transpose()?;
        let config = &job.config;
        let name = full_name(&game);
        let bench = Bench { game, name, config, network, available, measure };
        for &group in Group::ALL.iter().filter(|&group| groups.contains(group)) {
            let table: fn(&Bench<'_, G>, &mut Rows<'_>) -> Result<(), BenchError> = match (group, &bench.network) {
                (Group::Rules, _) => rules::measure,
                (Group::Search, _) => searching::measure,
                (Group::Memory, _) => memory::measure,
                (Group::Inference, Some(_)) => inference::measure,
                (Group::Selfplay, Some(_)) => selfplay::measure,
                (Group::Training, Some(_)) => training::measure,
                (Group::Inference | Group::Selfplay | Group::Training, None) | (Group::Signature, _) => continue,
            };
            tell(&format!("{}: {}", bench.name, group.name()));
            table(&bench, &mut Rows { group, game: &bench.name, rows: &mut *rows })?;
        }
        Ok(())
    }
}

/// What the groups measure: a game with its config.
struct Bench<'a, G: Game> {
    game: G,
    /// With the options that differ from the default.
    name: String,
    config: &'a RunConfig,
    /// `None` where only what needs no network is measured.
    network: Option<Network>,
    available: &'a Available,
    measure: Measure,
}

/// A network with its initial weights. Its speed is that of a trained one.
struct Network {
    spec: NetSpec,
    weights: Weights,
    /// As the config has it.
    factory: Arc<InferenceFactory>,
}

impl Network {
    fn new<G: Game>(game: &G, config: &RunConfig, resolved: Resolved) -> Result<Self, BenchError> {
        let spec = NetSpec::for_game(game, config.network.clone());
        let weights = Weights::init(&spec, &mut Stream::keyed(config.seed, Purpose::Weights, &[]));
        let factory = Arc::new(InferenceFactory::open_with(&spec, &weights, resolved)?);
        Ok(Self { spec, weights, factory })
    }
}

impl<G: Game> Bench<'_, G> {
    /// The network of a job that has one.
    fn network(&self) -> Result<&Network, BenchError> {
        self.network.as_ref().ok_or(BenchError::Inconsistent("a group that needs a network was measured without one"))
    }

    /// What `threads` threads get done in a second; see [`Measure::rates`].
    fn rate<W>(
        &self,
        threads: usize,
        worker: &(impl Fn() -> Result<W, BenchError> + Sync),
        work: &(impl Fn(&mut W) -> Result<u64, BenchError> + Sync),
    ) -> Result<Figure, BenchError> {
        let rates = self.measure.rates(threads, worker, work)?;
        Figure::of(rates).ok_or(BenchError::Inconsistent("there are no repetitions"))
    }
}

/// Where a group puts its rows.
struct Rows<'a> {
    group: Group,
    game: &'a str,
    rows: &'a mut Vec<Row>,
}

impl Rows<'_> {
    /// Adds the row `GAME, CASE`.
    fn add(&mut self, case: &str, unit: &str, figure: Figure) {
        let Figure { value, low, high } = figure;
        let name = format!("{}, {case}", self.game);
        self.rows.push(Row { group: self.group, name, unit: unit.to_owned(), value, low, high });
    }
}

/// One thread, and all cores where there are several; with the words for it.
fn thread_counts() -> Vec<(usize, String)> {
    let cores = cores();
    let mut counts = vec![(1, "1 thread".to_owned())];
    if cores > 1 {
        counts.push((cores, format!("{cores} threads")));
    }
    counts
}
