//! The command line: exit codes, messages, what goes to stdout and what to stderr.

mod common;

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use common::{Done, PROGRAM, Process, run, sparring, words};
use serde_json::Value as Json;
use sparring::games::NAMES;

const VERBS: [&str; 17] = [
    "analyze",
    "train",
    "pit",
    "play",
    "replay",
    "ladder",
    "experiment",
    "ugi",
    "accuracy",
    "perft",
    "games",
    "config",
    "inspect",
    "export",
    "card",
    "bench",
    "doctor",
];

fn run_words(text: &str) -> Done {
    run(words(text))
}

#[test]
fn help_is_a_result_and_shows_examples() {
    let help = run(["--help"]).expect(0);
    assert!(help.err.is_empty() && help.out.contains("Exit codes"), "{}", help.out);
    for verb in VERBS {
        assert!(help.out.contains(&format!("\n  {verb} ")), "{verb} is not listed:\n{}", help.out);
        let own = run([verb, "--help"]).expect(0);
        assert!(own.out.contains(&format!("  sparring {verb}")) && own.out.contains("Example"), "{}", own.out);
    }
    // No verb is missing from the list above.
    let listed = help.out.split("Commands:").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap();
    let names = listed.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    assert_eq!(names.filter(|line| !line.starts_with("  help")).count(), VERBS.len(), "{listed}");
    assert!(run(["--version"]).expect(0).out.starts_with("sparring "));
}

#[test]
fn wrong_command_lines_exit_with_2_and_say_what_is_wrong() {
    for (text, parts) in [
        ("", vec!["Usage"]),
        ("frobnicate", vec!["frobnicate"]),
        ("pit random", vec!["PLAYER"]),
        ("play mcts:5", vec!["--game"]),
        ("play mcts:5 --game tictactoe --side third", vec!["third", "second"]),
        ("play mcts:5 --game tictactoe --position nonsense", vec!["--position"]),
        ("pit random random --gamez 3", vec!["--gamez"]),
        ("pit random random", vec!["--game"]),
        ("pit random random --game tictactoe --games 0", vec!["--games", "even"]),
        ("pit random random --game tictactoe --games 7", vec!["--games", "even"]),
        ("pit random random --game tictactoe --games many", vec!["many"]),
        ("pit random random --game tictactoe --threads 0", vec!["--threads"]),
        ("pit random random --game tictactoe --sprt 5", vec!["--sprt", "0,20"]),
        ("pit random random --game tictactoe --sprt 20,0", vec!["--sprt"]),
        ("pit random random --game tictacto", vec!["tictacto", "tictactoe"]),
        ("pit random random --game zener:foo=1", vec!["zener", "foo", "max_plies"]),
        ("pit random mcts --game uttt", vec!["mcts:1000"]),
        ("pit random no/such/file --game uttt", vec!["no/such/file"]),
        ("pit random mcts:5@d=1 --game uttt", vec!["@c="]),
        ("ugi nogame", vec!["nogame", "uttt"]),
        ("ugi uttt nobody", vec!["nobody"]),
        ("perft nogame 3", vec!["nogame"]),
        ("perft uttt 0", vec!["0"]),
        ("perft uttt 2 --position x", vec!["--position"]),
        ("config no-such-file.json", vec!["no-such-file.json"]),
        ("config --explain selfplay.simulation", vec!["selfplay.simulations"]),
        ("train no-such-file.json", vec!["no-such-file.json"]),
        ("bench nogame", vec!["nogame"]),
        ("bench uttt --seconds 0", vec!["--seconds"]),
    ] {
        let done = run_words(text);
        assert_eq!(done.code, 2, "{text}: {}{}", done.out, done.err);
        done.complains(2, &parts);
    }
    run_words("inspect no/such/file").complains(2, &["no/such/file"]);
}

#[test]
fn everything_wrong_with_a_config_is_told_at_once() {
    let scratch = tempfile::tempdir().unwrap();
    let config = scratch.path().join("wrong.json");
    let text = r#"{
  "game": "zener:foo=1",
  "selfplai": { "games": 5 },
  "seed": "seven",
  "selfplay": { "games": 0, "simulations": 4,
    "simulations": 5 }
}
and more"#;
    fs::write(&config, text).unwrap();
    for verb in ["train", "config"] {
        let mut command = sparring([verb]);
        command.arg(&config).args(["--set", "search.nonsense=1"]).current_dir(scratch.path());
        let done = Process::start(&mut command).finish();
        let done = done.complains(2, &["--set search.nonsense=1"]);
        let name = config.display();
        for (start, part) in [
            (format!("{name}:2: game: "), "foo"),
            (format!("{name}:3: selfplai: "), "did you mean \"selfplay\"?"),
            (format!("{name}:4: seed: "), "\"seven\""),
            (format!("{name}:5: selfplay.games: "), "1 to 10000000"),
            (format!("{name}:6: selfplay.simulations: "), "duplicate key"),
            (format!("{name}:8:1: "), "text after the end"),
        ] {
            let line =
                done.err.lines().map(|line| line.trim_start_matches("error: ")).find(|line| line.starts_with(&start));
            assert!(line.is_some_and(|line| line.contains(part)), "{start}{part} is missing in:\n{}", done.err);
        }
        assert_eq!(done.err.lines().count(), 7, "{}", done.err);
    }
    let left: Vec<_> = fs::read_dir(scratch.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "no run folder is made: {left:?}");
}

