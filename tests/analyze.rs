//! `sparring analyze`, as its users meet it.

mod common;

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{Done, Process, run, small_run, sparring, words};
use serde_json::{Value as Json, json};

fn analyze(player: &str, rest: &[&str]) -> Done {
    run(["analyze", player].iter().chain(rest))
}

/// The document without what depends on the clock.
fn timeless(mut document: Json) -> Json {
    for key in ["seconds", "simulations_per_second", "source"] {
        document.as_object_mut().unwrap().remove(key);
    }
    document
}

#[test]
fn a_position_as_a_table_and_as_json() {
    let place = ["--game", "tictactoe", "--position", "xx1/oo1/3 x"];
    let table = analyze("mcts:2000", &[&place[..], &["--top", "2"]].concat()).expect(0);
    for part in
        [" x x .", "x to move: xx1/oo1/3 x", "mcts:2000: 2000 simulations in ", "x wins in 1 ply", "  1  c1", "3 more"]
    {
        assert!(table.out.contains(part), "{part:?} is missing in:\n{}", table.out);
    }
    assert!(!table.out.contains('\u{1b}') && table.err.is_empty(), "{table:?}");
    assert!(table.out.lines().all(|line| line.chars().count() <= 80), "{}", table.out);

    let document = analyze("mcts:2000", &[&place[..], &["--json"]].concat()).expect(0).json();
    assert_eq!(document["game"], "tictactoe");
    assert_eq!((&document["player"], &document["to_move"]), (&json!("mcts:2000"), &json!("x")));
    assert_eq!((&document["simulations"], &document["ended"]), (&json!(2000), &json!("simulations")));
    assert_eq!(document["proven"], json!({"result": "win", "plies": 1}));
    assert!(document["depth"].as_u64().unwrap() == 5 && document["simulations_per_second"].as_f64().unwrap() > 0.0);
    let moves = document["moves"].as_array().unwrap();
    assert_eq!(moves.len(), 5);
    assert_eq!((&moves[0]["move"], &moves[0]["line"]), (&json!("c1"), &json!(["c1"])));
    assert_eq!((&moves[0]["proven"], &moves[0]["prior"]), (&json!({"result": "win", "plies": 1}), &Json::Null));
    let share: f64 = moves.iter().map(|m| m["share"].as_f64().unwrap()).sum();
    let visits: u64 = moves.iter().map(|m| m["visits"].as_u64().unwrap()).sum();
    assert!((share - 1.0).abs() < 1e-9 && visits == 2000, "{document}");
    for m in moves {
        let sum: f64 = ["win", "draw", "loss"].iter().map(|key| m["value"][key].as_f64().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-5, "{m}");
        assert_eq!(m["line"][0], m["move"]);
    }
    // One other move stops o, who wins after two plies otherwise; the tree proves that too.
    assert_eq!((&moves[1]["move"], &moves[1]["proven"]), (&json!("c2"), &json!({"result": "draw"})));
    assert!(moves[2..].iter().all(|m| m["proven"] == json!({"result": "loss", "plies": 2})), "{document}");

    // The same position by moves; the same document but for times, whatever the threads.
    let by_moves = ["--game", "tictactoe", "--moves", "a1", "a2", "b1 b2", "--json", "--threads", "1"];
    assert_eq!(timeless(analyze("mcts:2000", &by_moves).expect(0).json()), timeless(document));
    let colors = analyze("mcts:50", &["--game", "tictactoe", "--color", "always"]).expect(0);
    assert!(colors.out.contains("\u{1b}[1m") && colors.out.contains("\u{1b}[0m"));
    let cut = analyze("mcts:50", &["--game", "uttt", "--json", "--top", "3"]).expect(0).json();
    assert_eq!(cut["moves"].as_array().unwrap().len(), 3);
}

#[test]
fn a_network_analyses_several_positions_as_each_alone() {
    let scratch = tempfile::tempdir().unwrap();
    let network = small_run(scratch.path(), "tictactoe", &[]);
    let list = scratch.path().join("list.txt");
    let texts = ["startpos", "startpos moves b2", "xx1/oo1/3 x", "3/3/3 x moves a1 b2 c3", "xox/oxo/3 x"];
    fs::write(&list, format!("# five positions\n\n{}  # the last\n", texts.join("\n"))).unwrap();
    let list = list.to_str().unwrap();
    let all = analyze(&network, &["--positions", list, "--sims", "300", "--json"]).expect(0).json();
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), texts.len());
    for ((document, text), line) in all.iter().zip(texts).zip(3..) {
        assert_eq!(document["source"], format!("{list}:{line}"));
        let (fen, moves) = text.split_once(" moves ").unwrap_or((text, ""));
        let mut arguments = vec!["--sims", "300", "--json", "--threads", "1"];
        if fen != "startpos" {
            arguments.extend(["--position", fen]);
        }
        if !moves.is_empty() {
            arguments.extend(["--moves", moves]);
        }
        let alone = analyze(&network, &arguments).expect(0).json();
        assert_eq!(timeless(document.clone()), timeless(alone), "{text}");
        assert!(document["moves"].as_array().unwrap().iter().all(|m| m["prior"].is_f64()), "{document}");
    }
    // Its solver ends the search.
    assert_eq!((&all[2]["ended"], &all[2]["proven"]["plies"]), (&json!("proven"), &json!(1)));
    let table = analyze(&network, &["--positions", list, "--sims", "20"]).expect(0);
    assert_eq!(table.out.matches(" to move: ").count(), 5, "{}", table.out);
    assert!(table.out.contains("list.txt:7") && table.out.contains("prior"), "{}", table.out);
    // The network alone: priors without visits.
    let policy = analyze(&format!("{network}@policy"), &["--json"]).expect(0).json();
    assert_eq!((&policy["simulations"], &policy["moves"][0]["visits"]), (&json!(0), &json!(0)));
    // A budget of nodes that runs out is no failure, but is told.
    let few = format!("{network}@max_nodes=100@solver=false");
    let full = analyze(&few, &["--sims", "5000"]).expect(0);
    assert!(full.out.contains("ended early: the tree is full"), "{}", full.out);
    assert_eq!(analyze(&few, &["--sims", "5000", "--json"]).expect(0).json()["ended"], "nodes");
    analyze(&network, &["--game", "uttt"]).complains(2, &["tictactoe", "uttt"]);
}

