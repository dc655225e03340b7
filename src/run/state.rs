//! What a run must remember to go on exactly where it stopped, besides weights and games.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::dir::{DirError, RunDir};
use super::growth::GrowthParams;
use super::rating::{Meeting, Rated, elo};
use super::stop::{Done, StopParams};
use crate::util::publish::{PublishError, read_checked, write_checked};
use crate::util::stats::GameCounts;

/// Where in the cycle a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Games of the generation are being played.
    Generate,
    /// The network is being trained on them.
    Learn {
        /// Steps of this generation that are done.
        done: u64,
        /// Steps of this generation.
        total: u64,
    },
    /// The candidate is being compared.
    Gate,
}

/// A file in `state/`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainerFile {
    /// Its name.
    pub name: String,
    /// Its [digest](super::pointer::file_digest), so that an exchanged file is noticed.
    pub digest: String,
}

/// The state of a run between two moments at which it can be interrupted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunState {
    /// What run it is of: [`RunConfig::identity`](super::config::RunConfig::identity). Empty in format 2, which did not say.
    #[serde(default)]
    pub run: String,
    /// Number of the mark that observers were given before this state was published.
    pub mark: u64,
    /// The generation in progress, from 1.
    pub generation: u32,
    /// Its stage.
    pub stage: Stage,
    /// Training steps of the whole run.
    pub step: u64,
    /// Training samples of the whole run.
    pub samples: u64,
    /// The trainer's state; `None` before the first training.
    pub trainer: Option<TrainerFile>,
    /// The generation whose network plays.
    pub best: u32,
    /// Digest of its checkpoint.
    pub best_digest: String,
    /// Games played.
    pub games: u64,
    /// Positions played.
    pub positions: u64,
    /// Batches of the generation in progress that were left out because something was not finite.
    #[serde(default)]
    pub rejected: u64,
    /// Times that the training has returned to the beginning of a generation because of too many of them.
    #[serde(default)]
    pub rollbacks: u32,
    /// What the learning rate is multiplied with since then.
    #[serde(default = "full_rate")]
    pub rate_factor: f64,
    /// The steps to other networks that it has taken, that of the generation in progress once its games are played.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grown: Vec<GrowthParams>,
    /// Draw weights of all games after each generation, as the replay window counts them; the first entry is
    /// generation 0, which has no games.
    pub window_totals: Vec<u64>,
    /// Rated games.
    pub meetings: Vec<Meeting>,
    /// Hours of work so far, over all parts of the run.
    pub hours: f64,
    /// Hours of processor time of that, all threads together. Formats before 4 did not count them.
    #[serde(default)]
    pub cpu_hours: f64,
}

fn full_rate() -> f64 {
    1.0
}

const KIND: [u8; 4] = *b"SPRS";
const FORMAT: u32 = 4;
/// The first format that is read as well.
const FIRST_FORMAT: u32 = 2;
/// No run counts so far; sums of such numbers do not overflow.
const MOST: u64 = 1 << 53;
/// The file that holds the newest state.
pub const NAME: &str = "run.state";

impl RunState {
    /// A run that has not begun.
    pub fn new() -> Self {
        Self {
            run: String::new(),
            mark: 0,
            generation: 1,
            stage: Stage::Generate,
            step: 0,
            samples: 0,
            trainer: None,
            best: 0,
            best_digest: String::new(),
            games: 0,
            positions: 0,
            rejected: 0,
            rollbacks: 0,
            rate_factor: full_rate(),
            grown: Vec::new(),
            window_totals: vec![0],
            meetings: Vec::new(),
            hours: 0.0,
            cpu_hours: 0.0,
        }
    }

    /// The state that a run left; `None` when it was stopped before its first one.
    ///
    /// # Errors
    /// When the file is damaged, of another format, or cannot be read.
    pub fn load(dir: &RunDir) -> Result<Option<Self>, DirError> {
        Self::read(&dir.state_file(NAME))
    }