#[test]
fn matches_add_up_and_depend_on_the_seed_alone() {
    for game in NAMES {
        let report = |threads: &str, seed: &str| {
            let arguments = ["pit", "random", "mcts:8", "--game", game, "--games", "20", "--json"];
            let done = run(arguments.iter().copied().chain(["--threads", threads, "--seed", seed])).expect(0);
            let mut report = done.json();
            report.as_object_mut().unwrap().remove("time");
            report
        };
        let one = report("1", "3");
        let count = |counts: &Json| -> u64 {
            ["wins", "draws", "losses"].iter().map(|key| counts[key].as_u64().unwrap()).sum()
        };
        assert_eq!(one["game"], **game);
        assert_eq!((count(&one["games"]), count(&one["as_first"]), count(&one["as_second"])), (20, 10, 10), "{one}");
        for key in ["wins", "draws", "losses"] {
            let sides = one["as_first"][key].as_u64().unwrap() + one["as_second"][key].as_u64().unwrap();
            assert_eq!(one["games"][key], sides, "{one}");
        }
        let pairs: Vec<u64> = one["pairs"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).collect();
        assert_eq!((pairs.len(), pairs.iter().sum::<u64>()), (5, 10), "{one}");
        // A pair's half points are those of its games.
        let halves: u64 = pairs.iter().enumerate().map(|(points, count)| points as u64 * count).sum();
        let games = &one["games"];
        assert_eq!(halves, 2 * games["wins"].as_u64().unwrap() + games["draws"].as_u64().unwrap(), "{one}");
        assert_eq!((&one["faults"], &one["interrupted"]), (&serde_json::json!({}), &Json::Bool(false)));
        assert_eq!(report("3", "3"), one, "{game}: other threads");
        assert_ne!(report("1", "4"), one, "{game}: another seed");
    }
}

#[test]
fn players_of_different_games_do_not_meet() {
    let scratch = tempfile::tempdir().unwrap();
    let mut runs = Vec::new();
    for game in ["tictactoe", "connect4"] {
        runs.push(common::small_run(scratch.path(), game, &[]));
    }
    run(["pit", &runs[0], &runs[1], "--games", "2"]).complains(2, &[&runs[1], "connect4", "tictactoe"]);
    run(["pit", &runs[0], "random", "--game", "uttt", "--games", "2"]).complains(2, &[&runs[0], "tictactoe", "uttt"]);
    run(["ugi", "othello", &runs[0]]).complains(2, &[&runs[0], "tictactoe", "othello"]);
    // The network implies the game.
    let report = run(["pit", &format!("{}@policy", runs[1]), "random", "--games", "2", "--json"]).expect(0).json();
    assert_eq!(report["game"], "connect4");
}

#[test]
fn perft_of_the_rules_table() {
    for (game, depth, nodes) in [
        ("uttt", "5", 473_256),
        ("zener", "5", 6810),
        ("connect4", "6", 117_649),
        ("tictactoe", "6", 54_720),
        ("othello", "6", 8200),
    ] {
        let done = run(["perft", game, depth]).expect(0);
        assert!(done.err.is_empty(), "{}", done.err);
        let (moves, total) = done.out.trim_end().rsplit_once('\n').unwrap();
        assert_eq!(total, format!("Nodes searched: {nodes}"), "{game}");
        let sum: u64 = moves.lines().map(|line| line.split_once(": ").unwrap().1.parse::<u64>().unwrap()).sum();
        assert_eq!(sum, nodes, "{game}");
    }
    let done = run(["perft", "tictactoe", "1", "--position", "xo1/3/3 x"]).expect(0);
    assert!(done.out.starts_with("c1: 1\na2: 1\n") || done.out.starts_with("a2: 1\n"), "{}", done.out);
    assert!(done.out.ends_with("Nodes searched: 7\n"), "{}", done.out);
}

/// Feeds `input` to `sparring ugi GAME PLAYER`.
fn ugi(game: &str, player: &str, input: &str) -> Done {
    piped(&["ugi", game, player], input)
}

