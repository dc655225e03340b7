//! `sparring bench`: what is measured, the document, comparing with an earlier one.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use common::{Done, run};
use serde_json::Value as Json;
use sparring::games::NAMES;

/// As short as a measurement can be.
const SHORT: [&str; 5] = ["bench", "--seconds", "0.02", "--repeats", "1"];

fn bench(arguments: &[&str]) -> Done {
    run(SHORT.iter().chain(arguments))
}

fn rows(document: &Json) -> Vec<&Json> {
    document["rows"].as_array().unwrap().iter().collect()
}

/// The names of the rows of a group that belong to this game, with their units.
fn names(document: &Json, group: &str, game: &str) -> BTreeSet<String> {
    let of = |row: &&Json| row["group"] == group;
    let text = |row: &Json| format!("{} | {}", row["name"].as_str().unwrap(), row["unit"].as_str().unwrap());
    let own = |name: &String| name.starts_with(&format!("{game}, "));
    rows(document).into_iter().filter(of).map(text).filter(own).collect()
}

/// What every document keeps to.
fn check(document: &Json) {
    assert_eq!(document["sparring_bench"], 1);
    assert_eq!(document["version"], env!("CARGO_PKG_VERSION"));
    let date = document["date"].as_str().unwrap();
    assert!(date.len() == 20 && date.ends_with('Z') && date.starts_with("20"), "{date}");
    let machine = &document["machine"];
    assert!(machine["cpu"].is_string() && machine["features"].is_array() && machine["cores"].as_u64() >= Some(1));
    let mut seen = BTreeSet::new();
    for row in rows(document) {
        let number = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key} of {row}"));
        assert!(number("low") <= number("value") && number("value") <= number("high"), "{row}");
        assert!(number("low") >= 0.0, "{row}");
        // In self-play there may be times in which no move is made.
        let always = row["group"] != "selfplay" && row["unit"].as_str().unwrap().ends_with("/s");
        assert!(!always || number("low") > 0.0, "{row}");
        let key = ["group", "name", "unit"].map(|key| row[key].as_str().unwrap().to_owned());
        assert!(seen.insert(key), "twice: {row}");
    }
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn the_rules_of_all_games_and_the_signature() {
    let done = bench(&["--only", "rules,signature", "--json"]).expect(0);
    let document = done.json();
    check(&document);
    assert_eq!(rows(&document).len(), 2 * NAMES.len());
    for game in NAMES {
        let names = names(&document, "rules", game);
        assert!(names.contains(&format!("{game}, random games | games/s")), "{names:?}");
        assert!(names.iter().any(|name| name.starts_with(&format!("{game}, perft "))), "{names:?}");
    }
    let hash = document["signature"]["hash"].as_str().unwrap();
    assert!(hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{hash}");
    assert_eq!(document["signature"]["parts"].as_array().unwrap().len(), 2 * NAMES.len());

    // Compared with itself, another run has the same signature and a ratio for every row.
    let scratch = tempfile::tempdir().unwrap();
    let earlier = write(scratch.path(), "earlier.json", &done.out);
    let done = bench(&["--only", "rules,signature", "--compare", &earlier]).expect(0);
    let lines: Vec<&str> =
        done.out.lines().filter(|line| line.contains("games/s") || line.contains("nodes/s")).collect();
    assert_eq!(lines.len(), 2 * NAMES.len(), "{}", done.out);
    assert!(lines.iter().all(|line| line.contains(" x ")), "{}", done.out);
    assert!(done.out.contains(&format!("signature {hash}\n")), "{}", done.out);
    assert!(done.out.contains("\nsignature: equal\n") && !done.out.contains("only "), "{}", done.out);
}

#[test]
fn a_config_in_all_groups() {
    let scratch = tempfile::tempdir().unwrap();
    let config = r#"{
        "game": "connect4",
        "network": { "type": "resnet", "blocks": 1, "channels": 8 },
        "selfplay": { "simulations": 4, "parallel_games": 4, "cache_megabytes": 1 },
        "training": { "batch_size": 16 }
    }"#;
    let config = write(scratch.path(), "tiny.json", config);
    let done = bench(&[&config, "--json"]).expect(0);
    let document = done.json();
    check(&document);
    assert!(document["engine"].as_str().is_some_and(|engine| engine.contains(" on cpu")), "{}", document["engine"]);
    let has = |group: &str, name: &str| {
        let names = names(&document, group, "connect4");
        assert!(names.contains(&format!("connect4, {name}")), "{name} is missing in {names:#?}");
    };
    has("inference", "libtorch eager f32 on cpu, batch 1, 1 thread | positions/s");
    has("inference", "libtorch f32 on cpu, batch 256, 1 thread | positions/s");
    has("search", "uniform evaluator, gumbel | simulations/s");
    has("search", "random rollouts, ucb1 | simulations/s");
    has("search", "network, several leaves, 1 thread | simulations/s");
    has("selfplay", "1 thread, no cache: simulations | simulations/s");
    has("selfplay", "1 thread, cache: games | games/s");
    has("training", "batch 16, 1 thread | samples/s");
    has("memory", "stored position | bytes");

    let value = |group: &str, name: &str| {
        let row =
            rows(&document).into_iter().find(|row| row["group"] == group && row["name"] == format!("connect4, {name}"));
        row.unwrap_or_else(|| panic!("{name}"))["value"].as_f64().unwrap()
    };
    assert!((1.0..=48.0).contains(&value("memory", "node of a tree")));
    assert!((1.0..=24.0).contains(&value("memory", "edge of a tree")));
    assert!((10.0..500.0).contains(&value("memory", "stored position")));
    assert!(value("memory", "whole tree with spare room, for each node") > value("memory", "node of a tree"));
    for cache in ["no cache", "cache"] {
        let part = |name: &str| value("selfplay", &format!("1 thread, {cache}: {name}"));
        let parts = ["encode", "inference", "cache and softmax", "tree and rules"].map(part);
        assert!((parts.iter().sum::<f64>() - 100.0).abs() < 1.0, "all of the time is something's: {parts:?}");
        assert!(parts.iter().all(|&share| share > 0.0), "{parts:?}");
        assert!(part("batch fill") > 0.0 && part("batch fill") <= 100.0);
        let hits = part("cache hits");
        assert!(if cache == "cache" { hits > 0.0 } else { hits == 0.0 }, "{hits}");
    }

    // Only some of it, next to all of it.
    let earlier = write(scratch.path(), "earlier.json", &done.out);
    let done = bench(&[&config, "--only", "memory", "--compare", &earlier, "--json"]).expect(0);
    let comparison = &done.json()["comparison"];
    let ratios = comparison["rows"].as_array().unwrap();
    assert_eq!(ratios.len(), 4, "{comparison}");
    // What is counted and not timed repeats exactly.
    assert!(ratios.iter().all(|ratio| ratio["group"] == "memory" && ratio["ratio"] == 1.0), "{comparison}");
    assert_eq!(comparison["signature"]["are"], "unknown");
    assert_eq!(comparison["only_new"].as_array().unwrap().len(), 0);
    let left = rows(&document).len() - 4;
    assert_eq!(comparison["only_old"].as_array().unwrap().len(), left, "{comparison}");
    // The document with a comparison in it can itself be compared with.
    let second = write(scratch.path(), "second.json", &done.out);
    let done = bench(&["tictactoe", "--only", "memory", "--compare", &second]).expect(0);
    assert_eq!(done.out.matches("only here: memory, tictactoe").count(), 4, "{}", done.out);
    assert_eq!(done.out.matches("only there: memory, connect4").count(), 4, "{}", done.out);
}

