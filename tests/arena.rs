//! Matches through the program: openings, games kept and shown, going on, what can be wrong.

mod common;

use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use common::{PROGRAM, Process, run};
use serde_json::Value as Json;

fn pit(text: &str, more: &[&str]) -> common::Done {
    let words = text.split_whitespace();
    run(std::iter::once("pit").chain(words).chain(more.iter().copied()))
}

/// The lines of a file of games: the header, then the games.
fn lines(file: &Path) -> Vec<Json> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A report without what clocks say.
fn timeless(mut report: Json) -> Json {
    report["time"] = Json::Null;
    report
}

#[test]
fn every_game_has_a_result_and_a_reason() {
    for game in ["tictactoe", "connect4", "othello:size=4", "uttt", "zener"] {
        let report = pit(&format!("random random --games 200 --json --game {game}"), &[]).expect(0).json();
        let sum = |value: &Json| value.as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum::<u64>();
        assert_eq!((sum(&report["games"]), sum(&report["endings"])), (200, 200), "{report}");
        assert_eq!(report["faults"], serde_json::json!({}));
    }
}

#[test]
fn swapped_arguments_mirror_the_result() {
    let match_of = |players: &str| pit(&format!("{players} --game uttt --games 60 --json"), &[]).expect(0).json();
    let (ab, ba) = (match_of("mcts:30 mcts:10"), match_of("mcts:10 mcts:30"));
    for (side, other) in [("as_first", "as_second"), ("as_second", "as_first"), ("games", "games")] {
        assert_eq!(ab[side]["wins"], ba[other]["losses"]);
        assert_eq!(ab[side]["draws"], ba[other]["draws"]);
    }
    let pairs = |report: &Json| report["pairs"].as_array().unwrap().clone();
    assert_eq!(pairs(&ab), pairs(&ba).into_iter().rev().collect::<Vec<_>>());
}

#[test]
fn several_players_are_rated_together() {
    let all = "mcts:200 mcts:20 random --game tictactoe --games 60 --json";
    let report = pit(all, &["--anchor", "random"]).expect(0).json();
    assert_eq!(report["encounters"].as_array().unwrap().len(), 3);
    let ratings = report["ratings"].as_array().unwrap();
    let names: Vec<&str> = ratings.iter().map(|rating| rating["player"].as_str().unwrap()).collect();
    assert_eq!(names, ["mcts:200", "mcts:20", "random"]);
    assert_eq!((&ratings[2]["elo"]["value"], &ratings[2]["anchor"]), (&0.0.into(), &true.into()));
    assert!(ratings.iter().all(|rating| rating["games"] == 120));
    let gauntlet = pit(all, &["--gauntlet"]).expect(0).json();
    assert_eq!(gauntlet["encounters"].as_array().unwrap().len(), 2);
    let text = pit("mcts:50 random random --game tictactoe --games 20", &[]).expect(0);
    assert!(text.out.contains("anchor") && text.out.contains("mcts:50 against random"), "{}", text.out);
    pit(all, &["--sprt", "0,20"]).complains(2, &["two players"]);
    pit(all, &["--anchor", "mcts:7"]).complains(2, &["mcts:7", "none of the players"]);
    pit("random --game uttt", &[]).complains(2, &["PLAYER"]);
}

#[test]
fn a_sequential_test_takes_its_error_rates() {
    let test = |sprt: &str| pit("mcts:200 random --game tictactoe --json --sprt", &[sprt]);
    let (loose, strict) = (test("0,50,0.2,0.2").expect(0).json(), test("0,50,0.001,0.001").expect(0).json());
    assert_eq!((&loose["verdict"], &strict["verdict"]), (&"accept-h1".into(), &"accept-h1".into()));
    assert!(loose["games_played"].as_u64() < strict["games_played"].as_u64(), "{loose} {strict}");
    for bad in ["0", "0,20,0.7", "0,20,0.05,0", "0,20,0.05,0.05,1", "x,20"] {
        test(bad).complains(2, &["--sprt"]);
    }
}

