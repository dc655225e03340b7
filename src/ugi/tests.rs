use std::io::{BufRead, BufReader, PipeWriter, Write, pipe};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use super::*;
use crate::game::legal_list;
use crate::games::tictactoe::TicTacToe;
use crate::games::{GameVisitor, NAMES, dispatch};
use crate::util::rng::Stream;

/// What a [`Puppet`] does when it is to think.
#[derive(Clone, Copy, PartialEq)]
enum Act {
    /// Tells one info, then thinks until it is stopped.
    UntilStopped,
    /// Thinks for a while, but stops when told.
    AWhile,
    AtOnce,
    Fail,
    Panic,
    Illegal,
}

/// A thinker that always takes the last legal move and writes down what it was asked.
struct Puppet {
    act: Act,
    asked: std::sync::Arc<std::sync::Mutex<Vec<String>>>,
}

impl Thinker<TicTacToe> for Puppet {
    fn think(
        &mut self,
        game: &TicTacToe,
        position: &Position<'_, TicTacToe>,
        limits: &Limits,
        stop: &AtomicBool,
        info: &mut dyn FnMut(Info),
    ) -> Result<Action, String> {
        let mut replayed = *position.start;
        for &action in position.moves {
            game.play(&mut replayed, action);
        }
        assert_eq!(replayed, *position.state);
        self.note(format!("think {} nodes {:?}", game.state_text(position.state), limits.nodes));
        let legal = legal_list(game, position.state);
        let nap = Duration::from_millis(2);
        match self.act {
            Act::UntilStopped => {
                info(Info {
                    time: Some(Duration::from_millis(250)),
                    nodes: Some(500),
                    value: Some(WdlPov { win: 0.625, draw: 0.25, loss: 0.125 }),
                    line: legal[..2].to_vec(),
                    text: Some("two\nlines".to_owned()),
                    ..Info::default()
                });
                while !stop.load(Ordering::Relaxed) {
                    std::thread::sleep(nap);
                }
            }
            Act::AWhile => (0..50).filter(|_| !stop.load(Ordering::Relaxed)).for_each(|_| std::thread::sleep(nap)),
            Act::AtOnce => {}
            Act::Fail => return Err("no\nnetwork".to_owned()),
            Act::Panic => panic!("the tensor is on fire"),
            Act::Illegal => return Ok(Action(0)),
        }
        Ok(*legal.last().expect("the game goes on"))
    }

    fn new_game(&mut self) {
        self.note("new game".to_owned());
    }

    fn options(&self) -> Vec<UgiOption> {
        let choices = vec!["while".to_owned(), "stop".to_owned()];
        [
            ("Act Now", OptionKind::Check { default: false }),
            ("mode", OptionKind::Combo { default: "stop".to_owned(), choices }),
            ("note", OptionKind::String { default: String::new() }),
            ("clear", OptionKind::Button),
        ]
        .map(|(name, kind)| UgiOption { name: name.to_owned(), kind })
        .to_vec()
    }

    fn set_option(&mut self, name: &str, value: &str) -> Result<(), String> {
        self.note(format!("set {name} = {value}"));
        match (name, value) {
            ("note", "bad") => return Err("not that".to_owned()),
            ("Act Now", "true") => self.act = Act::AtOnce,
            _ => {}
        }
        Ok(())
    }
}

impl Puppet {
    fn note(&self, what: String) {
        self.asked.lock().expect("no panic while it is held").push(what);
    }
}

/// A conversation with an engine on another thread.
struct Talk {
    input: Option<PipeWriter>,
    lines: Receiver<String>,
    engine: Option<JoinHandle<Result<(), UgiError>>>,
    asked: std::sync::Arc<std::sync::Mutex<Vec<String>>>,
}

