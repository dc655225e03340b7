//! Whether the files of a run are what they should be: `sparring inspect --verify`.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::config::{IDENTITY, RunConfig};
use super::dir::{DirError, RunDir};
use super::pointer::{Which, file_digest};
use super::state::{NAME, RunState, Stage, TrainerFile};
use super::tensorboard::unread_bytes;
use crate::data::{GameRecord, Origin};
use crate::game::{Game, full_name};
use crate::games::{self, GameVisitor};
use crate::net::Checkpoint;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// Files that were read.
    pub files: usize,
    /// What is wrong, file by file.
    pub problems: Vec<Problem>,
    /// Files that earlier damage has brought into `damaged/`.
    pub set_aside: Vec<String>,
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The file, below the run's folder.
    pub file: String,
    /// What is wrong.
    pub problem: String,
}

/// Reads every file of the run in `dir` and checks it: formats, checksums, games by the rules, weights, and whether the files
/// belong together. Changes nothing.
///
/// # Errors
/// When a folder cannot be read, or `dir` is no run.
pub fn verify(dir: &RunDir) -> Result<Verification, DirError> {
    let mut desk = Desk { dir, found: Verification::default() };
    let text = desk.look(&dir.config(), |path| fs::read_to_string(path).map_err(|error| error.to_string()));
    let config = text.and_then(|text| {
        let parsed = RunConfig::parse("config.json", &text, &[]);
        parsed
            .map_err(|errors| desk.blame(&dir.config(), format!("{errors}; networks and games were not looked at")))
            .ok()
    });
    desk.metrics();
    desk.charts()?;
    let newest = desk.look(&dir.state_file(NAME), |_| match RunState::load(dir) {
        Ok(Some(state)) => Ok(state),
        Ok(None) => Err("it is missing".to_owned()),
        Err(error) => Err(error.to_string()),
    });
    let mut states: Vec<RunState> = newest.iter().cloned().collect();
    for generation in dir.ends()? {
        let file = dir.end_file(generation);
        states.extend(desk.look(&file, |path| RunState::read(path).map_err(|error| error.to_string())).flatten());
    }
    desk.states(&states, newest.as_ref());
    for which in [Which::Best, Which::Latest] {
        desk.pointer(which, newest.as_ref());
    }
    if let (Some(config), Some(newest)) = (&config, &newest) {
        let mut config = config.clone();
        config.training_threads = Some(config.training_threads() as u32);
        if !newest.run.is_empty() && newest.run != config.identity() {
            let keys = IDENTITY.join(", ");
            desk.blame(&dir.config(), format!("by {NAME} it is of another run (what differs is among {keys})"));
        }
    }
    if let Some(config) = config {
        let work = Contents { desk: &mut desk, config: &config };
        if let Err(error) = games::dispatch(&config.game, work).map_err(|error| error.to_string()).and_then(|done| done)
        {
            desk.blame(&dir.config(), error);
        }
    }
    if let Ok(entries) = fs::read_dir(dir.root().join("damaged")) {
        desk.found.set_aside = entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        desk.found.set_aside.sort();
    }
    Ok(desk.found)
}

struct Desk<'a> {
    dir: &'a RunDir,
    found: Verification,
}

