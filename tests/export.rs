//! Exported networks through the binary: what is written computes what the network computes, plays in matches, and is refused
//! where it cannot be right.

mod common;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use common::networks::networks;
use common::run;
use serde_json::Value;
use sparring::games;
use sparring::net::{Checkpoint, CheckpointInfo};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Exports with these words and gives the report.
fn export(source: &Path, target: &Path, words: &[&str]) -> Value {
    let done = run([&["export", text(source), "-o", text(target), "--json"], words].concat()).expect(0);
    serde_json::from_str(&done.out).unwrap()
}

const FORMATS: [(&str, &[&str]); 6] = [
    ("a.onnx", &["--format", "onnx"]),
    ("b.onnx", &["--format", "onnx", "--with-mask"]),
    ("c.onnx", &["--format", "onnx", "--precision", "f16"]),
    ("d.onnx", &["--format", "onnx", "--precision", "f16", "--with-mask"]),
    ("e.pt", &["--format", "torchscript"]),
    ("f.safetensors", &["--format", "safetensors"]),
];

#[test]
fn files_of_every_game_and_architecture_compute_the_same() {
    std::thread::scope(|scope| games::NAMES.iter().for_each(|game| drop(scope.spawn(|| computes_the_same(game)))));
}

fn computes_the_same(game: &str) {
    let scratch = tempfile::tempdir().unwrap();
    for source in networks(game, scratch.path()) {
        for (name, words) in FORMATS {
            let target = scratch.path().join(name);
            let report = export(&source, &target, &[words, &["--force", "--positions", "300"]].concat());
            let half = words.contains(&"f16");
            let bound = if half { 2e-2 } else { 1e-4 };
            let comparison = &report["comparison"];
            for part in ["policy", "value"] {
                let largest = comparison[part]["largest"].as_f64().unwrap();
                assert!(largest < bound, "{source:?} {name} {part}: {largest}");
            }
            assert!(comparison["logits"].is_null() == words.contains(&"--with-mask"));
            assert!(comparison["same_best_move"].as_u64().unwrap() >= if half { 297 } else { 300 }, "{report:#}");
            assert_eq!(report["bytes"].as_u64().unwrap(), fs::metadata(&target).unwrap().len());
        }
    }
}

#[test]
fn exported_files_play_and_are_inspected() {
    let scratch = tempfile::tempdir().unwrap();
    let source = networks("connect4", scratch.path()).remove(1);
    let digest = |path: &Path| {
        let shown: Value = serde_json::from_str(&run(["inspect", text(path)]).expect(0).out).unwrap();
        assert_eq!(shown["checkpoint"]["game"], "connect4");
        assert_eq!(shown["checkpoint"]["step"], 7);
        assert!(shown["flops_per_position"].as_u64().unwrap() > 0);
        (shown["weights_digest"].clone(), shown["file"]["format"].as_str().unwrap().to_owned())
    };
    let mut digests = Vec::new();
    for (name, words) in FORMATS {
        let target = scratch.path().join(name);
        export(&source, &target, &[words, &["--licence", "CC0-1.0"]].concat());
        let (digest, format) = digest(&target);
        assert!(words.contains(&format.as_str()));
        digests.push(digest);
        let player = format!("{}@policy", text(&target));
        let report = run(["pit", &player, "random", "--games", "4", "--json"]).expect(0);
        assert_eq!(serde_json::from_str::<Value>(&report.out).unwrap()["players"][0], player, "{}", report.out);
        let talk = talk(&["ugi", "connect4", text(&target)], "isready\nquery legal\nquery planes\ngo nodes 20\n");
        assert!(talk.contains("bestmove ") && talk.contains("\nresponse 1 2 3 4 5 6 7\n"), "{talk}");
        assert!(talk.lines().any(|line| line.starts_with("response 0 0 0") && line.split(' ').count() > 84), "{talk}");
        run(["analyze", text(&target), "--sims", "20"]).expect(0);
        // A file that was exported can be exported again, without a difference.
        let again = scratch.path().join(format!("again-{name}"));
        export(&target, &again, words);
        assert_eq!(digest_of_weights(&again), *digests.last().unwrap(), "{name}");
    }
    // Folded weights are the same whatever format they went into, rounded ones too.
    assert_eq!([&digests[0], &digests[2]], [&digests[1], &digests[3]]);
    assert_eq!(digests[0], digests[4]);
    assert_ne!(digests[0], digests[2]);
}