#[test]
fn pairs_begin_with_the_openings_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let book = folder.path().join("book.txt");
    let file = book.to_str().unwrap();
    std::fs::write(&book, "# two openings\na1 b2\n\nposition startpos moves c3\n").unwrap();
    let games = folder.path().join("games.jsonl");
    let all = ["--openings", file, "--games-out", games.to_str().unwrap(), "--json"];
    let report = pit("random random --game tictactoe --games 6", &all).expect(0).json();
    assert_eq!(report["warnings"].as_array().unwrap().len(), 1, "{report}");
    let openings: Vec<Json> = lines(&games)[1..].iter().map(|game| game["opening"].clone()).collect();
    let [one, two] = [serde_json::json!(["a1", "b2"]), serde_json::json!(["c3"])];
    assert_eq!(openings, [&one, &one, &two, &two, &one, &one].map(Clone::clone));

    std::fs::write(&book, "a1 b2\na1 a1\n").unwrap();
    pit("random random --game tictactoe --games 6", &all).complains(2, &[file, "line 2", "ply 2", "a1"]);
    std::fs::write(&book, "a1 b2\n").unwrap();
    pit("random random --game tictactoe --games 6", &all).complains(2, &["another match", "the openings"]);
    pit("random random --game tictactoe --openings /no/book", &[]).complains(2, &["/no/book"]);
    pit("random random --game tictactoe --opening-plies 1 --openings", &[file]).complains(2, &["--opening-plies"]);
}

#[test]
fn a_match_that_was_interrupted_goes_on_from_its_games() {
    let folder = tempfile::tempdir().unwrap();
    let [games, other] = ["games.jsonl", "other.jsonl"].map(|name| folder.path().join(name));
    let arguments = |file: &Path| {
        let text = "pit mcts:400 mcts:300 random --game connect4 --games 100 --json --games-out";
        text.split(' ').map(str::to_owned).chain([file.display().to_string()]).collect::<Vec<_>>()
    };
    let whole = run(arguments(&games)).expect(0).json();
    let kept = lines(&games);
    assert_eq!(kept.len(), 301);
    assert!(kept[1..].iter().enumerate().all(|(at, game)| game["index"] == at));

    // Killed at any time, with a line that breaks off at the end.
    let process = Process::start(Command::new(PROGRAM).args(arguments(&other)));
    while std::fs::read_to_string(&other).map_or(0, |text| text.lines().count()) < 20 {
        std::thread::sleep(Duration::from_millis(2));
    }
    process.signal("KILL");
    process.finish();
    let text = std::fs::read_to_string(&other).unwrap();
    let (complete, _) = text.split_at(text.rfind('\n').unwrap() + 1);
    std::fs::write(&other, format!("{complete}{{\"index\":7,\"fir")).unwrap();
    let begun = complete.lines().count() - 1;
    let resumed = run(arguments(&other)).expect(0);
    assert!(resumed.err.contains(&format!("goes on after {begun} of 300 games")), "{}", resumed.err);
    assert_eq!(timeless(resumed.json()), timeless(whole.clone()));
    let moves = |file: &Path| lines(file).iter().map(|game| game["moves"].clone()).collect::<Vec<_>>();
    assert_eq!(moves(&games), moves(&other));

    // Interrupted, it reports what there is; complete, it is only reported again.
    std::fs::remove_file(&other).unwrap();
    let process = Process::start(Command::new(PROGRAM).args(arguments(&other)));
    while std::fs::read_to_string(&other).map_or(0, |text| text.lines().count()) < 20 {
        std::thread::sleep(Duration::from_millis(2));
    }
    process.signal("INT");
    let report = process.finish().expect(130).json();
    assert_eq!(report["interrupted"], true);
    assert!(report["games_played"].as_u64().unwrap() >= 10);
    assert_eq!(timeless(run(arguments(&games)).expect(0).json()), timeless(whole));
}

