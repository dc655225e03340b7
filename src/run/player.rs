//! Players by name: `random`, `mcts:1000`, a checkpoint, a run; with options behind `@`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::dir::{DirError, RunDir};
use super::engine::NetSource;
use super::generate::View;
use super::pointer::{Which, file_digest};
use super::strict::{Reader, nearest, resolved_value};
use crate::game::Game;
use crate::games::solved_names;
use crate::net::{Checkpoint, CheckpointError, EngineChoice, GameMismatch, InferenceFactory, OpenError, Precision};
use crate::play::{Engine, Pace, Player, SearchSeat, Seat, Teaching, Temperature};
use crate::search::SearchParams;

/// What a network player takes besides the keys of a config's section `search`.
const OWN_OPTIONS: [&str; 6] = ["sims", "movetime", "policy", "temperature", "view", "precision"];

/// What `view` takes.
const VIEWS: &str = "as_is, random, canonical, averaged";

/// What `precision` takes.
const PRECISIONS: &str = "auto, f32, bf16, f16";

/// Simulations of a network player that names none.
pub const DEFAULT_SIMULATIONS: u32 = 100;

/// A player by name, before it is opened.
#[derive(Clone, Debug, PartialEq)]
pub struct PlayerSpec {
    /// The text it was read from.
    pub text: String,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Random,
    Solver,
    Engine(Engine),
    Mcts {
        simulations: u32,
        time: Option<Duration>,
        c: f32,
    },
    Network {
        path: PathBuf,
        simulations: Option<u32>,
        time: Option<Duration>,
        search: SearchParams,
        temperature: f32,
        view: View,
        precision: Precision,
    },
}

/// The network of a checkpoint file or run cannot be had.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum NetworkError {
    #[error("there is no file or folder {path}; name a checkpoint file or the folder of a run")]
    Missing { path: String },
    #[error("{folder} is no run: it has no config.json; name a checkpoint file or the folder of a run")]
    NoRun { folder: String },
    #[error("{folder} is a run that has no network yet; train it first")]
    NoNetwork { folder: String },
    #[error("the `{pointer}` of {folder} names {file}, which has changed since: restore the file or the pointer")]
    Exchanged { pointer: &'static str, folder: String, file: String },
    #[error(transparent)]
    Dir(#[from] DirError),
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
}

impl NetworkError {
    /// Whether the place named holds no network at all.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::NoRun { .. } | Self::NoNetwork { .. } | Self::Missing { .. })
    }
}

/// The checkpoint or exported network `path`, or the best checkpoint of the run in the folder `path`, or the one that a run's pointer
/// `path` names, verified.
///
/// # Errors
/// When there is none, or it is damaged.
pub fn load_network(path: &Path) -> Result<Checkpoint, NetworkError> {
    if matches!(path.try_exists(), Ok(false)) {
        return Err(NetworkError::Missing { path: path.display().to_string() });
    }
    if path.is_dir() {
        let dir = RunDir::new(path);
        if !dir.config().exists() {
            return Err(NetworkError::NoRun { folder: path.display().to_string() });
        }
        return pointed(&dir, Which::Best);
    }
    let dir = RunDir::new(path.parent().unwrap_or(Path::new("")));
    let mut pointers = [Which::Best, Which::Latest].into_iter();
    match pointers.find(|which| path.file_name() == Some(which.file_name().as_ref())) {
        Some(which) if dir.config().exists() => pointed(&dir, which),
        _ => Ok(Checkpoint::import(path)?.0),
    }
}

/// The checkpoint that a pointer of a run names.
fn pointed(dir: &RunDir, which: Which) -> Result<Checkpoint, NetworkError> {
    let folder = || dir.root().display().to_string();
    let pointer = dir.read_pointer(which)?.ok_or_else(|| NetworkError::NoNetwork { folder: folder() })?;
    let file = dir.checkpoint(pointer.generation);
    if file_digest(&file)? != pointer.digest {
        return Err(NetworkError::Exchanged {
            pointer: which.file_name(),
            folder: folder(),
            file: file.display().to_string(),
        });
    }
    Ok(Checkpoint::load(&file)?)
}