/// What the program says to this input.
fn talk(arguments: &[&str], input: &str) -> String {
    let mut command = common::sparring(arguments);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

fn digest_of_weights(path: &Path) -> Value {
    let shown: Value = serde_json::from_str(&run(["inspect", text(path)]).expect(0).out).unwrap();
    shown["weights_digest"].clone()
}

#[test]
fn a_signal_ends_an_export_without_a_trace() {
    let scratch = tempfile::tempdir().unwrap();
    let source = networks("uttt", scratch.path()).remove(0);
    let out = scratch.path().join("out");
    fs::create_dir(&out).unwrap();
    let target = out.join("net.onnx");
    fs::write(&target, "of old").unwrap();
    for signal in ["INT", "TERM"] {
        let words =
            ["export", text(&source), "-o", text(&target), "--format", "onnx", "--force", "--positions", "1000000"];
        let process = common::Process::start(&mut common::sparring(words));
        let began = std::time::Instant::now();
        while fs::read_dir(&out).unwrap().count() < 2 {
            assert!(began.elapsed() < common::busy(std::time::Duration::from_secs(30)), "nothing is written");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        process.signal(signal);
        process.finish().expect(130);
        only(&out, &["net.onnx"]);
    }
    assert_eq!(fs::read_to_string(&target).unwrap(), "of old");
}

#[test]
fn names_of_any_length_can_be_written() {
    let scratch = tempfile::tempdir().unwrap();
    let source = networks("tictactoe", scratch.path()).remove(3);
    for length in 1..=9 {
        let target = scratch.path().join("n".repeat(length)).with_extension("pt");
        export(&source, &target, &["--format", "torchscript", "--positions", "10"]);
    }
}

/// Nothing but what was there before lies in the folder.
fn only(folder: &Path, names: &[&str]) {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut found: Vec<String> = entries.collect();
    found.sort();
    assert_eq!(found, names);
}

#[test]
fn what_cannot_be_exported_leaves_no_file() {
    let scratch = tempfile::tempdir().unwrap();
    let source = networks("tictactoe", scratch.path()).remove(1);
    let out = scratch.path().join("out");
    fs::create_dir(&out).unwrap();
    std::os::unix::fs::symlink("nothing", scratch.path().join("dangling")).unwrap();
    let target = out.join("net");
    let fails = |source: &Path, target: &Path, code: i32, part: &str| {
        for (_, words) in FORMATS {
            let done = run([&["export", text(source), "-o", text(target)], words].concat());
            assert!(done.expect(code).err.contains(part), "{words:?}");
        }
    };
    // Numbers that are not finite, in a file whose digests are right.
    let checkpoint = Checkpoint::load(&source).unwrap();
    let bytes = fs::read(&source).unwrap();
    let mut bad = checkpoint.weights.clone();
    bad.0.get_mut("value.out.bias").unwrap().data[1] = f32::NAN;
    let broken = scratch.path().join("broken.safetensors");
    let swapped = replace(&bytes, &checkpoint.weights.digest(), &bad.digest());
    let good: Vec<u8> = checkpoint.weights.0["value.out.bias"].data.iter().flat_map(|x| x.to_le_bytes()).collect();
    let nan: Vec<u8> = bad.0["value.out.bias"].data.iter().flat_map(|x| x.to_le_bytes()).collect();
    let at = swapped.windows(good.len()).position(|window| window == good).unwrap();
    fs::write(&broken, [&swapped[..at], &nan, &swapped[at + good.len()..]].concat()).unwrap();
    fails(&broken, &target, 1, "`value.out.bias` holds NaN");
    // A game that is not there any more.
    let unknown = scratch.path().join("unknown.safetensors");
    let info = CheckpointInfo { game: "chess".into(), ..checkpoint.info.clone() };
    Checkpoint { info, ..checkpoint.clone() }.save(&unknown).unwrap();
    fails(&unknown, &target, 1, "chess");
    fails(&source, &scratch.path().join("missing/net"), 1, "missing");
    fails(&source, Path::new("/proc/exported"), 1, "/proc");
    fails(&source, &out, 2, "is no ordinary file");
    fails(&source, &scratch.path().join("dangling"), 2, "is no ordinary file");
    only(&out, &[]);
    for (_, words) in FORMATS {
        run([&["export", text(&source), "-o", "/dev/full", "--force"], words].concat())
            .complains(2, &["no ordinary file"]);
    }
    fs::write(&target, "of old").unwrap();
    fails(&source, &target, 2, "--force");
    assert_eq!(fs::read_to_string(&target).unwrap(), "of old");
    only(&out, &["net"]);
    run(["export", text(&source), "--format", "onnx", "-o", text(&out.join("net.pt"))])
        .complains(2, &["is named as a TorchScript file", "name it .onnx", "--format torchscript"]);
    only(&out, &["net"]);
    let done = run(["export", text(&source), "--format", "torchscript", "--with-mask"]).expect(2);
    assert!(done.err.contains("--format onnx"), "{}", done.err);
}

fn replace(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
    [&bytes[..at], to.as_bytes(), &bytes[at + from.len()..]].concat()
}

#[test]
fn damaged_exports_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let source = networks("tictactoe", scratch.path()).remove(0);
    for (name, words) in [FORMATS[0], FORMATS[4]] {
        let target = scratch.path().join(name);
        export(&source, &target, words);
        let good = fs::read(&target).unwrap();
        let damaged = scratch.path().join(format!("damaged-{name}"));
        let mut noticed = 0;
        for step in 0..60 {
            let mut bytes = good.clone();
            bytes[step * (good.len() - 1) / 60] ^= 1 << (step % 8);
            fs::write(&damaged, &bytes).unwrap();
            match Checkpoint::import(&damaged) {
                Err(_) => noticed += 1,
                // Some bytes say nothing about the network: a shape of an intermediate value, a name in the zip's directory.
                Ok((back, _)) => {
                    assert_eq!(back.weights.digest(), Checkpoint::import(&target).unwrap().0.weights.digest())
                }
            }
        }
        assert!(noticed > 30, "{name}: {noticed}");
        fs::write(&damaged, &good[..good.len() / 2]).unwrap();
        let done = run(["pit", text(&damaged), "random", "--games", "2"]).expect(1);
        assert!(done.err.contains("damaged-"), "{}", done.err);
    }
    let foreign = scratch.path().join("foreign.onnx");
    fs::write(&foreign, [8, 8, 18, 7, b'p', b'y', b't', b'o', b'r', b'c', b'h']).unwrap();
    let done = run(["inspect", text(&foreign)]).expect(1);
    assert!(done.err.contains("is an ONNX file but none of sparring's"), "{}", done.err);
}

#[test]
fn a_card_tells_of_training_strength_and_use() {
    let scratch = tempfile::tempdir().unwrap();
    let trained = common::small_run(scratch.path(), "connect4", &[]);
    let out = scratch.path().join("models");
    fs::create_dir(&out).unwrap();
    let card = out.join("four.md");
    let words = |more: &[&'static str]| {
        let fixed = [
            "card",
            &trained,
            "-o",
            text(&card),
            "--against",
            "random,mcts:10",
            "--settings",
            "@policy,@sims=5",
            "--games",
            "4",
        ];
        run(fixed.into_iter().chain(more.iter().copied()).collect::<Vec<&str>>())
    };
    let shown = words(&["--licence", "CC0-1.0", "--json"]).expect(0).json();
    only(&out, &["four.md", "four.safetensors"]);
    let read = fs::read_to_string(&card).unwrap();
    let rows = shown["strength"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for row in rows {
        let number = |key: &str| row[key].as_u64().unwrap();
        assert_eq!(number("wins") + number("draws") + number("losses"), 4);
        let line = format!(
            "| `{}` | `{}` | {}-{}-{} |",
            row["setting"].as_str().unwrap(),
            row["opponent"].as_str().unwrap(),
            number("wins"),
            number("draws"),
            number("losses")
        );
        assert!(read.contains(&line), "{line}\n{read}");
    }
    for part in [
        "# four\n",
        "Licence: CC0-1.0",
        "| games of the whole run | 2 |",
        "\"game\": \"connect4\"",
        "sparring export four.safetensors",
    ] {
        assert!(read.contains(part), "{part}\n{read}");
    }
    let model = out.join("four.safetensors");
    let info = Checkpoint::load(&model).unwrap().info;
    assert_eq!((info.game.as_str(), info.licence.as_deref()), ("connect4", Some("CC0-1.0")));
    // A second time, of what was written: only when it may be replaced.
    words(&[]).complains(2, &["four.md", "--force"]);
    words(&["--force"]).expect(0);
    let done = run([
        "card",
        text(&model),
        "-o",
        text(&card),
        "--against",
        "random",
        "--settings",
        "@policy",
        "--games",
        "2",
        "--force",
    ]);
    done.expect(0);
    assert!(!fs::read_to_string(&card).unwrap().contains("The config"), "a checkpoint alone does not know it");
    run(["card", &trained, "-o", text(&Path::new(&trained).join("card.md"))]).complains(2, &["folder of the run"]);
    run(["card", &trained, "-o", text(&out.join("no/card.md"))]).complains(1, &["is not there"]);
    run(["card", &trained, "-o", "card.txt"]).complains(2, &["FILE.md"]);
    run(["card", &trained, "-o", text(&out.join("x.md")), "--settings", "policy"]).complains(2, &["begins with `@`"]);
    // A comma within a setting does not end it.
    run(["card", &trained, "-o", text(&out.join("x.md")), "--settings", "@policy,@sims=4,moves=2"])
        .complains(2, &["@sims=4,moves=2"]);
}
