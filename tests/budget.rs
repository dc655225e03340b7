//! What is predicted of memory and disk, and what runs really take.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{Process, run, train};
use serde_json::Value as Json;

/// Bytes of the files below `folder`, as the file system counts them.
fn taken(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let entry = |entry: fs::DirEntry| {
        let found = entry.metadata().unwrap();
        if found.is_dir() { taken(&entry.path()) } else { found.blocks() * 512 }
    };
    fs::read_dir(folder).unwrap().map(|found| entry(found.unwrap())).sum()
}

/// The most memory that a process takes until it ends, in bytes.
fn peak(child: &mut Child) -> u64 {
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        // A process that has just ended has no such line.
        let kilobytes = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
        most = most.max(kilobytes.unwrap_or(0) << 10);
        std::thread::sleep(Duration::from_millis(5));
    }
    most
}

#[test]
#[cfg(target_os = "linux")]
fn runs_take_no_more_than_predicted_and_not_much_less() {
    let common = r#""training_threads": 2, "stop": { "iterations": 4 }"#;
    for (name, config) in [
        (
            "a gate, networks and states that stay",
            format!(
                r#"{{ "game": "tictactoe", {common}, "network": {{ "blocks": 2, "channels": 32 }},
                "selfplay": {{ "games": 60, "simulations": 8, "cache_megabytes": 4 }}, "replay": {{ "reuse": 1 }},
                "training": {{ "batch_size": 64 }},
                "gate": {{ "games": 8, "simulations": 4, "anchor_games": 4, "anchor_simulations": 10 }} }}"#
            ),
        ),
        (
            "many long games, old files removed",
            format!(
                r#"{{ "game": "uttt", {common}, "network": {{ "type": "mlp", "hidden": [32] }},
                "selfplay": {{ "games": 150, "simulations": 8, "cache_megabytes": 16, "full_share": 0.5 }},
                "replay": {{ "min_positions": 10000, "reuse": 0.5 }}, "gate": {{ "mode": "off", "anchor_games": 0 }},
                "keep": {{ "checkpoints": 2, "games": "window" }} }}"#
            ),
        ),
        (
            "large batches",
            format!(
                r#"{{ "game": "connect4", {common}, "network": {{ "blocks": 3, "channels": 32 }},
                "selfplay": {{ "games": 20, "simulations": 4, "cache_megabytes": 4 }}, "replay": {{ "reuse": 2 }},
                "training": {{ "batch_size": 256, "precision": "f32" }}, "gate": {{ "mode": "off", "anchor_games": 0 }} }}"#
            ),
        ),
    ] {
        let scratch = tempfile::tempdir().unwrap();
        let (file, folder) = (scratch.path().join("config.json"), scratch.path().join("run"));
        fs::write(&file, config).unwrap();
        let predicted = run(["config".as_ref(), file.as_os_str(), "--budget".as_ref(), "--json".as_ref()]).expect(0);
        let predicted = predicted.json();
        let sum = |parts: &Json| parts.as_array().unwrap().iter().map(|part| part["bytes"].as_u64().unwrap()).sum();
        let (memory, disk): (u64, u64) = (sum(&predicted["memory"]), sum(&predicted["disk"]["parts"]));
        assert_eq!(predicted["disk"]["generations"], 4);

        let log = fs::File::create(scratch.path().join("log")).unwrap();
        let mut command = train(&file, &folder, &[]);
        let mut child = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let peak = peak(&mut child);
        let log = fs::read_to_string(scratch.path().join("log")).unwrap();
        assert!(child.wait().unwrap().success(), "{log}");
        let taken = taken(&folder);
        println!(
            "{name}: memory {} of {} MB predicted, disk {} of {} kB",
            peak >> 20,
            memory >> 20,
            taken >> 10,
            disk >> 10
        );
        assert!(peak <= memory && memory <= 3 * peak, "{name}: memory {peak} of {memory}\n{predicted:#}");
        assert!(taken <= disk && disk <= 3 * taken, "{name}: disk {taken} of {disk}\n{predicted:#}");
        // It is said at the start.
        for line in ["memory: at most ", "disk: at most "] {
            assert!(log.contains(line), "{log}");
        }
        assert!(fs::read_to_string(folder.join("metrics.jsonl")).unwrap().contains("memory: at most "));
    }
}

#[test]
fn more_memory_than_there_is_is_refused_before_anything_is_made() {
    let scratch = tempfile::tempdir().unwrap();
    let (file, folder) = (scratch.path().join("config.json"), scratch.path().join("run"));
    fs::write(&file, r#"{"game": "tictactoe"}"#).unwrap();
    for (set, key) in [
        ("selfplay.cache_megabytes=1000000", "lower selfplay.cache_megabytes"),
        ("training.batch_size=65536", "training.batch_size"),
        ("replay.max_bytes=10000000000000", "replay.max_bytes"),
    ] {
        let sets = [set, "network.blocks=80", "network.channels=1024"];
        let done = Process::start(&mut train(&file, &folder, &sets)).finish();
        done.complains(2, &["of memory, and this machine allows", key]);
        assert!(!folder.exists());
    }
    // Looking at it costs nothing.
    let arguments = ["--budget", "--set", "selfplay.cache_megabytes=1000000"];
    let table = run(["config".as_ref(), file.as_os_str()].into_iter().chain(arguments.map(AsRef::as_ref))).expect(0);
    assert!(table.out.contains("evaluation cache") && table.out.contains("977 GB"), "{}", table.out);
}

#[test]
fn a_disk_without_space_for_a_generation_is_refused_and_a_small_one_warned_of() {
    let scratch = tempfile::tempdir().unwrap();
    let (config, mount) = (scratch.path().join("config.json"), scratch.path().join("mount"));
    fs::create_dir(&mount).unwrap();
    let text = r#"{"game": "tictactoe", "network": {"blocks": 1, "channels": 8}, "training_threads": 1,
        "selfplay": {"games": 10, "simulations": 2, "cache_megabytes": 1, "threads": 1, "parallel_games": 4},
        "gate": {"mode": "off", "anchor_games": 0}, "stop": {"iterations": 200}}"#;
    fs::write(&config, text).unwrap();
    let script = "mount -t tmpfs -o size=${4}k tmpfs \"$1\"
        code=0; \"$2\" train \"$3\" --run \"$1/run\" --set stop.hours=1e-9 || code=$?
        if [ -e \"$1/run/config.json\" ]; then echo \"begun: $code\"; else echo \"refused: $code\"; fi";
    let started = |kilobytes: &str| {
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-euc", script, "sh"]).args([&mount]).arg(common::PROGRAM).arg(&config);
        Process::start(command.arg(kilobytes)).finish()
    };
    let probe = Command::new("unshare").args(["-rm", "mount", "-t", "tmpfs", "tmpfs"]).arg(&mount).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        println!("skipped: this system does not let the test mount a file system of its own (unshare -rm)");
        return;
    }
    let done = started("64").expect(0);
    assert_eq!(done.out, "refused: 1\n", "{}", done.err);
    assert!(done.err.contains("no space left in") && done.err.contains("for another generation"), "{}", done.err);
    let done = started("8000").expect(0);
    assert!(done.out.ends_with("begun: 0\n"), "{}", done.out);
    assert!(done.err.contains("the rest of the run can take") && done.err.contains("`keep`"), "{}", done.err);
}