#[test]
fn games_of_other_matches_and_damaged_ones_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("games.jsonl");
    let file = path.to_str().unwrap();
    let play = |text: &str| pit(text, &["--games-out", file]);
    play("random mcts:5 --game tictactoe --games 4").expect(0);
    let good = std::fs::read_to_string(&path).unwrap();
    for (command, part) in [
        ("random mcts:5 --game connect4 --games 4", "the game"),
        ("random mcts:6 --game tictactoe --games 4", "the players"),
        ("random mcts:5 --game tictactoe --games 4 --seed 1", "the seed"),
        ("random mcts:5 --game tictactoe --games 4 --opening-plies 2", "the openings"),
    ] {
        play(command).complains(2, &[file, "another match", part]);
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), good, "a refusal changes nothing");
    // More games of the same match are no other match.
    let more = play("random mcts:5 --game tictactoe --games 8").expect(0);
    assert!(more.err.contains("goes on after 4 of 8"), "{}", more.err);

    let again = "random mcts:5 --game tictactoe --games 4";
    let second = good.lines().nth(1).unwrap();
    for (damage, code, part) in [
        (good.replace("\"decisions\":[", "\"decisions\":[1"), 1, "line 2: it is damaged"),
        (format!("{good}{second}\n"), 1, "line 6: game 0 is there twice"),
        ("no such thing\n".to_owned(), 2, "no file of games"),
        (good.replacen("\"sparring_match\":1", "\"sparring_match\":9", 1), 1, "format 9"),
        (good.replacen("\"seed\":0", "\"seed\":1", 1), 1, "line 1: it is damaged"),
    ] {
        std::fs::write(&path, damage).unwrap();
        let done = play(again).expect(code);
        assert!(format!("{}{}", done.out, done.err).contains(part), "{part}: {}{}", done.out, done.err);
    }
    pit(again, &["--games-out", "/dev/null"]).complains(2, &["/dev/null"]);
    pit(again, &["--games-out", "/no/folder/games"]).complains(1, &["/no/folder/games"]);
}

#[test]
fn a_full_disk_ends_a_match_with_what_was_played() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("games.jsonl");
    let script =
        format!("ulimit -f 8; exec {PROGRAM} pit random random --game uttt --games 400 --games-out {}", path.display());
    let done = Process::start(Command::new("sh").args(["-c", &script])).finish().expect(1);
    assert!(done.err.contains("cannot be written") && done.out.contains("interrupted"), "{}{}", done.out, done.err);
    let more = pit("random random --game uttt --games 400 --games-out", &[path.to_str().unwrap()]).expect(0);
    assert!(more.err.contains("goes on after"), "{}", more.err);
    assert_eq!(lines(&path).len(), 401);
}

#[test]
fn games_are_listed_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("games.jsonl");
    let file = path.to_str().unwrap();
    pit("mcts:50 random --game zener --games 4 --games-out", &[file]).expect(0);
    let list = run(["replay", file]).expect(0);
    assert!(list.out.contains("mcts:50 - random") && list.out.contains("4 games"), "{}", list.out);
    let shown = run(["replay", file, "--game", "1"]).expect(0);
    let game = &lines(&path)[2];
    for (at, text) in game["moves"].as_array().unwrap().iter().enumerate() {
        let ply = at + game["opening"].as_array().unwrap().len() + 1;
        let line = shown.out.lines().find(|line| line.starts_with(&format!("{ply}. ")));
        assert!(line.is_some_and(|line| line.contains(text.as_str().unwrap())), "{ply} {text}: {line:?}");
    }
    assert!(shown.out.contains(game["result"].as_str().unwrap()) && shown.out.contains("(opening)"));
    run(["replay", file, "--game", "9"]).complains(2, &["no game 9", "up to 3"]);
    run(["replay", "/no/such"]).complains(1, &["/no/such"]);
    run(["replay", "Cargo.toml"]).complains(2, &["Cargo.toml", "neither"]);
    std::fs::write(&path, std::fs::read_to_string(&path).unwrap().lines().next().unwrap().to_owned() + "\n").unwrap();
    run(["replay", file]).complains(1, &["holds no games"]);
}

#[test]
fn an_engine_that_falls_silent_loses() {
    let silent =
        r#"engine:sh -c 'while read line; do case $line in ugi) echo ugiok;; isready) echo readyok;; esac; done'"#;
    let text = "random --game tictactoe --games 2 --opening-plies 0 --movetime 10 --json";
    let arguments = ["pit", silent].into_iter().chain(text.split(' '));
    let report = run(arguments).expect(0).json();
    assert_eq!(report["games"], serde_json::json!({"wins": 0, "draws": 0, "losses": 2}));
    assert_eq!(report["endings"], serde_json::json!({"forfeit": 2}));
    let fault = report["faults"].as_object().unwrap().keys().next().unwrap();
    assert!(fault.contains("did not answer"), "{fault}");
}

