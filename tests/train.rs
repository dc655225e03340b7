//! Training runs through the program: the same result whatever the threads and interruptions, and clear words when something
//! is in the way.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use common::runs::{self, Place, results, tree, undisturbed};
use common::{PROGRAM, Process, busy, run, train, words};
use serde_json::{Value as Json, json};

/// Three small generations: about a second of work each, every phase long enough to be met in the middle.
const CONFIG: &str = r#"{
  "game": "tictactoe",
  "seed": 5,
  "training_threads": 1,
  "network": { "blocks": 1, "channels": 8 },
  "growth": [{ "generation": 2, "network": { "type": "mlp", "hidden": [32] }, "passes": 2 }],
  "selfplay": {
    "games": 60, "simulations": 24, "threads": 1, "parallel_games": 4, "opening_share": 0.3, "cache_megabytes": 8,
    "view": "canonical"
  },
  "replay": { "min_positions": 300, "reuse": 2 },
  "training": { "batch_size": 16, "auxiliary": { "reply": 0.3 } },
  "gate": { "games": 24, "simulations": 16, "opening_plies": 2, "anchor_games": 4, "anchor_simulations": 20 },
  "stop": { "iterations": 3 }
}"#;

/// The run after one generation.
fn after_one_generation() -> Place {
    let place = Place::new(CONFIG);
    place.train(&["stop.iterations=1", "selfplay.games=20"]).finish().expect(0);
    place
}

/// The undisturbed run that the others are compared with.
fn reference() -> &'static Path {
    static REFERENCE: OnceLock<PathBuf> = OnceLock::new();
    REFERENCE.get_or_init(|| undisturbed("train-reference", CONFIG))
}

#[track_caller]
fn assert_same_results(run: &Path) {
    runs::assert_same_results(reference(), run);
}

#[track_caller]
fn assert_same_records(run: &Path) {
    runs::assert_same_records(reference(), run);
}

#[test]
fn threads_parallel_games_and_the_cache_change_nothing() {
    for (threads, slots, cache) in [(2, "3", 8), (3, "null", 0)] {
        let place = Place::new(CONFIG);
        let sets = [
            ("threads", threads.to_string()),
            ("parallel_games", slots.into()),
            ("cache_megabytes", cache.to_string()),
        ];
        let sets = sets.map(|(key, value)| format!("selfplay.{key}={value}"));
        place.train(&sets.each_ref().map(String::as_str)).finish().expect(0);
        assert_same_results(&place.run());
        // Without a cache there is no hit rate to record.
        if cache > 0 {
            assert_same_records(&place.run());
        }
    }
    // `inspect` tells the same digest.
    let inspected = run(["inspect".as_ref(), reference().as_os_str()]).expect(0).json();
    let digest = inspected["weights_digest"].as_str().unwrap();
    assert!(results(reference()).values().any(|found| found == digest), "{digest}");
}

/// Phases in which the runs below are disturbed, by what the program says when they begin.
const MOMENTS: [&str; 6] = [
    "generation 1: self-play,",
    "generation 1: training,",
    "generation 1: gate,",
    "generation 2: self-play,",
    "generation 2: training,",
    "generation 2: gate,",
];