#[test]
fn what_is_wrong_is_told_before_any_search() {
    for (text, parts) in [
        ("analyze", vec!["<PLAYER>"]),
        ("analyze mcts:5", vec!["--game"]),
        ("analyze random --game uttt", vec!["\"random\"", "does not search", "mcts:"]),
        ("analyze no/such/file --game uttt", vec!["no/such/file"]),
        ("analyze mcts:5 --game uttt --position nonsense", vec!["--position"]),
        ("analyze mcts:5 --game tictactoe --moves a1 a1", vec!["ply 2", "a1", "not legal"]),
        ("analyze mcts:5 --game tictactoe --moves a1 a2 b1 b2 c1", vec!["the game is over"]),
        ("analyze mcts:5 --game uttt --sims 0", vec!["--sims"]),
        ("analyze mcts:5 --game uttt --sims 5 --movetime 5", vec!["--movetime"]),
        ("analyze mcts:5 --game uttt --sims 5 --infinite", vec!["--infinite"]),
        ("analyze mcts:5 --game uttt --positions list --infinite", vec!["--infinite"]),
        ("analyze mcts:5 --game uttt --positions no-such-list", vec!["no-such-list", "cannot be read"]),
        ("analyze mcts:5 --game uttt --color blue", vec!["blue"]),
        ("analyze mcts:5 --game uttt --top 0", vec!["--top"]),
    ] {
        run(words(text)).complains(2, &parts);
    }
    let scratch = tempfile::tempdir().unwrap();
    let list = scratch.path().join("list.txt");
    fs::write(&list, "startpos\nstartpos moves e5 e5\n9/9/9 x -\n").unwrap();
    let list = list.to_str().unwrap();
    let second = format!("{list}, line 2: ply 2: ");
    let third = format!("{list}, line 3: ");
    analyze("mcts:5", &["--game", "uttt", "--positions", list]).complains(2, &[&second, &third]);
}

/// Starts an analysis, waits until it tells something, interrupts it.
fn interrupted(arguments: &str) -> Done {
    let mut process = Process::start(&mut sparring(words(arguments)));
    process.wait_for("simulations");
    let began = Instant::now();
    process.signal("INT");
    let done = process.finish();
    assert!(began.elapsed() < Duration::from_secs(20), "it goes on after Ctrl-C");
    done
}

#[test]
fn ctrl_c_ends_a_search_with_what_it_has_found() {
    let done = interrupted("analyze mcts:5 --game uttt --infinite").expect(0);
    assert!(done.out.contains("uttt, x to move") && done.out.contains("  1  "), "{done:?}");
    let lines: Vec<&str> = done.err.lines().collect();
    assert!(!lines.is_empty() && lines.iter().all(|line| line.contains(" simulations, ")), "{done:?}");
    let done = interrupted("analyze mcts:5 --game uttt --infinite --json").expect(0);
    assert_eq!(done.json()["ended"], "stopped");
    // A search with an end of its own has not come to it.
    let done = interrupted("analyze mcts:5 --game uttt --movetime 600000").expect(130);
    assert!(done.out.contains("uttt, x to move"), "{done:?}");
}

#[test]
fn an_endless_search_of_what_is_proven_ends() {
    let done = run(words("analyze mcts:5 --game tictactoe --moves a1 b1 a2 b2 --infinite --json")).expect(0);
    let document = done.json();
    assert_eq!((&document["ended"], &document["proven"]["plies"]), (&json!("proven"), &json!(1)));
}

#[test]
fn time_is_kept_and_a_reader_that_goes_away_is_no_failure() {
    let document = run(words("analyze mcts:5 --game uttt --movetime 300 --json")).expect(0).json();
    let seconds = document["seconds"].as_f64().unwrap();
    assert!(document["ended"] == "time" && (0.2..5.0).contains(&seconds), "{document}");
    for text in ["analyze mcts:50 --game uttt", "analyze mcts:50 --game uttt --json"] {
        let mut child = sparring(words(text)).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{text}");
    }
}
