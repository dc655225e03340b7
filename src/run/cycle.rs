//! The cycle: generate, learn, gate, generation after generation, until a goal is reached or somebody stops it.
//!
//! Each stage ends with everything it made published and then the state that says so; whatever a killed process did after
//! the last published state is done again, identically.

mod gate;
mod learn;
mod resume;

pub use resume::States;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::config::RunConfig;
use super::dir::{DirError, RunDir};
use super::engine::NetSource;
use super::event::{Event, Phase, Replay};
use super::generate::Generate;
use super::journal::{Journal, failed};
use super::learn::LearnError;
use super::observer::{Mark, ObserveError, Observers};
use super::pointer::{Pointer, Which, file_digest};
use super::report::{self_play, speed_note};
use super::sample;
use super::start::{StartError, start_network};
use super::state::{RunState, Stage};
use super::stop::{Done, StopFlag};
use super::tune::tune;
use crate::data::{RecordFileError, ReplayError, ReplayWindow};
use crate::eval::SymmetryMode;
use crate::game::{Game, full_name};
use crate::net::{
    Checkpoint, CheckpointError, CheckpointInfo, GameMismatch, InferenceFactory, NetSpec, OpenError, Resolved, Weights,
};
use crate::play::{PoolError, PoolParams, PoolStats, Resignations};
use crate::train::{TrainError, Trainer};
use crate::util::machine::cpu_seconds;
use crate::util::publish::{PublishError, write_atomic};
use crate::util::rng::{Purpose, Stream};

/// A run could not go on. What was published before is intact, and the run can be resumed when the cause is gone.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each variant is the error of one layer, which explains itself")]
pub enum RunError {
    #[error(transparent)]
    Dir(#[from] DirError),
    #[error(transparent)]
    Observe(#[from] ObserveError),
    #[error(transparent)]
    Records(#[from] RecordFileError),
    #[error("{file}: {error}; restore it from a copy, or move it away: the run goes on without these games", file = .file.display())]
    Replay { file: PathBuf, error: ReplayError },
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error("{}: {error}", .file.display())]
    Mismatch { file: PathBuf, error: GameMismatch },
    #[error("{} is not the file that the run made, it has another digest: restore it from a copy", .file.display())]
    Exchanged { file: PathBuf },
    #[error(
        "{folder}: config.json and state/ are of different runs (another game, seed, network, optimizer or number of \
         training_threads): restore the run's own files from a copy"
    )]
    OtherRun { folder: String },
    #[error(
        "growth: until generation {generation}, whose games are played, this run has taken the steps {taken}, and the config has \
         {asked}: only those of generations that are still to come can change"
    )]
    Grown { generation: u32, taken: String, asked: String },
    #[error("{} of the generation in progress cannot be used: {problem}; restore it from a copy", .file.display())]
    Games { file: PathBuf, problem: String },
    #[error("{} holds the network of generation {found}: restore the right one from a copy", .file.display())]
    OtherGeneration { file: PathBuf, found: u32 },
    #[error(
        "{}: nothing is left to learn from, all games of the replay window are missing or damaged: restore them from a \
         copy, or start a new run in another folder with --run",
        .folder.display()
    )]
    NoGames { folder: PathBuf },
    #[error(
        "there is no {}, without which the run cannot go on: restore it from a copy, or start a new run in another \
         folder with --run",
        .file.display()
    )]
    Lost { file: PathBuf },
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Pool(#[from] PoolError),
    #[error(transparent)]
    Learn(#[from] LearnError),
    #[error(transparent)]
    Train(#[from] TrainError),
    #[error(
        "training of generation {generation}: {reason}; {remedy}. Batches that were left out, if any, are kept in \
         {folder}. The run can be resumed with a lower training.learning_rate"
    )]
    NotFinite { generation: u32, reason: String, remedy: &'static str, folder: String },
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// A goal of `stop` is reached, in words.
    Complete(String),
    /// Somebody stopped it, in words; the same command goes on.
    Interrupted(String),
}

/// A run at work.
pub struct Cycle<'a, G: Game> {
    game: G,
    config: &'a RunConfig,
    resolved: Resolved,
    dir: &'a RunDir,
    name: String,
    stop: StopFlag,
    observers: Mutex<Observers>,
    state: RunState,
    window: ReplayWindow,
    trainer: Option<Trainer>,
    /// How games are played here, measured when the first are to be played.
    pool: Option<PoolParams>,
    began: Instant,
    hours_before: f64,
    /// Processor time of the process when this run began its work in it, in seconds.
    cpu_began: f64,
    cpu_hours_before: f64,
}