impl Talk {
    fn with(act: Act) -> Self {
        let asked = std::sync::Arc::default();
        let puppet = Puppet { act, asked: std::sync::Arc::clone(&asked) };
        let (input_reader, input) = pipe().expect("a pipe");
        let (output_reader, output) = pipe().expect("a pipe");
        let engine =
            std::thread::spawn(move || serve(TicTacToe, Box::new(puppet), BufReader::new(input_reader), output));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            BufReader::new(output_reader).lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)));
        });
        Self { input: Some(input), lines, engine: Some(engine), asked }
    }

    fn send(&mut self, line: &str) {
        writeln!(self.input.as_mut().expect("open"), "{line}").expect("the engine listens");
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(Duration::from_secs(30)).expect("an answer in time")
    }

    fn ask(&mut self, line: &str) -> String {
        self.send(line);
        self.line()
    }

    /// All lines up to `last`.
    fn until(&mut self, last: &str) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let line = self.line();
            if line == last {
                return lines;
            }
            lines.push(line);
        }
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().expect("no panic while it is held"))
    }

    /// Ends the input; what was still said.
    fn end(mut self) -> Vec<String> {
        drop(self.input.take());
        let result = self.engine.take().expect("once").join().expect("no panic");
        assert!(result.is_ok(), "{result:?}");
        self.lines.iter().collect()
    }
}

#[test]
fn a_whole_session() {
    let mut talk = Talk::with(Act::AtOnce);
    talk.send("ugi");
    let lines = talk.until("ugiok");
    assert!(lines[0].starts_with("id name sparring") && lines[1].starts_with("id author"), "{lines:?}");
    assert_eq!(
        lines[2..],
        [
            "option name Act Now type check default false",
            "option name mode type combo default stop var while var stop",
            "option name note type string default <empty>",
            "option name clear type button",
        ]
    );
    assert_eq!(talk.ask("isready"), "readyok");
    talk.send("uginewgame");
    talk.send("position startpos");
    assert_eq!(talk.ask("query p1turn"), "response true");
    assert_eq!(talk.ask("query result"), "response none");
    assert_eq!(talk.ask("go nodes 7"), "bestmove c3");
    talk.send("position startpos moves b2");
    assert_eq!(talk.ask("query p1turn"), "response false");
    assert_eq!(talk.ask("go movetime 10"), "bestmove c3");
    talk.send("position fen xx1/oo1/3 x");
    assert_eq!(talk.ask("query fen"), "response xx1/oo1/3 x");
    assert_eq!(talk.ask("query legal"), "response a3 b3 c1 c2 c3");
    assert_eq!(talk.ask("query actions").split(' ').count(), 10);
    let planes = talk.ask("query planes");
    assert!(planes.split(' ').skip(1).all(|number| number == "0" || number == "1"), "{planes}");
    talk.send("position fen xx1/oo1/3 x moves c1");
    assert_eq!(talk.ask("query gameover"), "response true");
    assert_eq!(talk.ask("query result"), "response p1win");
    assert_eq!((talk.ask("query legal"), talk.ask("query planes")), ("response none".into(), "response none".into()));
    talk.send("position fen xx1/oo1/1x1 o moves c2");
    assert_eq!(talk.ask("query result"), "response p2win");
    talk.send("position startpos moves a1 b1 c1 b2 a2 c2 b3 a3 c3");
    assert_eq!(talk.ask("query result"), "response draw");
    assert_eq!(
        talk.asked(),
        [
            "new game",
            "think 3/3/3 x nodes Some(7)",
            "think 3/1x1/3 o nodes None", //
        ]
    );
    talk.send("quit");
    assert_eq!(talk.end(), Vec::<String>::new());
}

#[test]
fn perft_lines_are_in_notation_order() {
    let mut talk = Talk::with(Act::AtOnce);
    talk.send("position fen xox/o2/2x o");
    talk.send("go perft 2");
    let lines = talk.until("Nodes searched: 12");
    assert_eq!(lines, ["a3: 3", "b2: 3", "b3: 3", "c2: 3"]);
    assert_eq!(talk.ask("go perft 0"), "Nodes searched: 1");
    talk.send("position startpos moves a1 a2 b1 b2 c1");
    assert_eq!(talk.ask("go perft 3"), "Nodes searched: 0");
    assert_eq!(talk.end(), Vec::<String>::new());
}

