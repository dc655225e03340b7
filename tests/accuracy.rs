//! Players against perfect play, through the program.

mod common;

use std::time::Duration;

use common::{Process, run, sparring, words};
use serde_json::Value as Json;

fn json(text: &str) -> Json {
    run(words(text)).expect(0).json()
}

#[test]
fn every_position_of_tictactoe_is_judged() {
    let report = json("accuracy random --game tictactoe --json");
    let total = &report["total"];
    assert_eq!((&report["game"], &report["player"]), (&"tictactoe".into(), &"random".into()));
    assert_eq!(
        (&total["positions"], &report["left_out"], &report["interrupted"]),
        (&4520.into(), &0.into(), &false.into())
    );
    let number = |counts: &Json, key: &str| counts[key].as_u64().unwrap();
    let by_plies = report["by_plies"].as_array().unwrap();
    let counts: Vec<u64> = by_plies.iter().map(|row| number(row, "positions")).collect();
    assert_eq!(counts, [1, 9, 72, 252, 756, 1140, 1372, 696, 222]);
    for key in ["positions", "optimal", "choices", "wins_drawn", "wins_lost", "draws_lost"] {
        let sum: u64 = by_plies.iter().map(|row| number(row, key)).sum();
        assert_eq!(sum, number(total, key), "{key}");
    }
    let mistakes: u64 = ["wins_drawn", "wins_lost", "draws_lost"].iter().map(|key| number(total, key)).sum();
    assert_eq!(number(total, "optimal") + mistakes, 4520);
    // Random moves have no opinion, and keep the result in 57 % of the positions.
    assert_eq!(total["value_error"], Json::Null);
    let share = total["optimal_share"].as_f64().unwrap();
    assert!((0.5..0.65).contains(&share), "{share}");
    assert!(total["optimal_choice_share"].as_f64().unwrap() < share - 0.1);
    // Every first move draws, so there is nothing to choose.
    assert_eq!(by_plies[0]["optimal_choice_share"], Json::Null);
}

#[test]
fn strong_players_are_near_perfect() {
    let report = json("accuracy mcts:2000 --game tictactoe --json");
    let total = &report["total"];
    assert!(total["optimal_share"].as_f64().unwrap() > 0.99, "{report}");
    assert!(total["value_error"].as_f64().unwrap() < 0.1, "{report}");
    for game in ["tictactoe", "connect4 --positions 120"] {
        let report = json(&format!("accuracy solver --game {game} --json"));
        assert_eq!(report["total"]["optimal_share"], 1.0, "{report}");
    }
}

#[test]
fn connect_four_is_judged_by_plies_and_the_seed_decides() {
    let report = |more: &str| json(&format!("accuracy mcts:30 --game connect4 --positions 150 --json {more}"));
    let one = report("--seed 3 --threads 1");
    let plies: Vec<u64> =
        one["by_plies"].as_array().unwrap().iter().map(|row| row["plies"].as_u64().unwrap()).collect();
    assert!(plies.is_sorted() && plies[0] == 12 && plies.contains(&30), "{plies:?}");
    let judged = one["total"]["positions"].as_u64().unwrap() + one["left_out"].as_u64().unwrap();
    assert!((140..=150).contains(&judged), "{one}");
    let error = one["total"]["value_error"].as_f64().unwrap();
    assert!((0.02..0.4).contains(&error), "{error}");
    assert_eq!(report("--seed 3 --threads 3"), one, "other threads");
    assert_ne!(report("--seed 4 --threads 2"), one, "another seed");
    // As a table.
    let done = run(words("accuracy mcts:30 --game connect4 --positions 150 --seed 3")).expect(0);
    assert!(done.err.is_empty() && done.out.lines().all(|line| line.chars().count() <= 80), "{}", done.out);
    let last = done.out.lines().find(|line| line.trim_start().starts_with("all")).unwrap();
    assert!(last.contains(&format!("{:.1} %", 100.0 * one["total"]["optimal_share"].as_f64().unwrap())), "{last}");
}

#[test]
fn a_network_is_judged_with_and_without_search() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = common::small_run(scratch.path(), "tictactoe", &[]);
    let judge = |arguments: &[&str]| {
        let report = run(["accuracy", "--json"].iter().chain(arguments)).expect(0).json();
        assert_eq!((&report["game"], &report["total"]["positions"]), (&"tictactoe".into(), &4520.into()));
        ["optimal_share", "value_error"].map(|key| report["total"][key].as_f64().unwrap())
    };
    let alone = judge(&[&format!("{folder}@policy")]);
    let searching = judge(&[&folder, "--sims", "200"]);
    assert!(searching[0] > alone[0] + 0.1 && searching[0] > 0.95, "{alone:?} {searching:?}");
    assert!(searching[1] < alone[1], "{alone:?} {searching:?}");
    assert_eq!(judge(&[&format!("{folder}@sims=200")]), searching);
    run(["accuracy", &folder, "--game", "connect4"]).complains(2, &[&folder, "tictactoe", "connect4"]);
    run(["accuracy", &format!("{folder}@policy"), "--sims", "5"]).complains(2, &["give either"]);
}

