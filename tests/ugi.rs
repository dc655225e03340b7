//! The engine protocol as a match runner uses it.
//!
//! `Engine` and `play` do what the match runner CuteGames does, step by step, after the public description of the protocol
//! and of the runner (<https://github.com/kz04px/cutegames>, `ugi.md`): who is to move, whether the game is over and how
//! it ended are asked of the engines; the runner knows nothing of the game.

mod common;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use common::{PROGRAM, run, small_run};

/// Nothing takes nearly as long, not even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

struct Engine {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    /// All that it has said.
    said: Vec<String>,
}

impl Engine {
    /// Starts `sparring ugi` and greets it.
    fn start(arguments: &[&str], options: &[(&str, &str)]) -> Self {
        let mut command = Command::new(PROGRAM);
        command.arg("ugi").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (told, lines) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).for_each(|line| drop(told.send(line))));
        let input = child.stdin.take().unwrap();
        let mut engine = Self { child, input, lines, said: Vec::new() };
        engine.send("ugi");
        engine.wait_for(|line| (line == "ugiok").then_some(()));
        let said = std::mem::take(&mut engine.said);
        assert!(said[0].starts_with("id name ") && said[1].starts_with("id author "), "{said:?}");
        assert!(said[2..].iter().all(|line| line.starts_with("option name ") || line == "ugiok"), "{said:?}");
        for (name, value) in options {
            engine.send(&format!("setoption name {name} value {value}"));
        }
        engine.is_ready();
        engine
    }

    fn send(&mut self, line: &str) {
        writeln!(self.input, "{line}").expect("the engine listens");
    }

    /// Reads lines until one of them is what is waited for.
    fn wait_for<T>(&mut self, mut wanted: impl FnMut(&str) -> Option<T>) -> T {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).unwrap_or_else(|e| panic!("{e} after {:?}", self.said));
            let found = wanted(&line);
            self.said.push(line);
            if let Some(found) = found {
                return found;
            }
        }
    }

    fn is_ready(&mut self) {
        self.send("isready");
        self.wait_for(|line| (line == "readyok").then_some(()));
    }

    /// The second word of a line of exactly two words of which the first is `first`.
    fn answer(&mut self, first: &str) -> String {
        self.wait_for(|line| match line.split(' ').collect::<Vec<_>>()[..] {
            [word, answer] if word == first => Some(answer.to_owned()),
            _ => None,
        })
    }

    fn query(&mut self, what: &str) -> String {
        self.send(&format!("query {what}"));
        self.answer("response")
    }

    fn position(&mut self, start: &str, moves: &[String]) {
        let start = if start == "startpos" { start.to_owned() } else { format!("fen {start}") };
        let moves = if moves.is_empty() { String::new() } else { format!(" moves {}", moves.join(" ")) };
        self.send(&format!("position {start}{moves}"));
    }

    /// The answer to a `go`, and the `info` lines before it.
    fn go(&mut self, limits: &str) -> (String, Vec<String>) {
        self.said.clear();
        self.send(&format!("go {limits}"));
        let best = self.answer("bestmove");
        let infos = self.said.iter().filter(|line| line.starts_with("info ")).cloned().collect();
        (best, infos)
    }

    /// Says goodbye and waits for the process to end by itself.
    fn quit(mut self) {
        self.send("quit");
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                assert!(status.success(), "{status}");
                break;
            }
            assert!(began.elapsed() < PATIENCE, "the engine does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!self.said.iter().any(|line| line.contains("error")), "{:?}", self.said);
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // One that has ended is already waited for; then both do nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How long engines may think.
enum Pace {
    /// `go nodes N`.
    Nodes(u32),
    /// Clocks of so many milliseconds for the whole game.
    Clock(i64),
}

/// What a game came to: its result, its moves, and what was left of the clocks.
struct Played {
    result: String,
    moves: Vec<String>,
    left: [i64; 2],
}

/// One game, as the match runner plays it.
fn play(engines: &mut [Engine; 2], start: &str, pace: &Pace) -> Played {
    for engine in engines.iter_mut() {
        engine.is_ready();
        engine.send("uginewgame");
    }
    let mut left = match pace {
        Pace::Nodes(_) => [0; 2],
        Pace::Clock(time) => [*time; 2],
    };
    let mut moves = Vec::new();
    loop {
        engines[0].position(start, &moves);
        let mover = if engines[0].query("p1turn") == "true" { 0 } else { 1 };
        let us = &mut engines[mover];
        us.is_ready();
        us.position(start, &moves);
        if us.query("gameover") == "true" {
            break;
        }
        let limits = match pace {
            Pace::Nodes(nodes) => format!("nodes {nodes}"),
            Pace::Clock(_) => format!("p1time {} p2time {} p1inc 0 p2inc 0", left[0], left[1]),
        };
        let began = Instant::now();
        let (best, infos) = us.go(&limits);
        if let Pace::Clock(_) = pace {
            left[mover] -= began.elapsed().as_millis() as i64;
            if left[mover] <= 0 {
                break;
            }
        }
        let last = infos.last().expect("a last info line before every move");
        for key in [" time ", " nodes ", " nps "] {
            assert!(last.contains(key), "{key}: {last}");
        }
        moves.push(best);
    }
    let answers = engines.each_mut().map(|engine| {
        engine.position(start, &moves);
        (engine.query("gameover"), engine.query("result"), engine.query("p1turn"))
    });
    assert_eq!(answers[0], answers[1], "both know how it ended");
    Played { result: answers[0].1.clone(), moves, left }
}

#[test]
fn matches_as_a_runner_plays_them() {
    for (game, starts) in [
        ("tictactoe", ["startpos", "x2/1o1/3 x"]),
        ("uttt", ["startpos", "9/9/9/9/4x4/9/9/9/9 o 5"]),
        ("zener", ["startpos", "sqwxc/5/5/5/5/5/CXWQS w - - 0"]),
    ] {
        let start_engine = |player: &str| Engine::start(&[game, player], &[("Simulations", "7")]);
        let mut engines = [start_engine("mcts:60"), start_engine("mcts:50")];
        for start in starts {
            let played = play(&mut engines, start, &Pace::Nodes(40));
            assert!(["p1win", "p2win", "draw"].contains(&played.result.as_str()), "{game}: {}", played.result);
            assert!(played.moves.len() >= 3, "{game}: {:?}", played.moves);
        }
        engines.into_iter().for_each(Engine::quit);
    }
}

/// The longest path that the rules of uttt allow is 81 plies; games of searches take some fifty.
#[test]
fn a_second_is_enough_for_a_whole_game() {
    // A machine that is busy with other things may stop a process for a while, and that is not the engine's fault.
    let mut told = Vec::new();
    for _ in 0..5 {
        let mut engines = ["mcts:60", "mcts:50"].map(|player| Engine::start(&["uttt", player], &[]));
        let played = play(&mut engines, "startpos", &Pace::Clock(1000));
        engines.into_iter().for_each(Engine::quit);
        if played.left.iter().all(|&left| left > 0) {
            assert!(["p1win", "p2win", "draw"].contains(&played.result.as_str()), "{}", played.result);
            return;
        }
        told.push((played.left, played.moves.len()));
    }
    panic!("a clock ran out in each of five games: {told:?}");
}

#[test]
fn matches_of_the_arena_between_two_engines() {
    for game in ["tictactoe", "uttt", "zener"] {
        // Unlike anything else that runs, so that its processes can be told apart.
        let mark = format!("mcts:40@c=0.98{}", std::process::id());
        let engine = |nodes: u32| format!("engine:{PROGRAM} ugi {game} {mark}@nodes={nodes}");
        let report = run(["pit", &engine(30), &engine(20), "--game", game, "--games", "4", "--json"]).expect(0).json();
        assert_eq!(report["faults"], serde_json::json!({}), "{report}");
        let games = &report["games"];
        let count: u64 = ["wins", "draws", "losses"].iter().map(|key| games[key].as_u64().unwrap()).sum();
        assert_eq!(count, 4, "{report}");
        assert_eq!(running(&mark), Vec::<String>::new(), "the engines have ended with the match");
    }
}

/// The command lines of running processes that contain `mark`; empty where the system does not list processes.
fn running(mark: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let lines = entries.filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(mark)).collect()
}

