//! An experiment at work: training after training, then the games.

use std::path::{Path, PathBuf};

use super::plan::{Budget, Plan, Training};
use super::report::{Point, Report, Run};
use crate::arena::{Ahead, Entrant, Field, Rated, RatedError, spread};
use crate::game::Game;
use crate::net::{Checkpoint, CheckpointError};
use crate::play::MatchTally;
use crate::run::config::RunConfig;
use crate::run::cycle::Ended;
use crate::run::dir::{DirError, RunDir};
use crate::run::metrics::{GenerationEnd, generation_ends};
use crate::run::session::{SessionError, check_start, train};
use crate::run::state::RunState;
use crate::run::stop::StopFlag;
use crate::run::strict::{ConfigErrors, diff, resolved_value};
use crate::util::publish::{PublishError, write_atomic};
use crate::util::stats::Estimate;

/// An experiment in its folder.
#[derive(Debug)]
pub struct Experiment {
    plan: Plan,
    trainings: Vec<Training>,
    folder: PathBuf,
    threads: usize,
}

/// An experiment could not go on. What was trained and played is kept.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ExperimentError {
    #[error(
        "{} was trained with another config:\n{changes}\nPut the experiment back as it was, name another folder with --output, or \
         remove this one",
        .folder.display()
    )]
    Changed { folder: PathBuf, changes: String },
    #[error(
        "{} was trained with another budget ({before}), and a budget can only be raised: put it back, name another folder with \
         --output, or remove this one",
        .folder.display()
    )]
    Budget { folder: PathBuf, before: String },
    #[error("{}: the config cannot be read, restore it from a copy or remove the folder:\n{errors}", .folder.display())]
    Config { folder: PathBuf, errors: ConfigErrors },
    #[error("variant {name}, seed {seed}: {error}")]
    Session { name: String, seed: u64, error: Box<SessionError> },
    #[error("{} has no checkpoint that its metrics.jsonl knows: remove the folder and start again", .folder.display())]
    NoPoints { folder: PathBuf },
    #[error("{} is missing, and the experiment may have to rate it: restore it from a copy, or remove the run's folder", .file.display())]
    Lost { file: PathBuf },
    #[error(transparent)]
    Dir(#[from] DirError),
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error(transparent)]
    Rated(#[from] RatedError),
    #[error("the picture cannot be drawn: {0}")]
    Picture(String),
}

impl ExperimentError {
    /// Whether the experiment's file or the command line is at fault.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Changed { .. } | Self::Budget { .. } => true,
            Self::Session { error, .. } => error.is_usage(),
            Self::Rated(RatedError::Player(error)) => error.is_usage(),
            _ => false,
        }
    }
}

/// What an experiment writes besides its runs.
#[derive(Clone, Debug)]
pub struct ExperimentFiles {
    /// The rated games, from which an interrupted rating goes on.
    pub games: PathBuf,
    /// The numbers.
    pub numbers: PathBuf,
    /// The table.
    pub table: PathBuf,
    /// Elo over positions.
    pub by_positions: PathBuf,
    /// Elo over hours of processor time.
    pub by_cpu_hours: PathBuf,
}

impl ExperimentFiles {
    /// Whether a file of that name lies in the folder, which no variant can then have.
    pub fn has(name: &str) -> bool {
        let Self { games, numbers, table, by_positions, by_cpu_hours } = Self::of(Path::new(""));
        [games, numbers, table, by_positions, by_cpu_hours].iter().any(|file| file == Path::new(name))
    }

    /// The files in an experiment's folder.
    pub fn of(folder: &Path) -> Self {
        Self {
            games: folder.join("games.jsonl"),
            numbers: folder.join("results.json"),
            table: folder.join("table.md"),
            by_positions: folder.join("positions.svg"),
            by_cpu_hours: folder.join("cpu-hours.svg"),
        }
    }
}

/// Who is told how far an experiment is.
pub struct Listener<'a> {
    /// A training begins: variant, seed, its number from 1, how many there are.
    pub training: &'a dyn Fn(&str, u64, usize, usize),
    /// The games begin.
    pub begin: &'a dyn Fn(Ahead),
    /// Games have ended.
    pub progress: &'a (dyn Fn(&[MatchTally]) + Sync),
}

impl Experiment {
    /// An experiment whose runs lie in `folder`.
    pub fn new(plan: Plan, trainings: Vec<Training>, folder: PathBuf, threads: usize) -> Self {
        Self { plan, trainings, folder, threads }
    }

