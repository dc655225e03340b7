//! Whatever the disk refuses or loses: the operations of a run on its files, counted by a layer that lets one of them fail
//! (`common/faults.c`), and after each failure the run goes on to the same end.

#![cfg(target_os = "linux")]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use common::Process;
use common::runs::{Place, assert_same_records, assert_same_results, undisturbed};

/// Two tiny generations with every phase.
const CONFIG: &str = r#"{
  "game": "tictactoe",
  "seed": 5,
  "training_threads": 1,
  "engine": "libtorch",
  "network": { "blocks": 1, "channels": 4 },
  "selfplay": { "games": 12, "simulations": 8, "threads": 1, "parallel_games": 4, "cache_megabytes": 1 },
  "replay": { "min_positions": 50, "reuse": 1 },
  "training": { "batch_size": 16 },
  "gate": { "games": 4, "simulations": 4, "opening_plies": 2, "anchor_games": 2, "anchor_simulations": 4 },
  "stop": { "iterations": 2 }
}"#;

/// How an operation fails, see `common/faults.c`.
const MODES: [&str; 4] = ["nospace", "full", "crash", "power"];

/// The layer, compiled.
fn layer() -> &'static Path {
    static LAYER: OnceLock<PathBuf> = OnceLock::new();
    LAYER.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/common/faults.c");
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("faults.so");
        let mut compiler = Command::new("cc");
        compiler.args(["-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-o"]).arg(&library).arg(source);
        assert!(compiler.arg("-ldl").status().expect("a C compiler").success());
        library
    })
}

/// An operation of a run on a file.
#[derive(Clone, Debug)]
struct Operation {
    number: usize,
    /// What it is and of which file, without numbers: `rename checkpoints/gen-N.safetensors`.
    kind: String,
}

/// A run begins anew, or goes on from a folder.
#[derive(Clone, Copy)]
enum Begin<'a> {
    Anew,
    From(&'a Path),
}

impl Begin<'_> {
    fn place(self) -> Place {
        let place = Place::new(CONFIG);
        if let Begin::From(folder) = self {
            assert!(Command::new("cp").arg("-a").args([folder, &place.run()]).status().unwrap().success());
        }
        place
    }
}

/// The run with the layer before it.
fn under(place: &Place, at: usize, mode: &str) -> Process {
    let mut command = common::train(&place.config(), &place.run(), &[]);
    command.env("LD_PRELOAD", layer()).env("FAULT_DIR", place.run());
    command.env("FAULT_AT", at.to_string()).env("FAULT_MODE", mode);
    command.env("FAULT_LOG", place.scratch.path().join("log"));
    Process::start(&mut command)
}

/// What a run does to its files, in order.
fn operations(place: &Place) -> Vec<Operation> {
    let log = fs::read_to_string(place.scratch.path().join("log")).unwrap();
    let root = place.run().display().to_string();
    log.lines()
        .map(|line| {
            let (number, rest) = line.split_once(' ').unwrap();
            let mut kind = String::new();
            for letter in rest.replace(&root, "").replace(" /", " ").chars() {
                match letter.is_ascii_digit() {
                    true if kind.ends_with('N') => {}
                    true => kind.push('N'),
                    false => kind.push(letter),
                }
            }
            Operation { number: number.parse().unwrap(), kind }
        })
        .collect()
}

fn reference() -> &'static Path {
    static REFERENCE: OnceLock<PathBuf> = OnceLock::new();
    REFERENCE.get_or_init(|| undisturbed("faults-reference", CONFIG))
}

/// What came of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// The run did without.
    Unharmed,
    /// It stopped with a clear message, and went on.
    Told,
    /// It ended there, and went on.
    Ended,
}

