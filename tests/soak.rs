//! A run that goes on for long keeps its memory, its threads and its open files flat.

mod common;

use std::fs;
use std::time::{Duration, Instant};

use common::{Process, train};

/// Generations of about a second, everything at its bound after a few of them: window, cache, checkpoints, games.
const CONFIG: &str = r#"{
  "game": "tictactoe",
  "training_threads": 2,
  "network": { "blocks": 1, "channels": 16 },
  "selfplay": {
    "games": 60, "simulations": 16, "threads": 2, "parallel_games": 8, "opening_share": 0.5, "cache_megabytes": 1
  },
  "replay": { "min_positions": 1000, "expand": 0, "reuse": 2 },
  "training": { "batch_size": 32 },
  "gate": { "games": 10, "simulations": 8, "opening_plies": 2, "anchor_games": 4, "anchor_simulations": 20 },
  "keep": { "checkpoints": 3, "games": "window" }
}"#;

/// Kilobytes in a minute that memory may grow by: the noise of the measurement is a tenth of it.
const MOST_GROWTH: f64 = 1024.0;
/// Blocks of samples. Memory goes up and down within a generation; its lowest point in a block, which holds several generations,
/// does not, unless something stays behind.
const BLOCKS: usize = 14;
/// Generations before anything is looked at: all caches and the window are full by then.
const WARM_UP: usize = 60;
/// Generations that are looked at at least, however slow the machine is.
const LEAST_GENERATIONS: usize = 3 * BLOCKS;
const BETWEEN: Duration = Duration::from_millis(100);

/// What a process takes at one moment.
#[derive(Clone, Copy)]
struct Sample {
    kilobytes: u64,
    threads: usize,
    files: usize,
}

fn sample(pid: u32) -> Sample {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux tells");
    let count = |name: &str| fs::read_dir(format!("/proc/{pid}/{name}")).expect("it runs").count();
    Sample {
        kilobytes: memory.trim().trim_end_matches(" kB").parse().unwrap(),
        threads: count("task"),
        files: count("fd"),
    }
}

/// The median of the slopes between all pairs of points (Theil and Sen): a few outliers do not move it.
fn slope(points: &[(f64, f64)]) -> f64 {
    let pairs = points.iter().enumerate().flat_map(|(i, a)| points[i + 1..].iter().map(move |b| (a, b)));
    let mut slopes: Vec<f64> = pairs.map(|(a, b)| (b.1 - a.1) / (b.0 - a.0)).collect();
    slopes.sort_by(f64::total_cmp);
    slopes[slopes.len() / 2]
}

#[test]
fn the_slope_is_that_of_most_points() {
    let mut line: Vec<(f64, f64)> = (0..20).map(|x| (f64::from(x), 3.0 * f64::from(x) + 7.0)).collect();
    line[4].1 = 1000.0;
    line[15].1 = -1000.0;
    assert!((slope(&line) - 3.0).abs() < 1e-9);
}

/// `SPARRING_SOAK_SECONDS` makes it longer: `SPARRING_SOAK_SECONDS=3600 cargo test --release --test soak -- --ignored --nocapture`.
#[test]
#[ignore = "slow: about two minutes of training"]
#[cfg(target_os = "linux")]
fn memory_threads_and_files_stay_flat() {
    let seconds = std::env::var("SPARRING_SOAK_SECONDS").map_or(70, |text| text.parse().expect("a number of seconds"));
    let scratch = tempfile::tempdir().unwrap();
    let (config, run) = (scratch.path().join("config.json"), scratch.path().join("run"));
    fs::write(&config, CONFIG).unwrap();
    // With an arena for each thread, the allocator of Linux keeps what each has freed, and touches more and more of it for some two
    // hundred generations (2 MB in all, while what the program holds stays the same). With one, memory is what the program holds.
    let mut process = Process::start(train(&config, &run, &[]).env("MALLOC_ARENA_MAX", "1"));
    let generations = || {
        let metrics = fs::read_to_string(run.join("metrics.jsonl")).unwrap_or_default();
        metrics.matches("\"event\":\"generation\"").count()
    };
    for generation in 1..=WARM_UP {
        process.wait_for(&format!("generation {generation} finished"));
    }

    let (began, before, mut samples) = (Instant::now(), generations(), Vec::new());
    while began.elapsed() < Duration::from_secs(seconds) || generations() < before + LEAST_GENERATIONS {
        samples.push((began.elapsed(), sample(process.id())));
        std::thread::sleep(BETWEEN);
    }
    process.signal("INT");
    process.finish().expect(130);
    let generations = generations() - before;

    let blocks = samples.chunks_exact(samples.len() / BLOCKS);
    let least = |block: &[(Duration, Sample)], of: fn(&Sample) -> u64| block.iter().map(|(_, s)| of(s)).min().unwrap();
    let most = |part: &[(Duration, Sample)], of: fn(&Sample) -> u64| part.iter().map(|(_, s)| of(s)).max().unwrap();
    let minutes = |block: &[(Duration, Sample)]| block[0].0.as_secs_f64() / 60.0;
    let memory: Vec<(f64, f64)> = blocks.map(|block| (minutes(block), least(block, |s| s.kilobytes) as f64)).collect();
    let growth = slope(&memory);
    println!(
        "{generations} generations; {:.0} kB at first, {:.0} kB at last: {growth:.0} kB a minute; by blocks: {:?}",
        memory[0].1,
        memory[memory.len() - 1].1,
        memory.iter().map(|point| point.1 as u64).collect::<Vec<_>>()
    );
    // Threads and files come and go with the phases, and how many are caught at once is chance. What stays behind is there at the
    // quietest moment too.
    let third = samples.len() / 3;
    let (early, late) = (&samples[..third], &samples[samples.len() - third..]);
    for (name, of) in [("threads", (|s| s.threads as u64) as fn(&Sample) -> u64), ("files", |s| s.files as u64)] {
        let (first, last) = (least(early, of), least(late, of));
        println!("{name}: {first} to {} at first, {last} to {} at last", most(early, of), most(late, of));
        assert!(last <= first, "{name} rise from {first} to {last}");
    }
    assert!(growth < MOST_GROWTH, "memory grows by {growth:.0} kB a minute");
}