    /// The game with its options.
    pub fn game(&self) -> &str {
        &self.trainings[0].config.game
    }

    fn run_of(&self, training: &Training) -> RunDir {
        let folder = self.folder.join(self.name_of(training));
        RunDir::new(folder.join(format!("seed-{}", training.config.seed)))
    }

    /// The folders of all runs, in the order in which they are trained.
    pub fn folders(&self) -> impl Iterator<Item = PathBuf> {
        self.trainings.iter().map(|training| self.run_of(training).root().to_owned())
    }

    /// The name of its variant.
    fn name_of(&self, training: &Training) -> &str {
        &self.plan.variants[training.variant].name
    }

    /// Opens what the runs begin with and the anchors, so that nothing of that is found out after hours.
    ///
    /// # Errors
    /// When one of them cannot be had.
    pub fn check<G: Game>(&self, game: &G) -> Result<(), ExperimentError> {
        for training in self.trainings.iter().filter(|training| !self.run_of(training).config().exists()) {
            check_start(&training.config).map_err(|error| self.failed(training, error))?;
        }
        for anchor in &self.plan.rating.anchors {
            Entrant::named(anchor)?.check(game)?;
        }
        Ok(())
    }

    fn failed(&self, training: &Training, error: SessionError) -> ExperimentError {
        let (name, seed) = (self.name_of(training).to_owned(), training.config.seed);
        ExperimentError::Session { name, seed, error: Box::new(error) }
    }

