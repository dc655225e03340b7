//! Training runs that are killed over and over, at random moments of every phase, and end as if nothing had happened.
//!
//! Each moment is drawn from a fixed seed, or from the environment variable `SPARRING_KILL_SEED`. The tests print what they have
//! done as a table (`--nocapture` shows it).

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use common::runs::{Place, assert_same_records, assert_same_results, undisturbed};
use common::{Done, Process, busy, run};
use sparring::run::dir::RunDir;
use sparring::run::state::{RunState, Stage};
use sparring::run::verify::verify;
use sparring::util::rng::Stream;

/// Generations of half a second, in which some candidates win their gate and some do not, and old files are removed.
const SHORT: &str = r#"{
  "game": "tictactoe",
  "seed": 5,
  "training_threads": 1,
  "network": { "blocks": 1, "channels": 8 },
  "selfplay": { "games": 80, "simulations": 24, "threads": 1, "parallel_games": 4, "opening_share": 0.3, "cache_megabytes": 8, "resign": { "score": 0.3 }, "reanalysed_share": 0.2 },
  "growth": [{ "generation": 4, "network": { "type": "resnet", "blocks": 1, "channels": 12 }, "passes": 1 }],
  "replay": { "min_positions": 300, "reuse": 2 },
  "training": { "batch_size": 16, "auxiliary": {} },
  "gate": { "games": 24, "simulations": 16, "opening_plies": 2, "elo0": -40, "elo1": 0, "anchor_games": 8, "anchor_simulations": 40 },
  "keep": { "checkpoints": 3, "games": "window" },
  "stop": { "iterations": 8 }
}"#;

/// Games are written to the disk several times in a generation, and a training step takes a second: long enough for a second
/// signal to meet a process that is still busy with the first one.
const LONG: &str = r#"{
  "game": "tictactoe",
  "seed": 5,
  "training_threads": 1,
  "network": { "blocks": 2, "channels": 32 },
  "selfplay": { "games": 250, "simulations": 64, "threads": 1, "parallel_games": 8, "cache_megabytes": 0 },
  "replay": { "min_positions": 300, "reuse": 4 },
  "training": { "batch_size": 2048 },
  "gate": { "games": 40, "simulations": 64, "opening_plies": 2, "elo0": -100, "elo1": -50, "anchor_games": 20, "anchor_simulations": 300 },
  "stop": { "iterations": 2 }
}"#;

/// From the start of the program to its first game, about.
const START: f64 = 0.5;

/// SIGINT and SIGTERM end a process within this time, in every phase.
const PROMPT: Duration = Duration::from_secs(10);

/// And a second signal at once.
const AT_ONCE: Duration = Duration::from_secs(2);

/// How a process is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Blow {
    Kill,
    Interrupt,
    Terminate,
    /// SIGINT, and SIGTERM when it is still at work more than half a second later.
    Twice,
}

impl Blow {
    fn drawn(random: &mut Stream) -> Self {
        match random.below(8) {
            0..4 => Self::Kill,
            4 => Self::Interrupt,
            5 => Self::Terminate,
            _ => Self::Twice,
        }
    }
}

/// The places in a generation where runs are met: the phase, and files that are published at its end. None of them: anywhere
/// in the phase.
const SPOTS: [(&str, &[&str]); 7] = [
    ("self-play", &[]),
    ("self-play", &["games/", "samples/", "state/run.state"]),
    ("training", &[]),
    ("training", &["state/step-", "checkpoints/", "latest", "state/run.state"]),
    ("gate", &[]),
    ("rating games", &[]),
    ("gate", &["checkpoints/", "latest", "state/best.safetensors", "best", "state/run.state", "state/gen-"]),
];

/// The phases of a generation, as the program calls them in their order.
const PHASES: [&str; 4] = ["self-play", "training", "gate", "rating games"];

/// What came of the blows in one phase by one signal.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    count: usize,
    /// From the signal to the end of the process.
    exit: Duration,
    /// Work that no file knew of yet, and that is done again.
    again: Duration,
}