#[test]
fn options_change_how_an_engine_plays() {
    let scratch = tempfile::tempdir().unwrap();
    let [one, two] = ["1", "2"].map(|seed| small_run(&scratch.path().join(seed), "uttt", &[&format!("seed={seed}")]));
    let other_game = small_run(scratch.path(), "tictactoe", &["seed=1"]);
    let mut engine = Engine::start(&["uttt", &format!("{one}@sims=16")], &[]);
    engine.said.clear();
    engine.send("ugi");
    engine.wait_for(|line| (line == "ugiok").then_some(()));
    let options: Vec<&str> = engine.said.iter().filter_map(|line| line.strip_prefix("option name ")).collect();
    assert_eq!(options[0], "Simulations type spin default 16 min 0 max 100000000");
    assert_eq!(options[1], "Temperature type string default 0");
    assert!(options[2].starts_with("Threads type spin default "), "{options:?}");
    assert_eq!(options[3], "Checkpoint type string default <empty>");

    // A fresh engine's opinion of the start: the value and the move.
    let opinion = |engine: &mut Engine| {
        engine.send("uginewgame");
        engine.position("startpos", &[]);
        let (best, infos) = engine.go("nodes 64");
        let last = infos.last().unwrap().clone();
        (best, last.split(" score ").nth(1).unwrap().to_owned())
    };
    let refused = |engine: &mut Engine, value: &str, part: &str| {
        engine.said.clear();
        engine.send(&format!("setoption name Checkpoint value {value}"));
        engine.is_ready();
        let said = std::mem::take(&mut engine.said);
        assert_eq!(said.len(), 2, "one line of refusal and readyok: {said:?}");
        assert!(said[0].starts_with("info string error ") && said[0].contains(part), "{said:?}");
    };
    let of_one = opinion(&mut engine);
    assert_eq!(opinion(&mut engine), of_one, "the same again");
    let touched = scratch.path().join("touched");
    let broken = scratch.path().join("broken.safetensors");
    fs::write(&broken, "this is no network").unwrap();
    refused(&mut engine, "no/such/file", "no/such/file");
    refused(&mut engine, broken.to_str().unwrap(), "broken.safetensors");
    refused(&mut engine, &other_game, "tictactoe");
    refused(&mut engine, "mcts:100", "no network");
    refused(&mut engine, &format!("engine:touch {}", touched.display()), "no network");
    assert!(!touched.exists(), "a runner's option starts no program");
    assert_eq!(opinion(&mut engine), of_one, "the old one stays");
    engine.send(&format!("setoption name Checkpoint value {two}"));
    let of_two = opinion(&mut engine);
    assert_ne!(of_two, of_one);
    engine.send("setoption name Threads value 1");
    assert_eq!(opinion(&mut engine), of_two, "threads change nothing");
    engine.send("setoption name Checkpoint value <empty>");
    assert_eq!(opinion(&mut engine), of_one, "back to the player of the command line");

    // With a temperature different moves come up, with 0 always the same one.
    let moves = |engine: &mut Engine| {
        let mut seen: Vec<String> = (0..12).map(|_| opinion(engine).0).collect();
        seen.sort();
        seen.dedup();
        seen.len()
    };
    assert_eq!(moves(&mut engine), 1);
    engine.send("setoption name temperature value 1.5");
    assert!(moves(&mut engine) > 1);
    engine.said.clear();
    engine.send("setoption name Temperature value hot");
    engine.is_ready();
    assert!(engine.said[0].starts_with("info string error Temperature \"hot\""), "{:?}", engine.said);
    engine.said.clear();
    engine.send("setoption name Temperature value 0");
    assert_eq!(moves(&mut engine), 1);
    // A player without a network takes one too.
    let mut plain = Engine::start(&["uttt", "mcts:30"], &[("Checkpoint", &one)]);
    assert_eq!(opinion(&mut plain), of_one);
    plain.quit();
    engine.quit();
}