#[test]
fn networks_play_within_their_time() {
    let scratch = tempfile::tempdir().unwrap();
    let network = common::small_run(scratch.path(), "tictactoe", &[]);
    let timed = format!("{network}@movetime=3");
    let report = run(["pit", &network, &timed, "--games", "4", "--movetime", "2", "--json"]).expect(0).json();
    assert_eq!(report["games_played"], 4);
    for time in report["time"]["seconds_per_move"].as_array().unwrap() {
        assert!(time.as_f64().unwrap() < 1.0, "{report}");
    }
    run(["pit", &network, "random", "--sims", "5", "--movetime", "5"]).complains(2, &["--sims", "--movetime"]);
}

#[test]
fn a_ladder_rates_the_checkpoints_of_a_run() {
    let scratch = tempfile::tempdir().unwrap();
    let run_folder = common::small_run(scratch.path(), "tictactoe", &["stop.iterations=4"]);
    let climb = |more: &[&str]| {
        let text = ["ladder", &run_folder, "--checkpoints", "3", "--games", "6", "--anchors", "random,mcts:50"];
        run(text.iter().chain(more).copied())
    };
    let ladder = climb(&["--json"]).expect(0).json();
    let rungs = ladder["rungs"].as_array().unwrap();
    let generations: Vec<u64> = rungs.iter().map(|rung| rung["generation"].as_u64().unwrap()).collect();
    assert_eq!((generations.len(), generations[0], generations[2]), (3, 0, 4));
    assert_eq!(ladder["anchor_elo"][1]["value"], 0.0, "the last anchor stands at 0 where mcts:1000 is not among them");
    assert!(ladder["anchor_elo"][0]["value"].as_f64().unwrap() < -50.0, "{ladder}");
    let file = |name: &str| std::fs::read_to_string(Path::new(&run_folder).join("ladder").join(name)).unwrap();
    assert_eq!(serde_json::from_str::<Json>(&file("ladder.json")).unwrap(), ladder);
    let picture = file("ladder.svg");
    assert!(picture.starts_with("<svg") && picture.contains("mcts:50") && picture.contains("tictactoe"));
    // Six encounters with anchors, two of neighbours, one of the anchors.
    assert_eq!(file("games.jsonl").lines().count(), 1 + 9 * 6);
    let charts = Path::new(&run_folder).join("tb/ladder");
    assert_eq!(std::fs::read_dir(&charts).unwrap().count(), 1);

    // Again: nothing is played anew, the numbers stay; a damaged file of games is made again.
    let again = climb(&["--zero", "random"]).expect(0);
    assert!(again.err.contains("goes on after 54 of 54 games") && again.out.contains("+0"), "{}", again.err);
    let games = Path::new(&run_folder).join("ladder/games.jsonl");
    std::fs::write(&games, file("games.jsonl").replace("\"result\":\"1-0\"", "\"result\":\"0-1\"")).unwrap();
    let again = climb(&["--json"]).expect(0);
    assert!(again.err.contains("games.jsonl, line") && again.err.contains("games.jsonl.damaged"), "{}", again.err);
    assert!(games.with_file_name("games.jsonl.damaged").exists());
    assert_eq!(again.json(), ladder);
    assert_eq!(std::fs::read_dir(&charts).unwrap().count(), 1);
    // An anchor that is a network, and whose file changes, is another player.
    let anchor = scratch.path().join("anchor.safetensors");
    let with_anchor = || {
        let anchors = format!("random,{}", anchor.display());
        let text = ["ladder", &run_folder, "--checkpoints", "2", "--games", "4", "--sims", "5", "--anchors", &anchors];
        run(text).expect(0).err
    };
    let checkpoint =
        |generation: u32| Path::new(&run_folder).join(format!("checkpoints/gen-{generation:06}.safetensors"));
    std::fs::copy(checkpoint(0), &anchor).unwrap();
    assert!(!with_anchor().contains("goes on after") && with_anchor().contains("goes on after"));
    std::fs::copy(checkpoint(4), &anchor).unwrap();
    let changed = with_anchor();
    assert!(
        !changed.contains("goes on after") && changed.contains("what differs: the network of a player"),
        "{changed}"
    );
    // The run itself goes on undisturbed.
    let config = Path::new(&run_folder).join("config.json");
    Process::start(&mut common::train(&config, Path::new(&run_folder), &["stop.iterations=5"])).finish().expect(0);
    assert!(charts.is_dir());

    // Where nothing is said, perfect play is among the anchors of a game that has it.
    let whole = ["ladder", &run_folder, "--checkpoints", "1", "--games", "2", "--sims", "5", "--json"];
    let anchors = run(whole).expect(0).json()["anchors"].clone();
    assert_eq!(anchors, serde_json::json!(["random", "mcts:100", "mcts:1000", "mcts:10000", "solver"]));

    climb(&["--zero", "mcts:7"]).complains(2, &["mcts:7", "none of the anchors"]);
    run(["ladder", "src"]).complains(2, &["no checkpoints"]);
    run(["ladder", "/no/run"]).complains(2, &["no checkpoints"]);
    run(["ladder", &run_folder, "--anchors", "mcst:5"]).complains(2, &["mcst:5"]);
}

