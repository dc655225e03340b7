//! The folder of a run: who owns which path, and what state a folder is in.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::pointer::Which;
use crate::util::publish::{self, PublishError, RunLock};

/// The folder of a run. The one type that knows where things are:
///
/// ```text
/// RUN/
/// ├── config.json                       the resolved config, every default written out
/// ├── checkpoints/gen-000012.safetensors  the weights of generation 12, usable alone
/// ├── state/run.state                   where the cycle stands: counters, stage, rated games
/// ├── state/step-000004200.state        the trainer: weights, averages, optimizer
/// ├── games/gen-000012.games            the self-play games that generation 12 learns from
/// ├── samples/gen-000012.txt            one of these games, drawn for people
/// ├── tb/                               event files for TensorBoard
/// ├── metrics.jsonl                     the same numbers, one JSON object a line
/// ├── best                              names the strongest checkpoint
/// ├── latest                            names the newest checkpoint
/// ├── lock                              held by the process that works on the run
/// ├── damaged/                          files that failed their check and were set aside
/// └── rejected/                         batches that could not be learned from, for inspection
/// ```
///
/// `config.json` is written last when a run is created, so that a folder with it is a complete run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDir {
    root: PathBuf,
}

/// What was found at the place of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing: a run can be created.
    Absent,
    /// An empty folder: a run can be created in it.
    Empty,
    /// A folder in which the creation of a run was cut off before anything was played: it can be repeated.
    Unfinished,
    /// A run: it can be resumed.
    Run,
}

/// Why a run's folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirError {
    /// The place is taken by something that is no folder.
    #[error("{} is a file, expected the folder of a run: choose another place", .0.display())]
    NotFolder(PathBuf),
    /// The folder holds other things.
    #[error("{} is no run, it holds {entry:?}: choose another folder, or an empty one", .folder.display())]
    Foreign {
        /// The folder.
        folder: PathBuf,
        /// Something in it that no run holds.
        entry: String,
    },
    /// The folder holds parts of a run but no config.
    #[error(
        "{} holds {entry} of a run but no {missing}: restore it from a copy, or choose another folder",
        .folder.display()
    )]
    Incomplete {
        /// The folder.
        folder: PathBuf,
        /// What is not there ("config.json").
        missing: &'static str,
        /// What it holds ("games").
        entry: String,
    },
    /// A run is to be created where one is, or the other way round.
    #[error("{} holds {}: {remedy}", .folder.display(), describe(*.found))]
    Unexpected {
        /// The folder.
        folder: PathBuf,
        /// What it holds.
        found: Found,
        /// What to do.
        remedy: &'static str,
    },
    /// A file cannot be read or written, or another process works on the run.
    #[error(transparent)]
    Publish(#[from] PublishError),
}

fn describe(found: Found) -> &'static str {
    match found {
        Found::Absent => "nothing",
        Found::Empty => "nothing yet",
        Found::Unfinished => "a run whose creation was cut off",
        Found::Run => "a run",
    }
}

/// The folders of a run.
const FOLDERS: [&str; 5] = ["checkpoints", "state", "games", "samples", "tb"];
/// Everything else that a run holds in its root.
const FILES: [&str; 7] = ["config.json", "metrics.jsonl", "best", "latest", "lock", "damaged", "rejected"];

