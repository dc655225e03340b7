//! Training runs of tests: where they lie, and whether two of them came to the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use protobuf::Message as _;
use serde_json::{Value as Json, json};
use sparring::net::Checkpoint;
use tensorboard_proto::event::Event;

use super::{Process, train};

/// A folder for one test, with a config in it and a place for a run. All runs have the same name, which is in checkpoints.
pub struct Place {
    pub scratch: tempfile::TempDir,
}

impl Place {
    pub fn new(config: &str) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        fs::write(scratch.path().join("config.json"), config).unwrap();
        Self { scratch }
    }

    pub fn config(&self) -> PathBuf {
        self.scratch.path().join("config.json")
    }

    pub fn run(&self) -> PathBuf {
        self.scratch.path().join("run")
    }

    pub fn train(&self, sets: &[&str]) -> Process {
        Process::start(&mut train(&self.config(), &self.run(), sets))
    }
}

/// Makes the run of `config` without any disturbance, in a folder of this name that stays for the other tests of a file.
pub fn undisturbed(name: &str, config: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("config.json");
    fs::write(&file, config).unwrap();
    let done = Process::start(&mut train(&file, &folder.join("run"), &[])).finish().expect(0);
    assert!(done.out.trim_end().ends_with(".safetensors"), "{}", done.out);
    folder.join("run")
}

/// Every file of a folder and those below, with its bytes.
pub fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(tree(&path));
        } else if path.file_name().unwrap() != "lock" {
            let bytes = fs::read(&path).unwrap();
            found.insert(path, bytes);
        }
    }
    found
}

/// Digests of everything that must not depend on threads or interruptions: weights, whole checkpoints, games, samples, the
/// trainer's state, what the run remembers, the pointers.
pub fn results(run: &Path) -> BTreeMap<String, String> {
    let mut results = BTreeMap::new();
    for folder in ["checkpoints", "games", "samples", "state"] {
        for entry in fs::read_dir(run.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("{folder}/{}", path.file_name().unwrap().to_string_lossy());
            let bytes = fs::read(&path).unwrap();
            if folder == "checkpoints" {
                results
                    .insert(format!("{name} weights"), Checkpoint::load(&path).unwrap().weights.digest().to_string());
            }
            let is_memory = name == "state/run.state" || name.starts_with("state/gen-");
            results.insert(name, if is_memory { memory(&bytes) } else { sum(&bytes) });
        }
    }
    for pointer in ["best", "latest"] {
        results.insert(pointer.to_owned(), fs::read_to_string(run.join(pointer)).unwrap());
    }
    results
}

/// What a run remembers, without the hours of work and the number of savings.
fn memory(file: &[u8]) -> String {
    let mut memory: Json = serde_json::from_slice(&file[24..file.len() - 4]).unwrap();
    for key in ["hours", "cpu_hours", "mark"] {
        memory.as_object_mut().unwrap().remove(key).unwrap();
    }
    memory.to_string()
}

fn sum(bytes: &[u8]) -> String {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("{} bytes, {:016x}", bytes.len(), hasher.finish())
}

#[track_caller]
pub fn assert_same_results(expected: &Path, found: &Path) {
    let (expected, found) = (results(expected), results(found));
    assert!(expected.len() > 10, "{expected:#?}");
    for (name, value) in &expected {
        assert_eq!(found.get(name), Some(value), "{name}");
    }
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
}

/// A recorded number: its event, its place on its axis, its tag.
type Key = (String, String, String);

/// What a run has recorded.
struct Records {
    numbers: Vec<(Key, Json)>,
    /// Training figures that are means over fewer steps than in a run that was not interrupted among these steps.
    shorter: BTreeSet<String>,
}

impl Records {
    fn read(run: &Path) -> Self {
        let text = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
        let (mut numbers, mut shorter) = (Vec::new(), BTreeSet::new());
        let (mut marked, mut trained) = (0, 0);
        for line in text.lines() {
            let line: Json = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            let event = line["event"].as_str().unwrap().to_owned();
            if event == "mark" {
                marked = line["step"].as_u64().unwrap();
                continue;
            }
            let axis = ["step", "generation"].into_iter().find_map(|axis| Some(format!("{axis} {}", line.get(axis)?)));
            let Some(axis) = axis else { continue };
            if event == "train" {
                if marked > trained {
                    shorter.insert(axis.clone());
                }
                trained = line["step"].as_u64().unwrap();
            }
            for (tag, value) in line.as_object().unwrap() {
                let (tag, value) = match (tag.as_str(), event.as_str()) {
                    ("tag", "histogram") => {
                        let mut histogram = line.clone();
                        histogram.as_object_mut().unwrap().remove("time");
                        (value.as_str().unwrap().to_owned(), histogram)
                    }
                    ("text", "sample_game") => ("selfplay/game".to_owned(), value.clone()),
                    (tag, _) if tag.contains('/') => (tag.to_owned(), value.clone()),
                    _ => continue,
                };
                numbers.push(((event.clone(), axis.clone(), tag), value));
            }
        }
        Self { numbers, shorter }
    }