#[test]
fn wrong_command_lines_and_damaged_documents_are_told_before_anything_is_measured() {
    let scratch = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| write(scratch.path(), name, text);
    let whole = bench(&["tictactoe", "--only", "rules", "--json"]).expect(0).out;
    // Not within a number, where the message would be another.
    let middle = whole[..whole.len() / 2].rfind('{').unwrap();
    let torn = file("torn.json", &whole[..=middle]);
    let other = file("other.json", r#"{"event": "metrics", "format": 1}"#);
    let newer = file("newer.json", &whole.replace("\"sparring_bench\": 1", "\"sparring_bench\": 2"));
    let lacking = file("lacking.json", &whole.replace("\"value\"", "\"worth\""));
    let binary = scratch.path().join("binary.json");
    fs::write(&binary, [0, 159, 146, 150]).unwrap();
    let binary = binary.display().to_string();
    for (path, part) in [
        (&torn[..], "EOF"),
        (&other, "sparring_bench"),
        (&newer, "format 2"),
        (&lacking, "value"),
        (&binary, "binary.json"),
        ("no/such/file.json", "cannot be read"),
    ] {
        let done = bench(&["tictactoe", "--only", "rules", "--compare", path]);
        done.complains(2, &["--compare", path, part, "sparring bench --json"]);
    }
    for (arguments, parts) in [
        (&["--only", "rulez"][..], &["rulez", "selfplay"][..]),
        (&["nogame"], &["nogame", "no file", "connect4"]),
        (&["no/such.json"], &["no/such.json"]),
        (&["uttt", "--set", "network.blocks=-1"], &["network.blocks"]),
        (&["uttt", "--repeats", "0"], &["--repeats"]),
        (&["uttt", "--seconds=-1"], &["--seconds"]),
    ] {
        let done = run(["bench"].iter().chain(arguments));
        done.complains(2, parts);
    }
}
