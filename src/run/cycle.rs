//! The cycle: generate, learn, gate, generation after generation, until a goal is reached or somebody stops it.
//!
//! Each stage ends with everything it made published and then the state that says so; whatever a killed process did after
//! the last published state is done again, identically.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::config::RunConfig;
use super::dir::{DirError, RunDir};
use super::engine::NetSource;
use super::event::{self, Event, Histogram, Phase, Replay};
use super::gate::GateMode;
use super::generate::Generate;
use super::journal::{Journal, failed};
use super::learn::{LearnError, learn};
use super::observer::{Mark, ObserveError, Observers};
use super::pointer::{Pointer, Which, file_digest};
use super::rating::{Meeting, Rated, elo};
use super::report::{gate_event, self_play, speed_note};
use super::sample;
use super::state::{RunState, Stage};
use super::stop::{Done, StopFlag};
use super::tune::tune;
use crate::data::{GameRecord, Origin, RecordFileError, RecordWriter, ReplayError, ReplayWindow, Sampler};
use crate::eval::SymmetryMode;
use crate::game::{Game, full_name};
use crate::net::{
    Checkpoint, CheckpointError, CheckpointInfo, GameMismatch, InferenceFactory, NetSpec, OpenError, Resolved, Weights,
    torch_device,
};
use crate::play::{MatchReport, Player, PoolError, PoolParams, PoolStats, SearchSeat, Seat, Temperature};
use crate::train::{TrainError, Trainer};
use crate::util::publish::write_atomic;
use crate::util::rng::{Purpose, Stream};
use crate::util::stats::Tally as _;

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
    #[error("{file}: {error}; move the file away to play these games again", file = .file.display())]
    Replay { file: std::path::PathBuf, error: ReplayError },
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error("{}: {error}", .file.display())]
    Mismatch { file: std::path::PathBuf, error: GameMismatch },
    #[error(
        "{} is not the file that the run made, it has another digest than `best` says: restore it from a copy",
        .file.display()
    )]
    Exchanged { file: std::path::PathBuf },
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Pool(#[from] PoolError),
    #[error(transparent)]
    Learn(#[from] LearnError),
    #[error(transparent)]
    Train(#[from] TrainError),
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
    spec: NetSpec,
    resolved: Resolved,
    dir: &'a RunDir,
    name: String,
    stop: StopFlag,
    observers: Mutex<Observers>,
    state: RunState,
    window: ReplayWindow,
    trainer: Option<Trainer>,
    /// How games are played here, measured when the work begins.
    pool: PoolParams,
    began: Instant,
    hours_before: f64,
}

impl<'a, G: Game> Cycle<'a, G> {
    /// Takes up the run in `dir` where `state` says, or begins it.
    ///
    /// # Errors
    /// When something that the state names is missing, damaged or of another game.
    pub fn new(
        game: G,
        config: &'a RunConfig,
        dir: &'a RunDir,
        state: RunState,
        observers: Observers,
        resolved: Resolved,
        stop: StopFlag,
    ) -> Result<Self, RunError> {
        let name = dir.root().file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let first = config.replay.first_generation(&state.window_totals);
        let before = if first == 0 { 0 } else { state.window_totals[first - 1] };
        let mut cycle = Self {
            spec: NetSpec::for_game(&game, config.network.clone()),
            window: ReplayWindow::resumed(config.replay.clone(), config.samples.clone(), before),
            hours_before: state.hours,
            game,
            config,
            resolved,
            dir,
            name,
            stop,
            observers: Mutex::new(observers),
            state,
            trainer: None,
            pool: PoolParams { threads: 1, slots: 1 },
            began: Instant::now(),
        };
        // A state older than the pointer names another generation; then the pointer is written anew in any case.
        if let Ok(Some(pointer)) = dir.read_pointer(Which::Best)
            && pointer.generation == cycle.state.best
            && file_digest(&dir.checkpoint(pointer.generation))? != pointer.digest
        {
            return Err(RunError::Exchanged { file: dir.checkpoint(pointer.generation) });
        }
        for generation in first.max(1)..cycle.state.window_totals.len() {
            cycle.load_games(generation as u32)?;
        }
        Ok(cycle)
    }

    fn tell(&self, event: &Event) -> Result<(), ObserveError> {
        tell(&self.observers, event)
    }

    fn hours(&self) -> f64 {
        self.hours_before + self.began.elapsed().as_secs_f64() / 3600.0
    }

    fn load_games(&mut self, generation: u32) -> Result<Vec<GameRecord>, RunError> {
        let file = self.dir.games(generation);
        let read = crate::data::read(&file)?;
        if let Some(damage) = &read.warning {
            self.tell(&Event::Warning(damage.to_string()))?;
        }
        self.window.push(&self.game, &read.records).map_err(|error| RunError::Replay { file, error })?;
        Ok(read.records)
    }

    /// Works until a goal of the config is reached or the stop flag is set.
    ///
    /// # Errors
    /// When the disk, an engine or the training fails.
    pub fn run(&mut self) -> Result<Ended, RunError> {
        let (game, generation, step) = (full_name(&self.game), self.state.generation, self.state.step);
        let resumed = self.state.mark > 0;
        self.tell(&Event::RunStarted { run: self.name.clone(), game, resumed, generation, step })?;
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
            self.publish_untrained()?;
            self.save()?;
        }
        self.tune()?;
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
        Done {
            iterations: self.state.generation - 1,
            games: self.state.games,
            positions: self.state.positions,
            hours: self.hours(),
            elo: elo(&self.state.meetings, Rated::Generation(self.state.best)).map(|elo| elo.value),
        }
    }

    /// Finds out how this machine plays best with the network at hand.
    fn tune(&mut self) -> Result<(), RunError> {
        let weights = self.checkpoint(self.state.best)?.weights;
        let factory = InferenceFactory::open_with(&self.spec, &weights, self.resolved.clone())?;
        let tuning = tune(&self.config.selfplay, &factory)?;
        self.pool = tuning.pool;
        tuning.reasons.into_iter().try_for_each(|reason| Ok(self.tell(&Event::Notice(reason))?))
    }

    /// Publishes the state after everything that it names.
    fn save(&mut self) -> Result<(), RunError> {
        self.state.hours = self.hours();
        self.state.mark += 1;
        let mark = Mark { number: self.state.mark, generation: self.state.generation, step: self.state.step };
        self.observers.lock().expect("observers do not panic").mark(&mark)?;
        self.state.save(self.dir)?;
        Ok(())
    }

    fn publish_untrained(&mut self) -> Result<(), RunError> {
        let weights = Weights::init(&self.spec, &mut Stream::keyed(self.config.seed, Purpose::Weights, &[]));
        self.publish_checkpoint(0, weights, None)?;
        self.point(Which::Latest, 0)?;
        self.point(Which::Best, 0)
    }

    fn publish_checkpoint(&self, generation: u32, weights: Weights, rating: Option<f64>) -> Result<(), RunError> {
        let info = CheckpointInfo {
            step: self.state.step,
            samples: self.state.samples,
            generation,
            run: self.name.clone(),
            elo: rating,
            ..CheckpointInfo::untrained(&self.game, self.spec.clone())
        };
        Ok(Checkpoint { info, weights }.save(&self.dir.checkpoint(generation))?)
    }

    fn point(&self, which: Which, generation: u32) -> Result<(), RunError> {
        let digest = file_digest(&self.dir.checkpoint(generation))?;
        Ok(self.dir.write_pointer(which, &Pointer { generation, digest })?)
    }

    fn checkpoint(&self, generation: u32) -> Result<Checkpoint, RunError> {
        let file = self.dir.checkpoint(generation);
        let checkpoint = Checkpoint::load(&file)?;
        checkpoint.check_game(&self.game).map_err(|error| RunError::Mismatch { file, error })?;
        Ok(checkpoint)
    }

    fn source(&self, generation: u32, cache_megabytes: u32, view: SymmetryMode) -> Result<Arc<NetSource<G>>, RunError> {
        let checkpoint = self.checkpoint(generation)?;
        let factory = InferenceFactory::open_with(&self.spec, &checkpoint.weights, self.resolved.clone())?;
        Ok(Arc::new(NetSource::new(Arc::new(factory), cache_megabytes).seen_through(view)))
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
        if file.exists() {
            // The process ended between the publication of the games and that of the state.
            RecordWriter::discard_journal(&file)?;
        } else {
            let origin = Origin {
                game: full_name(&self.game),
                rules_version: G::RULES_VERSION,
                seed: self.config.seed,
                generation,
            };
            let opened = RecordWriter::open(&file, origin)?;
            if let Some(damage) = opened.warning {
                self.tell(&Event::Warning(damage.to_string()))?;
            }
            let done: HashSet<u32> = opened.writer.indices().iter().copied().collect();
            self.tell(&Event::PhaseStarted {
                phase: Phase::Generate,
                generation,
                done: done.len() as u64,
                total: u64::from(params.games),
            })?;
            let view = params.view.mode(self.config.seed, generation);
            let source = self.source(self.state.best, params.cache_megabytes, view)?;
            let task = Generate {
                game: &self.game,
                params,
                search: &self.config.search,
                seed: self.config.seed,
                generation,
                evaluators: source.clone(),
                pool: self.pool,
            };
            let journal = Mutex::new(Journal::new(opened.writer));
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
        }
        // Of a damaged file of an earlier generation fewer games may be here than were counted then, so the difference counts.
        let (steps_before, positions_before) = (self.window.total_steps(), self.window.total_positions());
        let records = self.load_games(generation)?;
        let fresh = self.window.total_positions() - positions_before;
        let counted = self.state.window_totals.last().copied().unwrap_or(0);
        let total = counted + (self.window.total_steps() - steps_before);
        self.tell(&Event::SelfPlay(self_play(&records, generation, &stats, hit_share, self.pool, began)))?;
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
        let steps = self.config.replay.training_steps(fresh, self.config.training.batch_size).max(1);
        self.state.stage = Stage::Learn { done: 0, total: steps };
        self.save()
    }

    /// The trainer, as the last saved state left it.
    fn open_trainer(&self) -> Result<Trainer, RunError> {
        let start = self.checkpoint(0)?.weights;
        let device = torch_device(self.resolved.device);
        let threads = self.config.training_threads();
        let mut trainer = Trainer::new(&self.spec, &start, self.config.training.clone(), device, threads)?;
        if let Some(name) = &self.state.trainer {
            trainer.load_state(&self.dir.state_file(name))?;
        }
        Ok(trainer)
    }

    fn learn(&mut self, first: u64, total: u64) -> Result<(), RunError> {
        let generation = self.state.generation;
        let began = Instant::now();
        let mut trainer = match self.trainer.take() {
            Some(trainer) => trainer,
            None => self.open_trainer()?,
        };
        self.tell(&Event::PhaseStarted { phase: Phase::Learn, generation, done: first, total })?;
        let sampler = Sampler::new(self.game.clone(), self.config.samples.clone());
        let mut failure = None;
        let batch_size = self.config.training.batch_size;
        let done = learn(
            &mut trainer,
            &sampler,
            &self.window,
            &self.game,
            self.config.seed,
            generation,
            batch_size,
            first..total,
            &|| self.stop.is_set(),
            &mut |done, event| {
                let note = event.map_or_else(String::new, |e| {
                    format!(
                        "policy {:.3}, value {:.3}, {:.0} samples/s",
                        e.policy_loss, e.value_loss, e.samples_per_second
                    )
                });
                let told = match event {
                    Some(event) => self.tell(&Event::TrainStep(event)),
                    None => Ok(()),
                };
                let progress = Event::Progress { phase: Phase::Learn, done, note };
                failure = failure.take().or(told.and_then(|()| self.tell(&progress)).err());
            },
        )?;
        if let Some(error) = failure {
            return Err(error.into());
        }
        self.state.step += done - first;
        self.state.samples += (done - first) * batch_size as u64;
        let old = self.state.trainer.take();
        let name = format!("step-{:09}.state", self.state.step);
        trainer.save_state(&self.dir.state_file(&name))?;
        self.state.trainer = Some(name);
        if done < total {
            self.state.stage = Stage::Learn { done, total };
        } else {
            for (tag, values) in trainer.histograms()? {
                if let Some(histogram) = Histogram::of(generation, tag, &values) {
                    self.tell(&Event::Histogram(histogram))?;
                }
            }
            self.publish_checkpoint(generation, trainer.play_weights()?, None)?;
            self.point(Which::Latest, generation)?;
            let seconds = began.elapsed().as_secs_f64();
            self.tell(&Event::PhaseFinished { phase: Phase::Learn, generation, seconds })?;
            self.state.stage = Stage::Gate;
        }
        self.save()?;
        if let Some(old) = old.filter(|old| Some(old) != self.state.trainer.as_ref()) {
            // Superseded by what was just published; a failure to remove it costs only disk space.
            let _ = std::fs::remove_file(self.dir.state_file(&old));
        }
        self.trainer = Some(trainer);
        Ok(())
    }

    fn gate_player(&self, generation: u32) -> Result<Player<G>, RunError> {
        let seat = SearchSeat {
            evaluators: self.source(generation, self.config.selfplay.cache_megabytes / 4, SymmetryMode::None)?,
            search: self.config.search.clone(),
            simulations: self.config.gate.simulations,
            temperature: Temperature::GREEDY,
            noise: None,
            gumbel_noise: false,
            fast: None,
        };
        Ok(Player { name: format!("generation {generation}"), seat: Seat::Search(seat) })
    }

    /// Plays a match of the gate phase; `None` when it was interrupted.
    fn contest(
        &self,
        players: &[Player<G>; 2],
        games: u32,
        sprt: bool,
        salt: u64,
    ) -> Result<Option<MatchReport>, RunError> {
        let gate = &self.config.gate;
        let seed = Stream::keyed(self.config.seed, Purpose::Match, &[u64::from(self.state.generation), salt]).bits();
        let failure = Mutex::new(None);
        let phase = Phase::Gate;
        self.tell(&Event::PhaseStarted { phase, generation: self.state.generation, done: 0, total: u64::from(games) })?;
        let pool = PoolParams { slots: (games as usize / self.pool.threads).clamp(1, 64), ..self.pool };
        let sprt = sprt.then(|| gate.sprt());
        let (stop, observers) = (&self.stop, &self.observers);
        let report = gate.play(&self.game, players, games, sprt, seed, pool, &|| stop.is_set(), &|tally| {
            let games = tally.games();
            let note =
                format!("{} vs {}: {}-{}-{}", players[0].name, players[1].name, games.wins, games.draws, games.losses);
            let progress = Event::Progress { phase, done: games.total(), note };
            if let Err(error) = tell(observers, &progress) {
                failure.lock().expect("nothing panics here").get_or_insert(error);
            }
        })?;
        if let Some(error) = failure.into_inner().expect("nothing panics here") {
            return Err(error.into());
        }
        Ok((!report.interrupted).then_some(report))
    }

    fn gate(&mut self) -> Result<(), RunError> {
        let (generation, best) = (self.state.generation, self.state.best);
        let gate = &self.config.gate;
        let began = Instant::now();
        let candidate = self.gate_player(generation)?;
        let mut meetings = Vec::new();
        // Told only when all matches are over: an interrupted gate is played again, and must not be told twice.
        let mut events = Vec::new();
        let mut accepted = true;
        if gate.mode == GateMode::Sprt {
            let players = [candidate.clone(), self.gate_player(best)?];
            let Some(report) = self.contest(&players, gate.games, true, 0)? else { return Ok(()) };
            accepted = gate.passes(&report);
            let games = report.tally.games();
            meetings.push(Meeting { a: Rated::Generation(generation), b: Rated::Generation(best), games });
            events.push(Event::Gate(gate_event(generation, &report, accepted, gate.sprt().llr(&report.tally.pairs))));
            if report.distinct * 4 < report.games.len() {
                events.push(Event::Warning(format!(
                    "only {} of {} gate games were different: raise gate.opening_plies",
                    report.distinct,
                    report.games.len()
                )));
            }
        }
        if accepted && gate.anchor_games > 0 {
            let players = [candidate, Player::mcts(gate.anchor_simulations, 1.0)];
            let Some(report) = self.contest(&players, gate.anchor_games, false, 1)? else { return Ok(()) };
            let games = report.tally.games();
            meetings.push(Meeting { a: Rated::Generation(generation), b: Rated::Anchor, games });
        }
        for event in &events {
            self.tell(event)?;
        }
        self.state.meetings.extend(meetings);
        let rating = elo(&self.state.meetings, Rated::Generation(generation));
        if let Some(rating) = rating {
            let interval = (rating.low, rating.high);
            self.tell(&Event::Elo(event::Elo { generation, elo: rating.value, interval }))?;
            let weights = self.checkpoint(generation)?.weights;
            self.publish_checkpoint(generation, weights, Some(rating.value))?;
            self.point(Which::Latest, generation)?;
        }
        if accepted {
            self.state.best = generation;
            self.point(Which::Best, generation)?;
        }
        self.tell(&Event::PhaseFinished { phase: Phase::Gate, generation, seconds: began.elapsed().as_secs_f64() })?;
        self.tell(&Event::GenerationFinished {
            generation,
            step: self.state.step,
            best: self.state.best,
            games: self.state.games,
            positions: self.state.positions,
            hours: self.hours(),
        })?;
        self.state.stage = Stage::Generate;
        self.state.generation += 1;
        self.save()
    }
}

fn tell(observers: &Mutex<Observers>, event: &Event) -> Result<(), ObserveError> {
    observers.lock().expect("observers do not panic").observe(event)
}