#[test]
fn stop_and_isready_are_answered_while_thinking() {
    let mut talk = Talk::with(Act::UntilStopped);
    assert_eq!(
        talk.ask("go infinite"),
        "info time 250 nodes 500 nps 2000 score cp 89 wdl 625 250 125 pv a1 a2 string two lines"
    );
    assert_eq!(talk.ask("isready"), "readyok");
    assert_eq!(talk.ask("query gameover"), "response false");
    assert_eq!(talk.ask("position"), "info string error position: expected position startpos|fen FEN [moves MOVE...]");
    assert_eq!(talk.ask("stop"), "bestmove c3");
    // A second stop is nothing; a bounded search can be stopped as well.
    talk.send("stop");
    assert!(talk.ask("go nodes 1000000").starts_with("info time"));
    assert_eq!(talk.ask("stop"), "bestmove c3");
    assert_eq!(talk.ask("isready"), "readyok");
    assert_eq!(talk.end(), Vec::<String>::new());
}

#[test]
fn an_infinite_search_answers_only_when_stopped() {
    let mut talk = Talk::with(Act::AtOnce);
    talk.send("go infinite");
    assert_eq!(talk.ask("isready"), "readyok");
    assert!(talk.lines.recv_timeout(Duration::from_millis(100)).is_err());
    assert_eq!(talk.ask("stop"), "bestmove c3");
    // The commands that need the search to be over end it.
    talk.send("go infinite");
    assert_eq!(talk.ask("position startpos moves c3"), "bestmove c3");
    talk.send("go infinite");
    assert_eq!(talk.ask("uginewgame"), "bestmove c2");
    talk.send("go infinite");
    assert_eq!(talk.ask("setoption name clear"), "bestmove c3");
    talk.send("go infinite");
    assert_eq!(talk.ask("go nodes 1"), "bestmove c3");
    assert_eq!(talk.line(), "bestmove c3");
    assert_eq!(talk.end(), Vec::<String>::new());
}

#[test]
fn a_bounded_search_is_waited_for() {
    let mut talk = Talk::with(Act::AWhile);
    talk.send("go nodes 5\nposition startpos moves c3\ngo nodes 6\nposition startpos moves c3 c2\nisready");
    assert_eq!([talk.line(), talk.line(), talk.line()], ["bestmove c3", "bestmove c2", "readyok"]);
    assert_eq!(talk.asked(), ["think 3/3/3 x nodes Some(5)", "think 3/3/2x o nodes Some(6)"]);
    assert_eq!(talk.end(), Vec::<String>::new());
}

#[test]
fn the_end_of_the_input_ends_the_search() {
    let mut talk = Talk::with(Act::UntilStopped);
    assert!(talk.ask("go infinite").starts_with("info"));
    assert_eq!(talk.end(), ["bestmove c3"]);
    let mut talk = Talk::with(Act::UntilStopped);
    assert!(talk.ask("go nodes 3").starts_with("info"));
    // quit ends it even though the input stays open.
    assert_eq!(talk.ask("quit"), "bestmove c3");
    let engine = talk.engine.take().expect("once");
    assert!(engine.join().expect("no panic").is_ok());
    // A line without an end is still a line.
    let mut talk = Talk::with(Act::AtOnce);
    write!(talk.input.as_mut().expect("open"), "isready").expect("the engine listens");
    assert_eq!(talk.end(), ["readyok"]);
}