#[test]
fn interrupted_and_resumed_it_ends_the_same() {
    let place = Place::new(CONFIG);
    for (index, moment) in MOMENTS.into_iter().enumerate() {
        let mut process = place.train(&[]);
        process.wait_for(moment);
        std::thread::sleep(Duration::from_millis(50));
        process.signal(["INT", "TERM"][index % 2]);
        let asked = Instant::now();
        let done = process.finish().expect(130);
        assert!(asked.elapsed() < busy(Duration::from_secs(10)), "{moment}: {:?}", asked.elapsed());
        assert_eq!(done.out, "", "an unfinished run has no result");
        assert!(done.err.contains("the same command goes on"), "{}", done.err);
        // What is there can be played with in the meantime.
        run(["inspect".as_ref(), place.run().as_os_str()]).expect(0);
    }
    let done = place.train(&[]).finish().expect(0);
    assert!(done.err.contains("resumed in generation"), "{}", done.err);
    assert_same_results(&place.run());
    assert_same_records(&place.run());
    // The numbers of saved states count up without a gap.
    let text = fs::read_to_string(place.run().join("metrics.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Json>(line).unwrap());
    let marks: Vec<u64> =
        lines.filter(|line| line["event"] == "mark").map(|line| line["mark"].as_u64().unwrap()).collect();
    assert_eq!(marks, (1..=marks.len() as u64).collect::<Vec<_>>());
    // A complete run stays as it is.
    place.train(&[]).finish().expect(0);
    assert_same_results(&place.run());
}

#[test]
fn killed_and_resumed_it_ends_the_same() {
    let place = Place::new(CONFIG);
    // While it starts, while the folder is made, and wherever these times fall.
    for milliseconds in [1, 20, 60, 120, 180, 250, 400, 700] {
        let process = place.train(&[]);
        std::thread::sleep(Duration::from_millis(milliseconds));
        process.signal("KILL");
        let done = process.finish();
        assert!(done.code == -9 || done.code == 0, "{done:?}");
    }
    for (index, _) in MOMENTS.into_iter().enumerate() {
        let mut process = place.train(&[]);
        // A moment that the run has passed already does not come again.
        let later = MOMENTS[index..].iter().chain(&["stopped: "]);
        process.wait_for_any(&later.copied().collect::<Vec<_>>());
        std::thread::sleep(Duration::from_millis(30 * index as u64));
        process.signal("KILL");
        let done = process.finish();
        assert!(done.code == -9 || done.code == 0, "{done:?}");
        assert!(!done.err.contains("panicked"), "{}", done.err);
    }
    place.train(&[]).finish().expect(0);
    assert_same_results(&place.run());
    assert_same_records(&place.run());
}

#[test]
fn what_a_kill_left_undone_is_done_at_the_next_start() {
    // The candidate wins its gate, after which its checkpoint is published again, with an Elo.
    let sets = ["stop.iterations=1", "selfplay.games=20", "gate.elo0=-400", "gate.elo1=-300"];
    let verify = |place: &Place| run(["inspect".as_ref(), "--verify".as_ref(), place.run().as_os_str()]);
    // In the middle of the gate, with the candidate copied as the best network already.
    let place = Place::new(CONFIG);
    let endless = [&sets[..], &["gate.games=1000000", "gate.elo0=-0.1", "gate.elo1=0"]].concat();
    let mut process = place.train(&endless);
    process.wait_for("generation 1: gate,");
    process.signal("KILL");
    process.finish().expect(-9);
    let copy = place.run().join("state/best.safetensors");
    fs::copy(place.run().join("checkpoints/gen-000001.safetensors"), &copy).unwrap();
    verify(&place).expect(0);
    // And its checkpoint published with an Elo that the pointer does not know of.
    let other = Place::new(CONFIG);
    other.train(&sets).finish().expect(0);
    let rated = fs::read(other.run().join("checkpoints/gen-000001.safetensors")).unwrap();
    assert_ne!(fs::read(place.run().join("checkpoints/gen-000001.safetensors")).unwrap(), rated);
    fs::write(place.run().join("checkpoints/gen-000001.safetensors"), rated).unwrap();
    fs::write(&copy, fs::read(place.run().join("checkpoints/gen-000000.safetensors")).unwrap()).unwrap();
    verify(&place).expect(0);
    fs::copy(place.run().join("checkpoints/gen-000001.safetensors"), &copy).unwrap();
    let mut process = place.train(&endless);
    process.wait_for("generation 1: gate,");
    assert_eq!(fs::read(&copy).unwrap(), fs::read(place.run().join("checkpoints/gen-000000.safetensors")).unwrap());
    process.signal("KILL");
    assert!(!process.finish().expect(-9).err.contains("anew"));
    place.train(&sets).finish().expect(0);
    assert_eq!(results(&place.run()), results(&other.run()));

    // Another copy, or none, at any other time is damage.
    let whole = results(&place.run());
    for damaged in [Some("something"), None] {
        match damaged {
            Some(text) => fs::write(&copy, text).unwrap(),
            None => fs::remove_file(&copy).unwrap(),
        }
        let problems = verify(&place).expect(1).json()["problems"].to_string();
        assert!(problems.contains("state/best.safetensors"), "{problems}");
        let told = place.train(&sets).finish().expect(0).err;
        assert!(told.contains("best.safetensors") && told.contains("copied anew"), "{told}");
        assert_eq!(results(&place.run()), whole);
    }

    // Between the state and what ends a generation.
    fs::remove_file(place.run().join("state/gen-000001.state")).unwrap();
    place.train(&sets).finish().expect(0);
    assert_eq!(results(&place.run()), whole);
}

#[test]
fn what_a_run_is_cannot_change_and_the_rest_can() {
    let place = after_one_generation();
    let more = "stop.iterations=2";
    for (set, path, values) in [
        ("game=connect4", "game", ["tictactoe", "connect4"]),
        ("network.channels=16", "network.channels", ["8", "16"]),
        ("seed=6", "seed", ["5", "6"]),
        ("training_threads=2", "training_threads", ["1", "2"]),
    ] {
        let folder = place.run().display().to_string();
        let done = place.train(&[more, set]).finish().complains(2, &[&folder, "These keys cannot change", "--run"]);
        let line = done.err.lines().find(|line| line.trim_start().starts_with(path));
        let line = line.unwrap_or_else(|| panic!("{path} is not named: {}", done.err));
        assert!(values.iter().all(|value| line.contains(value)), "{line}");
    }
    let done = place.train(&[more, "selfplay.games=30", "gate.simulations=8"]).finish().expect(0);
    for part in ["the config has changed", "selfplay.games", "20", "30", "gate.simulations"] {
        assert!(done.err.contains(part), "{part}: {}", done.err);
    }
    let kept: Json = serde_json::from_str(&fs::read_to_string(place.run().join("config.json")).unwrap()).unwrap();
    assert_eq!((&kept["selfplay"]["games"], &kept["stop"]["iterations"]), (&json!(30), &json!(2)));
}

#[test]
fn a_run_belongs_to_one_process() {
    let place = Place::new(CONFIG);
    let mut first = place.train(&["stop.iterations=100000"]);
    first.wait_for("self-play");
    let pid = format!("process {}", first.id());
    place.train(&[]).finish().complains(1, &[&place.run().display().to_string(), &pid]);
    first.signal("INT");
    first.finish().expect(130);
    place.train(&["stop.iterations=1"]).finish().expect(0);
}

#[test]
fn other_folders_are_left_alone() {
    let place = Place::new(CONFIG);
    let folder = place.run().display().to_string();
    fs::write(place.run(), "a file").unwrap();
    place.train(&[]).finish().complains(2, &[&folder, "is a file"]);
    fs::remove_file(place.run()).unwrap();
    fs::create_dir(place.run()).unwrap();
    fs::write(place.run().join("thesis.txt"), "precious").unwrap();
    place.train(&[]).finish().complains(2, &[&folder, "thesis.txt"]);
    assert_eq!(fs::read_dir(place.run()).unwrap().count(), 1, "nothing is made in it");
}

#[test]
fn a_folder_that_vanishes_is_named_and_the_run_goes_on_when_it_is_back() {
    let place = Place::new(CONFIG);
    let mut process = place.train(&["stop.iterations=100000"]);
    process.wait_for("generation 2: self-play,");
    let away = place.scratch.path().join("away");
    fs::rename(place.run(), &away).unwrap();
    let done = process.finish().complains(1, &[&place.run().display().to_string()]);
    assert!(!done.err.contains("everything is saved"), "{}", done.err);
    assert!(!place.run().exists(), "nothing is made in its place");
    fs::rename(&away, place.run()).unwrap();
    place.train(&[]).finish().expect(0);
    assert_same_results(&place.run());
    assert_same_records(&place.run());
}

/// Runs `script` where it may mount file systems that nobody else sees: `$1` is an empty folder, `$2` the program,
/// `$3` the config. `None`, with a note, where the system does not allow it.
fn with_mounts(place: &Place, script: &str) -> Option<common::Done> {
    let mount = place.scratch.path().join("mount");
    fs::create_dir_all(&mount).unwrap();
    let probe = Command::new("unshare").args(["-rm", "mount", "-t", "tmpfs", "tmpfs"]).arg(&mount).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        println!("skipped: this system does not let the test mount a file system of its own (unshare -rm)");
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-euc", script, "sh"]).arg(mount).arg(PROGRAM).arg(place.config());
    Some(Process::start(&mut command).finish())
}

#[test]
fn a_full_disk_is_named_and_the_run_goes_on_when_there_is_space() {
    let reference = results(reference());
    for kilobytes in [8, 48, 110] {
        let place = Place::new(CONFIG);
        let copy = place.scratch.path().join("copy");
        let script = format!(
            "mount -t tmpfs -o size=64m tmpfs \"$1\"
            \"$2\" train \"$3\" --run \"$1/run\" --set stop.iterations=2 & pid=$!
            # A disk that is full at the start is refused: this one gets full.
            until [ -e \"$1/run/state/gen-000000.state\" ]; do sleep 0.01; done
            until mount -o remount,size=$(($(du -sk \"$1\" | cut -f1) + {kilobytes}))k \"$1\"; do :; done
            code=0; wait $pid || code=$?
            echo \"full: $code\"
            mount -o remount,size=64m \"$1\"
            \"$2\" train \"$3\" --run \"$1/run\" --set stop.iterations=2 2>/dev/null >/dev/null
            echo resumed
            cp -r \"$1/run\" '{}'",
            copy.display()
        );
        let Some(done) = with_mounts(&place, &script) else { return };
        let done = done.expect(0);
        assert_eq!(done.out, "full: 1\nresumed\n", "{kilobytes} kB: {}", done.err);
        let folder = place.scratch.path().join("mount").display().to_string();
        let last = done.err.lines().last().unwrap();
        let clear = last.starts_with("error: ") && last.contains("no space left in") && last.contains(&folder);
        assert!(clear, "{kilobytes} kB: {}", done.err);
        for (name, found) in
            results(&copy).iter().filter(|(name, _)| name.contains("/gen-") && !name.starts_with("state"))
        {
            assert_eq!(Some(found), reference.get(name), "{kilobytes} kB: {name}");
        }
    }
}

#[test]
fn a_read_only_folder_is_named() {
    let place = after_one_generation();
    let script = format!(
        "mount --bind '{0}' '{0}'
        mount -o remount,ro,bind '{0}'
        \"$2\" train \"$3\" --run '{0}' --set stop.iterations=2",
        place.run().display()
    );
    if let Some(done) = with_mounts(&place, &script) {
        done.complains(1, &[&place.run().display().to_string(), "read-only"]);
    }
    // The superuser may write whatever the mode says.
    let mode = |mode: &str| {
        let changed = Command::new("chmod").args(["-R", mode]).arg(place.run()).status();
        assert!(changed.unwrap().success());
    };
    mode("a-w");
    if fs::write(place.run().join("probe"), "").is_err() {
        place.train(&["stop.iterations=2"]).finish().complains(1, &[&place.run().display().to_string(), "permission"]);
    } else {
        println!("skipped: file modes do not keep this user from writing");
        fs::remove_file(place.run().join("probe")).unwrap();
    }
    mode("u+w");
    place.train(&["stop.iterations=2", "selfplay.games=20"]).finish().expect(0);
}

#[test]
fn a_damaged_best_network_is_named_and_restored() {
    let place = after_one_generation();
    // The program names it on stdout.
    let done = place.train(&["stop.iterations=1", "selfplay.games=20"]).finish().expect(0);
    let best = PathBuf::from(done.out.trim_end());
    let whole = fs::read(&best).unwrap();
    let name = best.file_name().unwrap().to_string_lossy().into_owned();
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        bytes
    };
    let end = whole.len();
    let cases =
        [Vec::new(), whole[..end / 2].to_vec(), whole[..end - 1].to_vec(), flipped(2), flipped(40), flipped(end - 5)];
    for damaged in cases {
        fs::write(&best, damaged).unwrap();
        run(["inspect".as_ref(), best.as_os_str()]).complains(1, &[&name]);
        run(["inspect".as_ref(), place.run().as_os_str()]).complains(1, &[&name]);
        run(["pit".as_ref(), place.run().as_os_str(), "random".as_ref()]).complains(1, &[&name]);
        // The run itself keeps a copy.
        let told = place.train(&["stop.iterations=1", "selfplay.games=20"]).finish().expect(0).err;
        assert!(told.contains(&name) && told.contains("restored from the copy"), "{told}");
        assert_eq!(fs::read(&best).unwrap(), whole);
    }
    let copy = place.run().join("state/best.safetensors");
    fs::write(&copy, "").unwrap();
    fs::write(&best, flipped(end - 5)).unwrap();
    place.train(&["stop.iterations=2"]).finish().complains(1, &[&name, "restore"]);
    fs::write(&best, &whole).unwrap();
    // A whole checkpoint, but not the one that the run has made.
    let other = after_one_generation();
    let stranger = Process::start(&mut train(
        &other.config(),
        &other.scratch.path().join("b/run"),
        &["seed=9", "stop.iterations=1"],
    ))
    .finish()
    .expect(0);
    fs::copy(stranger.out.trim_end(), &best).unwrap();
    place.train(&["stop.iterations=2"]).finish().complains(1, &[&name, "restore"]);
    fs::write(&best, &whole).unwrap();
    place.train(&["stop.iterations=2"]).finish().expect(0);
}

#[test]
fn other_damaged_files_are_named_or_mended() {
    let place = after_one_generation();
    let trainer = fs::read_dir(place.run().join("state")).unwrap().map(|entry| entry.unwrap().file_name());
    let trainer =
        trainer.map(|name| name.to_string_lossy().into_owned()).find(|name| name.starts_with("step-")).unwrap();
    let files =
        ["state/run.state", &format!("state/{trainer}"), "games/gen-000001.games", "config.json", "metrics.jsonl"];
    let mended = [files[0], files[1], files[2]];
    for name in files {
        let file = place.run().join(name);
        let whole = fs::read(&file).unwrap();
        let mut flipped = whole.clone();
        flipped[whole.len() / 3] ^= 16;
        for damaged in [Vec::new(), whole[..whole.len() / 2].to_vec(), flipped] {
            // Each try on a copy: a run that mends itself goes on.
            let copy = Place::new(CONFIG);
            assert!(Command::new("cp").arg("-r").arg(place.run()).arg(copy.run()).status().unwrap().success());
            fs::write(copy.run().join(name), damaged).unwrap();
            let done = copy.train(&["stop.iterations=2", "selfplay.games=20"]).finish();
            let named = done.err.contains(Path::new(name).file_name().unwrap().to_str().unwrap());
            match done.code {
                1 if mended.contains(&name) => panic!("{name}: {}", done.err),
                1 => assert!(named, "{name}: {}", done.err),
                // What is only recorded does not stop a run; a flipped digit of a number is no damage that shows.
                0 => assert!(named || name == "metrics.jsonl" || name == "config.json", "{name}: {}", done.err),
                code => assert!(code == 2 && name == "config.json", "{name}: {code} {}", done.err),
            }
            assert!(!done.err.contains("panicked"), "{name}: {}", done.err);
        }
    }
}

#[test]
fn games_pointers_and_old_networks_that_are_lost_do_not_stop_a_run() {
    let place = after_one_generation();
    let run = place.run();
    let gate = "gate={\"mode\": \"off\", \"anchor_games\": 0}";
    let until =
        |iterations: u32| place.train(&[&format!("stop.iterations={iterations}"), "selfplay.games=20", gate]).finish();
    // The other pointer in the place of the best one, games without a readable byte, a journal of nothing, and the
    // network that training began with gone.
    let second = until(2).expect(0);
    let pointer = fs::read(run.join("best")).unwrap();
    let old = String::from_utf8(pointer.clone()).unwrap();
    assert!(second.out.contains("gen-000002") && old.contains("gen-000002"), "{old}");
    let first = after_one_generation();
    fs::copy(first.run().join("best"), run.join("best")).unwrap();
    let games = run.join("games/gen-000001.games");
    fs::write(&games, vec![0; 4096]).unwrap();
    fs::write(run.join("games/gen-000003.part"), vec![0; 100]).unwrap();
    fs::remove_file(run.join("checkpoints/gen-000000.safetensors")).unwrap();
    let told = until(3).expect(0).err;
    for part in ["`best` names generation 0", "gen-000001.games", "gen-000003.part", "damaged/", "played again"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!games.exists() && run.join("damaged/gen-000001.games").exists());
    // A games file that is gone altogether, and then what cannot be done without: told before any game is played.
    fs::remove_file(run.join("games/gen-000002.games")).unwrap();
    let told = until(4).expect(0).err;
    assert!(told.contains("gen-000002.games") && told.contains("goes on without"), "{told}");
    let best = run.join("checkpoints/gen-000004.safetensors");
    fs::copy(run.join("checkpoints/gen-000003.safetensors"), &best).unwrap();
    fs::remove_file(run.join("best")).unwrap();
    let done = until(5);
    done.complains(1, &["gen-000004.safetensors", "generation 3", "restore"]);
    assert!(!run.join("games/gen-000005.part").exists());
}

#[test]
fn damaged_games_of_the_generation_in_progress_are_played_again() {
    let rest = ["stop.iterations=2", "selfplay.games=20"];
    let whole = after_one_generation();
    whole.train(&rest).finish().expect(0);
    let games = fs::read(whole.run().join("games/gen-000002.games")).unwrap();
    // As if the process had ended between the publication of the games and that of the state, and the disk had then lost
    // something: one bit, or all, or the file were of another generation.
    let flipped = |at: usize| {
        let mut bytes = games.clone();
        bytes[at] ^= 1;
        bytes
    };
    let foreign = fs::read(whole.run().join("games/gen-000001.games")).unwrap();
    for (damaged, part) in [(flipped(games.len() / 2), "damaged"), (vec![0; 100], "no"), (foreign, "expected")] {
        let place = after_one_generation();
        fs::write(place.run().join("games/gen-000002.games"), damaged).unwrap();
        let told = place.train(&rest).finish().expect(0).err;
        for part in [part, "gen-000002.games", "damaged/", "played again"] {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert_eq!(results(&place.run()), results(&whole.run()));
    }
    // A journal that was finished but not yet removed is enough: nothing is played again.
    let place = after_one_generation();
    fs::write(place.run().join("games/gen-000002.games"), flipped(games.len() - 20)).unwrap();
    // A journal is a file of games without its closing mark.
    fs::write(place.run().join("games/gen-000002.part"), &games[..games.len() - 16]).unwrap();
    let told = place.train(&rest).finish().expect(0).err;
    assert!(told.contains("what is missing"), "{told}");
    assert_eq!(results(&place.run()), results(&whole.run()));
}

#[test]
fn damage_of_what_a_run_goes_on_from_costs_only_time() {
    // In the middle of the third generation, so that newer things are there than at the end of the second.
    let place = Place::new(CONFIG);
    let mut process = place.train(&[]);
    process.wait_for("generation 3: gate,");
    process.signal("INT");
    let begun = process.finish();
    assert!([0, 130].contains(&begun.code), "{begun:?}");
    let state = |run: &Path, wanted: &str| -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> =
            fs::read_dir(run.join("state")).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| path.file_name().unwrap().to_str().unwrap().starts_with(wanted));
        files.sort();
        files
    };
    let steps = state(&place.run(), "step-").len();
    assert_eq!((steps, state(&place.run(), "gen-").len()), (if begun.code == 0 { 2 } else { 3 }, 2));
    type Damage = fn(&Path);
    let newest: Damage = |file| fs::write(file, "").unwrap();
    let gone: Damage = |file| fs::remove_file(file).unwrap();
    let flipped: Damage = |file| {
        let mut bytes = fs::read(file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 8;
        fs::write(file, bytes).unwrap();
    };
    for (what, damage) in
        [("run.state", newest), ("run.state", gone), ("step-", flipped), ("step-", gone), ("both", flipped)]
    {
        let copy = Place::new(CONFIG);
        assert!(Command::new("cp").arg("-r").arg(place.run()).arg(copy.run()).status().unwrap().success());
        let wanted: &[&str] = if what == "both" { &["run.state", "step-", "gen-000002"] } else { &[what] };
        for file in wanted.iter().filter_map(|wanted| state(&copy.run(), wanted).pop()) {
            damage(&file);
        }
        let told = copy.train(&[]).finish().expect(0).err;
        assert!(told.contains("goes back to the end of generation"), "{what}: {told}");
        assert_same_results(&copy.run());
        assert_same_records(&copy.run());
    }
}

#[test]
fn games_that_are_lost_while_they_are_learned_from_are_played_again() {
    let place = Place::new(CONFIG);
    let mut process = place.train(&[]);
    process.wait_for("generation 2: training,");
    process.signal("INT");
    process.finish().expect(130);
    let name = "games/gen-000002.games";
    let whole = fs::read(place.run().join(name)).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 4;
    for damaged in [None, Some(flipped), Some(whole[..whole.len() / 3].to_vec())] {
        let copy = Place::new(CONFIG);
        assert!(Command::new("cp").arg("-r").arg(place.run()).arg(copy.run()).status().unwrap().success());
        match damaged {
            None => fs::remove_file(copy.run().join(name)).unwrap(),
            Some(bytes) => fs::write(copy.run().join(name), bytes).unwrap(),
        }
        let told = copy.train(&[]).finish().expect(0).err;
        assert!(told.contains("gen-000002.games") && told.contains("goes back to the end of generation 1"), "{told}");
        assert_same_results(&copy.run());
        assert_same_records(&copy.run());
    }
}

#[test]
fn what_another_run_goes_on_from_is_refused() {
    let rest = ["stop.iterations=2", "selfplay.games=20"];
    let other = Place::new(CONFIG);
    other.train(&["stop.iterations=1", "selfplay.games=20", "seed=6"]).finish().expect(0);
    for parts in [&["state"][..], &["state", "checkpoints"], &["state", "checkpoints", "best", "latest"]] {
        let place = after_one_generation();
        for part in parts {
            let own = place.run().join(part);
            if own.is_dir() {
                fs::remove_dir_all(&own).unwrap()
            } else {
                fs::remove_file(&own).unwrap()
            }
            assert!(Command::new("cp").arg("-r").arg(other.run().join(part)).arg(&own).status().unwrap().success());
        }
        let before = tree(&place.run());
        place.train(&rest).finish().complains(1, &["of different runs", "restore"]);
        assert_eq!(tree(&place.run()), before);
    }
    // Its newest state alone is passed over.
    let place = after_one_generation();
    fs::copy(other.run().join("state/run.state"), place.run().join("state/run.state")).unwrap();
    let told = place.train(&rest).finish().expect(0).err;
    assert!(told.contains("that of another run") && told.contains("goes back"), "{told}");
    let whole = after_one_generation();
    whole.train(&rest).finish().expect(0);
    assert_eq!(results(&place.run()), results(&whole.run()));
}

#[test]
fn what_is_not_kept_changes_nothing_else() {
    let place = Place::new(CONFIG);
    let keep = "keep={\"checkpoints\": 1, \"games\": \"window\"}";
    // A small window, so that games leave it; two parts, so that one is taken up from what is left.
    let small = ["replay.min_positions=100", "stop.iterations=6", "selfplay.games=20"];
    place.train(&[&small[..], &[keep, "stop.iterations=4"]].concat()).finish().expect(0);
    place.train(&[&small[..], &[keep]].concat()).finish().expect(0);
    let other = Place::new(CONFIG);
    other.train(&small).finish().expect(0);
    let (kept, all) = (results(&place.run()), results(&other.run()));
    assert!(kept.iter().all(|(name, digest)| all.get(name) == Some(digest)), "{kept:#?}");
    let count = |results: &BTreeMap<String, String>, start: &str, end: &str| {
        results.keys().filter(|name| name.starts_with(start) && name.ends_with(end)).count()
    };
    let checkpoints = |results| count(results, "checkpoints/", ".safetensors");
    assert!(checkpoints(&kept) <= 3 && checkpoints(&all) == 7, "{kept:#?}");
    let games = |results| count(results, "games/", ".games");
    assert!(games(&kept) < 6 && games(&all) == 6, "{kept:#?}");
    run(["inspect".as_ref(), "--verify".as_ref(), place.run().as_os_str()]).expect(0);
    // The process ended before everything was removed.
    fs::copy(other.run().join("games/gen-000001.games"), place.run().join("games/gen-000001.games")).unwrap();
    place.train(&[&small[..], &[keep]].concat()).finish().expect(0);
    assert_eq!(results(&place.run()), kept);
}

#[test]
fn a_whole_run_is_verified() {
    let place = after_one_generation();
    let verify = |code: i32| {
        let before = tree(&place.run());
        let done = run(["inspect".as_ref(), "--verify".as_ref(), place.run().as_os_str()]).expect(code);
        assert_eq!(tree(&place.run()), before, "nothing is changed");
        done
    };
    let sound = verify(0).json();
    assert!(sound["files"].as_u64().unwrap() >= 12 && sound["problems"] == json!([]), "{sound}");
    let files: Vec<PathBuf> = tree(&place.run()).into_keys().collect();
    for file in files {
        let name = file.strip_prefix(place.run()).unwrap().display().to_string();
        // A drawn game for people; nothing reads it.
        if name.starts_with("samples") {
            continue;
        }
        let whole = fs::read(&file).unwrap();
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 0x80;
        for damaged in [flipped, whole[..whole.len() - 3].to_vec()] {
            fs::write(&file, damaged).unwrap();
            let done = verify(1);
            let problems = done.json()["problems"].as_array().unwrap().clone();
            assert!(problems.iter().any(|problem| problem["file"] == name), "{name}: {problems:?}");
            assert!(done.err.contains("`sparring train` mends what it can"), "{}", done.err);
        }
        fs::write(&file, whole).unwrap();
    }
    verify(0);
    // A config of another run.
    let config = place.run().join("config.json");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("\"seed\": 5", "\"seed\": 6")).unwrap();
    let problems = verify(1).json()["problems"].to_string();
    assert!(problems.contains("by run.state it is of another run"), "{problems}");
    // One that was made anew, without the number of threads that was chosen at the start.
    let anew = text.replace("\"training_threads\": 1", "\"training_threads\": null");
    fs::write(&config, anew).unwrap();
    place.train(&["stop.iterations=1", "selfplay.games=20"]).finish().expect(0);
    verify(0);
    for part in ["config.json", "state/run.state", "metrics.jsonl", "best"] {
        run([Path::new("inspect"), &place.run().join(part)]).complains(2, &[part, "is a file of the run"]);
    }
    run(["inspect", "--verify", "src"]).complains(2, &["src", "no run"]);
}

#[test]
fn files_of_another_run_or_time_are_refused_and_nothing_is_changed() {
    let gate = "gate={\"mode\": \"off\", \"anchor_games\": 0}";
    let first = ["stop.iterations=1", "selfplay.games=20", gate];
    let rest = ["stop.iterations=2", "selfplay.games=20", gate];
    let place = Place::new(CONFIG);
    place.train(&first).finish().expect(0);
    let run = place.run();
    let step = fs::read_dir(run.join("state")).unwrap().map(|entry| entry.unwrap().path());
    let step = step.into_iter().find(|path| path.extension().unwrap() == "state" && !path.ends_with("run.state"));
    let step = step.unwrap();
    let name = step.file_name().unwrap().to_str().unwrap();
    let other = Place::new(CONFIG);
    other.train(&[&first[..], &["seed=6"]].concat()).finish().expect(0);
    let strange = fs::read_dir(other.run().join("state")).unwrap().map(|entry| entry.unwrap().path());
    let strange = strange.into_iter().find(|path| path.file_name().unwrap().to_str().unwrap().starts_with("step-"));
    let (whole, strange) = (fs::read(&step).unwrap(), fs::read(strange.unwrap()).unwrap());

    // A trainer's state that is whole, but not the one that was saved; and one that is not there. Without a state to go back
    // to the run stays as it is.
    let end = run.join("state/gen-000000.state");
    let beginning = fs::read(&end).unwrap();
    fs::remove_file(&end).unwrap();
    fs::write(&step, strange).unwrap();
    let before = tree(&run);
    place.train(&rest).finish().complains(1, &[name, "another digest", "restore"]);
    assert_eq!(tree(&run), before);
    fs::remove_file(&step).unwrap();
    let before = tree(&run);
    place.train(&rest).finish().complains(1, &[name, "there is no", "restore"]);
    assert_eq!(tree(&run), before);
    fs::write(&step, &whole).unwrap();
    fs::write(&end, beginning).unwrap();

    // A folder where files should be, a pointer and games of the other run, and a state that a kill has left behind.
    let stray = run.join("state/step-000000001.state");
    fs::write(&stray, &whole).unwrap();
    fs::copy(other.run().join("best"), run.join("best")).unwrap();
    fs::copy(other.run().join("games/gen-000001.games"), run.join("games/gen-000001.games")).unwrap();
    fs::remove_file(run.join("latest")).unwrap();
    fs::create_dir(run.join("latest")).unwrap();
    fs::create_dir(run.join("games/gen-000002.part")).unwrap();
    let told = place.train(&rest).finish().expect(0).err;
    for part in ["`best` has another digest", "latest", "seed 6", "gen-000001.games", "gen-000002.part", "damaged/"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!stray.exists() && run.join("latest").is_file());
}

#[test]
fn charts_that_are_removed_are_missed() {
    for name in ["tb", "metrics.jsonl"] {
        let place = Place::new(CONFIG);
        let mut process = place.train(&[]);
        process.wait_for("generation 1: self-play");
        let path = place.run().join(name);
        if path.is_dir() {
            fs::remove_dir_all(&path).unwrap()
        } else {
            fs::remove_file(&path).unwrap()
        }
        process.finish().complains(1, &[name]);
        // They begin anew.
        place.train(&["stop.iterations=1"]).finish().expect(0);
        assert!(path.exists());
    }
}

#[test]
fn a_limit_on_the_size_of_files_is_told() {
    let place = Place::new(CONFIG);
    let (config, run) = (place.config().display().to_string(), place.run().display().to_string());
    let script = format!("ulimit -f 8; exec {PROGRAM} train {config} --run {run}");
    Process::start(Command::new("sh").args(["-c", &script])).finish().complains(1, &["too large"]);
    place.train(&["stop.iterations=1"]).finish().expect(0);
}

#[test]
fn a_lost_state_is_told_and_nothing_is_overwritten_and_a_lost_pointer_is_made_anew() {
    let place = after_one_generation();
    let again = ["stop.iterations=2", "selfplay.games=20"];
    let best = place.run().join("best");
    let pointer = fs::read(&best).unwrap();
    fs::remove_file(&best).unwrap();
    place.train(&["stop.iterations=1", "selfplay.games=20"]).finish().expect(0);
    assert_eq!(fs::read(&best).unwrap(), pointer);
    for name in ["run.state", "gen-000000.state", "gen-000001.state"] {
        fs::remove_file(place.run().join("state").join(name)).unwrap();
    }
    let network = fs::read(place.run().join("checkpoints/gen-000001.safetensors")).unwrap();
    place.train(&again).finish().complains(1, &["no state/run.state", "restore"]);
    assert_eq!(fs::read(place.run().join("checkpoints/gen-000001.safetensors")).unwrap(), network);
}

#[test]
fn wrong_arguments_make_no_folder() {
    let place = Place::new(CONFIG);
    let config = place.config().display().to_string();
    for (arguments, parts) in [
        (format!("train {config} --set selfplay.game=3"), vec!["--set selfplay.game=3", "did you mean \"games\"?"]),
        (format!("train {config} --set selfplay.games=0"), vec!["selfplay.games", "out of range"]),
        (format!("train {config}.no"), vec!["config.json.no", "cannot be read"]),
    ] {
        let mut command = common::sparring(words(&arguments));
        Process::start(command.arg("--run").arg(place.run())).finish().complains(2, &parts);
        assert!(!place.run().exists());
    }
}
