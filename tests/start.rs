//! Runs that begin with a trained network.

mod common;

use std::fs;

use common::run;
use common::runs::Place;
use sparring::net::Checkpoint;

const CONFIG: &str = r#"{
  "game": "tictactoe", "seed": 5, "training_threads": 1,
  "network": { "blocks": 1, "channels": 8 },
  "selfplay": { "games": 20, "simulations": 8, "threads": 1, "parallel_games": 4 },
  "training": { "batch_size": 16 },
  "gate": { "mode": "off", "anchor_games": 0 },
  "stop": { "iterations": 1 }
}"#;

#[test]
fn a_run_begins_with_the_checkpoint_that_its_config_names() {
    let (first, second) = (Place::new(CONFIG), Place::new(CONFIG));
    first.train(&[]).finish().expect(0);
    let taught = first.run().join("checkpoints/gen-000001.safetensors");
    let copy = first.run().with_file_name("taught.safetensors");
    fs::copy(&taught, &copy).unwrap();
    let start = format!("start={:?}", copy);
    let done = second.train(&[&start, "seed=6"]).finish().expect(0);
    assert!(done.err.contains("begins with the network in") && done.err.contains("generation 1"), "{}", done.err);
    let load = |path: &std::path::Path| Checkpoint::load(path).unwrap();
    let (taught, begun) = (load(&taught), load(&second.run().join("checkpoints/gen-000000.safetensors")));
    assert_eq!(begun.weights, taught.weights);
    assert_eq!((begun.info.generation, begun.info.step), (0, 0));
    let made = load(&second.run().join("checkpoints/gen-000001.safetensors"));
    assert_ne!(made.weights, taught.weights);
    // It teaches: one generation of so few games away from what it began with, not from other random weights.
    let distance = |a: &Checkpoint, b: &Checkpoint| -> f64 {
        let pairs = a.weights.0.values().zip(b.weights.0.values());
        pairs.flat_map(|(a, b)| a.data.iter().zip(&b.data)).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt()
    };
    let other = load(&first.run().join("checkpoints/gen-000000.safetensors"));
    assert!(distance(&made, &taught) < distance(&made, &other));
    // A pointer of a run stands for what it names; a config is told of a beginning that is not there.
    let third = Place::new(CONFIG);
    let best = format!("start={:?}", first.run().join("best"));
    third.train(&[&best, "seed=6"]).finish().expect(0);
    let begun = load(&third.run().join("checkpoints/gen-000000.safetensors"));
    assert_eq!(begun.weights, load(&first.run().join("checkpoints/gen-000001.safetensors")).weights);
    let config = third.config().display().to_string();
    let told = run(["config", &config, "--set", "start=\"none.safetensors\""]).expect(0);
    assert!(told.err.contains("warning") && told.err.contains("none.safetensors"), "{}", told.err);
    // The file is not needed any more, and the run goes on.
    fs::remove_file(&copy).unwrap();
    second.train(&[&start, "seed=6", "stop.iterations=2"]).finish().expect(0);
    // Another beginning would be another run.
    let done = second.train(&["seed=6", "stop.iterations=2"]).finish().expect(2);
    assert!(done.err.contains("start"), "{}", done.err);
}

#[test]
fn what_a_run_cannot_begin_with_is_told_before_there_is_a_folder() {
    let (first, second) = (Place::new(CONFIG), Place::new(CONFIG));
    first.train(&[]).finish().expect(0);
    let file = first.run().join("checkpoints/gen-000001.safetensors");
    let exported = first.run().with_file_name("exported.onnx");
    let name = exported.display().to_string();
    run(["export", &file.display().to_string(), "--format", "onnx", "-o", &name]).expect(0);
    let start = format!("start={file:?}");
    for (sets, parts) in [
        (vec!["start=\"none.safetensors\""], ["none.safetensors", "there is no file"]),
        (vec!["start=\"\""], ["start", "names no file"]),
        (vec![&*start, "network.blocks=2"], ["\"blocks\":1", "\"blocks\":2"]),
        (vec![&*start, "network.policy_channels=7"], ["\"policy_channels\":32", "\"policy_channels\":7"]),
        (vec![&*start, "game=\"othello:size=4\""], ["gen-000001", "game is tictactoe"]),
        (vec![&*format!("start={exported:?}")], ["exported.onnx", "folded away"]),
    ] {
        let done = second.train(&sets).finish().expect(2);
        assert!(parts.iter().all(|part| done.err.contains(part)), "{sets:?}: {}", done.err);
        assert!(!second.run().exists());
    }
}