#[test]
fn a_match_is_interrupted_in_the_middle_of_long_moves() {
    let silent =
        "engine:sh -c 'while read line; do case $line in ugi) echo ugiok;; isready) echo readyok;; esac; done'";
    for players in [["mcts:100000000", "random"], [silent, "random"]] {
        let text = "--game uttt --games 4 --opening-plies 0 --json";
        let arguments = ["pit"].into_iter().chain(players).chain(text.split(' '));
        let process = Process::start(&mut common::sparring(arguments));
        std::thread::sleep(Duration::from_millis(1500));
        let asked = Instant::now();
        process.signal("INT");
        let done = process.finish().expect(130);
        assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
        assert_eq!((&done.json()["interrupted"], &done.json()["faults"]), (&true.into(), &serde_json::json!({})));
    }
}

#[test]
fn signals_leave_no_engine_behind() {
    // It hears neither `quit` nor the end of its input; told apart from other processes by the last word.
    let mark = format!("stubborn-{}", std::process::id());
    let script = "while read line; do case $line in ugi) echo ugiok;; isready) echo readyok;; go*) while true; do sleep 1; done;; esac; done";
    let engine = format!("engine:sh -c '{script}' {mark}");
    let running = || {
        let entries = std::fs::read_dir("/proc").unwrap();
        let lines = entries.filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok());
        let own = |line: &String| line.starts_with("sh\0") && line.contains(&mark);
        lines.map(|line| String::from_utf8_lossy(&line).into_owned()).filter(own).count()
    };
    let wait = |wanted: bool| {
        let began = Instant::now();
        while (running() > 0) != wanted {
            assert!(began.elapsed() < Duration::from_secs(60), "an engine runs: {}", !wanted);
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    let pit = ["pit", &engine, "random", "--game", "tictactoe", "--games", "2", "--opening-plies", "0"];
    let cases: [(&[&str], &[&str]); 5] = [
        // The first signal lets the match end its engines, the second does not wait for that.
        (&pit, &["INT", "TERM"]),
        (&["play", &engine, "--game", "tictactoe", "--side", "second"], &["INT"]),
        (&["ugi", "tictactoe", &engine], &["INT"]),
        (&["ugi", "tictactoe", &engine], &["TERM"]),
        (&["ugi", "tictactoe", &engine], &["HUP"]),
    ];
    for (arguments, signals) in cases {
        let (input, mut commands) = std::io::pipe().unwrap();
        commands.write_all(b"go\n").unwrap();
        let process = Process::start(common::sparring(arguments).stdin(input));
        wait(true);
        std::thread::sleep(Duration::from_millis(500));
        for signal in signals {
            process.signal(signal);
            std::thread::sleep(Duration::from_millis(300));
        }
        process.finish().expect(130);
        wait(false);
    }
}

#[test]
fn games_with_other_limits_are_of_another_match() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("games.jsonl");
    let network = common::small_run(folder.path(), "tictactoe", &[]);
    let play = |limit: &str| {
        let limit = limit.split(' ');
        let arguments = ["pit", &network, "random", "--games", "4", "--games-out", path.to_str().unwrap()];
        run(arguments.into_iter().chain(limit))
    };
    play("--sims 2").expect(0);
    play("--sims 3").complains(2, &["another match", "--sims or --movetime"]);
    play("--movetime 2").complains(2, &["another match", "--sims or --movetime"]);
    assert!(play("--sims 2").expect(0).err.contains("goes on after 4 of 4"));
}