type Table = BTreeMap<(String, &'static str), Cell>;

fn print(title: &str, table: &Table) {
    let count: usize = table.values().map(|cell| cell.count).sum();
    println!("\n{title}: {count} blows");
    println!("| phase | signal | count | longest time to exit, s | work done again at most, s |");
    println!("|---|---|---|---|---|");
    for ((phase, signal), Cell { count, exit, again }) in table {
        println!("| {phase} | {signal} | {count} | {:.2} | {:.2} |", exit.as_secs_f64(), again.as_secs_f64());
    }
}

fn seed() -> u64 {
    std::env::var("SPARRING_KILL_SEED").map_or(1, |seed| seed.parse().expect("SPARRING_KILL_SEED is a number"))
}

/// How a run is disturbed.
struct Plan {
    name: &'static str,
    config: &'static str,
    iterations: u32,
    blows: usize,
    /// Keys that any part of the run may change without changing what comes out.
    sets: fn(&mut Stream) -> Vec<String>,
}

fn threads(threads: usize) -> Vec<String> {
    vec![format!("selfplay.threads={threads}")]
}

impl Plan {
    fn sets(&self, random: &mut Stream) -> Vec<String> {
        let mut sets = vec![format!("stop.iterations={}", self.iterations)];
        sets.extend((self.sets)(random));
        sets
    }
}

/// A run that is being disturbed.
struct Victim<'a> {
    plan: &'a Plan,
    place: Place,
    dir: RunDir,
    random: Stream,
    table: Table,
    /// The seconds that each phase takes in the undisturbed run.
    seconds: BTreeMap<String, f64>,
    /// How far the run was when it was last looked at: generation, stage, step, savings.
    progress: (u32, u64, u64, u64),
    /// What has to be true for a report: the seed and the number of the blow.
    label: String,
}

/// Disturbs a run as `plan` says, takes it to its end and compares it with the undisturbed one.
fn disturb(plan: &Plan, reference: &Path) -> Table {
    let place = Place::new(plan.config);
    let mut victim = Victim {
        plan,
        dir: RunDir::new(place.run()),
        place,
        random: Stream::test(seed() ^ u64::from(plan.name.len() as u32) << 32),
        table: Table::new(),
        seconds: seconds(reference),
        progress: (0, 0, 0, 0),
        label: String::new(),
    };
    for number in 0..plan.blows {
        victim.label = format!("SPARRING_KILL_SEED={} {} blow {number}", seed(), plan.name);
        if !victim.blow(number) {
            println!("{}: the run was complete", victim.label);
            break;
        }
    }
    let sets = plan.sets(&mut victim.random);
    let done = victim.place.train(&sets.iter().map(String::as_str).collect::<Vec<_>>()).finish().expect(0);
    victim.assert_nothing_lost(&done.err);
    let folder = victim.place.run();
    victim.assert_no_temporaries(None);
    assert_same_results(reference, &folder);
    assert_same_records(reference, &folder);
    let verified = run(["inspect".as_ref(), "--verify".as_ref(), folder.as_os_str()]).expect(0).json();
    assert_eq!(verified["set_aside"], serde_json::json!([]), "{verified}");
    print(plan.name, &victim.table);
    victim.table
}

/// Mean seconds of each phase of a run, by the name that it has in the terminal.
fn seconds(run: &Path) -> BTreeMap<String, f64> {
    let text = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let mut all: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for line in text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()) {
        for (tag, name) in [
            ("time/self_play", "self-play"),
            ("time/training", "training"),
            ("time/gate", "gate"),
            ("time/rating", "rating games"),
        ] {
            all.entry(name.to_owned()).or_default().extend(line.get(tag).and_then(serde_json::Value::as_f64));
        }
    }
    all.into_iter().map(|(name, all)| (name, all.iter().sum::<f64>() / all.len().max(1) as f64)).collect()
}

/// The phase that a run is in, by what it has said.
fn phase(said: &str) -> String {
    let mut phase = "start";
    for line in said.lines() {
        if line.starts_with("run: ") {
            phase = "resuming";
        }
        let Some(told) = line.strip_prefix("generation ") else { continue };
        // "1: training, 53 steps", "1: training done in 0.2 s, step 53", "1 finished: step 53"
        let begun = told.split_once(": ").and_then(|(_, told)| told.split_once(", "));
        let begun = begun.and_then(|(begun, _)| PHASES.into_iter().find(|name| *name == begun));
        phase = begun.unwrap_or("publication");
    }
    phase.to_owned()
}