#[test]
fn a_search_tells_how_far_it_is() {
    let mut engine = Engine::start(&["uttt", "mcts:30"], &[]);
    engine.position("startpos", &["e5".to_owned()]);
    let (_, infos) = engine.go("movetime 1800");
    assert!(infos.len() >= 3, "{infos:?}");
    let number = |line: &str, key: &str| -> f64 {
        let mut words = line.split(' ').skip_while(|word| *word != key).skip(1);
        words.next().and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("{key}: {line}"))
    };
    for pair in infos.windows(2) {
        let gap = number(&pair[1], "time") - number(&pair[0], "time");
        assert!((0.0..1500.0).contains(&gap), "{infos:?}");
        assert!(number(&pair[1], "nodes") >= number(&pair[0], "nodes"));
    }
    let last = infos.last().unwrap();
    for key in ["depth", "seldepth", "time", "nodes", "nps", "cp", "wdl"] {
        number(last, key);
    }
    assert!(number(last, "depth") >= 1.0 && number(last, "seldepth") >= number(last, "depth"), "{last}");
    assert!(last.contains(" pv "), "{last}");
    assert!(number(last, "time") < 1800.0 + 500.0, "{last}");
    // By depth: until simulations are longer than that on average, or as many as the option says are made.
    engine.send("setoption name Simulations value 100000");
    let (_, infos) = engine.go("depth 2");
    assert!(number(infos.last().unwrap(), "depth") >= 2.0, "{infos:?}");
    assert!(number(infos.last().unwrap(), "nodes") < 100_000.0, "{infos:?}");
    engine.send("setoption name Simulations value 500");
    let (_, infos) = engine.go("depth 80");
    assert_eq!(number(infos.last().unwrap(), "nodes"), 500.0);
    engine.quit();
}