/// A player that cannot be had.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum PlayerError {
    #[error("player {text:?}: {problem}")]
    Text { text: String, problem: String },
    #[error("player {text:?}: {error}")]
    Network { text: String, error: NetworkError },
    #[error("player {text:?}: {problem}")]
    Engine { text: String, problem: String },
    #[error("player {text:?}: {game} has no solver; the games that have one are {}", solved_names().join(", "))]
    NoSolver { text: String, game: &'static str },
    #[error("player {text:?}: {error}")]
    Mismatch { text: String, error: GameMismatch },
    #[error("player {text:?}: {error}")]
    Open { text: String, error: OpenError },
}

impl PlayerError {
    /// Whether another text would help: there is no such player, or it plays another game.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Text { .. } | Self::Mismatch { .. } | Self::Engine { .. } | Self::NoSolver { .. } => true,
            Self::Network { error, .. } => error.is_usage(),
            Self::Open { .. } => false,
        }
    }
}

/// Splits a player's text into name and options. A path may itself hold an `@`: the longest part that is there is the
/// name.
fn split_options(text: &str) -> (&str, Option<&str>) {
    let ends = std::iter::once(text.len()).chain(text.rmatch_indices('@').map(|(at, _)| at));
    let end = ends.filter(|&end| Path::new(&text[..end]).exists()).max().or_else(|| text.find('@'));
    let (name, options) = text.split_at(end.unwrap_or(text.len()));
    (name, options.strip_prefix('@'))
}

/// The default with keys of a config's section `search` set as `KEY=VALUE`.
fn search_with(sets: &[String]) -> Result<SearchParams, String> {
    let reader = Reader::<SearchParams>::new();
    reader.read_text("", "{}", sets).map_err(|errors| {
        let told = errors.problems.iter().map(|problem| format!("`@{}`: {}", problem.path, problem.message));
        told.collect::<Vec<_>>().join("; ")
    })
}

/// One of the words that a config takes for a key, `allowed` in all.
fn parse_word<T: DeserializeOwned>(option: &str, text: &str, allowed: &str) -> Result<T, String> {
    serde_json::from_value(text.into()).map_err(|_| format!("`{option}` is {text:?}, allowed are {allowed}"))
}

/// A time for a move in milliseconds, from 1 to a day.
fn parse_time(value: &str) -> Result<Duration, String> {
    let time = value.parse().ok().filter(|time| (1..=86_400_000).contains(time));
    let wrong = || format!("`movetime` is {value:?}, expected milliseconds from 1 to 86400000");
    time.map(Duration::from_millis).ok_or_else(wrong)
}

/// The engine behind `COMMAND[@movetime=MS][@nodes=N]`. The command may itself hold an `@` that is none of these.
fn parse_engine(text: &str) -> Result<Engine, String> {
    let (mut command, mut pace) = (text, Pace::Own);
    while let Some((before, option)) = command.rsplit_once('@') {
        let nodes = |value: &str| {
            let number = value.parse().ok().filter(|number| (1..=1_000_000_000).contains(number));
            number.ok_or_else(|| format!("`@{option}`: expected a number from 1 to 1000000000"))
        };
        let found = match option.split_once('=') {
            Some(("movetime", value)) => Pace::Time(parse_time(value)?),
            Some(("nodes", value)) => Pace::Nodes(nodes(value)?),
            _ => break,
        };
        if pace != Pace::Own {
            return Err("give either `@movetime` or `@nodes`, once".to_owned());
        }
        (command, pace) = (before, found);
    }
    let words = shlex::split(command).ok_or("the quotes of the command do not match")?;
    if words.is_empty() {
        return Err("say how the engine is started: `engine:COMMAND ARGUMENT...`".to_owned());
    }
    Ok(Engine { words, pace })
}

