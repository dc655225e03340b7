//! Taking up a run where its state says: what must be there is checked before any work, what can be made again is.

use std::path::{Path, PathBuf};

use super::{Cycle, RunError, publish_copy};
use crate::data::{GameRecord, Opened, Origin, ReadRecords, RecordFileError, RecordWriter};
use crate::game::{Game, full_name};
use crate::net::CheckpointError;
use crate::run::dir::{DirError, RunDir};
use crate::run::event::Event;
use crate::run::pointer::{Which, file_digest};
use crate::run::state::{self, RunState, Stage, TrainerFile};
use crate::train::{StateError, TrainError};
use crate::util::publish::PublishError;

/// What errors advise that a run does itself.
const REMEDY: &str = "; restore it from a copy";

/// The states that a run may go on from, the newest first.
#[derive(Debug)]
pub struct States {
    states: Vec<RunState>,
    /// Why the newest one cannot be read.
    fault: Option<DirError>,
}

impl States {
    /// Ends of generations that a run can go back to.
    pub const ENDS: usize = 2;

    /// A run that has not begun.
    pub fn new() -> Self {
        Self { states: vec![RunState::default()], fault: None }
    }

    /// What there is in `dir`; `None` when that is no state at all.
    ///
    /// # Errors
    /// When a state cannot be read for other reasons than its damage, or there is none to go back to.
    pub fn load(dir: &RunDir) -> Result<Option<Self>, DirError> {
        let (newest, fault) = match RunState::load(dir) {
            Ok(newest) => (newest, None),
            Err(DirError::Publish(error @ PublishError::Damaged { .. })) => (None, Some(error.into())),
            Err(error) => return Err(error),
        };
        let missing = newest.is_none();
        let states: Vec<RunState> = newest.into_iter().chain(RunState::load_ends(dir)?).collect();
        match fault {
            Some(error) if states.is_empty() => Err(error),
            None if states.is_empty() => Ok(None),
            None if missing => {
                let lost = PublishError::Missing { file: dir.state_file(state::NAME) };
                Ok(Some(Self { states, fault: Some(lost.into()) }))
            }
            fault => Ok(Some(Self { states, fault })),
        }
    }

    /// The newest one.
    pub fn newest(&self) -> &RunState {
        &self.states[0]
    }
}

impl Default for States {
    fn default() -> Self {
        Self::new()
    }
}

/// What is to be mended once it is sure that the run goes on.
#[derive(Debug, Default)]
pub(super) struct Mends {
    /// Why the run goes back to an older state.
    back: Option<String>,
    /// Damaged files.
    aside: Vec<PathBuf>,
    /// Why the best checkpoint is taken from its copy.
    best: Option<String>,
}

impl RunError {
    /// The file at fault and what is wrong with it, where an older state may be better.
    fn damage(&self) -> Option<(Option<&Path>, String)> {
        match self {
            Self::OtherRun { .. } => Some((None, "the state of the run is that of another run".to_owned())),
            // The file is set aside when its games are played again.
            Self::Games { problem, .. } => Some((None, problem.clone())),
            Self::Lost { file } => Some((None, format!("{} is missing", file.display()))),
            Self::Exchanged { file } => {
                Some((Some(file), format!("{} is not the file that the run made", file.display())))
            }
            Self::Dir(DirError::Publish(PublishError::Damaged { file, .. })) => Some((Some(file), self.to_string())),
            Self::Dir(DirError::Publish(PublishError::Missing { .. })) => Some((None, self.to_string())),
            Self::Train(TrainError::State(StateError::File(PublishError::Damaged { file, .. }))) => {
                Some((Some(file), self.to_string()))
            }
            Self::Checkpoint(CheckpointError::Damaged { path, .. } | CheckpointError::Weights { path, .. }) => {
                Some((Some(path), self.to_string()))
            }
            _ => None,
        }
    }
}

