//! Files.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use sparring::arena::{self, GamesFile};
use sparring::data::{self, GameRecord, Opened, Origin, RecordWriter, ReplayParams};
use sparring::game::Game;
use sparring::games::tictactoe::TicTacToe;
use sparring::games::{GameVisitor, dispatch};
use sparring::net::{Architecture, Checkpoint, Mlp, NetSpec, Weights};
use sparring::run::dir::RunDir;
use sparring::run::rating::{Rated, elo};
use sparring::run::state::{NAME, RunState};
use sparring::train::{TrainParams, Trainer};
use sparring::util::rng::{Purpose, Stream};

use super::seal;

/// Games of a file that are played through.
const MOST_GAMES: usize = 16;

/// A file of this thread's own folder, which is in memory where the system has a place for that: the program reads files
/// by their paths, and syncs what it writes.
pub(super) fn scratch(name: &str) -> PathBuf {
    thread_local! {
        static FOLDER: tempfile::TempDir = {
            let memory = Path::new("/dev/shm");
            let named = std::env::var_os("TMPDIR").is_some();
            let in_memory = (!named && memory.is_dir()).then(|| tempfile::tempdir_in(memory).ok()).flatten();
            in_memory.unwrap_or_else(|| tempfile::tempdir().expect("a temporary folder can be made"))
        };
    }
    FOLDER.with(|folder| folder.path().join(name))
}

/// A scratch file that holds `data`.
pub(super) fn written(name: &str, data: &[u8]) -> PathBuf {
    let path = scratch(name);
    std::fs::write(&path, data).expect("the temporary folder can be written");
    path
}

/// The bytes are not taken for sound; the message must be one.
pub(super) fn refused(error: &dyn std::fmt::Display) -> bool {
    assert!(!error.to_string().is_empty());
    false
}

/// Reads `data` by `read` as it is, and again with its checksums put right by `seal`.
fn both(data: &[u8], seal: fn(&[u8]) -> Option<Vec<u8>>, read: fn(&[u8]) -> bool) -> bool {
    let taken = read(data);
    if let Some(sealed) = seal(data).filter(|sealed| sealed != data) {
        read(&sealed);
    }
    taken
}

/// A checkpoint, `*.safetensors`, or an exported network.
pub fn checkpoint(data: &[u8]) -> bool {
    struct Fits<'a>(&'a Checkpoint);
    impl GameVisitor for Fits<'_> {
        type Output = bool;
        fn visit<G: Game>(self, game: G) -> bool {
            self.0.check_game(&game).map_err(|error| error.to_string()).is_ok()
        }
    }
    both(data, seal::checkpoint, |data| {
        let read = match Checkpoint::import(&written("net.safetensors", data)) {
            Ok((read, _)) => read,
            Err(error) => return refused(&error),
        };
        let copy = scratch("copy.safetensors");
        read.save(&copy).expect("what was read can be written");
        assert_eq!(Checkpoint::load(&copy).expect("what was written can be read"), read);
        assert!(read.info.network.parameter_count() <= data.len());
        let _ = (read.info.network.flops(), read.info.network.to_string());
        dispatch(&read.info.game, Fits(&read)).unwrap_or(false)
    })
}

/// The network whose training states are read.
pub fn tiny_network() -> NetSpec {
    NetSpec::for_game(&TicTacToe, Architecture::Mlp(Mlp { hidden: vec![2] }))
}

/// A trainer of [`tiny_network`] at its beginning.
pub fn tiny_trainer() -> Trainer {
    let spec = tiny_network();
    let weights = Weights::init(&spec, &mut Stream::keyed(1, Purpose::Test, &[]));
    Trainer::new(&spec, &weights, TrainParams::default(), tch::Device::Cpu, 1).expect("the network is sound")
}

/// The state of a trainer, `step-*.state`.
pub fn training_state(data: &[u8]) -> bool {
    thread_local! {
        static TRAINER: RefCell<Trainer> = RefCell::new(tiny_trainer());
    }
    both(data, seal::training_state, |data| {
        TRAINER.with_borrow_mut(|trainer| {
            if let Err(error) = trainer.load_state(&written("step.state", data)) {
                return refused(&error);
            }
            let saved = |trainer: &Trainer| {
                let path = scratch("copy.state");
                trainer.save_state(&path).expect("what was read can be written");
                (std::fs::read(&path).expect("it was written"), path)
            };
            let (first, path) = saved(trainer);
            trainer.load_state(&path).expect("what was written can be read");
            assert!(saved(trainer).0 == first, "a state is the same after it was saved");
            true
        })
    })
}

/// `run.state`.
pub fn run_state(data: &[u8]) -> bool {
    both(data, seal::run_state, |data| {
        std::fs::create_dir_all(scratch("run/state")).expect("the temporary folder can be written");
        let dir = RunDir::new(scratch("run"));
        std::fs::write(dir.state_file(NAME), data).expect("the temporary folder can be written");
        let read = match RunState::load(&dir) {
            Ok(read) => read.expect("the file is there"),
            Err(error) => return refused(&error),
        };
        read.save(&dir).expect("what was read can be written");
        assert_eq!(RunState::load(&dir).expect("what was written can be read").as_ref(), Some(&read));
        // What a run does with it.
        read.save_end(&dir).expect("a state is of some generation");
        let ends = RunState::load_ends(&dir).expect("the folder can be read");
        assert!(ends.contains(&read));
        std::fs::remove_file(dir.end_file(read.generation - 1)).expect("it was written");
        let _ = elo(&read.meetings, Rated::Generation(read.best));
        let first = ReplayParams::default().first_generation(&read.window_totals);
        assert!(first <= read.window_totals.len());
        if let Some(trainer) = &read.trainer {
            assert_eq!(dir.state_file(&trainer.name).parent(), Some(&*scratch("run/state")), "{}", trainer.name);
        }
        true
    })
}