impl<'a, G: Game> Cycle<'a, G> {
    /// Takes up the run in `dir` where the newest of `states` says for which everything is there, or begins it. `observers` is asked for when it is sure that everything
    /// needed is there: nothing has been changed before that.
    ///
    /// # Errors
    /// When something that the state names is missing, damaged or of another game.
    pub fn new(
        game: G,
        config: &'a RunConfig,
        dir: &'a RunDir,
        states: States,
        observers: impl FnOnce(&RunState) -> Result<Observers, RunError>,
        resolved: Resolved,
        stop: StopFlag,
    ) -> Result<Self, RunError> {
        let name = dir.root().file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let mut cycle = Self {
            window: ReplayWindow::new(config.replay.clone(), config.samples.clone()),
            hours_before: 0.0,
            cpu_began: cpu_seconds().unwrap_or(0.0),
            cpu_hours_before: 0.0,
            game,
            config,
            resolved,
            dir,
            name,
            stop,
            observers: Mutex::default(),
            state: states.newest().clone(),
            trainer: None,
            pool: None,
            began: Instant::now(),
        };
        let mends = cycle.choose(states)?;
        (cycle.hours_before, cycle.cpu_hours_before) = (cycle.state.hours, cycle.state.cpu_hours);
        let totals = &cycle.state.window_totals;
        let first = config.replay.first_generation(totals);
        let before = if first == 0 { 0 } else { totals[first - 1] };
        cycle.window = ReplayWindow::resumed(config.replay.clone(), config.samples.clone(), before);
        cycle.observers = Mutex::new(observers(&cycle.state)?);
        cycle.mend(mends)?;
        cycle.take_up(first)?;
        Ok(cycle)
    }

    fn tell(&self, event: &Event) -> Result<(), ObserveError> {
        tell(&self.observers, event)
    }

    fn hours(&self) -> f64 {
        self.hours_before + self.began.elapsed().as_secs_f64() / 3600.0
    }

    /// Stays where it is on systems that do not tell.
    fn cpu_hours(&self) -> f64 {
        self.cpu_hours_before + cpu_seconds().map_or(0.0, |seconds| (seconds - self.cpu_began).max(0.0)) / 3600.0
    }

    /// Works until a goal of the config is reached or the stop flag is set.
    ///
    /// # Errors
    /// When the disk, an engine or the training fails.
    pub fn run(&mut self) -> Result<Ended, RunError> {
        let (game, generation, step) = (full_name(&self.game), self.state.generation, self.state.step);
        let resumed = self.state.mark > 0;
        self.tell(&Event::RunStarted { run: self.name.clone(), game, resumed, generation, step })?;
        if self.state.rollbacks > 0 {
            self.tell(&Event::Notice(format!(
                "the learning rate is {} of what the config says, since training has returned to the beginning of a \
                 generation {} time{} (training.non_finite)",
                self.state.rate_factor,
                self.state.rollbacks,
                if self.state.rollbacks == 1 { "" } else { "s" }
            )))?;
        }
        let result = self.stages();
        match &result {
            Ok(Ended::Complete(reason)) => self.tell(&Event::RunStopped { reason: reason.clone(), complete: true })?,
            Ok(Ended::Interrupted(reason)) => {
                self.tell(&Event::RunStopped { reason: reason.clone(), complete: false })?
            }
            // After a failure of the disk nobody may be able to note its reason; the caller reports it in any case.
            Err(error) => drop(self.tell(&Event::RunFailed { reason: error.to_string() })),
        }
        result
    }

    fn stages(&mut self) -> Result<Ended, RunError> {
        if self.state.mark == 0 {
            self.publish_first()?;
            self.save_end()?;
        }
        loop {
            match self.state.stage {
                Stage::Generate => {
                    if let Some(reason) = self.config.stop.reached(&self.done()) {
                        return Ok(Ended::Complete(reason));
                    }
                    self.generate()?;
                }
                Stage::Learn { done, total } => self.learn(done, total)?,
                Stage::Gate => self.gate()?,
            }
            if self.stop.is_set() {
                // An unfinished stage has published nothing, but the hours that it took count.
                self.save()?;
                return Ok(Ended::Interrupted(self.stop.cause().unwrap_or("stopped").to_owned()));
            }
        }
    }

    fn done(&self) -> Done {
        Done { hours: self.hours(), cpu_hours: self.cpu_hours(), ..self.state.done() }
    }