impl PlayerSpec {
    /// Reads `random`, `solver`, `engine:COMMAND[@movetime=MS][@nodes=N]`, `mcts:SIMULATIONS[@c=C][@movetime=MS]`, or `PATH[@sims=N][@movetime=MS][@policy][@temperature=T][@view=VIEW][@precision=PRECISION][@KEY=VALUE]`,
    /// where `PATH` is a checkpoint or the folder of a run, and `KEY` any of a config's section `search`.
    ///
    /// # Errors
    /// Says what is wrong with the text and what is allowed.
    pub fn parse(text: &str) -> Result<Self, PlayerError> {
        let fail = |problem: String| PlayerError::Text { text: text.to_owned(), problem };
        if let Some(engine) = text.strip_prefix("engine:") {
            let engine = parse_engine(engine).map_err(fail)?;
            return Ok(Self { text: text.to_owned(), kind: Kind::Engine(engine) });
        }
        let (name, options) = split_options(text);
        let options = options.into_iter().flat_map(|options| options.split('@'));
        let options: Vec<(&str, &str)> = options.map(|part| part.split_once('=').unwrap_or((part, ""))).collect();
        let given = |name: &str| options.iter().filter(|(option, _)| *option == name).count();
        if let Some((twice, _)) = options.iter().find(|(option, _)| given(option) > 1) {
            return Err(fail(format!("`@{twice}` is given twice")));
        }
        if given("policy") > 0 && given("sims") + given("movetime") > 0 {
            let problem = "`@policy` is the network without search, `@sims` and `@movetime` need one: give either";
            return Err(fail(problem.to_owned()));
        }
        let number = |option: &str, value: &str, low: f32, high: f32| -> Result<f32, PlayerError> {
            let parsed = value.parse().ok().filter(|number| (low..=high).contains(number));
            parsed.ok_or_else(|| fail(format!("`{option}` is {value:?}, allowed is {low} to {high}")))
        };
        let count = |option: &str, value: &str| -> Result<u32, PlayerError> {
            let parsed = value.parse().ok().filter(|count| (1..=100_000_000).contains(count));
            parsed.ok_or_else(|| fail(format!("`{option}` is {value:?}, expected a number from 1 to 100000000")))
        };
        let unknown = |option: &str, known: &str| fail(format!("there is no option {option:?}; {known}"));
        let meant = |name: &str, known: &[&str]| {
            nearest(name, known.iter().copied()).map_or_else(String::new, |near| format!("did you mean {near:?}? "))
        };
        let kind = if name == "random" || name == "solver" {
            if let Some((option, _)) = options.first() {
                return Err(unknown(option, &format!("`{name}` takes none")));
            }
            if name == "random" { Kind::Random } else { Kind::Solver }
        } else if let Some(simulations) = name.strip_prefix("mcts:") {
            let (mut c, mut time) = (1.0, None);
            for (option, value) in options {
                match option {
                    "c" => c = number(option, value, 0.0, 100.0)?,
                    "movetime" => time = Some(parse_time(value).map_err(fail)?),
                    _ => return Err(unknown(option, "`mcts` takes `@c=` and `@movetime=`")),
                }
            }
            Kind::Mcts { simulations: count("mcts", simulations)?, time, c }
        } else if name == "mcts" {
            return Err(fail("say how many simulations it makes: `mcts:1000`".to_owned()));
        } else {
            let (mut simulations, mut time, mut temperature, mut view) = (None, None, 0.0, View::default());
            let mut precision = Precision::default();
            let preset = resolved_value(&SearchParams::default());
            let keys = preset.as_object().into_iter().flat_map(|keys| keys.keys());
            let search_keys: Vec<&str> = keys.map(String::as_str).collect();
            let mut search_sets = Vec::new();
            for (option, value) in options {
                match (option, value) {
                    ("sims", value) => simulations = Some(count(option, value)?),
                    ("movetime", value) => time = Some(parse_time(value).map_err(fail)?),
                    ("policy", "") => simulations = Some(0),
                    ("policy", _) => return Err(fail("`@policy` takes no value".to_owned())),
                    ("view", value) => view = parse_word(option, value, VIEWS).map_err(fail)?,
                    ("precision", value) => precision = parse_word(option, value, PRECISIONS).map_err(fail)?,
                    ("temperature", value) => temperature = number(option, value, 0.0, 100.0)?,
                    (key, value) if search_keys.contains(&key) => {
                        search_sets.push(format!("{key}={value}"));
                    }
                    _ => {
                        let all = [&OWN_OPTIONS[..], &search_keys[..]].concat();
                        let known = format!("{}a network takes {}", meant(option, &all), all.join(", "));
                        return Err(unknown(option, &known));
                    }
                }
            }
            let search = search_with(&search_sets).map_err(fail)?;
            if !Path::new(name).exists() {
                let known = "expected `random`, `solver`, `mcts:SIMULATIONS`, `engine:COMMAND`, or the path of a checkpoint or run";
                let kind = name.split(':').next().unwrap_or_default();
                let meant = meant(kind, &["random", "solver", "mcts"]);
                return Err(fail(format!("there is no file or folder {name:?}; {meant}{known}")));
            }
            Kind::Network { path: name.into(), simulations, time, search, temperature, view, precision }
        };
        Ok(Self { text: text.to_owned(), kind })
    }