impl Victim<'_> {
    /// Starts the run and ends it by a signal at a moment of the generation that it has come to, or soon after. `false` when the
    /// run was complete before that.
    fn blow(&mut self, number: usize) -> bool {
        let blow = Blow::drawn(&mut self.random);
        let sets = self.plan.sets(&mut self.random);
        let mut process = self.place.train(&sets.iter().map(String::as_str).collect::<Vec<_>>());
        let mut published = None;
        if number < 3 && !self.dir.config().exists() {
            // While the folder is made, which takes a few milliseconds.
            let root = self.dir.root().to_owned();
            process.wait_until(Duration::from_micros(100), |_| root.exists());
            published = Some("creation");
            self.pause(&mut process, 0.004);
        } else if number % 7 == 3 {
            self.pause(&mut process, START);
        } else {
            process.wait_until(Duration::from_millis(2), |said| said.contains("run: "));
            self.assert_no_temporaries(Some(process.id()));
            let left = self.plan.blows - number;
            published = self.approach(&mut process, left);
        }
        let said = process.said();
        let phase = published.map_or_else(|| phase(&said), str::to_owned);
        let unsaved = self.unsaved();
        let asked = Instant::now();
        let (signal, done) = self.strike(process, blow);
        let exit = asked.elapsed();
        let started = said.contains("evaluations by") || done.err.contains("stopped: ");
        assert!(!done.err.contains("panicked"), "{}: {}", self.label, done.err);
        if done.code == 0 {
            // It was faster than the signal.
            assert!(done.err.contains("(stop.iterations)"), "{}: {}", self.label, done.err);
            return false;
        }
        match (blow, done.code) {
            (Blow::Kill, code) => assert_eq!(code, -9, "{}: {}", self.label, done.err),
            (_, 130) => assert_eq!(done.out, "", "{}", self.label),
            // Before the program can listen, the system does what it does with any program.
            (_, -2 | -15) if !started => {}
            (_, code) => panic!("{}: exit code {code} in {phase}: {}", self.label, done.err),
        }
        if started && signal != "KILL" {
            assert!(exit < busy(PROMPT), "{}: {phase} took {exit:?} to end at {signal}: {}", self.label, done.err);
        }
        self.assert_nothing_lost(&done.err);
        self.assert_no_orphans();
        self.assert_sound();
        let cell = self.table.entry((phase.clone(), signal)).or_default();
        cell.count += 1;
        cell.exit = cell.exit.max(exit);
        // What a first signal ends is saved, but for matches, which begin anew.
        if matches!(signal, "KILL" | "INT, TERM") || ["gate", "rating games"].contains(&&*phase) {
            cell.again = cell.again.max(unsaved);
        }
        true
    }

    /// Lets the run come to a place that is drawn so that the run ends about when no blows are `left`; `Some` when that is one
    /// where files are published.
    fn approach(&mut self, process: &mut Process, left: usize) -> Option<&'static str> {
        let here = RunState::load(&self.dir).unwrap().unwrap_or_default();
        let spot = match here.stage {
            Stage::Generate => 0,
            Stage::Learn { .. } => 2,
            Stage::Gate => 4,
        };
        let spots = SPOTS.len();
        let to_go = (self.plan.iterations.saturating_sub(here.generation)) as usize * spots + spots - spot;
        let farther = (self.random.unit() * (2.0 * to_go as f64 / left as f64 + 1.0)) as usize;
        let target = spot + farther.min(to_go - 1);
        let (generation, spot) = (here.generation + (target / spots) as u32, target % spots);
        let (title, files) = SPOTS[spot];
        // What is not met there any more is met a little later.
        let begun = |title: &&str| format!("generation {generation}: {title},");
        let from = PHASES.iter().position(|phase| *phase == title).expect("a phase");
        let next = [format!("generation {}: self-play,", generation + 1), "stopped: ".to_owned()];
        let has = |texts: &[String], said: &str| texts.iter().chain(&next).any(|text| said.contains(text));
        let here: Vec<String> = PHASES[from..].iter().map(begun).collect();
        process.wait_until(Duration::from_millis(1), |said| has(&here, said));
        // A generation ends after its gate or after its rating games, if there are any.
        let passed = if spot == 6 { Vec::new() } else { here[1..].to_vec() };
        if files.is_empty() {
            let end = Instant::now() + Duration::from_secs_f64(1.1 * self.seconds[title] * self.random.unit());
            process.wait_until(Duration::from_millis(1), |said| Instant::now() >= end || has(&passed, said));
            return None;
        }
        let file = files[self.random.below(files.len())];
        let root = self.dir.root();
        let before = versions(root, file);
        let mut is_published = false;
        process.wait_until(Duration::from_micros(100), |said| {
            is_published = !versions(root, file).is_subset(&before);
            is_published || has(&passed, said)
        });
        self.pause(process, 0.004);
        is_published.then_some("publication")
    }

    /// Lets at most so many seconds pass.
    fn pause(&mut self, process: &mut Process, seconds: f64) {
        let end = Instant::now() + Duration::from_secs_f64(seconds * self.random.unit());
        process.wait_until(Duration::from_micros(200), |_| Instant::now() >= end);
    }

    /// Ends the process. Returns what signals it took, too.
    fn strike(&self, mut process: Process, blow: Blow) -> (&'static str, Done) {
        match blow {
            _ if process.has_ended() => ("", process.finish()),
            Blow::Kill => {
                process.kill();
                ("KILL", process.finish())
            }
            Blow::Interrupt | Blow::Terminate => {
                let name = if blow == Blow::Interrupt { "INT" } else { "TERM" };
                process.signal(name);
                (name, process.finish())
            }
            Blow::Twice => {
                process.signal("INT");
                let second = Instant::now() + Duration::from_millis(800);
                let mut is_late = false;
                process.wait_until(Duration::from_millis(2), |_| {
                    is_late = Instant::now() >= second;
                    is_late
                });
                if !is_late || process.has_ended() {
                    return ("INT", process.finish());
                }
                process.signal("TERM");
                let asked = Instant::now();
                let done = process.finish();
                if done.err.contains("everything is saved") {
                    // The first signal was quicker after all, or came so late that the second one was taken for its echo.
                    return ("INT", done);
                }
                assert!(asked.elapsed() < busy(AT_ONCE), "{}: {:?}", self.label, asked.elapsed());
                ("INT, TERM", done)
            }
        }
    }

    /// The time since the newest file was made from which the run could go on.
    fn unsaved(&self) -> Duration {
        let root = self.dir.root();
        let journals = fs::read_dir(root.join("games")).into_iter().flatten().flatten().map(|entry| entry.path());
        let files = journals.chain([root.join("state/run.state")]);
        let newest = files.filter_map(|file| fs::metadata(file).ok()?.modified().ok()).max();
        newest.and_then(|newest| SystemTime::now().duration_since(newest).ok()).unwrap_or_default()
    }

    /// A run that goes on says nothing of things that are missing or damaged.
    #[track_caller]
    fn assert_nothing_lost(&self, err: &str) {
        let harmless = |line: &&str| line.contains("gate games were different");
        let warned = err.lines().filter(|line| !harmless(line)).find(|line| {
            line.starts_with("warning: ") || line.starts_with("error: ") || line.contains("does not hold everything")
        });
        assert_eq!(warned, None, "{}: {err}", self.label);
    }

    /// Half-written files of earlier processes are gone; those of `process` may be there.
    #[track_caller]
    fn assert_no_temporaries(&self, process: Option<u32>) {
        let root = self.dir.root();
        let folders = ["", "checkpoints", "state", "games", "samples", "tb"].map(|name| root.join(name));
        for entry in folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap()).flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let own = process.is_some_and(|id| name.contains(&format!(".{id}-")));
            assert!(own || !name.ends_with(".tmp"), "{}: {name} is left", self.label);
        }
    }

    #[track_caller]
    fn assert_no_orphans(&self) {
        let folder = self.dir.root().display().to_string();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            assert!(!command.contains(&folder), "{}: still there: {command}", self.label);
        }
    }

    /// Whatever was there before the blow is still there, and every file is what it should be.
    #[track_caller]
    fn assert_sound(&mut self) {
        let state = if self.dir.config().exists() { RunState::load(&self.dir).unwrap() } else { None };
        // Before its first state a run has nothing to lose.
        let Some(state) = state else {
            assert_eq!(self.progress.0, 0, "{}: the state is gone", self.label);
            return;
        };
        let stage = match state.stage {
            Stage::Generate => 0,
            Stage::Learn { done, .. } => 1 + done,
            Stage::Gate => u64::MAX,
        };
        let progress = (state.generation, stage, state.step, state.mark);
        assert!(progress >= self.progress, "{}: {progress:?} after {:?}", self.label, self.progress);
        self.progress = progress;
        let found = verify(&self.dir).unwrap();
        assert_eq!(found.problems, [], "{}", self.label);
        assert!(found.set_aside.is_empty(), "{}: {:?}", self.label, found.set_aside);
    }
}