    /// How this machine plays best with the network at hand, measured once.
    fn pool(&mut self, source: &NetSource<G>) -> Result<PoolParams, RunError> {
        if let Some(pool) = self.pool {
            return Ok(pool);
        }
        let tuning = tune(&self.config.selfplay, source.factory())?;
        for reason in tuning.reasons {
            self.tell(&Event::Notice(reason))?;
        }
        Ok(*self.pool.insert(tuning.pool))
    }

    /// Publishes the state after everything that it names.
    fn save(&mut self) -> Result<(), RunError> {
        self.state.run = self.config.identity();
        (self.state.hours, self.state.cpu_hours) = (self.hours(), self.cpu_hours());
        self.state.mark += 1;
        let mark = Mark { number: self.state.mark, generation: self.state.generation, step: self.state.step };
        self.observers.lock().expect("observers do not panic").mark(&mark)?;
        self.state.save(self.dir)?;
        Ok(())
    }

    /// [`save`](Self::save) where a generation is over.
    fn save_end(&mut self) -> Result<(), RunError> {
        self.save()?;
        self.state.save_end(self.dir)?;
        let ends = self.forget_old_states()?;
        self.tidy(&ends)
    }

    /// The network of a generation, as it plays.
    fn spec(&self, generation: u32) -> NetSpec {
        NetSpec::for_game(&self.game, self.config.network_of(generation).clone())
    }

    /// The weights that this run begins with.
    fn beginning(&self) -> Result<Weights, RunError> {
        let spec = self.spec(0);
        match &self.config.start {
            None => Ok(Weights::init(&spec, &mut Stream::keyed(self.config.seed, Purpose::Weights, &[]))),
            Some(file) if self.state.mark == 0 => Ok(start_network(&self.game, &spec, file)?.weights),
            // The file itself is needed only once.
            Some(_) => Ok(self.checkpoint(0)?.weights),
        }
    }

    fn publish_first(&mut self) -> Result<(), RunError> {
        self.publish_checkpoint(0, self.beginning()?, None)?;
        self.point(Which::Latest, 0)?;
        self.state.best_digest = self.point(Which::Best, 0)?;
        Ok(())
    }

    fn publish_checkpoint(&self, generation: u32, weights: Weights, rating: Option<f64>) -> Result<(), RunError> {
        let info = CheckpointInfo {
            step: self.state.step,
            samples: self.state.samples,
            generation,
            run: self.name.clone(),
            elo: rating,
            ..CheckpointInfo::untrained(&self.game, self.spec(generation))
        };
        Ok(Checkpoint { info, weights }.save(&self.dir.checkpoint(generation))?)
    }

    /// Makes a pointer name a generation's checkpoint. Returns the digest of that.
    fn point(&self, which: Which, generation: u32) -> Result<String, RunError> {
        let digest = file_digest(&self.dir.checkpoint(generation))?;
        if which == Which::Best {
            publish_copy(&self.dir.checkpoint(generation), &self.dir.best_copy())?;
        }
        self.dir.write_pointer(which, &Pointer { generation, digest: digest.clone() })?;
        Ok(digest)
    }

    fn checkpoint(&self, generation: u32) -> Result<Checkpoint, RunError> {
        let file = self.dir.checkpoint(generation);
        let checkpoint = Checkpoint::load(&file)?;
        match checkpoint.check_game(&self.game) {
            Err(error) => Err(RunError::Mismatch { file, error }),
            Ok(()) if checkpoint.info.generation != generation => {
                Err(RunError::OtherGeneration { file, found: checkpoint.info.generation })
            }
            Ok(()) => Ok(checkpoint),
        }
    }

    fn source(&self, generation: u32, cache_megabytes: u32, view: SymmetryMode) -> Result<Arc<NetSource<G>>, RunError> {
        let checkpoint = self.checkpoint(generation)?;
        let factory =
            InferenceFactory::open_with(&checkpoint.info.network, &checkpoint.weights, self.resolved.clone())?;
        Ok(Arc::new(NetSource::new(Arc::new(factory), cache_megabytes).seen_through(view)))
    }

    /// Training steps of this generation, of whose games so many positions count; those of a new network are more.
    fn training_steps(&self, fresh: f64) -> u64 {
        let batch_size = self.config.training.batch_size;
        let steps = self.config.replay.training_steps(fresh, batch_size);
        let passes = self.config.growth_at(self.state.generation).map_or(0.0, |step| step.passes);
        let further = passes * self.window.stats().positions as f64 / batch_size as f64;
        (steps + further.ceil() as u64).max(1)
    }