impl Desk<'_> {
    fn blame(&mut self, file: &Path, problem: String) {
        let file = file.strip_prefix(self.dir.root()).unwrap_or(file).display().to_string();
        self.found.problems.push(Problem { file, problem });
    }

    /// Reads a file by `read`, and notes what it complains of.
    fn look<T>(&mut self, file: &Path, read: impl FnOnce(&Path) -> Result<T, String>) -> Option<T> {
        self.found.files += 1;
        read(file).map_err(|problem| self.blame(file, problem)).ok()
    }

    fn metrics(&mut self) {
        self.look(&self.dir.metrics(), |path| {
            let file = File::open(path).map_err(|error| error.to_string())?;
            for (line, number) in BufReader::new(file).lines().zip(1..) {
                let line = line.map_err(|error| format!("line {number}: {error}"))?;
                let read = serde_json::from_str::<serde_json::Value>(&line);
                read.map_err(|error| format!("line {number} is no JSON: {error}"))?;
            }
            Ok(())
        });
    }

    fn charts(&mut self) -> Result<(), DirError> {
        let Ok(entries) = fs::read_dir(self.dir.tensorboard()) else {
            self.blame(&self.dir.tensorboard(), "it is missing".to_owned());
            return Ok(());
        };
        let mut files: Vec<PathBuf> =
            entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
        files.sort();
        for file in files {
            self.look(&file, |path| match unread_bytes(path) {
                Ok(0) => Ok(()),
                Ok(bytes) => Err(format!("its last {bytes} bytes are damaged")),
                Err(error) => Err(error.to_string()),
            });
        }
        Ok(())
    }

    /// What the states name is there as they name it. The best checkpoint and its copy are those of the `newest`.
    fn states(&mut self, states: &[RunState], newest: Option<&RunState>) {
        let mut named: Vec<(PathBuf, &str)> = Vec::new();
        for state in states {
            if let Some(TrainerFile { name, digest }) = &state.trainer {
                named.push((self.dir.state_file(name), digest));
            }
        }
        // The network that is being compared: its publication as the best one may have been cut off before the state says so.
        let mut candidate = None;
        if let Some(newest) = newest.filter(|state| state.mark > 0) {
            named.push((self.dir.checkpoint(newest.best), &newest.best_digest));
            named.push((self.dir.best_copy(), &newest.best_digest));
            if newest.stage == Stage::Gate {
                candidate = file_digest(&self.dir.checkpoint(newest.generation)).ok();
            }
        }
        named.sort();
        named.dedup();
        let copy = self.dir.best_copy();
        for (file, digest) in named {
            self.look(&file, |path| match file_digest(path) {
                Ok(found) if found == digest => Ok(()),
                Ok(found) if path == copy && candidate.as_ref() == Some(&found) => Ok(()),
                Ok(_) => Err("it is not the file that the run made".to_owned()),
                Err(error) => Err(error.to_string()),
            });
        }
    }

    /// A pointer names a file that is as it was then. A candidate's is published anew with its Elo before the pointer is.
    fn pointer(&mut self, which: Which, newest: Option<&RunState>) {
        let candidate = newest.filter(|state| state.stage == Stage::Gate).map(|state| state.generation);
        let (dir, file) = (self.dir, self.dir.pointer(which));
        self.look(&file, |_| {
            let pointer = dir.read_pointer(which).map_err(|error| error.to_string())?.ok_or("it is missing")?;
            let target = dir.checkpoint(pointer.generation);
            let found = file_digest(&target).map_err(|error| format!("what it names cannot be read: {error}"))?;
            let is_rated = which == Which::Latest && candidate == Some(pointer.generation);
            if found == pointer.digest || is_rated {
                Ok(())
            } else {
                Err(format!("{} has changed since", target.display()))
            }
        });
    }
}

/// Checkpoints and games, for which the game must be known.
struct Contents<'a, 'b> {
    desk: &'a mut Desk<'b>,
    config: &'a RunConfig,
}

impl GameVisitor for Contents<'_, '_> {
    type Output = Result<(), String>;

    fn visit<G: Game>(self, game: G) -> Self::Output {
        let dir = self.desk.dir;
        for generation in dir.checkpoints().map_err(|error| error.to_string())? {
            self.desk.look(&dir.checkpoint(generation), |path| {
                let checkpoint = Checkpoint::load(path).map_err(|error| error.to_string())?;
                checkpoint.check_game(&game).map_err(|error| error.to_string())?;
                match checkpoint.info.generation {
                    found if found == generation => Ok(()),
                    found => Err(format!("it holds the network of generation {found}")),
                }
            });
        }
        for generation in dir.game_files().map_err(|error| error.to_string())? {
            let (name, rules_version) = (full_name(&game), G::RULES_VERSION);
            let expected = Origin { game: name, rules_version, seed: self.config.seed, generation };
            self.desk.look(&dir.games(generation), |path| {
                let read = crate::data::read(path).map_err(|error| error.to_string())?;
                if let Some(found) = read.records.iter().map(GameRecord::origin).find(|found| *found != expected) {
                    return Err(format!("it holds games of {found}, expected {expected}"));
                }
                for record in &read.records {
                    record.check(&game).map_err(|error| error.to_string())?;
                }
                read.warning.map_or(Ok(()), |damage| Err(damage.to_string()))
            });
        }
        Ok(())
    }
}