impl RunDir {
    /// The run at `root`, which need not exist. Does no I/O.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Whether games have been played or networks trained here: what must not be taken for a new run.
    ///
    /// # Errors
    /// When a folder cannot be read.
    pub fn has_work(&self) -> Result<bool, DirError> {
        let untrained = self.checkpoint(0);
        for folder in ["checkpoints", "games"].map(|name| self.root.join(name)) {
            let failed = |source| PublishError::reading(&folder, source);
            if !folder.exists() {
                continue;
            }
            for entry in fs::read_dir(&folder).map_err(failed)? {
                let path = entry.map_err(failed)?.path();
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                if path != untrained && !publish::is_temporary(&name) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `config.json`.
    pub fn config(&self) -> PathBuf {
        self.root.join("config.json")
    }

    /// The weights of a generation.
    pub fn checkpoint(&self, generation: u32) -> PathBuf {
        self.root.join("checkpoints").join(generation_name(generation, "safetensors"))
    }

    /// A file with state of the run; `name` is a plain file name.
    pub fn state_file(&self, name: &str) -> PathBuf {
        self.root.join("state").join(name)
    }

    /// The game records that a generation was the first to learn from.
    pub fn games(&self, generation: u32) -> PathBuf {
        self.root.join("games").join(generation_name(generation, "games"))
    }

    /// Drawn games of a generation.
    pub fn samples(&self, generation: u32) -> PathBuf {
        self.root.join("samples").join(generation_name(generation, "txt"))
    }

    /// Where a batch of a generation is kept that could not be learned from.
    pub fn rejected(&self, generation: u32, step: u64) -> PathBuf {
        self.root.join("rejected").join(format!("gen-{generation:06}-step-{step:06}.safetensors"))
    }

    /// The folder of TensorBoard's event files.
    pub fn tensorboard(&self) -> PathBuf {
        self.root.join("tb")
    }

    /// `metrics.jsonl`.
    pub fn metrics(&self) -> PathBuf {
        self.root.join("metrics.jsonl")
    }

    /// The file of a pointer.
    pub fn pointer(&self, which: Which) -> PathBuf {
        self.root.join(which.file_name())
    }

    /// The folder of the run that a file lies in, at its top or one folder below.
    pub fn around(file: &Path) -> Option<PathBuf> {
        let is_run = |folder: &&Path| matches!(Self::new(*folder).find(), Ok(Found::Run));
        file.ancestors().skip(1).take(2).find(is_run).map(Path::to_owned)
    }

    /// What is at the place.
    ///
    /// # Errors
    /// When it is something that is neither a run nor empty, or cannot be read.
    pub fn find(&self) -> Result<Found, DirError> {
        let failed = |source| PublishError::reading(&self.root, source);
        match fs::metadata(&self.root) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Err(DirError::NotFolder(self.root.clone())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Found::Absent),
            Err(e) => return Err(failed(e).into()),
        }
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.root).map_err(failed)? {
            names.push(entry.map_err(failed)?.file_name().to_string_lossy().into_owned());
        }
        names.retain(|name| !publish::is_temporary(name));
        names.sort();
        if names.is_empty() {
            return Ok(Found::Empty);
        }
        let has = |wanted: &str| names.iter().any(|name| name == wanted);
        // Other files beside a run (a note, a plot) do no harm.
        if has("config.json") && has("checkpoints") {
            return Ok(Found::Run);
        }
        if has("config.json") && has("metrics.jsonl") && has("state") {
            let (folder, entry) = (self.root.clone(), "state".to_owned());
            return Err(DirError::Incomplete { folder, missing: "checkpoints", entry });
        }
        // A config alone may be anybody's: those of runs are written after the folders.
        let known = |name: &str| FOLDERS.contains(&name) || FILES.contains(&name);
        if let Some(entry) = names.iter().find(|name| *name == "config.json" || !known(name)) {
            return Err(DirError::Foreign { folder: self.root.clone(), entry: entry.clone() });
        }
        for name in names.iter().filter(|name| *name != "lock") {
            let path = self.root.join(name);
            let filled = !path.is_dir() || fs::read_dir(&path).map_err(failed)?.next().is_some();
            if filled {
                let (folder, entry) = (self.root.clone(), name.clone());
                return Err(DirError::Incomplete { folder, missing: "config.json", entry });
            }
        }
        Ok(Found::Unfinished)
    }

    /// Creates the run with its resolved config (text of a JSON document) and takes its lock.
    ///
    /// # Errors
    /// When there is a run or something else already, another process creates it, or the disk refuses.
    pub fn create(&self, config: &str) -> Result<RunLock, DirError> {
        self.expect_new()?;
        let failed = |path: &Path, source| PublishError::writing(path, "create", source);
        fs::create_dir_all(&self.root).map_err(|e| failed(&self.root, e))?;
        let lock = RunLock::take(&self.root)?;
        // Another process may have created the run before the lock was ours.
        self.expect_new()?;
        // What a process left that was killed while it created the run.
        publish::sweep(&self.root)?;
        self.make_folders()?;
        publish::write_atomic(&self.config(), config.as_bytes())?;
        if let Some(parent) = self.root.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            publish::sync_folder(parent)?;
        }
        Ok(lock)
    }