    /// The checkpoint `path` with so many simulations, else as a player named by its path.
    pub fn network(path: PathBuf, simulations: u32) -> Self {
        let (search, simulations) = (SearchParams::default(), Some(simulations));
        let text = path.display().to_string();
        let (view, precision) = (View::default(), Precision::default());
        let kind = Kind::Network { path, simulations, time: None, search, temperature: 0.0, view, precision };
        Self { text, kind }
    }

    /// Sets how long the player thinks about a move where its text does not say it: a network makes `simulations`, and
    /// every player that searches takes at most `time`.
    pub fn limit(&mut self, simulations: Option<u32>, time: Option<Duration>) {
        match &mut self.kind {
            Kind::Network { simulations: own, time: own_time, .. } if own.is_none() && own_time.is_none() => {
                (*own, *own_time) = (simulations, time);
            }
            Kind::Mcts { time: own, .. } => *own = own.or(time),
            Kind::Engine(Engine { pace, .. }) if *pace == Pace::Own => {
                *pace = time.map(Pace::Time).or(simulations.map(|n| Pace::Nodes(n.into()))).unwrap_or(Pace::Own);
            }
            Kind::Network { .. } | Kind::Engine(_) | Kind::Random | Kind::Solver => {}
        }
    }

    /// Whether it judges moves by a search of its own.
    pub fn searches(&self) -> bool {
        matches!(self.kind, Kind::Mcts { .. } | Kind::Network { .. })
    }

    /// Whether it plays perfectly, and only in positions that can be solved.
    pub fn is_solver(&self) -> bool {
        self.kind == Kind::Solver
    }

    /// Whether a clock ends its moves, so that they may differ from time to time.
    pub fn is_timed(&self) -> bool {
        match &self.kind {
            Kind::Network { time, .. } | Kind::Mcts { time, .. } => time.is_some(),
            Kind::Engine(_) => true,
            Kind::Random | Kind::Solver => false,
        }
    }

    /// The checkpoint behind a network player, verified; `None` for the others.
    ///
    /// # Errors
    /// When the file or run cannot be read.
    pub fn checkpoint(&self) -> Result<Option<Checkpoint>, PlayerError> {
        let Kind::Network { path, .. } = &self.kind else { return Ok(None) };
        let failed = |error| PlayerError::Network { text: self.text.clone(), error };
        load_network(path).map(Some).map_err(failed)
    }