    /// Trains what is not trained yet. Returns false when it was interrupted; the same call goes on.
    ///
    /// # Errors
    /// When a run is one with another config, or fails.
    pub fn train(&self, stop: &StopFlag, listener: &Listener<'_>) -> Result<bool, ExperimentError> {
        // Before the first of them has begun, so that nothing is found out after hours.
        let missing = self.trainings.iter().map(|training| Ok((training, !self.is_done(training)?)));
        let missing = missing.collect::<Result<Vec<_>, ExperimentError>>()?;
        for (at, (training, missing)) in missing.into_iter().enumerate() {
            if !missing {
                continue;
            }
            (listener.training)(self.name_of(training), training.config.seed, at + 1, self.trainings.len());
            let dir = self.run_of(training);
            let folder = dir.root().parent().unwrap_or(&self.folder);
            std::fs::create_dir_all(folder).map_err(|error| PublishError::writing(folder, "create", error))?;
            let ended = train(training.config.clone(), &dir, stop).map_err(|error| self.failed(training, error))?;
            if matches!(ended, Ended::Interrupted(_)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a training is over.
    fn is_done(&self, training: &Training) -> Result<bool, ExperimentError> {
        let dir = self.run_of(training);
        if !dir.config().exists() {
            return Ok(false);
        }
        let folder = || dir.root().to_owned();
        let stored = RunConfig::read(&dir.config(), &[])
            .map_err(|errors| ExperimentError::Config { folder: folder(), errors })?;
        // A larger budget is no other run, and the number of threads is what was found on the machine.
        let free = |path: &str| path.starts_with("stop") || path == "training_threads";
        let changes = diff(&resolved_value(&stored), &resolved_value(&training.config));
        let changes: Vec<String> =
            changes.iter().filter(|change| !free(&change.path)).map(|change| format!("  {change}")).collect();
        if !changes.is_empty() {
            return Err(ExperimentError::Changed { folder: folder(), changes: changes.join("\n") });
        }
        let (before, now) = (&stored.stop, &training.config.stop);
        // All runs are to have the same, and one that has had more cannot give it back. Nothing is less than any number.
        if now.positions < before.positions
            || now.cpu_hours < before.cpu_hours
            || (now.positions.is_some(), now.cpu_hours.is_some())
                != (before.positions.is_some(), before.cpu_hours.is_some())
        {
            let before = Budget { positions: before.positions, cpu_hours: before.cpu_hours };
            return Err(ExperimentError::Budget { folder: folder(), before: serde_json::json!(before).to_string() });
        }
        Ok(RunState::load(&dir)?.is_some_and(|state| state.is_complete(&training.config.stop)))
    }

    /// Rates the checkpoints of all runs and writes down what came out; `None` when it was interrupted.
    ///
    /// # Errors
    /// When a checkpoint cannot be read, a player not be opened, or a file not written.
    pub fn rate<G: Game>(
        &self,
        game: &G,
        stop: &(dyn Fn() -> bool + Sync),
        listener: &Listener<'_>,
    ) -> Result<Option<Report>, ExperimentError> {
        let mut runs = Vec::new();
        for training in &self.trainings {
            let points = self.points(training)?;
            runs.push(Run { variant: training.variant, seed: training.config.seed, points });
        }
        let field = self.field(&runs)?;
        let Some(Rated { elo, report }) = field.rate(game, stop, listener.begin, listener.progress)? else {
            return Ok(None);
        };
        let mut rated = elo.iter();
        for point in runs.iter_mut().flat_map(|run| &mut run.points) {
            point.elo = *rated.next().expect("every point has been rated");
        }
        let report = Report::new(&self.plan, self.game(), runs, rated.copied().collect(), report.games as usize);
        self.keep(&report)?;
        Ok(Some(report))
    }

    /// The checkpoints of a run that are rated, without their Elo.
    fn points(&self, training: &Training) -> Result<Vec<Point>, ExperimentError> {
        let dir = self.run_of(training);
        let ends = generation_ends(&dir.metrics())?;
        // Whichever are chosen: fewer would be other ones.
        let there = dir.checkpoints()?;
        if let Some(&generation) = ends.keys().find(|generation| !there.contains(generation)) {
            return Err(ExperimentError::Lost { file: dir.checkpoint(generation) });
        }
        let known: Vec<u32> = there.into_iter().filter(|generation| ends.contains_key(generation)).collect();
        let chosen = match self.plan.rating.checkpoints {
            // The last one is what the run came to.
            1 => known.last().copied().into_iter().collect(),
            most => spread(&known, None, most),
        };
        if chosen.is_empty() {
            return Err(ExperimentError::NoPoints { folder: dir.root().to_owned() });
        }
        let point = |generation| {
            let GenerationEnd { positions, hours, cpu_hours } = ends[&generation];
            Point { generation, positions, hours, cpu_hours, elo: Estimate { value: 0.0, low: 0.0, high: 0.0 } }
        };
        Ok(chosen.into_iter().map(point).collect())
    }

    fn field(&self, runs: &[Run]) -> Result<Field, ExperimentError> {
        let rating = &self.plan.rating;
        let (mut entrants, mut encounters, mut places) = (Vec::new(), Vec::new(), Vec::new());
        let networks: usize = runs.iter().map(|run| run.points.len()).sum();
        for (run, training) in runs.iter().zip(&self.trainings) {
            let (dir, first) = (self.run_of(training), entrants.len());
            places.push(first);
            for (at, point) in run.points.iter().enumerate() {
                let file = dir.checkpoint(point.generation);
                let digest = Checkpoint::load(&file)?.weights.digest();
                let me = entrants.len();
                let name = format!("{}, seed {}, generation {}", self.name_of(training), run.seed, point.generation);
                entrants.push(Entrant::checkpoint(name, file, &digest, rating.simulations));
                encounters.extend((0..rating.anchors.len()).map(|anchor| [me, networks + anchor]));
                encounters.extend((at > 0).then(|| [me, me - 1]));
                // The first variant's run with the same seed stands before the others.
                let rival = runs.iter().zip(&places).find(|(other, _)| other.seed == run.seed && other.variant == 0);
                if let Some((rival, &place)) = rival.filter(|_| run.variant > 0) {
                    // Counted from the end, so that what the runs came to meets.
                    let behind = run.points.len() - at;
                    encounters.extend(rival.points.len().checked_sub(behind).map(|at| [me, place + at]));
                }
            }
        }
        for anchor in &rating.anchors {
            entrants.push(Entrant::named(anchor)?);
        }
        encounters.extend((1..rating.anchors.len()).map(|anchor| [networks + anchor, networks + anchor - 1]));
        Ok(Field {
            entrants,
            encounters,
            zero: networks + rating.zero().expect("the plan has been checked"),
            games: rating.games,
            seed: rating.seed,
            threads: self.threads,
            file: ExperimentFiles::of(&self.folder).games,
        })
    }

    fn keep(&self, report: &Report) -> Result<(), ExperimentError> {
        let files = ExperimentFiles::of(&self.folder);
        let numbers = serde_json::to_string_pretty(report).expect("numbers can be written") + "\n";
        write_atomic(&files.numbers, numbers.as_bytes())?;
        write_atomic(&files.table, report.markdown().as_bytes())?;
        let [by_positions, by_cpu_hours] = report.pictures().map_err(ExperimentError::Picture)?;
        write_atomic(&files.by_positions, by_positions.as_bytes())?;
        Ok(write_atomic(&files.by_cpu_hours, by_cpu_hours.as_bytes())?)
    }
}
