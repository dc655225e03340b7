use super::*;
use crate::net::{DeviceName, Engine, Precision};

fn config(text: &str) -> RunConfig {
    RunConfig::parse("test", text, &[]).unwrap()
}

fn engine() -> Resolved {
    let (engine, precision, device) = (Engine::Openvino, Precision::F32, DeviceName::Cpu);
    Resolved { engine, precision, device, reasons: Vec::new() }
}

fn predict(text: &str) -> Budget {
    after(text, &RunState::new())
}

fn after(text: &str, state: &RunState) -> Budget {
    Budget::predict(&config(text), &engine(), state).unwrap()
}

fn bytes(parts: &[Part], what: &str) -> u64 {
    parts.iter().find(|part| part.what == what).unwrap_or_else(|| panic!("{what}: {parts:#?}")).bytes
}

#[test]
fn sizes_are_readable() {
    let shown = |bytes| Size(bytes).to_string();
    assert_eq!([0, 1024, 10_240, 1 << 20].map(shown), ["0.0 kB", "1.0 kB", "10 kB", "1.0 MB"]);
    assert_eq!([1020 << 10, 3 << 29, 1 << 40, u64::MAX].map(shown), ["1.0 MB", "1.5 GB", "1.0 TB", "16777216 TB"]);
}