    /// Plays the games of the generation that are missing.
    fn generate(&mut self) -> Result<(), RunError> {
        let generation = self.state.generation;
        let params = &self.config.selfplay;
        let began = Instant::now();
        let file = self.dir.games(generation);
        let stats = PoolStats::default();
        // Also where the games are there already: what is recorded of a generation is the same however it came about.
        let mut hit_share = (params.cache_megabytes > 0).then_some(0.0);
        let mut found = self.games_finished_before(generation)?;
        if found.is_none() {
            let writer = self.open_journal(generation)?;
            let done: HashSet<u32> = writer.indices().iter().copied().collect();
            let view = params.view.mode(self.config.seed, generation);
            let source = self.source(self.state.best, params.cache_megabytes, view)?;
            let pool = self.pool(&source)?;
            self.tell(&Event::PhaseStarted {
                phase: Phase::Generate,
                generation,
                done: done.len() as u64,
                total: u64::from(params.games),
            })?;
            let task = Generate {
                game: &self.game,
                params,
                search: &self.config.search,
                window: &self.window,
                seed: self.config.seed,
                generation,
                evaluators: source.clone(),
                pool,
            };
            let journal = Mutex::new(Journal::new(writer));
            let (stop, observers) = (&self.stop, &self.observers);
            task.run(&done, &|| stop.is_set() || failed(&journal), &stats, &|finished| {
                let mut journal = journal.lock().expect("the journal does not panic");
                journal.add(finished.record);
                let note = speed_note(&stats, began);
                let done = journal.count() as u64;
                journal.note_failure(tell(observers, &Event::Progress { phase: Phase::Generate, done, note }));
            })?;
            let journal = journal.into_inner().expect("the journal does not panic");
            let writer = journal.close()?;
            hit_share = source.hit_share();
            if writer.indices().len() < params.games as usize {
                return Ok(());
            }
            writer.finish()?;
            found = Some(crate::data::read(&file)?.records);
        }
        let records = found.unwrap_or_default();
        let resignations = self.config.selfplay.resign.map(|params| {
            // In games that were only searched anew nobody could give up.
            let could_look_back = self.window.positions() > 0.0;
            let played = records.iter().filter(|record| {
                !could_look_back || !self.config.selfplay.is_reanalysed(self.config.seed, generation, record.index)
            });
            Resignations::of(&self.game, params, played)
        });
        // Of a damaged file of an earlier generation fewer games may be here than were counted then, so the difference counts.
        let (steps_before, positions_before) = (self.window.total_steps(), self.window.total_positions());
        self.add_to_window(generation, &records)?;
        let fresh = self.window.total_positions() - positions_before;
        let counted = self.state.window_totals.last().copied().unwrap_or(0);
        let total = counted + (self.window.total_steps() - steps_before);
        let pool = self.pool.unwrap_or(PoolParams { threads: 1, slots: 1 });
        self.tell(&Event::SelfPlay(self_play(&records, resignations, generation, &stats, hit_share, pool, began)))?;
        let window = self.window.stats();
        self.tell(&Event::Replay(Replay {
            generation,
            positions: window.positions as u64,
            bytes: window.bytes as u64,
            age: window.newest_generation - window.oldest_generation,
        }))?;
        if let Some(record) = records.first() {
            let text = sample::text(&self.game, record);
            write_atomic(&self.dir.samples(generation), text.as_bytes()).map_err(DirError::from)?;
            self.tell(&Event::SampleGame { generation, text })?;
        }
        self.tell(&Event::PhaseFinished {
            phase: Phase::Generate,
            generation,
            seconds: began.elapsed().as_secs_f64(),
        })?;
        self.state.window_totals.push(total);
        self.state.games += records.len() as u64;
        self.state.positions += records.iter().map(|record| record.plies.len() as u64).sum::<u64>();
        self.state.grown = self.config.growth_until(generation).to_vec();
        self.state.stage = Stage::Learn { done: 0, total: self.training_steps(fresh) };
        self.save()
    }
}

/// Publishes a copy of the file `from`.
fn publish_copy(from: &Path, to: &Path) -> Result<(), RunError> {
    let bytes = std::fs::read(from).map_err(|e| DirError::from(PublishError::reading(from, e)))?;
    Ok(write_atomic(to, &bytes).map_err(DirError::from)?)
}

fn tell(observers: &Mutex<Observers>, event: &Event) -> Result<(), ObserveError> {
    observers.lock().expect("observers do not panic").observe(event)
}
