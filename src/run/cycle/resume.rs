//! Taking up a run where its state says: what must be there is checked before any work, what can be made again is.

use super::{Cycle, RunError};
use crate::data::{GameRecord, Opened, Origin, RecordFileError, RecordWriter};
use crate::game::{Game, full_name};
use crate::run::event::Event;
use crate::run::pointer::{Which, file_digest};
use crate::run::state::Stage;
use crate::util::publish::PublishError;

impl<G: Game> Cycle<'_, G> {
    /// Checks what the state names and loads the games of the replay window from generation `first` on.
    pub(super) fn take_up(&mut self, first: usize) -> Result<(), RunError> {
        if self.state.mark > 0 {
            self.mend_pointers()?;
            // Better now than after an hour of self-play.
            self.checkpoint(self.state.best)?;
            if let Some(name) = &self.state.trainer {
                let file = self.dir.state_file(name);
                if !file.exists() {
                    return Err(RunError::NoTrainer { file });
                }
            }
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
            let checkpoint = self.dir.checkpoint(expected);
            let (name, warning) = (which.file_name(), |what: String| Event::Warning(format!("{what}; written anew")));
            match self.dir.read_pointer(which) {
                Ok(Some(pointer)) if pointer.generation == expected => {
                    if which == Which::Best && file_digest(&checkpoint)? != pointer.digest {
                        return Err(RunError::Exchanged { file: checkpoint });
                    }
                    continue;
                }
                // The process ended between the publication of a pointer and that of the state.
                Ok(Some(pointer)) if pointer.generation == current => {}
                Ok(Some(pointer)) => self.tell(&warning(format!(
                    "`{name}` names generation {}, by the state of the run it is {expected}",
                    pointer.generation
                )))?,
                Ok(None) => self.tell(&warning(format!("`{name}` is missing")))?,
                Err(error) => self.tell(&warning(error.to_string()))?,
            }
            // Only the best checkpoint is needed to go on; without the other there is nothing to point at.
            if which == Which::Best || checkpoint.exists() {
                self.point(which, expected)?;
            }
        }
        Ok(())
    }

    /// The games of a generation, as many as can be read; `None`, with a warning, when there are none.
    pub(super) fn games_of(&self, generation: u32) -> Result<Option<Vec<GameRecord>>, RunError> {
        let file = self.dir.games(generation);
        match crate::data::read(&file) {
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
                self.set_aside(&file, &error, "the run goes on without these games")?;
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
        let origin =
            Origin { game: full_name(&self.game), rules_version: G::RULES_VERSION, seed: self.config.seed, generation };
        let file = self.dir.games(generation);
        let Opened { writer, warning } = match RecordWriter::open(&file, origin.clone()) {
            Err(error) if error.is_damage() => {
                self.set_aside(&RecordWriter::journal_of(&file), &error, "its games are played again")?;
                RecordWriter::open(&file, origin)?
            }
            opened => opened?,
        };
        if let Some(damage) = warning {
            self.tell(&Event::Warning(damage.to_string()))?;
        }
        Ok(writer)
    }

    fn set_aside(&self, file: &std::path::Path, error: &RecordFileError, consequence: &str) -> Result<(), RunError> {
        let place = self.dir.set_aside(file)?;
        Ok(self.tell(&Event::Warning(format!("{error}; it is now {}, {consequence}", place.display())))?)
    }
}