    /// [`load`](Self::load) of the file `path`.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, DirError> {
        if !path.try_exists().map_err(|e| PublishError::reading(path, e))? {
            return Ok(None);
        }
        let payload = match read_checked(path, KIND, FORMAT) {
            Err(PublishError::Format { found, .. }) if (FIRST_FORMAT..FORMAT).contains(&found) => {
                read_checked(path, KIND, found)?
            }
            read => read?,
        };
        let damaged = |what: String| PublishError::Damaged { file: path.to_owned(), what };
        let state: Self = serde_json::from_slice(&payload).map_err(|error| damaged(error.to_string()))?;
        match state.impossible() {
            None => Ok(Some(state)),
            Some(field) => Err(damaged(format!("its `{field}` cannot be")).into()),
        }
    }

    /// How far the run has come.
    pub fn done(&self) -> Done {
        Done {
            iterations: self.generation - 1,
            games: self.games,
            positions: self.positions,
            hours: self.hours,
            cpu_hours: self.cpu_hours,
            elo: elo(&self.meetings, Rated::Generation(self.best)).map(|elo| elo.value),
        }
    }

    /// Whether the run has reached one of its goals.
    pub fn is_complete(&self, stop: &StopParams) -> bool {
        self.stage == Stage::Generate && stop.reached(&self.done()).is_some()
    }

    /// The first field that says what no run comes to, so that whoever goes on from a state can count with its numbers and
    /// open the files it names.
    fn impossible(&self) -> Option<&'static str> {
        let generation = self.generation as usize;
        let counts = [self.mark, self.step, self.samples, self.games, self.positions];
        let stage = match self.stage {
            Stage::Learn { done, total } => done <= total && total <= MOST,
            Stage::Generate | Stage::Gate => true,
        };
        let is_plain = |name: &str| Path::new(name).file_name().is_some_and(|plain| plain == name);
        let totals = &self.window_totals;
        let met = |meeting: &Meeting| {
            let GameCounts { wins, draws, losses } = meeting.games;
            let known = |who| !matches!(who, Rated::Generation(generation) if generation > self.generation);
            [wins, draws, losses].iter().all(|&games| games <= MOST) && known(meeting.a) && known(meeting.b)
        };
        let checks = [
            ("generation", (1..u32::MAX).contains(&self.generation)),
            ("stage", stage),
            ("best", self.best <= self.generation),
            ("mark, step, samples, games or positions", counts.iter().all(|&count| count <= MOST)),
            ("trainer", self.trainer.as_ref().is_none_or(|trainer| is_plain(&trainer.name))),
            ("window_totals", totals.is_sorted() && totals.iter().all(|&total| total <= MOST)),
            ("window_totals", totals.len() == generation || totals.len() == generation + 1),
            ("meetings", self.meetings.iter().all(met)),
            ("hours", [self.hours, self.cpu_hours].iter().all(|hours| (0.0..=MOST as f64).contains(hours))),
        ];
        checks.into_iter().find(|(_, holds)| !holds).map(|(field, _)| field)
    }

    /// The states at the ends of the last generations, from the newest on; those that cannot be read are left out.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn load_ends(dir: &RunDir) -> Result<Vec<Self>, DirError> {
        let ends = dir.ends()?.into_iter().rev();
        Ok(ends.filter_map(|generation| Self::read(&dir.end_file(generation)).ok().flatten()).collect())
    }

    /// Publishes this state, in which a generation begins, once more as the end of the one before, to go back to when
    /// something newer is damaged.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn save_end(&self, dir: &RunDir) -> Result<(), DirError> {
        self.write(&dir.end_file(self.generation - 1))
    }

    /// Publishes the state.
    ///
    /// # Errors
    /// When the disk refuses; the state before is still there then.
    pub fn save(&self, dir: &RunDir) -> Result<(), DirError> {
        self.write(&dir.state_file(NAME))
    }

    fn write(&self, path: &Path) -> Result<(), DirError> {
        let payload = serde_json::to_vec(self).expect("plain data has a JSON form");
        Ok(write_checked(path, KIND, FORMAT, &payload)?)
    }
}

impl Default for RunState {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn former_formats_are_read_and_a_newer_one_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let state = RunState { mark: 7, games: 40, stage: Stage::Learn { done: 1, total: 9 }, ..RunState::default() };
        // Format 3 counted no processor time; format 2 did not know what run it was of, nor of numbers that are not finite.
        let mut former = serde_json::to_value(&state).unwrap();
        for (format, keys) in
            [(3, &["cpu_hours"][..]), (FIRST_FORMAT, &["run", "rejected", "rollbacks", "rate_factor"])]
        {
            for key in keys {
                former.as_object_mut().unwrap().remove(*key).unwrap();
            }
            write_checked(&path, KIND, format, former.to_string().as_bytes()).unwrap();
            assert_eq!(RunState::read(&path).unwrap(), Some(state.clone()));
        }
        for (format, remedy) in [(FORMAT + 1, "use the newer program"), (FIRST_FORMAT - 1, "use the older program")] {
            write_checked(&path, KIND, format, &serde_json::to_vec(&state).unwrap()).unwrap();
            let told = RunState::read(&path).unwrap_err().to_string();
            assert!(told.contains(&format!("has format {format}")) && told.contains(remedy), "{told}");
        }
    }
}
