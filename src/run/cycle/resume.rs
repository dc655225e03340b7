//! Taking up a run where its state says: what must be there is checked before any work, what can be made again is.

use std::path::{Path, PathBuf};

use super::{Cycle, RunError};
use crate::data::{GameRecord, Opened, Origin, ReadRecords, RecordFileError, RecordWriter};
use crate::game::{Game, full_name};
use crate::run::dir::DirError;
use crate::run::event::Event;
use crate::run::pointer::{Which, file_digest};
use crate::run::state::{Stage, TrainerFile};
use crate::util::publish::PublishError;

impl<G: Game> Cycle<'_, G> {
    /// Whether everything is there that the run cannot go on without: better now than after an hour of self-play. Changes
    /// nothing.
    pub(super) fn check(&self) -> Result<(), RunError> {
        if self.state.mark == 0 {
            return Ok(());
        }
        let is = |file: PathBuf, digest: &str| match file_digest(&file) {
            Ok(found) if found == digest => Ok(true),
            Ok(_) => Ok(false),
            Err(DirError::Publish(PublishError::Missing { .. })) => Err(RunError::Lost { file }),
            Err(error) => Err(error.into()),
        };
        let best = self.dir.checkpoint(self.state.best);
        let whole = is(best.clone(), &self.state.best_digest)?;
        // What is wrong with it in itself is the better explanation.
        self.checkpoint(self.state.best)?;
        if !whole {
            return Err(RunError::Exchanged { file: best });
        }
        if let Some(TrainerFile { name, digest }) = &self.state.trainer {
            let file = self.dir.state_file(name);
            if !is(file.clone(), digest)? {
                self.open_trainer()?;
                return Err(RunError::Exchanged { file });
            }
        }
        Ok(())
    }

    /// Mends the pointers and loads the games of the replay window from generation `first` on.
    pub(super) fn take_up(&mut self, first: usize) -> Result<(), RunError> {
        if self.state.mark > 0 {
            self.mend_pointers()?;
        }
        if let Some(TrainerFile { name, .. }) = &self.state.trainer {
            // A process that was killed may have left others.
            self.dir.keep_one_step(name);
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
                self.tell(&Event::Warning(format!("{error}: the run goes on without these games")))?;
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

    fn set_aside(&self, file: &Path, damage: &str, consequence: &str) -> Result<(), RunError> {
        let place = self.dir.set_aside(file)?;
        Ok(self.tell(&Event::Warning(format!("{damage}; it is now {}, {consequence}", place.display())))?)
    }
}