impl<G: Game> Cycle<'_, G> {
    /// Takes the newest of `states` for which everything is there. Changes nothing in the folder.
    pub(super) fn choose(&mut self, states: States) -> Result<Mends, RunError> {
        let mut fault = states.fault.map(RunError::from);
        let mut mends = Mends::default();
        for state in states.states {
            self.state = state;
            match self.check() {
                Ok(best) => {
                    mends.best = best;
                    if let Some((file, told)) = fault.as_ref().and_then(RunError::damage) {
                        mends.aside.extend(file.map(Path::to_owned));
                        let end = self.state.generation - 1;
                        mends.back = Some(format!(
                            "{}; the run goes back to the end of generation {end} and does again what came after",
                            told.trim_end_matches(REMEDY)
                        ));
                    }
                    return Ok(mends);
                }
                Err(error) if error.damage().is_some() => fault = fault.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        Err(fault.expect("there is at least one state, and it has a fault"))
    }

    /// Whether everything is there that the run cannot go on without: better now than after an hour of self-play. Changes
    /// nothing. Says what is wrong with the best checkpoint when its copy can take its place.
    fn check(&self) -> Result<Option<String>, RunError> {
        if self.state.mark == 0 {
            return Ok(None);
        }
        if !self.state.run.is_empty() && self.state.run != self.config.identity() {
            return Err(RunError::OtherRun { folder: self.dir.root().display().to_string() });
        }
        let taken = self.state.generation - u32::from(self.state.stage == Stage::Generate);
        let (grown, asked) = (&self.state.grown, self.config.growth_until(taken));
        if grown != asked {
            let [grown, asked] = [&grown[..], asked].map(|steps| serde_json::json!(steps).to_string());
            return Err(RunError::Grown { generation: taken, taken: grown, asked });
        }
        // They can be played again, if the run goes back to before that.
        if self.state.stage != Stage::Generate {
            let file = self.dir.games(self.state.generation);
            let problem = match self.read_games(self.state.generation) {
                Ok(ReadRecords { warning, .. }) => warning.map(|damage| damage.to_string()),
                Err(error) if error.is_damage() => Some(error.to_string()),
                Err(RecordFileError::System(error @ PublishError::Missing { .. })) => Some(error.to_string()),
                Err(error) => return Err(error.into()),
            };
            if let Some(problem) = problem {
                return Err(RunError::Games { file, problem });
            }
        }
        let is = |file: &Path, digest: &str| match file_digest(file) {
            Ok(found) if found == digest => Ok(true),
            Ok(_) => Ok(false),
            Err(DirError::Publish(PublishError::Missing { .. })) => Err(RunError::Lost { file: file.to_owned() }),
            Err(error) => Err(error.into()),
        };
        if let Some(TrainerFile { name, digest }) = &self.state.trainer {
            let file = self.dir.state_file(name);
            if !is(&file, digest)? {
                self.open_trainer(false)?;
                return Err(RunError::Exchanged { file });
            }
        }
        let best = self.dir.checkpoint(self.state.best);
        let wrong = match is(&best, &self.state.best_digest) {
            Ok(true) => {
                self.checkpoint(self.state.best)?;
                return Ok(None);
            }
            // What is wrong with it in itself is the better explanation.
            Ok(false) => self.checkpoint(self.state.best).err().unwrap_or(RunError::Exchanged { file: best }),
            Err(error) => error,
        };
        let copied = is(&self.dir.best_copy(), &self.state.best_digest).unwrap_or(false);
        match wrong.damage() {
            Some((_, told)) if copied => Ok(Some(told)),
            _ => Err(wrong),
        }
    }

    /// Does what [`choose`](Self::choose) found to be necessary, and says so.
    pub(super) fn mend(&self, mends: Mends) -> Result<(), RunError> {
        for file in mends.aside.iter().filter(|file| file.exists()) {
            self.dir.set_aside(file)?;
        }
        if let Some(told) = mends.back {
            self.tell(&Event::Warning(told))?;
        }
        if let Some(told) = mends.best {
            let (best, copy) = (self.dir.checkpoint(self.state.best), self.dir.best_copy());
            if best.exists() {
                self.dir.set_aside(&best)?;
            }
            publish_copy(&copy, &best)?;
            let told = told.trim_end_matches(REMEDY);
            self.tell(&Event::Warning(format!("{told}; it is restored from the copy in state/")))?;
        }
        Ok(())
    }

    /// Mends the pointers and loads the games of the replay window from generation `first` on.
    pub(super) fn take_up(&mut self, first: usize) -> Result<(), RunError> {
        if self.state.mark > 0 {
            self.mend_pointers()?;
            self.mend_copy()?;
        }
        // A process that was killed may have left others, and may not have come to what ends a generation.
        if self.state.mark > 0 && self.state.stage == Stage::Generate {
            if !self.dir.end_file(self.state.generation - 1).exists() {
                self.state.save_end(self.dir)?;
            }
            let ends = self.forget_old_states()?;
            self.tidy(&ends)?;
        } else {
            self.forget_old_states()?;
        }
        for generation in first.max(1)..self.state.window_totals.len() {
            let found = self.games_of(generation as u32)?;
            self.add_to_window(generation as u32, found.as_deref().unwrap_or_default())?;
        }
        if matches!(self.state.stage, Stage::Learn { .. }) && self.window.stats().positions == 0 {
            return Err(RunError::NoGames { folder: self.dir.root().join("games") });
        }
        Ok(())
    }

    /// Writes pointers anew that do not say what the state says.
    fn mend_pointers(&self) -> Result<(), RunError> {
        let current = self.state.generation;
        let latest = if self.state.stage == Stage::Gate { current } else { current - 1 };
        for (which, expected) in [(Which::Best, self.state.best), (Which::Latest, latest)] {
            let digest = (which == Which::Best).then_some(&self.state.best_digest);
            let (name, warning) = (which.file_name(), |what: String| Event::Warning(format!("{what}; written anew")));
            match self.dir.read_pointer(which) {
                Ok(Some(pointer)) if pointer.generation == expected => {
                    if digest.is_none_or(|digest| *digest == pointer.digest) {
                        continue;
                    }
                    self.tell(&warning(format!("`{name}` has another digest than the state of the run")))?;
                }
                // The process ended between the publication of a pointer and that of the state.
                Ok(Some(pointer)) if pointer.generation == current => {}
                Ok(Some(pointer)) => self.tell(&warning(format!(
                    "`{name}` names generation {}, by the state of the run it is {expected}",
                    pointer.generation
                )))?,
                Ok(None) => self.tell(&warning(format!("`{name}` is missing")))?,
                Err(error) => {
                    self.tell(&warning(error.to_string()))?;
                    if self.dir.pointer(which).is_dir() {
                        self.dir.set_aside(&self.dir.pointer(which))?;
                    }
                }
            }
            // Only the best checkpoint is needed to go on; without the other there is nothing to point at.
            if which == Which::Best || self.dir.checkpoint(expected).exists() {
                self.point(which, expected)?;
            }
        }
        Ok(())
    }

    /// Copies the best checkpoint anew where the copy is another one.
    fn mend_copy(&self) -> Result<(), RunError> {
        let copy = self.dir.best_copy();
        match file_digest(&copy) {
            Ok(found) if found == self.state.best_digest => return Ok(()),
            // The process ended between the copy of a new best network and the state that says so.
            Ok(_) if self.state.stage == Stage::Gate => {}
            Ok(_) => self.tell(&Event::Warning(format!("{} is not the best network; copied anew", copy.display())))?,
            Err(error) => self.tell(&Event::Warning(format!("{error}; copied anew")))?,
        }
        publish_copy(&self.dir.checkpoint(self.state.best), &copy)
    }

    /// What can be read of the games of a generation; games of anything else are an error.
    fn read_games(&self, generation: u32) -> Result<ReadRecords, RecordFileError> {
        let path = self.dir.games(generation);
        let read = crate::data::read(&path)?;
        let expected = self.origin(generation);
        match read.records.iter().map(GameRecord::origin).find(|found| *found != expected) {
            None => Ok(read),
            Some(found) => {
                Err(RecordFileError::Origin { path, found: found.to_string(), expected: expected.to_string() })
            }
        }
    }

    /// The games of the generation in progress, where the process ended between their publication and that of the state.
    /// A damaged file is set aside: its journal may still be there, and what is missing can be played again.
    pub(super) fn games_finished_before(&self, generation: u32) -> Result<Option<Vec<GameRecord>>, RunError> {
        let file = self.dir.games(generation);
        let damage = match self.read_games(generation) {
            Ok(ReadRecords { records, warning: None }) => {
                RecordWriter::discard_journal(&file)?;
                return Ok(Some(records));
            }
            Err(RecordFileError::System(PublishError::Missing { .. })) => return Ok(None),
            Ok(ReadRecords { warning: Some(damage), .. }) => damage.to_string(),
            Err(error) if error.is_damage() => error.to_string(),
            Err(error) => return Err(error.into()),
        };
        self.set_aside(&file, &damage, "what is missing of its games is played again")?;
        Ok(None)
    }

    /// The games of an earlier generation, as many as can be read; `None`, with a warning, when there are none.
    fn games_of(&self, generation: u32) -> Result<Option<Vec<GameRecord>>, RunError> {
        let file = self.dir.games(generation);
        match self.read_games(generation) {
            Ok(read) => {
                if let Some(damage) = &read.warning {
                    self.tell(&Event::Warning(damage.to_string()))?;
                }
                Ok(Some(read.records))
            }
            Err(RecordFileError::System(error @ PublishError::Missing { .. })) => {
                self.tell(&Event::Warning(format!(
                    "{error} (lost, or removed by keep.games): the run goes on without these games"
                )))?;
                Ok(None)
            }
            Err(error) if error.is_damage() => {
                self.set_aside(&file, &error.to_string(), "the run goes on without these games")?;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Learns from games of a generation from now on.
    pub(super) fn add_to_window(&mut self, generation: u32, records: &[GameRecord]) -> Result<(), RunError> {
        let file = self.dir.games(generation);
        self.window.push(&self.game, records).map_err(|error| RunError::Replay { file, error })
    }

    /// Opens the journal of a generation; one that cannot be used is set aside and begun anew.
    pub(super) fn open_journal(&self, generation: u32) -> Result<RecordWriter, RunError> {
        let origin = self.origin(generation);
        let file = self.dir.games(generation);
        let Opened { writer, warning } = match RecordWriter::open(&file, origin.clone()) {
            Err(error) if error.is_damage() => {
                self.set_aside(&RecordWriter::journal_of(&file), &error.to_string(), "its games are played again")?;
                RecordWriter::open(&file, origin)?
            }
            opened => opened?,
        };
        if let Some(damage) = warning {
            self.tell(&Event::Warning(damage.to_string()))?;
        }
        Ok(writer)
    }

    fn origin(&self, generation: u32) -> Origin {
        let (game, rules_version) = (full_name(&self.game), G::RULES_VERSION);
        Origin { game, rules_version, seed: self.config.seed, generation }
    }

    /// Removes states that nothing goes back to any more: all but the newest and those at the ends of the last generations.
    /// Returns those ends.
    pub(super) fn forget_old_states(&self) -> Result<Vec<RunState>, RunError> {
        let ends = self.dir.ends()?;
        let (old, _) = ends.split_at(ends.len().saturating_sub(States::ENDS));
        for &generation in old {
            // A failure costs only disk space.
            let _ = std::fs::remove_file(self.dir.end_file(generation));
        }
        let ends = RunState::load_ends(self.dir)?;
        let trainers = ends.iter().chain([&self.state]).filter_map(|state| state.trainer.as_ref());
        self.dir.keep_steps(&trainers.map(|trainer| trainer.name.as_str()).collect::<Vec<_>>());
        Ok(ends)
    }

    /// Removes checkpoints and games that the config does not keep. The `ends` that the run may go back to need them, too.
    pub(super) fn tidy(&self, ends: &[RunState]) -> Result<(), RunError> {
        let states = || ends.iter().chain([&self.state]);
        let newest = self.dir.checkpoints()?.last().copied();
        let needed = states().map(|state| state.best).chain(newest).collect();
        let window = states().map(|state| self.config.replay.first_generation(&state.window_totals)).min().unwrap_or(0);
        Ok(self.config.keep.tidy(self.dir, &needed, window as u32)?)
    }

    fn set_aside(&self, file: &Path, damage: &str, consequence: &str) -> Result<(), RunError> {
        let place = self.dir.set_aside(file)?;
        Ok(self.tell(&Event::Warning(format!("{damage}; it is now {}, {consequence}", place.display())))?)
    }
}
