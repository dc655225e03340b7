//! Bytes from outside: every input of the corpus of `cargo fuzz` (`fuzz/corpus/`), and two thousand damaged ones of each kind,
//! are read or refused. Nothing panics, and no number in an input decides how much memory is asked for.
//!
//! A file of the corpus whose name begins with `valid-` must be taken for sound, one that begins with `bad-` must not; others
//! are findings of earlier times, or pieces.

mod exports;
mod memory;
mod mutate;
mod seeds;

#[path = "../../fuzz/src/lib.rs"]
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use memory::{Memory, watch};
use sparring::util::rng::{Purpose, Stream};

/// Damaged inputs of each target.
const INPUTS: u64 = 2000;

/// Longer damaged inputs are cut: bytes.
const LONGEST: usize = 1 << 16;

/// Memory is counted for the whole process: one target at a time.
static TURN: Mutex<()> = Mutex::new(());

/// The memory that reading an input of `length` bytes may take. Chunks of game records are compressed: one unpacks to 16 MiB
/// at most, whatever a file says, and its games then take a few times as much.
fn most(target: &str, length: usize) -> Memory {
    let (largest, peak) = match target {
        "records" => (56 << 20, 160 << 20),
        _ => (256 << 10, 1 << 20),
    };
    Memory { largest: largest + 8 * length, peak: peak + 64 * length }
}

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target)
}

/// Name and contents of each file of a target's corpus, in order of the names.
fn files(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = corpus(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<(String, Vec<u8>)> = entries
        .map(|entry| entry.expect("an entry").path())
        .map(|path| {
            (path.file_name().expect("a file").to_string_lossy().into_owned(), std::fs::read(path).expect("a file"))
        })
        .collect();
    files.sort();
    files
}

/// Hands `bytes` to a target; whether they were taken for sound, and the memory that it took.
#[track_caller]
fn hand_over(&(target, read): &targets::Target, name: &str, bytes: &[u8]) -> (bool, Memory) {
    let (taken, used) = watch(|| catch_unwind(AssertUnwindSafe(|| read(bytes))));
    let most = most(target, bytes.len());
    let problem = match taken {
        Err(_) => "panics".to_owned(),
        Ok(_) if used.largest > most.largest || used.peak > most.peak => {
            format!("takes {used:?} of memory, more than {most:?}")
        }
        Ok(taken) => return (taken, used),
    };
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{target}-{:08x}", crc32fast::hash(bytes)));
    std::fs::write(&kept, bytes).expect("the folder of builds can be written");
    panic!(
        "{target}: {name} {problem}; the input is {}: keep it in {} when the fault is mended",
        kept.display(),
        corpus(target).display()
    );
}

#[track_caller]
fn survives(target: &str) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let place = targets::TARGETS.iter().position(|(name, _)| *name == target).expect("it is there");
    let (body, files) = (&targets::TARGETS[place], files(target));
    let (mut sound, mut worst) = (0, Memory::default());
    let mut note = |used: Memory| {
        worst = Memory { largest: worst.largest.max(used.largest), peak: worst.peak.max(used.peak) };
    };
    for (name, bytes) in &files {
        let (taken, used) = hand_over(body, name, bytes);
        note(used);
        let again = "`docs/fuzzing.md` says how the corpus is renewed when a format has changed";
        assert!(taken || !name.starts_with("valid-"), "{target}: {name} is refused; {again}");
        assert!(!taken || !name.starts_with("bad-"), "{target}: {name} is taken for sound; {again}");
        sound += usize::from(taken);
    }
    assert!(sound >= 2 && files.len() - sound >= 2, "{target}: {sound} of {} files are sound", files.len());
    let seeds: Vec<Vec<u8>> =
        files.into_iter().map(|(_, bytes)| bytes).filter(|bytes| bytes.len() <= LONGEST).collect();
    for number in 0..INPUTS {
        let mut random = Stream::keyed(0, Purpose::Test, &[place as u64, number]);
        let mut bytes = mutate::mutated(&seeds, &mut random);
        bytes.truncate(LONGEST);
        note(hand_over(body, &format!("damaged input {number}"), &bytes).1);
    }
    println!("{target}: at most {worst:?} for inputs of up to {LONGEST} bytes");
}

macro_rules! targets {
    ($($target:ident),*) => {
        $(#[test]
        fn $target() {
            survives(stringify!($target));
        })*

        #[test]
        fn every_target_is_tested() {
            assert_eq!(targets::TARGETS.map(|(name, _)| name), [$(stringify!($target)),*]);
            let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/Cargo.toml")).unwrap();
            for (name, _) in targets::TARGETS {
                assert!(text.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name} is no program of fuzz/");
            }
        }
    };
}

targets!(checkpoint, training_state, run_state, records, games_file, config, notation, ugi);

#[test]
fn memory_is_watched() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (_, used) = watch(|| (vec![1u8; 3 << 20], vec![1u8; 1 << 20]));
    assert!((3 << 20..4 << 20).contains(&used.largest) && used.peak >= 3 << 20, "{used:?}");
}

/// The corpus stays small enough for the repository.
#[test]
fn the_corpus_is_small() {
    let size: usize = targets::TARGETS.iter().flat_map(|(target, _)| files(target)).map(|(_, bytes)| bytes.len()).sum();
    assert!(size < 300_000, "{size} bytes");
}

/// Writes the files `valid-*` and `bad-*` anew; all others stay.
#[test]
#[ignore = "renews the corpus: cargo test --release --test fuzz -- --ignored --exact renew_the_corpus"]
fn renew_the_corpus() {
    if std::env::var_os("SPARRING_RENEW_CORPUS").is_none() {
        // `scripts/test` runs everything that is ignored; it must not change the sources.
        eprintln!("set SPARRING_RENEW_CORPUS=1 to have the corpus written anew");
        return;
    }
    for (target, _) in targets::TARGETS {
        let folder = corpus(target);
        std::fs::create_dir_all(&folder).unwrap();
        let made = |name: &str| name.starts_with("valid-") || name.starts_with("bad-") || name.starts_with("piece-");
        for (name, _) in files(target).iter().filter(|(name, _)| made(name)) {
            std::fs::remove_file(folder.join(name)).unwrap();
        }
        for (name, bytes) in seeds::of(target) {
            assert!(made(&name), "{name}");
            std::fs::write(folder.join(name), bytes).unwrap();
        }
    }
}
