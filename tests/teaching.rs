//! Ways to learn faster, through the binary: auxiliary heads, resignation, networks that grow.

mod common;

use std::fs;

use common::runs::Place;
use serde_json::Value as Json;
use sparring::net::Checkpoint;

const CONFIG: &str = r#"{
  "game": "zener", "seed": 3, "training_threads": 1,
  "network": { "blocks": 1, "channels": 8 },
  "selfplay": { "games": 16, "simulations": 6, "threads": 1, "parallel_games": 4 },
  "training": { "batch_size": 16 },
  "gate": { "mode": "off", "anchor_games": 0 },
  "stop": { "iterations": 2 }
}"#;

/// Values of a figure in `metrics.jsonl`, in order, each with the generation's number.
fn figures(place: &Place, tag: &str) -> Vec<(u64, f64)> {
    let text = fs::read_to_string(place.run().join("metrics.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Json>(line).unwrap());
    let generation = |line: &Json| line["generation"].as_u64().or(line["of_generation"].as_u64());
    lines.filter_map(|line| Some((generation(&line)?, line.get(tag)?.as_f64()?))).collect()
}

fn network(place: &Place, generation: u32) -> Checkpoint {
    Checkpoint::load(&place.run().join(format!("checkpoints/gen-{generation:06}.safetensors"))).unwrap()
}

#[test]
fn auxiliary_heads_are_trained_beside_the_network_that_plays() {
    const HEADS: &str = r#"training.auxiliary={"ending": 1.0, "reply": 0.3}"#;
    let (with, without) = (Place::new(CONFIG), Place::new(CONFIG));
    with.train(&[HEADS]).finish().expect(0);
    without.train(&[]).finish().expect(0);
    // A fair coin's entropy is 0.69.
    let ending = figures(&with, "loss/ending");
    assert!(ending.len() >= 2 && ending.iter().all(|&(_, loss)| loss > 0.0 && loss < 0.8), "{ending:?}");
    let reply = figures(&with, "loss/reply");
    assert!(reply.len() >= 2 && reply.iter().all(|&(_, loss)| loss > 0.0), "{reply:?}");
    assert!(figures(&without, "loss/ending").is_empty() && !figures(&without, "loss/policy").is_empty());
    let (taught, plain) = (network(&with, 2), network(&without, 2));
    assert_eq!(taught.info.network, plain.info.network);
    assert_eq!(taught.weights.0.keys().collect::<Vec<_>>(), plain.weights.0.keys().collect::<Vec<_>>());
    // What plays learned something else beside them.
    assert_ne!(taught.weights, plain.weights);

    // A run goes on with them or without them, whichever it began with.
    with.train(&["stop.iterations=3"]).finish().expect(0);
    assert_eq!(figures(&with, "loss/ending").last().unwrap().0, 2);
    without.train(&[HEADS, "stop.iterations=3"]).finish().expect(0);
    assert_eq!(figures(&without, "loss/ending").last().unwrap().0, 3);
}

#[test]
fn games_are_given_up_and_it_is_known_how_often_that_is_wrong() {
    let place = Place::new(CONFIG);
    let resign = r#"selfplay.resign={"score": 0.49, "searches": 2, "play_on": 0.5}"#;
    let done = place.train(&[resign, "selfplay.games=60"]).finish().expect(0);
    assert!(done.err.contains("resigned") && done.err.contains("would have been wrong"), "{}", done.err);
    let given_up = figures(&place, "selfplay/resigned_share");
    assert_eq!(given_up.iter().map(|(generation, _)| *generation).collect::<Vec<_>>(), [1, 2]);
    // An untrained network finds a draw in everything, give or take a little: most sides are below 0.49 some time.
    assert!(given_up.iter().all(|&(_, share)| share > 0.1 && share < 0.9), "{given_up:?}");
    let wrong = figures(&place, "selfplay/wrong_resign_share");
    assert!(wrong.len() == 2 && wrong.iter().all(|&(_, share)| (0.0..=1.0).contains(&share)), "{wrong:?}");
    let read = sparring::data::read(&place.run().join("games/gen-000001.games")).unwrap();
    let counted = read.records.iter().filter(|record| record.end.reason == sparring::data::Finish::Resigned).count();
    assert!((counted as f64 / 60.0 - given_up[0].1).abs() < 1e-9);

    let plain = Place::new(CONFIG);
    plain.train(&["stop.iterations=1"]).finish().expect(0);
    assert!(figures(&plain, "selfplay/resigned_share").is_empty());
}

#[test]
fn a_stop_before_the_first_step_of_a_new_network_leaves_the_run_whole() {
    let growth =
        r#"growth=[{"generation": 2, "network": {"type": "resnet", "blocks": 6, "channels": 96}, "passes": 0}]"#;
    let (whole, stopped) = (Place::new(CONFIG), Place::new(CONFIG));
    whole.train(&[growth]).finish().expect(0);
    let mut process = stopped.train(&[growth]);
    process.wait_for("generation 2: self-play done");
    process.signal("INT");
    process.finish().expect(130);
    let folder = stopped.run().display().to_string();
    common::run(["inspect", "--verify", &folder]).expect(0);
    // Nor does it matter whether the run goes back to the generation before.
    fs::write(stopped.run().join("state/run.state"), "damaged").unwrap();
    let done = stopped.train(&[growth]).finish().expect(0);
    assert!(done.err.contains("goes back to the end of generation 1"), "{}", done.err);
    let digest = |place: &Place| network(place, 2).weights.digest().to_string();
    assert_eq!(digest(&stopped), digest(&whole));
}

#[test]
fn old_games_are_searched_anew() {
    let place = Place::new(CONFIG);
    let resign = r#"selfplay.resign={"score": 0.49, "searches": 2, "play_on": 0}"#;
    place.train(&["selfplay.reanalysed_share=0.5", "selfplay.games=40", resign]).finish().expect(0);
    // Nobody plays on, and in games searched anew nobody could give up.
    assert!(figures(&place, "selfplay/wrong_resign_share").is_empty());
    let given_up = figures(&place, "selfplay/resigned_share");
    assert!(given_up[0].1 > 0.1 && given_up[1].1 < 0.8, "{given_up:?}");
    let read = |generation: u32| {
        let file = place.run().join(format!("games/gen-{generation:06}.games"));
        sparring::data::read(&file).unwrap().records
    };
    let (old, new) = (read(1), read(2));
    let moves = |record: &sparring::data::GameRecord| record.plies.iter().map(|ply| ply.action).collect::<Vec<_>>();
    let again: Vec<_> = new.iter().filter_map(|n| Some((n, old.iter().find(|o| moves(o) == moves(n))?))).collect();
    // Half of forty, give or take five standard deviations.
    assert!((5..=35).contains(&again.len()), "{}", again.len());
    assert!(again.iter().all(|(new, old)| new.end == old.end && new.generation == 2));
    let value = |record: &sparring::data::GameRecord| record.plies.iter().map(|ply| ply.value).collect::<Vec<_>>();
    assert!(again.iter().any(|(new, old)| value(new) != value(old)));
    // The first generation has nothing to look back on.
    assert!(old.iter().all(|record| record.generation == 1));
}

#[test]
fn a_larger_network_takes_over_and_goes_through_the_gate() {
    let growth =
        r#"growth=[{"generation": 2, "network": {"type": "resnet", "blocks": 2, "channels": 12}, "passes": 3}]"#;
    let gate = ["gate.mode=sprt", "gate.games=4", "gate.simulations=4", "training.warmup_steps=30"];
    let place = Place::new(CONFIG);
    let sets: Vec<&str> = [growth, "stop.iterations=3"].into_iter().chain(gate).collect();
    let done = place.train(&sets).finish().expect(0);
    assert!(done.err.contains("generation 2 trains a new network: residual network 2x12"), "{}", done.err);
    let channels = |generation| network(&place, generation).weights.0["stem.conv.weight"].shape[0];
    assert_eq!([0, 1, 2, 3].map(channels), [8, 8, 12, 12]);
    // Steps go on where they were, and three passes come on top.
    let steps: Vec<u64> = (0..=3).map(|generation| network(&place, generation).info.step).collect();
    let window = figures(&place, "replay/positions")[1].1;
    let further = (3.0 * window / 16.0).ceil() as u64;
    assert!(steps[2] - steps[1] > further && steps[2] - steps[1] < 2 * further, "{steps:?}, {further}");
    assert!(steps[3] > steps[2]);
    // The rate rises anew.
    let rates = figures(&place, "train/learning_rate");
    let first_of = |generation| rates.iter().find(|(g, _)| *g == generation).unwrap().1;
    let last_of = |generation| rates.iter().rfind(|(g, _)| *g == generation).unwrap().1;
    assert!(last_of(1) == 1e-3 && first_of(2) < 0.9e-3 && last_of(2) == 1e-3, "{rates:?}");
    assert_eq!(figures(&place, "gate/score").len(), 3);

    // What a run has done cannot be changed, what it will do can.
    let config = fs::read(place.run().join("config.json")).unwrap();
    let earlier = r#"growth=[{"generation": 1, "network": {"type": "resnet", "blocks": 2, "channels": 12}}]"#;
    for past in ["growth=[]", earlier] {
        let done = place.train(&[past, "stop.iterations=4"]).finish().expect(2);
        assert!(done.err.contains("generations that are still to come"), "{}", done.err);
        assert_eq!(fs::read(place.run().join("config.json")).unwrap(), config);
    }
    let further =
        growth.replace("}]", r#"}, {"generation": 4, "network": {"type": "mlp", "hidden": [16]}, "passes": 1}]"#);
    place.train(&[&further, "stop.iterations=4"]).finish().expect(0);
    assert!(network(&place, 4).weights.0.contains_key("layers.0.weight"));

    // Mistakes are told by their place.
    let wrong = r#"growth=[{"generation": 5, "network": {"type": "mlp", "hidden": [8]}}, {"generation": 5, "network": {"type": "resnet"}}]"#;
    let done = Place::new(CONFIG).train(&[wrong]).finish().expect(2);
    assert!(done.err.contains("growth[1].generation") && done.err.contains("above"), "{}", done.err);
}