/// The files and temporary files whose path below `root` begins with `start`, in their present versions.
fn versions(root: &Path, start: &str) -> BTreeSet<(String, u64)> {
    let (folder, start) = start.split_once('/').unwrap_or(("", start));
    let entries = fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
    let named = entries.map(|entry| (entry.file_name().to_string_lossy().trim_start_matches('.').to_owned(), entry));
    named
        .filter(|(name, _)| name.starts_with(start) && !name.contains(".part"))
        .filter_map(|(name, entry)| Some((name, entry.metadata().ok()?.ino())))
        .collect()
}

/// The undisturbed run that short ones are compared with.
fn short() -> &'static Path {
    static REFERENCE: OnceLock<std::path::PathBuf> = OnceLock::new();
    REFERENCE.get_or_init(|| undisturbed("kills-short", SHORT))
}

#[test]
fn a_run_that_is_killed_a_few_times_ends_the_same() {
    let config = SHORT.replace("\"iterations\": 8", "\"iterations\": 2");
    let reference = undisturbed("kills-few", &config);
    let plan =
        Plan { name: "a few", config: SHORT, iterations: 2, blows: 6, sets: |random| threads(1 + random.below(2)) };
    disturb(&plan, &reference);
}

#[test]
#[ignore = "slow: kills runs a hundred and fifty times"]
fn a_run_that_is_killed_at_any_moment_ends_the_same() {
    let plan = |name, sets| Plan { name, config: SHORT, iterations: 8, blows: 50, sets };
    let mixed = |random: &mut Stream| {
        let mut sets = threads(1 + random.below(3));
        sets.push(format!("selfplay.parallel_games={}", ["1", "3", "8", "null"][random.below(4)]));
        sets
    };
    let plans = [plan("one thread", |_| threads(1)), plan("two threads", |_| threads(2)), plan("mixed threads", mixed)];
    let mut sum = Table::new();
    let tables = std::thread::scope(|scope| {
        let reference = short();
        let handles: Vec<_> = plans.iter().map(|plan| scope.spawn(move || disturb(plan, reference))).collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect::<Vec<_>>()
    });
    for (key, cell) in tables.into_iter().flatten() {
        let all = sum.entry(key).or_default();
        all.count += cell.count;
        all.exit = all.exit.max(cell.exit);
        all.again = all.again.max(cell.again);
    }
    print(&format!("all, SPARRING_KILL_SEED={}", seed()), &sum);
    let kills: usize = sum.values().map(|cell| cell.count).sum();
    assert!(kills >= 130, "only {kills}");
    for phase in ["start", "creation", "self-play", "training", "gate", "rating games", "publication"] {
        assert!(sum.keys().any(|(found, _)| found == phase), "nothing was killed in {phase}");
    }
}

#[test]
#[ignore = "slow: kills a run in the middle of phases that take seconds"]
fn a_run_that_is_killed_in_long_phases_ends_the_same() {
    let plan = Plan { name: "long phases", config: LONG, iterations: 2, blows: 12, sets: |_| threads(1) };
    let table = disturb(&plan, &undisturbed("kills-long", LONG));
    assert!(table.values().map(|cell| cell.count).sum::<usize>() >= 6);
}
