//! Experiments through the program: trained, rated, interrupted, resumed.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{PROGRAM, Process, run};
use serde_json::{Value as Json, json};

const CONFIG: &str = r#"{
  "game": "tictactoe", "training_threads": 1,
  "network": { "blocks": 1, "channels": 8 },
  "selfplay": { "games": 40, "simulations": 16, "threads": 1, "parallel_games": 4 },
  "training": { "batch_size": 16 },
  "gate": { "mode": "off", "anchor_games": 0 }
}"#;

fn plan() -> Json {
    json!({
        "question": "Do more simulations help?",
        "config": "base.json",
        "set": ["replay.reuse=2"],
        "variants": [{ "name": "sixteen" }, { "name": "two", "set": ["selfplay.simulations=2"] }],
        "seeds": [1, 2],
        "budget": { "positions": 500 },
        "rating": { "checkpoints": 2, "anchors": ["random", "mcts:10"], "games": 4, "simulations": 4 },
    })
}

/// A folder with the config and an experiment.
fn folder(plan: &Json) -> (tempfile::TempDir, PathBuf) {
    let scratch = tempfile::tempdir().unwrap();
    fs::write(scratch.path().join("base.json"), CONFIG).unwrap();
    let file = scratch.path().join("plan.json");
    fs::write(&file, plan.to_string()).unwrap();
    (scratch, file)
}

fn command(file: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    let out = file.with_file_name("out");
    command.arg("experiment").arg(file).arg("--output").arg(out).args(more);
    command
}

fn experiment(file: &Path, more: &[&str]) -> Process {
    Process::start(&mut command(file, more))
}

/// What must not depend on interruptions: everything but the time that it took.
fn without_time(report: &Json) -> Json {
    let mut report = report.clone();
    for row in report["rows"].as_array_mut().unwrap() {
        row["cpu_hours"] = Json::Null;
    }
    for run in report["runs"].as_array_mut().unwrap() {
        for point in run["points"].as_array_mut().unwrap() {
            (point["hours"], point["cpu_hours"]) = (Json::Null, Json::Null);
        }
    }
    report
}

#[test]
fn variants_are_trained_for_the_same_and_rated_together() {
    let (scratch, file) = folder(&plan());
    let out = scratch.path().join("out");
    let dry = run(["experiment".as_ref(), file.as_os_str(), "--dry-run".as_ref()]).expect(0);
    assert_eq!(dry.out.lines().collect::<Vec<_>>().len(), 4, "{}", dry.out);
    let done = experiment(&file, &[]).finish().expect(0);
    for part in
        ["Do more simulations help?", "| `sixteen` |", "| `two` |", "against `sixteen`", "mcts:10", "positions.svg"]
    {
        assert!(done.out.contains(part), "{part} is missing in:\n{}", done.out);
    }
    let report: Json = serde_json::from_slice(&fs::read(out.join("results.json")).unwrap()).unwrap();
    assert_eq!(report["runs"].as_array().unwrap().len(), 4);
    for run in report["runs"].as_array().unwrap() {
        let points = run["points"].as_array().unwrap();
        assert_eq!(points.len(), 2);
        assert!(points[0]["positions"].as_u64() < points[1]["positions"].as_u64());
        // The budget is reached, and no more than a generation beyond.
        assert!((500..900).contains(&points[1]["positions"].as_u64().unwrap()), "{points:?}");
        assert!(points[1]["cpu_hours"].as_f64() > points[0]["cpu_hours"].as_f64());
        let elo = |end: &str| points[1]["elo"][end].as_f64().unwrap();
        assert!(elo("low") < elo("value") && elo("value") < elo("high"));
    }
    // 8 checkpoints against 2 anchors, 4 against the one before, 4 against the first variant, the anchors.
    assert_eq!(report["games"], json!((16 + 4 + 4 + 1) * 4));
    for picture in ["positions.svg", "cpu-hours.svg"] {
        let svg = fs::read_to_string(out.join(picture)).unwrap();
        assert!(svg.contains("</svg>") && svg.contains("sixteen") && svg.contains("two"), "{picture}");
    }
    assert_eq!(fs::read_to_string(out.join("table.md")).unwrap().lines().count(), 6);
    // The variants differ in what they were told, the seeds in everything.
    let config = |place: &str| fs::read_to_string(out.join(place).join("config.json")).unwrap();
    assert!(config("two/seed-1").contains("\"simulations\": 2"));
    assert!(config("sixteen/seed-2").contains("\"seed\": 2"));

    // A second time nothing is done again, and the same comes out.
    let before = fs::read(out.join("sixteen/seed-1/metrics.jsonl")).unwrap();
    let again = experiment(&file, &["--json"]).finish().expect(0);
    assert_eq!(again.json(), report);
    assert_eq!(fs::read(out.join("sixteen/seed-1/metrics.jsonl")).unwrap(), before);
    assert!(again.err.contains("goes on after 100 of 100 games"), "{}", again.err);

    // Damaged games are kept aside and played again; a network that is lost would change what is rated.
    let games = out.join("games.jsonl");
    let text = fs::read_to_string(&games).unwrap();
    fs::write(&games, text.replacen("\"reason\":\"", "\"reason\":\"x", 1)).unwrap();
    let again = experiment(&file, &["--json"]).finish().expect(0);
    assert_eq!(again.json(), report);
    assert!(again.err.contains("games.jsonl.damaged") && again.err.contains("played anew"), "{}", again.err);
    assert!(out.join("games.jsonl.damaged").exists());
    let lost = out.join("two/seed-2/checkpoints/gen-000001.safetensors");
    let (aside, network) = (scratch.path().join("aside"), lost.display().to_string());
    fs::rename(&lost, &aside).unwrap();
    experiment(&file, &[]).finish().complains(1, &[&network, "restore it"]);
    fs::rename(&aside, &lost).unwrap();

    // Another config is another experiment; another budget goes on.
    let mut other = plan();
    other["set"] = json!(["replay.reuse=1"]);
    fs::write(&file, other.to_string()).unwrap();
    experiment(&file, &[]).finish().complains(2, &["was trained with another config", "replay.reuse", "--output"]);
    let mut longer = plan();
    longer["budget"]["positions"] = json!(900);
    fs::write(&file, longer.to_string()).unwrap();
    let longer = experiment(&file, &["--json"]).finish().expect(0).json();
    // Less than what was used cannot be had.
    fs::write(&file, plan().to_string()).unwrap();
    experiment(&file, &[]).finish().complains(2, &["another budget", "\"positions\":900", "only be raised"]);
    assert!(longer["rows"][0]["positions"].as_f64() > report["rows"][0]["positions"].as_f64());
}