    fn keys(&self) -> Vec<&Key> {
        let mut keys: Vec<_> = self.numbers.iter().map(|(key, _)| key).collect();
        keys.sort();
        keys
    }

    /// The numbers that depend on nothing but the run, without those of the training steps `shorter`.
    fn timeless(&self, shorter: &BTreeSet<String>) -> BTreeMap<&Key, &Json> {
        let timeless = |(event, axis, tag): &Key| {
            let timed = ["time/", "speed/"].iter().any(|group| tag.starts_with(group));
            let rate = ["run/hours", "run/cpu_hours", "train/samples_per_second"].contains(&tag.as_str());
            !timed && !rate && (event != "train" || tag == "train/learning_rate" || !shorter.contains(axis))
        };
        self.numbers.iter().map(|(key, value)| (key, value)).filter(|(key, _)| timeless(key)).collect()
    }
}

/// Every number of the undisturbed run `expected` is in `metrics.jsonl` and in the event files of `found` exactly once, and
/// nothing else; those that do not depend on time are equal.
#[track_caller]
pub fn assert_same_records(expected: &Path, found: &Path) {
    let folder = found;
    let (expected, found) = (Records::read(expected), Records::read(found));
    let unique: BTreeSet<_> = expected.keys().into_iter().collect();
    assert!(unique.len() > 50 && unique.len() == expected.numbers.len(), "{}", expected.numbers.len());
    assert_eq!(found.keys(), expected.keys());
    assert!(expected.shorter.is_empty());
    let values = expected.timeless(&found.shorter);
    assert!(values.len() > 20);
    assert_eq!(found.timeless(&found.shorter), values);

    // The charts show what the lines say.
    let mut drawn = BTreeMap::new();
    for (tag, step, value) in charts(&folder.join("tb")) {
        let place = (tag, step);
        assert!(drawn.insert(place.clone(), value).is_none(), "{place:?} is there twice");
    }
    for ((_, axis, tag), value) in &found.numbers {
        let step: u64 = axis.split(' ').nth(1).unwrap().parse().unwrap();
        let point = drawn.remove(&(tag.clone(), step));
        let point = point.unwrap_or_else(|| panic!("{tag} at {axis} is missing in the charts"));
        match (point, value) {
            (Some(point), Json::Null) => assert!(!point.is_finite(), "{tag} at {axis}: {point}"),
            (Some(point), number) => assert_eq!(json!(point), json!(number.as_f64().unwrap() as f32), "{tag} {axis}"),
            // A histogram or a text.
            (None, _) => {}
        }
    }
    assert!(drawn.is_empty(), "in the charts alone: {drawn:?}");
}

/// Everything in the event files of a folder, in the order in which TensorBoard reads them: tag, place on the axis, and the
/// number where it is one.
fn charts(folder: &Path) -> Vec<(String, u64, Option<f32>)> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut points = Vec::new();
    for file in files {
        let bytes = fs::read(&file).unwrap();
        let mut rest = &bytes[..];
        // A record is its length (8 bytes), a checksum of that (4), the data, a checksum of those (4).
        while let Some((length, after)) = rest.split_first_chunk::<8>() {
            let end = 4 + u64::from_le_bytes(*length) as usize;
            assert!(after.len() >= end + 4, "{} has a torn tail", file.display());
            let record = Event::parse_from_bytes(&after[4..end]).unwrap();
            for value in record.get_summary().get_value() {
                let number = value.has_simple_value().then(|| value.get_simple_value());
                points.push((value.get_tag().to_owned(), record.get_step() as u64, number));
            }
            rest = &after[end + 4..];
        }
        assert!(rest.is_empty(), "{} has a torn tail", file.display());
    }
    points
}