    fn expect_new(&self) -> Result<(), DirError> {
        let remedy = "resume it by the same command without creating it, or choose another folder";
        match self.find()? {
            Found::Run => Err(DirError::Unexpected { folder: self.root.clone(), found: Found::Run, remedy }),
            _ => Ok(()),
        }
    }

    fn make_folders(&self) -> Result<(), DirError> {
        for name in FOLDERS {
            let path = self.root.join(name);
            fs::create_dir_all(&path).map_err(|e| PublishError::writing(&path, "create", e))?;
        }
        Ok(())
    }

    /// Opens an existing run for work: takes its lock, brings back missing folders and removes what killed
    /// processes left half-written.
    ///
    /// # Errors
    /// When there is no run, another process works on it, or the disk refuses.
    pub fn open(&self) -> Result<RunLock, DirError> {
        match self.find()? {
            Found::Run => {}
            found => {
                let remedy = "name the folder of a run";
                return Err(DirError::Unexpected { folder: self.root.clone(), found, remedy });
            }
        }
        let lock = RunLock::take(&self.root)?;
        self.make_folders()?;
        publish::sweep(&self.root)?;
        for name in FOLDERS {
            publish::sweep(&self.root.join(name))?;
        }
        Ok(lock)
    }

    /// The generations that have a checkpoint, ascending.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn checkpoints(&self) -> Result<Vec<u32>, DirError> {
        self.generations("checkpoints", "safetensors")
    }

    /// The generations that have game records, ascending.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn game_files(&self) -> Result<Vec<u32>, DirError> {
        self.generations("games", "games")
    }

    fn generations(&self, folder: &str, extension: &str) -> Result<Vec<u32>, DirError> {
        let path = self.root.join(folder);
        let failed = |source| PublishError::reading(&path, source);
        let mut found = Vec::new();
        for entry in fs::read_dir(&path).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            found.extend(name.to_str().and_then(|name| parse_generation(name, extension)));
        }
        found.sort_unstable();
        Ok(found)
    }

    /// The copy of the best checkpoint: without that network nothing goes on.
    pub fn best_copy(&self) -> PathBuf {
        self.state_file("best.safetensors")
    }

    /// The state at the end of a generation.
    pub fn end_file(&self, generation: u32) -> PathBuf {
        self.state_file(&generation_name(generation, "state"))
    }

    /// The generations whose end has a state of its own, ascending.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn ends(&self) -> Result<Vec<u32>, DirError> {
        self.generations("state", "state")
    }

    /// Removes the trainer's states but those called `kept`. A failure costs only disk space.
    pub fn keep_steps(&self, kept: &[&str]) {
        let Ok(entries) = fs::read_dir(self.root.join("state")) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let is_step = |name: &&str| name.starts_with("step-") && name.ends_with(".state");
            if name.to_str().filter(is_step).is_some_and(|name| !kept.contains(&name)) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Sets a damaged file of this run aside: moves it into `damaged/`, under a name not yet taken there, and
    /// returns its new place.
    ///
    /// # Errors
    /// When it cannot be moved.
    pub fn set_aside(&self, file: &Path) -> Result<PathBuf, DirError> {
        let folder = self.root.join("damaged");
        fs::create_dir_all(&folder).map_err(|e| PublishError::writing(&folder, "create", e))?;
        Ok(publish::set_aside(file, &folder.join(file.file_name().unwrap_or_default()))?)
    }
}

/// `gen-000012.safetensors`
pub(super) fn generation_name(generation: u32, extension: &str) -> String {
    format!("gen-{generation:06}.{extension}")
}