    /// The player, ready to play `game`.
    ///
    /// # Errors
    /// When its network is of another game or cannot be opened, or its engine does not start.
    pub fn open<G: Game>(&self, game: &G, engine: &EngineChoice) -> Result<Player<G>, PlayerError> {
        let text = || self.text.clone();
        let (simulations, time, search, temperature, view, precision) = match &self.kind {
            Kind::Random => return Ok(Player::random()),
            Kind::Solver => {
                return Player::solver(game).ok_or_else(|| PlayerError::NoSolver { text: text(), game: G::NAME });
            }
            Kind::Mcts { simulations, time, c } => {
                let seat = Seat::Mcts { simulations: *simulations, time: *time, c: *c };
                return Ok(Player::new(text(), seat));
            }
            Kind::Engine(engine) => {
                engine.check().map_err(|problem| PlayerError::Engine { text: text(), problem })?;
                return Ok(Player::engine(text(), engine.clone()));
            }
            Kind::Network { simulations, time, search, temperature, view, precision, .. } => {
                (*simulations, *time, search.clone(), *temperature, *view, *precision)
            }
        };
        let checkpoint = self.checkpoint()?.expect("a network player has a checkpoint");
        checkpoint.check_game(game).map_err(|error| PlayerError::Mismatch { text: text(), error })?;
        let engine = EngineChoice { precision, ..engine.clone() };
        let factory = InferenceFactory::open(&checkpoint.info.network, &checkpoint.weights, &engine)
            .map_err(|error| PlayerError::Open { text: text(), error })?;
        // Not by its path: the same network plays the same games wherever it lies.
        let identity =
            format!("{} {simulations:?} {time:?} {search:?} {temperature} {view:?}", checkpoint.weights.digest());
        let seat = SearchSeat {
            evaluators: Arc::new(NetSource::new(Arc::new(factory), 256).seen_through(view.mode(0, 0))),
            search,
            // Time alone sets no number.
            simulations: simulations.unwrap_or(if time.is_some() { u32::MAX } else { DEFAULT_SIMULATIONS }),
            time,
            temperature: Temperature { initial: temperature, plies: u32::MAX, later: temperature },
            noise: None,
            gumbel_noise: false,
            fast: None,
            teaching: Teaching::default(),
        };
        Ok(Player { identity, ..Player::new(text(), Seat::Search(seat)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_and_faults_named() {
        let kind = |text| PlayerSpec::parse(text).unwrap().kind;
        assert_eq!((kind("random"), kind("solver")), (Kind::Random, Kind::Solver));
        assert_eq!(kind("mcts:50@c=0.5"), Kind::Mcts { simulations: 50, time: None, c: 0.5 });
        let time = Some(Duration::from_millis(7));
        assert_eq!(kind("mcts:50@movetime=7"), Kind::Mcts { simulations: 50, time, c: 1.0 });
        let engine = |words: &[&str], pace| {
            Kind::Engine(Engine { words: words.iter().map(|word| (*word).to_owned()).collect(), pace })
        };
        assert_eq!(kind("engine:e 'a b' x@sims=3"), engine(&["e", "a b", "x@sims=3"], Pace::Own));
        let paced = engine(&["e", "x@sims=3"], Pace::Time(Duration::from_millis(50)));
        assert_eq!(kind("engine:e x@sims=3@movetime=50"), paced);
        assert_eq!(kind("engine:e@nodes=7"), engine(&["e"], Pace::Nodes(7)));
        let fault = |text| PlayerSpec::parse(text).unwrap_err().to_string();
        for (text, part) in [
            ("engine:", "how the engine is started"),
            ("engine:a 'b", "quotes"),
            ("engine:a@movetime=0", "from 1"),
            ("mcts:5@movetime=x", "milliseconds"),
            (".@policy@movetime=4", "give either"),
            ("engine:a@nodes=5@movetime=3", "either"),
            ("mcts", "mcts:1000"),
            ("mcts:0", "from 1"),
            ("mcts:5@d=1", "no option \"d\""),
            ("mcts:5@c=x", "allowed is 0 to 100"),
            ("random@sims=3", "`random` takes none"),
            ("solver@sims=3", "`solver` takes none"),
            ("sovler", "did you mean \"solver\"?"),
            ("no/such/file", "no file or folder"),
            ("mcst:100", "did you mean \"mcts\"?"),
            (".@sim=3", "did you mean \"sims\"?"),
            (".@sims=many", "expected a number"),
            (".@algorithm=x", "expected \"puct\" or \"gumbel\""),
            (".@nonsense=1", "a network takes sims, movetime, policy, temperature, view, precision, algorithm"),
            (".@precision=f8", "allowed are auto, f32, bf16, f16"),
            (".@policy=3", "takes no value"),
            (".@fpu_reduction=9", "is out of range; expected"),
            (".@view=upside", "as_is, random"),
            (".@sims=3@sims=4", "given twice"),
            (".@policy@sims=4", "give either"),
        ] {
            assert!(fault(text).contains(part), "{text}: {}", fault(text));
        }
        let error = PlayerSpec::parse("./@policy").unwrap().checkpoint().unwrap_err().to_string();
        assert!(error.contains("is no run"), "{error}");
    }

    #[test]
    fn a_path_may_hold_the_sign_of_options() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("user@host@sims=5");
        std::fs::write(&path, "").unwrap();
        let path = path.to_str().unwrap();
        assert_eq!(split_options(path), (path, None));
        let with_options = format!("{path}@sims=7@policy");
        assert_eq!(split_options(&with_options), (path, Some("sims=7@policy")));
        assert_eq!(split_options("mcts:5@c=1"), ("mcts:5", Some("c=1")));
    }
}
