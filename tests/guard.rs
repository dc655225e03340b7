//! Numbers that are not finite, through the program: batches are left out and kept, training returns or stops, and no network
//! with such a number is published.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use common::{Process, run, train};
use safetensors::SafeTensors;
use serde_json::Value as Json;
use sparring::net::Checkpoint;

/// A learning rate that no network survives, and a return to a hundredth of it, which is fine.
const CONFIG: &str = r#"{
  "game": "tictactoe",
  "seed": 5,
  "training_threads": 1,
  "network": { "blocks": 1, "channels": 8 },
  "selfplay": { "games": 40, "simulations": 12, "threads": 1, "parallel_games": 4, "cache_megabytes": 8 },
  "replay": { "min_positions": 200, "reuse": 8 },
  "training": {
    "batch_size": 16, "optimizer": { "type": "sgd" }, "learning_rate": 10, "gradient_clip": 0, "warmup_steps": 0,
    "non_finite": { "skip": 4, "rate_factor": 0.01 }
  },
  "gate": { "games": 8, "simulations": 8, "opening_plies": 2, "anchor_games": 0 },
  "stop": { "iterations": 2 }
}"#;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::write(place.0.path().join("config.json"), CONFIG).unwrap();
        place
    }

    fn run(&self) -> PathBuf {
        self.0.path().join("run")
    }

    fn train(&self, sets: &[&str]) -> Process {
        Process::start(&mut train(&self.0.path().join("config.json"), &self.run(), sets))
    }

    /// The lines of `metrics.jsonl` that tell of `event`.
    fn told(&self, event: &str) -> Vec<Json> {
        let text = fs::read_to_string(self.run().join("metrics.jsonl")).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Json>(line).unwrap());
        lines.filter(|line| line["event"] == event).collect()
    }
}

/// The weights of all published networks, which are finite or could not be loaded.
fn networks(run: &Path) -> BTreeMap<PathBuf, String> {
    let files = fs::read_dir(run.join("checkpoints")).unwrap().map(|entry| entry.unwrap().path());
    files.map(|file| (file.clone(), Checkpoint::load(&file).unwrap().weights.digest().to_string())).collect()
}

fn named(networks: BTreeMap<PathBuf, String>) -> Vec<(String, String)> {
    let name = |file: PathBuf| file.file_name().unwrap().to_string_lossy().into_owned();
    networks.into_iter().map(|(file, digest)| (name(file), digest)).collect()
}

#[test]
fn training_leaves_bad_batches_out_and_returns() {
    let place = Place::new();
    let done = place.train(&[]).finish().expect(0);
    assert!(done.err.contains("5 batches were not finite"), "{}", done.err);
    assert!(done.err.contains("the training of generation 1 begins again, with 0.01 of the learning rate"));
    let (rejected, returns) = (place.told("batch_rejected"), place.told("rolled_back"));
    assert_eq!((rejected.len(), returns.len()), (5, 1));
    assert_eq!(rejected[4]["train/rejected_batches"], 5);
    assert_eq!((&returns[0]["step"], &returns[0]["train/rate_factor"]), (&Json::from(0), &Json::from(0.01)));
    // Each is kept, and any reader of safetensors opens it.
    for line in &rejected {
        let bytes = fs::read(place.run().join(line["file"].as_str().unwrap())).unwrap();
        let batch = SafeTensors::deserialize(&bytes).unwrap();
        assert_eq!(batch.tensor("value").unwrap().shape(), [16, 3]);
        let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
        let about = &metadata.metadata().as_ref().unwrap()["about"];
        assert!(about.starts_with("generation 1, step ") && about.ends_with("is not finite"), "{about}");
    }
    assert_eq!(networks(&place.run()).len(), 3);
    run(["inspect", "--verify", place.run().to_str().unwrap()]).expect(0);

    // Killed before and after the return, the run ends the same.
    let other = Place::new();
    for text in ["3 in this generation", "begins again", "generation 1: gate,"] {
        let mut process = other.train(&[]);
        process.wait_for(text);
        process.signal("KILL");
        drop(process.finish());
    }
    // What holds for the rest of the run is told, and does not follow the config.
    let done = other.train(&["training.non_finite.rate_factor=0.5"]).finish().expect(0);
    assert!(done.err.contains("the learning rate is 0.01 of what the config says"), "{}", done.err);
    assert_eq!(named(networks(&other.run())), named(networks(&place.run())));
    assert_eq!((other.told("batch_rejected").len(), other.told("rolled_back").len()), (5, 1));
}

#[test]
fn a_run_may_stop_instead_and_goes_on_with_another_rate() {
    let place = Place::new();
    let parts = ["training of generation 1: 5 batches were not finite", "non_finite.then asks to stop", "rejected"];
    place.train(&["training.non_finite.then=stop"]).finish().complains(1, &parts);
    assert_eq!(networks(&place.run()).len(), 1, "nothing but the untrained network is published");
    place.train(&["training.non_finite.then=stop", "training.learning_rate=0.01"]).finish().expect(0);
    assert_eq!(networks(&place.run()).len(), 3);

    // As often as it may return, and no further.
    let place = Place::new();
    let sets = ["training.non_finite.rate_factor=1", "training.non_finite.rollbacks=2"];
    place.train(&sets).finish().complains(1, &["as often as training.non_finite.rollbacks allows"]);
    assert_eq!((place.told("batch_rejected").len(), place.told("rolled_back").len()), (15, 2));
}