#[test]
fn another_program_is_judged_by_its_moves_and_what_it_tells() {
    let engine = format!("engine:{} ugi tictactoe mcts:100@nodes=100", common::PROGRAM);
    let arguments = ["accuracy", &engine, "--game", "tictactoe", "--positions", "60", "--json"];
    let report = run(arguments).expect(0).json();
    assert_eq!(report["total"]["positions"], 60);
    // It tells of its opinion (`info ... wdl`).
    let error = report["total"]["value_error"].as_f64().unwrap();
    assert!(error > 0.0 && error < 0.3, "{report}");
    assert!(report["total"]["optimal_share"].as_f64().unwrap() > 0.8, "{report}");
    let confused = format!("engine:{} ugi connect4 mcts:50", common::PROGRAM);
    run(["accuracy", &confused, "--game", "tictactoe"]).complains(1, &["finds no move", "refused"]);
    run(["accuracy", &engine, "--game", "tictactoe", "--sims", "5"]).complains(2, &["--sims", "@nodes=N"]);
}

#[test]
fn bad_input_is_explained() {
    for (text, parts) in [
        ("accuracy", vec!["<PLAYER>"]),
        ("accuracy random", vec!["--game"]),
        ("accuracy random --game zener", vec!["zener has no solver", "tictactoe, connect4"]),
        ("accuracy random --game tictacto", vec!["tictactoe"]),
        ("accuracy random --game tictactoe --sims 5", vec!["`random` takes none"]),
        ("accuracy mcts:5 --game tictactoe --positions 0", vec!["--positions"]),
        ("accuracy mcts:5 --game tictactoe --threads 0", vec!["--threads"]),
        ("accuracy no/such/file", vec!["no/such/file"]),
        ("pit solver random --game uttt", vec!["uttt has no solver", "tictactoe, connect4"]),
        ("ugi zener solver", vec!["zener has no solver"]),
        ("play solver --game othello", vec!["othello has no solver"]),
        ("pit solver@sims=5 random --game tictactoe", vec!["`solver` takes none"]),
    ] {
        run(words(text)).complains(2, &parts);
    }
}

#[test]
fn interrupted_it_tells_what_it_has() {
    let mut command = sparring(words("accuracy mcts:3000 --game connect4 --positions 100000"));
    let process = Process::start(&mut command);
    // Not before it listens: SIGINT is signal 2.
    let listens = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim();
        u64::from_str_radix(mask, 16).unwrap() >> 1 & 1 == 1
    };
    while !listens() {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(300));
    process.signal("INT");
    let done = process.finish().expect(130);
    assert!(done.out.contains("interrupted") && done.out.contains("  all  "), "{}", done.out);
}

#[test]
fn the_solver_plays() {
    let report = |text: &str| json(&format!("pit {text} --json"));
    // The opening leaves every position drawn.
    let drawn = report("solver solver --game tictactoe --games 200");
    assert_eq!(drawn["games"], serde_json::json!({ "wins": 0, "draws": 200, "losses": 0 }));
    for other in ["random", "mcts:100"] {
        let report = report(&format!("solver {other} --game tictactoe --games 200 --opening-plies 0"));
        assert_eq!((&report["games"]["losses"], &report["faults"]), (&0.into(), &serde_json::json!({})), "{report}");
    }
    let report = report("solver random --game connect4 --games 20 --opening-plies 12");
    assert!(report["games"]["wins"].as_u64().unwrap() >= 17, "{report}");
    assert_eq!(report["faults"], serde_json::json!({}));
}

#[test]
fn what_the_solver_refuses_is_told() {
    let early = "pit random solver --game connect4 --games 2".split(' ');
    run(early).complains(2, &["takes too long", "12 discs", "--opening-plies"]);
    // In the engine protocol it stays there for positions that it can solve.
    let mut command = sparring(["ugi", "connect4", "solver"]);
    let scratch = tempfile::tempdir().unwrap();
    let script = scratch.path().join("script");
    let won = "position startpos moves 5 5 1 2 2 4 3 2 4 3 5 3 6";
    std::fs::write(&script, format!("position startpos moves 4\ngo\n{won}\ngo\n")).unwrap();
    command.stdin(std::fs::File::open(&script).unwrap());
    let done = Process::start(&mut command).finish().expect(0);
    assert!(done.out.contains("takes too long") && done.out.contains("bestmove none\n"), "{}", done.out);
    assert!(done.out.ends_with("bestmove 4\n"), "{}", done.out);
}