/// Game records of self-play: a file, a journal, a single record.
pub fn records(data: &[u8]) -> bool {
    if let Ok(record) = data::decode_record(data) {
        same_again(&record);
    }
    both(data, seal::records, |data| {
        let found = file_of_records(&written("gen.games", data));
        std::fs::remove_file(scratch("gen.games")).expect("it was written");
        let origin = found.as_ref().and_then(|found| found.0.first()).map(GameRecord::origin);
        let journal = journal(data, origin);
        found.is_some_and(|(_, whole)| whole) || journal
    })
}

/// The records of a file that can be read, and whether it is whole.
fn file_of_records(path: &Path) -> Option<(Vec<GameRecord>, bool)> {
    struct Check<'a>(&'a GameRecord);
    impl GameVisitor for Check<'_> {
        type Output = bool;
        fn visit<G: Game>(self, game: G) -> bool {
            self.0.check(&game).map_err(|error| error.to_string()).is_ok()
        }
    }
    let read = data::read(path).map_err(|error| error.to_string()).ok()?;
    let damage = read.warning.map(|damage| damage.to_string());
    let mut whole = damage.is_none();
    for record in read.records.iter().take(MOST_GAMES) {
        same_again(record);
        whole &= dispatch(&record.game, Check(record)).unwrap_or(false);
    }
    let copy = scratch("copy.games");
    data::write(&copy, &read.records).expect("what was read can be written");
    let again = data::read(&copy).expect("what was written can be read");
    assert!(again.warning.is_none() && again.records == read.records);
    Some((again.records, whole))
}

fn same_again(record: &GameRecord) {
    let mut bytes = Vec::new();
    data::encode_record(record, &mut bytes).expect("what was read can be written");
    assert_eq!(data::decode_record(&bytes).as_ref(), Ok(record));
}

/// Goes on with a journal of games; whether all of it is sound.
fn journal(data: &[u8], origin: Option<Origin>) -> bool {
    let path = scratch("journal.games");
    written("journal.part", data);
    let unknown = || Origin { game: "tictactoe".to_owned(), rules_version: 1, seed: 0, generation: 1 };
    let Opened { writer, warning } = match RecordWriter::open(&path, origin.unwrap_or_else(unknown)) {
        Ok(opened) => opened,
        Err(error) => return refused(&error),
    };
    let count = writer.indices().len();
    assert_eq!(writer.records().expect("what is damaged was cut off").len(), count);
    assert_eq!(writer.finish().expect("what is damaged was cut off"), count);
    let read = data::read(&path).expect("what was written can be read");
    assert!(read.warning.is_none() && read.records.len() == count);
    std::fs::remove_file(&path).expect("it was written");
    warning.is_none()
}

/// The games of a match, as JSON lines.
pub fn games_file(data: &[u8]) -> bool {
    both(data, seal::games_file, |data| {
        let path = written("match.jsonl", data);
        match arena::game_of(&path) {
            Ok(name) => dispatch(&name, Games(&path)).unwrap_or(false),
            Err(error) => refused(&error),
        }
    })
}

struct Games<'a>(&'a Path);

impl GameVisitor for Games<'_> {
    type Output = bool;

    fn visit<G: Game>(self, game: G) -> bool {
        let shown = match arena::read_games(&game, self.0) {
            Ok(shown) => shown,
            Err(error) => return refused(&error),
        };
        for one in shown.iter().take(MOST_GAMES) {
            let text = one.line() + &one.text(&game, false).expect("games that were read can be shown");
            assert!(!text.contains(|sign: char| sign.is_control() && sign != '\n'), "{text:?}");
        }
        let Ok(header) = arena::read_header(self.0) else {
            // Those of self-play.
            return true;
        };
        // The match goes on in the same file, and in another one.
        let (file, games) = GamesFile::open(&game, self.0, header.clone(), None).expect("it could be read");
        assert_eq!(games.len(), shown.len());
        file.finish().expect("it could be read");
        let again = arena::read_games(&game, self.0).expect("it could be read");
        assert!(again.iter().map(|one| one.index).eq(shown.iter().map(|one| one.index)));
        let copy = scratch("copy.jsonl");
        let _ = std::fs::remove_file(&copy);
        let (mut file, none) = GamesFile::open(&game, &copy, header.clone(), None).expect("a new file can be written");
        assert!(none.is_empty());
        games.iter().for_each(|one| file.add(&game, one).expect("it can be written"));
        drop(file);
        let (_, copied) = GamesFile::open(&game, &copy, header, None).expect("what was written can be read");
        let same = |(a, b): (&sparring::play::Finished, &sparring::play::Finished)| {
            (a.index, a.seats, &a.record, &a.fault) == (b.index, b.seats, &b.record, &b.fault)
        };
        assert!(copied.len() == games.len() && copied.iter().zip(&games).all(same));
        true
    }
}