#[test]
fn what_is_made_larger_in_the_config_is_larger_in_the_prediction() {
    let with = |sets: &[&str]| {
        // Nothing may depend on this machine.
        let base = ["stop.iterations=10", "selfplay.threads=2", "selfplay.parallel_games=16", "training_threads=2"];
        let sets: Vec<String> = base.iter().chain(sets).map(|set| (*set).to_owned()).collect();
        // Of a key that is set twice the last counts.
        let config = RunConfig::parse("test", r#"{"game": "uttt"}"#, &sets).unwrap();
        Budget::predict(&config, &engine(), &RunState::new()).unwrap()
    };
    let base = with(&[]);
    for (set, what, factor) in [
        ("selfplay.cache_megabytes=512", "evaluation cache", 2.0),
        ("selfplay.games=4000", "games of a generation", 4.0),
        ("training.batch_size=1024", "batches", 4.0),
        ("selfplay.simulations=6400", "search trees", 10.0),
        ("selfplay.threads=64", "networks for evaluation", 10.0),
        ("network.channels=256", "training", 5.0),
    ] {
        let more = with(&[set]);
        let (before, now) = (bytes(&base.memory, what), bytes(&more.memory, what));
        assert!(now as f64 >= factor * before as f64, "{set}: {what} {before} -> {now}");
        assert!(more.memory_bytes() > base.memory_bytes());
    }
    assert_eq!(base.memory_bytes(), base.memory.iter().map(|part| part.bytes).sum::<u64>());
    assert!(base.memory.is_sorted_by_key(|part| std::cmp::Reverse(part.bytes)));
}

#[test]
fn the_window_is_bounded_by_its_bytes_and_by_what_is_played() {
    let window = |text: &str| bytes(&predict(text).memory, "replay window");
    assert_eq!(window(r#"{"game": "uttt"}"#), 1 << 30, "without an end it may reach its bound");
    assert_eq!(window(r#"{"game": "uttt", "replay": {"max_bytes": 2000000}}"#), 2_000_000);
    let short = window(r#"{"game": "uttt", "selfplay": {"games": 10}, "stop": {"iterations": 2}}"#);
    assert!((20_000..200_000).contains(&short), "20 games of about 60 positions: {short}");
}

#[test]
fn what_is_kept_bounds_the_disk() {
    let all = predict(r#"{"game": "connect4"}"#).disk;
    assert_eq!((all.generations, all.missing), (None, all.next));
    let kept = predict(r#"{"game": "connect4", "keep": {"checkpoints": 3, "games": "window"}}"#).disk;
    assert!(kept.each * 5 < all.each, "{} of {}", kept.each, all.each);
    // With half of the generations it is about half.
    let of = |count: u32| {
        let disk = predict(&format!(r#"{{"game": "connect4", "stop": {{"iterations": {count}}}}}"#)).disk;
        assert_eq!(disk.generations, Some(count.into()));
        assert!(disk.missing <= sum(&disk.parts) && disk.next < disk.missing);
        sum(&disk.parts)
    };
    assert!(of(100) > of(50) * 18 / 10 && of(100) < of(50) * 2);
}

#[test]
fn ends_are_counted_where_they_can_be() {
    let state = RunState { generation: 5, games: 4000, positions: 160_000, hours: 2.0, ..RunState::new() };
    let generations = |stop: &str, state: &RunState| {
        after(&format!(r#"{{"game": "uttt", "selfplay": {{"games": 1000}}, "stop": {stop}}}"#), state).disk.generations
    };
    let new = RunState::new();
    assert_eq!(generations(r#"{"iterations": 7, "games": 9000}"#, &new), Some(7));
    assert_eq!(generations(r#"{"iterations": 70, "games": 9001}"#, &new), Some(10));
    assert_eq!(generations(r#"{"games": 9001}"#, &state), Some(10));
    assert_eq!(generations(r#"{"positions": 320000}"#, &state), Some(8));
    assert_eq!(generations(r#"{"hours": 3}"#, &new), None);
    assert_eq!(generations(r#"{"hours": 3}"#, &state), Some(6));
    assert_eq!(generations(r#"{"elo": 3}"#, &new), None);
}

#[test]
fn goals_that_no_run_reaches_are_none() {
    let usual = predict(r#"{"game": "uttt"}"#);
    for stop in [r#"{"games": 18446744073709551615}"#, r#"{"positions": 18446744073709551615}"#] {
        assert_eq!(predict(&format!(r#"{{"game": "uttt", "stop": {stop}}}"#)).disk, usual.disk, "{stop}");
    }
    let far = RunState { generation: 9, hours: 1.0, ..RunState::new() };
    assert_eq!(after(r#"{"game": "uttt", "stop": {"hours": 1e308}}"#, &far).disk.generations, None);
}

#[test]
fn what_does_not_fit_is_refused_with_what_to_lower() {
    let budget = predict(r#"{"game": "tictactoe", "selfplay": {"cache_megabytes": 100000}}"#);
    assert_eq!(budget.check_memory_of(None), Ok(()));
    assert_eq!(budget.check_memory_of(Some(budget.memory_bytes())), Ok(()));
    let told = budget.check_memory_of(Some(1 << 30)).unwrap_err().to_string();
    assert!(
        told.contains("this machine allows 1.0 GB: lower selfplay.cache_megabytes (evaluation cache: 98 GB)"),
        "{told}"
    );
    // Where nothing stands out, the largest is named.
    let small = predict(r#"{"game": "tictactoe", "selfplay": {"cache_megabytes": 0}, "stop": {"iterations": 1}}"#);
    assert!(small.check_memory_of(Some(1)).unwrap_err().to_string().contains(": lower "));
}

#[test]
fn a_full_disk_is_refused_a_small_one_warned_of_and_a_complete_run_left_alone() {
    let text = r#"{"game": "tictactoe", "stop": {"iterations": 20}}"#;
    let (folder, budget) = (Path::new("runs/x"), predict(text));
    let Disk { next, missing, .. } = budget.disk;
    assert!(next < missing);
    assert_eq!(budget.check_disk_of(folder, None), Ok(None));
    assert_eq!(budget.check_disk_of(folder, Some(missing)), Ok(None));
    let warning = budget.check_disk_of(folder, Some(next)).unwrap().unwrap();
    assert!(warning.contains("`keep`"), "{warning}");
    let error = budget.check_disk_of(folder, Some(next - 1)).unwrap_err().to_string();
    assert!(error.starts_with("no space left in runs/x for another generation"), "{error}");
    let complete = RunState { generation: 21, games: 20_000, positions: 160_000, ..RunState::new() };
    assert_eq!(after(text, &complete).check_disk_of(folder, Some(0)), Ok(None));
}

#[test]
fn it_is_said_in_two_lines_and_a_table() {
    let budget = predict(r#"{"game": "tictactoe", "stop": {"hours": 1}}"#);
    let [memory, disk] = budget.notes(Path::new("not/there"));
    assert!(memory.starts_with("memory: at most ") && memory.contains("evaluation cache 256 MB"), "{memory}");
    assert!(disk.contains("after 10 generations and ") && disk.ends_with("are free)"), "{disk}");
    let table = budget.table();
    assert!(
        table.contains("selfplay.cache_megabytes") && table.contains("disk for each further generation"),
        "{table}"
    );
}