#[test]
fn an_endless_search_of_a_proven_position_sleeps_until_it_is_stopped() {
    let scratch = tempfile::tempdir().unwrap();
    let network = small_run(scratch.path(), "tictactoe", &["seed=3"]);
    let mut engine = Engine::start(&["tictactoe", &network], &[]);
    engine.position("xx1/oo1/3 x", &[]);
    engine.send("go infinite");
    let last = engine.wait_for(|line| line.contains(" score mate ").then(|| line.to_owned()));
    assert!(last.contains(" score mate 1 wdl 1000 0 0 pv c1"), "{last}");
    engine.is_ready();
    let before = cpu_seconds(engine.child.id());
    std::thread::sleep(Duration::from_millis(700));
    let spent = cpu_seconds(engine.child.id()) - before;
    assert!(spent < 0.35, "{spent} s of work while there is nothing to do");
    engine.send("stop");
    assert_eq!(engine.answer("bestmove"), "c1");
    // The one to lose holds out as long as it can.
    engine.position("x1x/1o1/x1o o", &[]);
    let (_, infos) = engine.go("nodes 5000");
    assert!(infos.last().unwrap().contains(" score mate -2 wdl 0 0 1000 pv "), "{infos:?}");
    engine.quit();
}

/// Processor time of a process so far; 0 where the system does not tell.
fn cpu_seconds(id: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit_once(')').map_or(Vec::new(), |(_, rest)| rest.split_whitespace().collect());
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}