fn piped(arguments: &[&str], input: &str) -> Done {
    let mut child = std::process::Command::new(PROGRAM)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Done { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

#[test]
fn another_program_plays_and_is_told_apart_when_it_fails() {
    let engine = format!("engine:{PROGRAM} ugi tictactoe mcts:50@nodes=100");
    let report = run(["pit", &engine, "random", "--game", "tictactoe", "--games", "8", "--json"]).expect(0).json();
    assert_eq!(report["games"]["losses"], 0, "{report}");
    assert_eq!(report["faults"], serde_json::json!({}), "{report}");
    // It plays another game than the match: refused positions lose games, with the reason.
    let confused = format!("engine:{PROGRAM} ugi connect4 mcts:50");
    let report = run(["pit", &confused, "random", "--game", "tictactoe", "--games", "4", "--json"]).expect(0).json();
    assert_eq!(report["games"]["wins"], 0, "{report}");
    let faults = report["faults"].as_object().unwrap();
    assert!(faults.keys().all(|fault| fault.contains("it refused")), "{report}");
    assert!(!faults.is_empty());
    run(["pit", "engine:/no/such/engine", "random", "--game", "uttt"]).complains(2, &["cannot be started"]);
    run(["pit", "engine:true", "random", "--game", "uttt"]).complains(2, &["ended"]);
}

#[test]
fn a_game_in_the_terminal() {
    let moves = "b2\nb2\na1\na2\na3\nb1\nb3\nc1\nc2\nc3\n";
    let done =
        piped(&["play", "mcts:200", "--game", "tictactoe"], &format!("eval\n{moves}undo\nmoves\nquit\n")).expect(0);
    for part in ["against mcts:200", "x: ", "o plays ", "is not possible now", "the game is over", "#1 "] {
        assert!(done.out.contains(part), "{part}: {}", done.out);
    }
    let watched = piped(&["play", "mcts:50", "--game", "uttt", "--side", "none"], "").expect(0);
    assert!(watched.out.contains("has won") || watched.out.contains("a draw"), "{}", watched.out);
    assert!(watched.out.lines().all(|line| line.chars().count() <= 80), "{}", watched.out);
}

#[test]
fn a_session_of_the_engine_protocol() {
    let done = ugi(
        "tictactoe",
        "mcts:200",
        "ugi\nisready\nposition startpos moves a1 b1 a2 b2\nquery p1turn\ngo nodes 2000\n\
         position fen nonsense\nposition startpos moves a1 a1\nquery gameover\n\
         position startpos moves a1 b1 a2 b2 a3\nquery gameover\nquery result\ngo\ngo perft 1\nfrobnicate\nquit\n",
    )
    .expect(0);
    assert_eq!(done.err, "");
    let lines: Vec<&str> =
        done.out.lines().filter(|line| !line.starts_with("info") || line.contains("error")).collect();
    let after_ready = lines.iter().position(|&line| line == "readyok").unwrap();
    assert!(lines[0].starts_with("id name sparring") && lines[..after_ready].contains(&"ugiok"), "{lines:?}");
    let mut rest = lines[after_ready + 1..].iter();
    let mut next = || *rest.next().unwrap_or(&"");
    assert_eq!((next(), next()), ("response true", "bestmove a3"), "{lines:#?}");
    assert!(next().starts_with("info string error"), "a malformed position: {lines:#?}");
    assert!(next().starts_with("info string error"), "an illegal move: {lines:#?}");
    assert_eq!((next(), next(), next()), ("response false", "response true", "response p1win"), "{lines:#?}");
    assert!(lines.contains(&"bestmove none") && lines.contains(&"Nodes searched: 0"), "{lines:#?}");
    // The end of the input ends the program as `quit` does.
    assert!(ugi("zener", "random", "position startpos\ngo").expect(0).out.contains("bestmove "));
}

#[test]
fn results_go_to_stdout_and_nothing_else_does() {
    for text in ["pit random random --game tictactoe --games 4 --json", "doctor --json", "config --schema"] {
        run_words(text).expect(0).json();
    }
    for game in NAMES {
        let done = run(["games"]).expect(0);
        assert!(done.out.lines().any(|line| line.starts_with(&format!("{game}: "))) && done.err.is_empty(), "{game}");
    }
    let text = run_words("config --explain selfplay.simulations").expect(0);
    assert!(text.out.contains("selfplay.simulations") && text.err.is_empty(), "{}", text.out);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    for text in [
        "games",
        "doctor",
        "doctor --json",
        "config --schema",
        "perft uttt 2",
        "pit random random --game tictactoe --games 4",
        "pit random random --game tictactoe --games 4 --json",
    ] {
        let mut child = sparring(words(text)).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{text}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stderr.is_empty(), "{text}: {}", String::from_utf8_lossy(&output.stderr));
    }
    // Help, errors and the protocol need not succeed then, but they end without a panic.
    for text in ["--help", "ugi uttt random", "frobnicate"] {
        let mut command = sparring(words(text));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        // It may have ended before it read this.
        let _ = child.stdin.take().unwrap().write_all(b"ugi\nposition startpos\ngo perft 2\nquit\n");
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code().is_some_and(|code| code <= 2) && !err.contains("panicked"), "{text}: {err}");
    }
    // Nor does it matter that nobody reads stderr.
    let mut child = sparring(["frobnicate"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    assert!(child.wait().unwrap().code().is_some_and(|code| code == 1 || code == 2));
}
