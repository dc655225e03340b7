//! Every config that ships: it is read, and a run with it goes through the whole cycle.

mod common;

use std::path::{Path, PathBuf};

use common::{Process, run, train};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("configs")
}

/// The configs in `configs/`, in order.
fn configs() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "json") && !path.ends_with("schema.json"))
        .collect();
    files.sort();
    assert!(files.len() >= 4, "{files:?}");
    files
}

#[test]
fn every_config_is_read_and_says_all_of_itself() {
    let scratch = tempfile::tempdir().unwrap();
    for file in configs() {
        let resolved = run(["config".as_ref(), file.as_os_str()]).expect(0);
        let json = resolved.json();
        assert!(json["game"].is_string() && json["search"].is_object(), "{}: {}", file.display(), resolved.out);
        // What is printed is the same config, with nothing left to defaults.
        let copy = scratch.path().join("resolved.json");
        std::fs::write(&copy, &resolved.out).unwrap();
        assert_eq!(run(["config".as_ref(), copy.as_os_str()]).expect(0).out, resolved.out, "{}", file.display());
        // Editors find the schema beside it.
        let text = std::fs::read_to_string(&file).unwrap();
        let given: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(given["$schema"], "schema.json", "{}", file.display());
    }
}

#[test]
fn the_schema_is_the_programs_own() {
    let written = std::fs::read_to_string(folder().join("schema.json"))
        .expect("configs/schema.json is made by `sparring config --schema > configs/schema.json`");
    let own = run(["config", "--schema"]).expect(0).out;
    assert!(written == own, "outdated: make it anew with `sparring config --schema > configs/schema.json`");
}

#[test]
fn every_config_runs_through_the_whole_cycle() {
    let scratch = tempfile::tempdir().unwrap();
    for file in configs() {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let small = [
            "selfplay.games=4",
            "selfplay.simulations=2",
            "selfplay.fast_simulations=1",
            "selfplay.cache_megabytes=1",
            "replay.min_positions=1",
            "replay.reuse=0.1",
            "training.batch_size=8",
            "training_threads=1",
            "network={\"type\": \"resnet\", \"blocks\": 1, \"channels\": 8}",
            // The gate is played even where the config goes without it.
            "gate.mode=sprt",
            "gate.games=2",
            "gate.simulations=2",
            "gate.anchor_games=2",
            "gate.anchor_simulations=5",
            "stop={\"iterations\": 1}",
        ];
        let folder = scratch.path().join(&name);
        let done = Process::start(&mut train(&file, &folder, &small)).finish().expect(0);
        let best = PathBuf::from(done.out.trim_end());
        assert!(best.starts_with(&folder) && best.is_file(), "{name}: {}", done.out);
        for path in [&folder, &best] {
            let json = run(["inspect".as_ref(), path.as_os_str()]).expect(0).json();
            assert!(json["weights_digest"].is_string(), "{json}");
        }
        // Generation 1 is there and playable whether or not it has become the best.
        let first = folder.join("checkpoints/gen-000001.safetensors");
        let json = run(["inspect".as_ref(), first.as_os_str()]).expect(0).json();
        assert_eq!(json["checkpoint"]["generation"], 1, "{json}");
        assert!(json["checkpoint"]["step"].as_u64().unwrap() >= 1, "{json}");
        let json = run(["inspect".as_ref(), folder.as_os_str()]).expect(0).json();
        assert_eq!((&json["run"]["generation_in_progress"], &json["run"]["latest"]), (&2.into(), &1.into()), "{json}");
        let games = run(["inspect".as_ref(), folder.join("games/gen-000001.games").as_os_str()]).expect(0).json();
        assert_eq!(games["summary"]["games"], json["run"]["games"], "{games}");
        assert!(games["damage"].is_null() && games["origin"]["generation"] == 1, "{games}");
    }
}