#[test]
fn a_long_perft_can_be_stopped() {
    let (input_reader, mut input) = pipe().expect("a pipe");
    let (output_reader, output) = pipe().expect("a pipe");
    let game = crate::games::zener::Zener::default();
    let engine = std::thread::spawn(move || {
        serve(game, Box::new(RandomThinker::default()), BufReader::new(input_reader), output)
    });
    input.write_all(b"go perft 40\nisready\nstop\ngo perft 1\n").expect("the engine listens");
    let mut lines = BufReader::new(output_reader).lines().map(|line| line.expect("text"));
    assert_eq!(lines.next().as_deref(), Some("readyok"));
    assert_eq!(lines.next().as_deref(), Some("info string error perft was stopped before its end"));
    assert_eq!(lines.by_ref().take(14).last().as_deref(), Some("Nodes searched: 13"));
    drop(input);
    assert!(engine.join().expect("no panic").is_ok());
}

#[test]
fn what_cannot_be_done_is_one_line_and_changes_nothing() {
    let mut talk = Talk::with(Act::AtOnce);
    talk.send("position startpos moves a1");
    for (bad, part) in [
        ("xyzzy", "unknown command \"xyzzy\""),
        ("position startpos moves a1 a1", "ply 2: \"a1\" is not legal"),
        ("position startpos moves a1 d4", "ply 2"),
        ("position startpos moves a1 a2 b1 b2 c1 c2", "ply 6: the game is over before \"c2\""),
        ("position fen 3/3 x", "3 rows"),
        ("position fen", "expected"),
        ("position somewhere", "expected"),
        ("go quickly", "unknown word"),
        ("go perft x", "perft"),
        ("query mood", "gameover"),
        ("quit now", "stands alone"),
        ("setoption name nothing value 1", "known are Act Now, mode, note, clear"),
        ("setoption name Act Now value yes", "true or false"),
        ("setoption name Act Now", "takes a value"),
        ("setoption name mode value fast", "one of while, stop"),
        ("setoption name clear value 1", "no value"),
        ("setoption name note value bad", "not that"),
    ] {
        let line = talk.ask(bad);
        assert!(line.starts_with("info string error ") && line.contains(part), "{bad}: {line}");
        // Exactly one line, and the position is still the one before.
        assert_eq!(talk.ask("isready"), "readyok", "{bad}");
        assert_eq!(talk.ask("query p1turn"), "response false", "{bad}");
    }
    assert_eq!(talk.ask("go"), "bestmove c3");
    assert_eq!(talk.asked(), ["set note = bad", "think x2/3/3 o nodes None"]);
    talk.send("setoption name act now value true");
    talk.send("setoption name note value two words");
    talk.send("setoption name clear");
    assert_eq!(talk.ask("isready"), "readyok");
    assert_eq!(talk.asked(), ["set Act Now = true", "set note = two words", "set clear = "]);
    assert_eq!(talk.end(), Vec::<String>::new());
}

#[test]
fn a_finished_game_has_no_best_move() {
    let mut talk = Talk::with(Act::AtOnce);
    talk.send("position startpos moves a1 a2 b1 b2 c1");
    assert_eq!(talk.ask("go infinite"), "info string no move: the game is over, p1win");
    assert_eq!(talk.line(), "bestmove none");
    assert_eq!(talk.asked(), Vec::<String>::new());
}

#[test]
fn a_thinker_that_fails_is_told_and_the_engine_goes_on() {
    for (act, part) in [
        (Act::Fail, "info string error the search failed: no network"),
        (Act::Panic, "info string error the search failed: it panicked: the tensor is on fire"),
        (
            Act::Illegal,
            "info string error the search failed: it chose action 0, which is not legal here; this is a bug",
        ),
    ] {
        let mut talk = Talk::with(act);
        talk.send("position startpos moves a1");
        assert_eq!(talk.ask("go nodes 1"), part);
        assert_eq!(talk.line(), "bestmove none");
        talk.send("setoption name Act Now value true");
        assert_eq!(talk.ask("go nodes 1"), "bestmove c3");
        assert_eq!(talk.end(), Vec::<String>::new());
    }
}