#[test]
fn an_interrupted_experiment_comes_to_the_same() {
    let (_whole, file) = folder(&plan());
    let report = experiment(&file, &["--json"]).finish().expect(0).json();
    let (_parts, file) = folder(&plan());
    for moment in ["training 1 of 4", "training 3 of 4", "training 4 of 4"] {
        let mut process = experiment(&file, &["--json"]);
        process.wait_for(moment);
        process.signal("INT");
        let done = process.finish();
        // It may have been quicker than the signal.
        assert!([0, 130].contains(&done.code), "{done:?}");
    }
    let found = experiment(&file, &["--json"]).finish().expect(0).json();
    assert_eq!(without_time(&found), without_time(&report));
}

#[test]
fn what_is_wrong_with_an_experiment_is_told_before_anything_is_trained() {
    let wrong = |change: &dyn Fn(&mut Json), parts: &[&str]| {
        let mut plan = plan();
        change(&mut plan);
        let (scratch, file) = folder(&plan);
        experiment(&file, &[]).finish().complains(2, parts);
        assert!(!scratch.path().join("out").exists());
    };
    wrong(&|plan| plan["variants"][1]["name"] = "sixteen".into(), &["variants[1].name", "has this name"]);
    wrong(&|plan| plan["variants"][1]["name"] = "a/b".into(), &["variants[1].name", "letters"]);
    wrong(&|plan| plan["variants"][1]["set"] = json!(["selfplay.simulation=2"]), &["variant `two`", "did you mean"]);
    wrong(&|plan| plan["variants"][1]["set"] = json!(["seed=3"]), &["variants[1].set", "`seed`"]);
    wrong(&|plan| plan["variants"][1]["set"] = json!(["game=\"uttt\""]), &["tictactoe", "uttt"]);
    wrong(&|plan| plan["set"] = json!(["stop.hours=3"]), &["`stop`"]);
    wrong(&|plan| plan["budget"] = json!({}), &["budget", "no end"]);
    wrong(&|plan| plan["seeds"] = json!([1, 1]), &["seeds"]);
    wrong(&|plan| plan["rating"]["games"] = json!(3), &["rating.games", "even"]);
    wrong(&|plan| plan["rating"]["anchors"] = json!(["mcts"]), &["rating.anchors[0]"]);
    wrong(&|plan| plan["rating"]["zero"] = "mcts:7".into(), &["rating.zero"]);
    wrong(&|plan| plan["rating"]["anchors"] = json!(["random", "random"]), &["rating.anchors", "twice"]);
    wrong(&|plan| plan["rating"]["anchors"] = json!(["engine:true"]), &["engine:true"]);
    wrong(&|plan| plan["variants"][1]["set"] = json!(["start=\"none\""]), &["variant two, seed 1", "none"]);
    wrong(&|plan| plan["variants"][1]["name"] = "games.jsonl".into(), &["variants[1].name", "writes"]);
    wrong(&|plan| plan["budget"] = json!({ "cpu_hours": 1e-9 }), &["budget.cpu_hours"]);
    wrong(&|plan| plan["config"] = "none.json".into(), &["none.json"]);
    wrong(&|plan| plan["set"] = json!(["keep.checkpoints=2"]), &["variant `sixteen`", "keep.checkpoints"]);
    wrong(&|plan| plan["colour"] = "red".into(), &["colour"]);
    let (scratch, file) = folder(&plan());
    fs::write(scratch.path().join("out"), "").unwrap();
    experiment(&file, &[]).finish().complains(2, &["is a file", "--output"]);
    let below = scratch.path().join("out/below").display().to_string();
    run(["experiment", &file.display().to_string(), "--output", &below]).complains(2, &["out is a file"]);
    run(["experiment", "none.json"]).complains(2, &["none.json"]);
}

#[test]
fn the_experiments_that_ship_can_be_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
    for entry in fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().path();
        let dry = run(["experiment".as_ref(), file.as_os_str(), "--dry-run".as_ref()]).expect(0);
        assert!(dry.out.lines().count() >= 2, "{}: {}", file.display(), dry.out);
    }
}
