//! `sparring play` without a terminal: moves and commands come from a pipe.

mod common;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use common::{Done, PROGRAM, run, sparring, words};
use sparring::games::NAMES;

/// What `sparring play ARGUMENTS` makes of `input`.
fn play(arguments: &str, input: &str) -> Done {
    let mut child = sparring(["play"].into_iter().chain(words(arguments)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may have left before it has read all.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Done { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

fn without_colors(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or("").to_owned();
    parts.fold(first, |plain, part| plain + part.split_once('m').unwrap().1)
}

#[test]
fn a_whole_game_of_each_game() {
    for game in NAMES.iter().copied().chain(["othello:size=10"]) {
        let input = "moves\nhint\neval\n#1\nundo\n".to_owned() + &"1\n#1\n".repeat(250);
        let arguments = format!("mcts:20 --game {game}");
        let done = play(&arguments, &input).expect(0);
        assert!(done.err.is_empty(), "{}", done.err);
        assert!(["you have won", "you have lost", "a draw"].iter().any(|end| done.out.contains(end)), "{}", done.out);
        assert!(done.out.contains("mcts:20 would play ") && done.out.contains("% loss"), "{}", done.out);
        assert!(done.out.contains("the game is over; `new`"), "{}", done.out);
        assert!(done.out.lines().all(|line| line.chars().count() <= 80), "{}", done.out);
        assert!(!done.out.contains('\x1b'), "no colours into a pipe: {}", done.out);
        // Colours change nothing else.
        let colored = play(&format!("{arguments} --color always"), &input).expect(0);
        assert!(colored.out.contains("\x1b["), "{}", colored.out);
        assert_eq!(without_colors(&colored.out), done.out);
    }
}

#[test]
fn sides_go_by_two_names() {
    for (side, opens) in [("--side first", false), ("--as p1", false), ("--side second", true), ("--as p2", true)] {
        let done = play(&format!("random --game tictactoe {side}"), "").expect(0);
        assert_eq!(done.out.contains("x plays "), opens, "{side}: {}", done.out);
    }
    let watched = play("mcts:20 --game zener --as none", "").expect(0);
    assert!(watched.out.contains("white plays ") && watched.out.contains("black plays "), "{}", watched.out);
}

#[test]
fn a_saved_game_goes_on() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("game");
    let name = file.display();
    let saved = play("mcts:20 --game zener", &format!("g3f3\n#1\nsave {name}\n")).expect(0);
    assert!(saved.out.contains(&format!("saved as {name}")), "{}", saved.out);
    let board = |out: &str| out.trim_end().rsplit("\n\n").next().unwrap().to_owned();
    let loaded = play(&format!("mcts:20 --game zener --load {name}"), "undo\n").expect(0);
    assert!(loaded.out.contains("white, ") || loaded.out.contains("white to move"), "{}", board(&loaded.out));
    assert!(loaded.out.contains("3 of at most 200") && loaded.out.contains("4 of at most 200"), "{}", loaded.out);
    // Another game's, a spoilt one, none at all.
    let load = |game: &str| run(words(&format!("play mcts:20 --game {game} --load {name}")));
    load("uttt").complains(2, &["--load", "fen: "]);
    std::fs::write(&file, "position startpos moves g3f3 g3f3\n").unwrap();
    load("zener").complains(2, &[&name.to_string(), "move 2: g3f3 is not possible there"]);
    std::fs::write(&file, "hello\n").unwrap();
    load("zener").complains(2, &["expected `position "]);
    std::fs::remove_file(&file).unwrap();
    load("zener").complains(2, &[&name.to_string()]);
    run(words("play random --game zener --load /dev/zero")).complains(2, &["/dev/zero: it is larger than"]);
    run(words("play random --game tictactoe --load x --position y")).complains(2, &["--position"]);
    run(words("play random --game tictactoe --color blue")).complains(2, &["blue", "never"]);
}

#[test]
fn an_opponent_that_fails_ends_a_game_that_nobody_watches() {
    let done = run(["play", &format!("engine:{PROGRAM} ugi connect4"), "--game", "tictactoe", "--side", "second"]);
    assert_eq!(done.code, 1, "{}{}", done.out, done.err);
    assert!(done.err.contains("the opponent cannot move: "), "{}", done.err);
}

#[test]
fn an_interrupt_leaves_at_once() {
    let mut command = sparring(words("play mcts:100000000 --game uttt --side second"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // From its first line on it listens.
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success() && line.starts_with("against "), "{line}");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