/// Lets one operation of a run fail, and the run go on.
fn trial(begin: Begin<'_>, at: usize, mode: &str) -> Outcome {
    let place = begin.place();
    let done = under(&place, at, mode).finish();
    assert!(!done.err.contains("panicked"), "{}", done.err);
    let outcome = match (done.code, mode) {
        (0, _) => Outcome::Unharmed,
        (1, "nospace" | "full") => {
            assert!(done.err.lines().last().unwrap_or_default().starts_with("error: "), "{}", done.err);
            assert!(done.err.contains("no space left in "), "{}", done.err);
            Outcome::Told
        }
        (137, "crash" | "power") => Outcome::Ended,
        _ => panic!("exit code {}: {}", done.code, done.err),
    };
    let again = place.train(&[]).finish().expect(0);
    assert!(!place.run().join("damaged").exists(), "{}", again.err);
    assert_same_results(reference(), &place.run());
    assert_same_records(reference(), &place.run());
    let left: Vec<PathBuf> =
        common::runs::tree(&place.run()).into_keys().filter(|file| file.to_string_lossy().ends_with(".tmp")).collect();
    assert!(left.is_empty(), "{left:?}");
    outcome
}

/// A run that ended in the middle of its second training.
fn half() -> &'static Path {
    static HALF: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, run) = HALF.get_or_init(|| {
        let place = Place::new(CONFIG);
        under(&place, 0, "").finish().expect(0);
        let last = operations(&place).into_iter().rfind(|operation| operation.kind.starts_with("rename state/step-"));
        let place = Place::new(CONFIG);
        under(&place, last.unwrap().number, "crash").finish().expect(137);
        let run = place.run();
        (place.scratch, run)
    });
    run
}

/// The operations to try: of each kind the first `of_each`.
fn chosen(begin: Begin<'_>, of_each: usize) -> Vec<Operation> {
    let place = begin.place();
    under(&place, 0, "").finish().expect(0);
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut chosen = operations(&place);
    assert!(chosen.len() > 100, "{}", chosen.len());
    chosen.retain(|operation| {
        let count = seen.entry(operation.kind.clone()).or_default();
        *count += 1;
        *count <= of_each
    });
    chosen
}

/// Tries `operations`, each in the modes that `modes` names for its place in the list; tells how it went.
fn sweep(begin: Begin<'_>, operations: &[Operation], modes: impl Fn(usize) -> Vec<&'static str>) {
    let mut table: BTreeMap<(&str, Outcome), usize> = BTreeMap::new();
    let mut faults = Vec::new();
    for (index, operation) in operations.iter().enumerate() {
        for mode in modes(index) {
            match catch_unwind(AssertUnwindSafe(|| trial(begin, operation.number, mode))) {
                Ok(outcome) => *table.entry((mode, outcome)).or_default() += 1,
                Err(_) => faults.push(format!("{mode} at {} ({})", operation.number, operation.kind)),
            }
        }
    }
    println!("{} operations: {table:?}", operations.len());
    assert!(faults.is_empty(), "{} failures did harm:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn a_refused_write_and_a_lost_rename_do_no_harm() {
    let operations = chosen(Begin::Anew, 1);
    let find = |kind: &str| {
        let found = operations.iter().find(|operation| operation.kind == kind);
        found.unwrap_or_else(|| panic!("no {kind:?} in {operations:?}")).number
    };
    assert_eq!(trial(Begin::Anew, find("write games/gen-N.part"), "full"), Outcome::Told);
    assert_eq!(trial(Begin::Anew, find("rename checkpoints/gen-N.safetensors"), "power"), Outcome::Ended);
    assert_eq!(trial(Begin::From(half()), 1, "crash"), Outcome::Ended);
}

/// Each kind of operation once, in one mode after the other; with `SPARRING_FAULTS=all` up to twelve of each kind in every
/// mode, which is a matter of half an hour.
fn sweep_kinds(begin: Begin<'_>) {
    if std::env::var("SPARRING_FAULTS").is_ok_and(|value| value == "all") {
        sweep(begin, &chosen(begin, 12), |_| MODES.to_vec());
    } else {
        sweep(begin, &chosen(begin, 1), |index| vec![MODES[index % MODES.len()]]);
    }
}

#[test]
#[ignore = "slow: about a minute"]
fn a_failure_of_each_kind_of_operation_does_no_harm_to_a_new_run() {
    sweep_kinds(Begin::Anew);
}

#[test]
#[ignore = "slow: about a minute"]
fn a_failure_of_each_kind_of_operation_does_no_harm_to_a_resumed_run() {
    sweep_kinds(Begin::From(half()));
}