pub(super) fn parse_generation(name: &str, extension: &str) -> Option<u32> {
    let digits = name.strip_prefix("gen-")?.strip_suffix(extension)?.strip_suffix('.')?;
    let generation = digits.parse().ok()?;
    // Only the name that this generation has: no sign, no other number of digits.
    (generation_name(generation, extension) == name).then_some(generation)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh() -> (tempfile::TempDir, RunDir) {
        let temporary = tempfile::tempdir().expect("a temporary folder");
        let dir = RunDir::new(temporary.path().join("deep").join("run"));
        (temporary, dir)
    }

    #[test]
    fn a_run_is_created_once_and_opened_again() {
        let (_guard, dir) = fresh();
        assert_eq!(dir.find().unwrap(), Found::Absent);
        assert!(dir.open().unwrap_err().to_string().ends_with("holds nothing: name the folder of a run"));
        let lock = dir.create("{}\n").unwrap();
        assert_eq!(dir.find().unwrap(), Found::Run);
        assert!(dir.open().unwrap_err().to_string().contains("is in use by"));
        drop(lock);
        assert!(dir.create("{}").unwrap_err().to_string().contains("holds a run: resume it"));
        fs::write(dir.root().join("notes.txt"), "mine").unwrap();
        fs::write(dir.root().join("games/.gen-000001.games.1-2.tmp"), "half").unwrap();
        fs::remove_dir(dir.tensorboard()).unwrap();
        let _lock = dir.open().unwrap();
        assert_eq!(fs::read_dir(dir.root().join("games")).unwrap().count(), 0);
        assert!(dir.tensorboard().is_dir());
        assert_eq!(fs::read_to_string(dir.config()).unwrap(), "{}\n");
    }

    #[test]
    fn other_things_are_told_apart() {
        let (guard, dir) = fresh();
        let with = |name: &str| RunDir::new(guard.path().join(name));
        fs::write(guard.path().join("file"), "").unwrap();
        assert!(matches!(with("file").find(), Err(DirError::NotFolder(_))));
        fs::create_dir_all(dir.root()).unwrap();
        assert_eq!(dir.find().unwrap(), Found::Empty);
        // Creation that was cut off, in any step.
        fs::write(dir.root().join("lock"), "").unwrap();
        fs::create_dir(dir.root().join("games")).unwrap();
        fs::write(dir.root().join(".config.json.77-0.tmp"), "{").unwrap();
        assert_eq!(dir.find().unwrap(), Found::Unfinished);
        fs::write(dir.games(1), "games").unwrap();
        assert!(dir.create("{}").unwrap_err().to_string().contains("holds games of a run but no config.json"));
        fs::remove_file(dir.games(1)).unwrap();
        drop(dir.create("{}").unwrap());
        assert!(!dir.root().join(".config.json.77-0.tmp").exists());
        // A folder with somebody's own config.json is no run, and nothing is written into it.
        fs::create_dir(guard.path().join("web")).unwrap();
        fs::write(guard.path().join("web/config.json"), "{}").unwrap();
        fs::write(guard.path().join("web/index.html"), "").unwrap();
        let error = with("web").create("{}").unwrap_err().to_string();
        assert!(error.contains("is no run, it holds \"config.json\""), "{error}");
        assert_eq!(fs::read_dir(guard.path().join("web")).unwrap().count(), 2);
        fs::remove_file(guard.path().join("web/index.html")).unwrap();
        assert!(matches!(with("web").find(), Err(DirError::Foreign { .. })));
    }

    #[test]
    fn generations_are_listed_in_order_without_strangers() {
        let (_guard, dir) = fresh();
        let _lock = dir.create("{}").unwrap();
        for generation in [1_234_567, 2, 10, 0] {
            fs::write(dir.checkpoint(generation), "").unwrap();
        }
        for stranger in
            ["gen-12.safetensors", "gen-+00012.safetensors", "gen-000003.onnx", "x", ".gen-000004.safetensors.1-1.tmp"]
        {
            fs::write(dir.root().join("checkpoints").join(stranger), "").unwrap();
        }
        assert_eq!(dir.checkpoints().unwrap(), [0, 2, 10, 1_234_567]);
    }

    #[test]
    fn damaged_files_are_set_aside_without_overwriting_others() {
        let (_guard, dir) = fresh();
        let _lock = dir.create("{}").unwrap();
        for text in ["a", "b"] {
            fs::write(dir.games(3), text).unwrap();
            let place = dir.set_aside(&dir.games(3)).unwrap();
            assert_eq!(fs::read_to_string(place).unwrap(), text);
        }
        assert_eq!(fs::read_dir(dir.root().join("damaged")).unwrap().count(), 2);
        assert_eq!(dir.find().unwrap(), Found::Run);
    }
}