/// Serves commands from memory; the whole output.
fn transcript<G: Game>(game: G, input: &[u8]) -> String {
    let mut output = Vec::new();
    serve(game, Box::new(RandomThinker::new(3)), input, &mut output).expect("memory does not fail");
    String::from_utf8(output).expect("text")
}

#[test]
fn random_moves_follow_the_seed() {
    let session = |seed: u32| {
        let text = format!("setoption name seed value {seed}\ngo nodes 1\nisready\ngo nodes 1\nuginewgame\n");
        transcript(crate::games::uttt::Uttt, text.as_bytes())
            .lines()
            .filter(|line| line.starts_with("bestmove"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(session(1), session(1));
    assert_ne!(session(1), session(2));
    assert_ne!(session(1)[0], session(1)[1]);
}

#[test]
fn overlong_lines_are_passed_over() {
    let mut input = vec![b'x'; 5 << 20];
    input.extend_from_slice(b"\nisready\n");
    input.extend(std::iter::repeat_n(b' ', 3 << 20));
    let out = transcript(TicTacToe, &input);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].contains("longer than") && lines[2].contains("longer than"));
    assert_eq!(lines[1], "readyok");
    // A long but sensible line is fine.
    let out = transcript(TicTacToe, format!("position startpos moves {}\n", "a1 ".repeat(100_000)).as_bytes());
    assert_eq!(out.lines().count(), 1);
    assert!(out.contains("ply 2"), "{out}");
}

struct Garbage;

impl GameVisitor for Garbage {
    type Output = ();

    fn visit<G: Game>(self, game: G) {
        const WORDS: [&str; 37] = [
            "ugi",
            "isready",
            "setoption",
            "name",
            "seed",
            "value",
            "uginewgame",
            "position",
            "startpos",
            "fen",
            "moves",
            "go",
            "nodes",
            "movetime",
            "infinite",
            "perft",
            "stop",
            "query",
            "gameover",
            "p1turn",
            "result",
            "legal",
            "planes",
            "actions",
            "a1",
            "b2",
            "3",
            "0",
            "1",
            "-",
            "x",
            "w",
            "9/9/9/9/9/9/9/9/9",
            "3/3/3",
            "g3f3",
            "\u{0}",
            "é\u{1b}[2J",
        ];
        let mut random = Stream::test(21);
        let mut input = Vec::new();
        for _ in 0..4000 {
            match random.below(3) {
                0 => input.extend((0..random.below(40)).map(|_| random_byte(&mut random))),
                _ => {
                    for _ in 0..random.below(9) {
                        input.extend_from_slice(WORDS[random.below(WORDS.len())].as_bytes());
                        input.push(b' ');
                    }
                }
            }
            input.push(b'\n');
        }
        let out = transcript(game, &input);
        for line in out.lines() {
            let known =
                ["info string ", "response ", "readyok", "bestmove ", "id ", "option ", "ugiok", "Nodes searched: "];
            let is_count = line.split_once(": ").is_some_and(|(_, count)| count.parse::<u64>().is_ok());
            assert!(is_count || known.iter().any(|start| line.starts_with(start)), "{line:?}");
            assert!(!line.contains(|letter: char| letter.is_control()), "{line:?}");
        }
        // Every line got at most one error.
        assert!(out.matches("info string error").count() <= 4000);
    }
}

fn random_byte(random: &mut Stream) -> u8 {
    random.below(256) as u8
}

#[test]
fn garbage_never_panics() {
    for name in NAMES {
        dispatch(name, Garbage).expect("registered");
    }
}

/// A writer that fails.
struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_output_ends_the_engine() {
    let input = &b"isready\nisready\ngo perft 60\n"[..];
    let error = serve(TicTacToe, Box::new(RandomThinker::default()), input, Closed).expect_err("closed");
    assert!(error.to_string().starts_with("cannot write engine answers"), "{error}");
}
