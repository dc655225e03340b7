//! The agent that `configs/tictactoe.json` trains, measured against perfect play.
//!
//! `SPARRING_AGENT=FILE cargo test --release --test agent -- --ignored --nocapture` examines the checkpoint FILE instead of
//! training one.

mod common;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use common::{Process, run, train};
use sparring::eval::{Evaluations, Evaluator as _, Leaves};
use sparring::game::{Action, Game as _, Outcome, legal_list};
use sparring::games::tictactoe::{State, TicTacToe};
use sparring::net::{Checkpoint, EngineChoice, InferenceFactory, NetEvaluator};

/// Value of a position for the player to move: 1 won, 0 drawn, -1 lost. The whole tree is searched.
fn negamax(state: &State, known: &mut HashMap<State, i32>) -> i32 {
    let game = TicTacToe;
    if let Some(&value) = known.get(state) {
        return value;
    }
    let mover = game.to_move(state);
    let value = match game.end(state).map(|end| end.outcome) {
        Some(Outcome::Draw) => 0,
        Some(Outcome::Win(winner)) => {
            if winner == mover {
                1
            } else {
                -1
            }
        }
        None => {
            let replies = legal_list(&game, state).into_iter().map(|action| -negamax(&after(state, action), known));
            replies.max().expect("a game that goes on has a move")
        }
    };
    known.insert(*state, value);
    value
}

fn after(state: &State, action: Action) -> State {
    let mut next = *state;
    TicTacToe.play(&mut next, action);
    next
}

/// Every position that can come up and in which a move is to be made, in a fixed order.
fn positions() -> Vec<State> {
    let mut seen = HashSet::new();
    let mut found = vec![TicTacToe.startpos()];
    let mut next = 0;
    while next < found.len() {
        for action in legal_list(&TicTacToe, &found[next]) {
            let state = after(&found[next], action);
            if TicTacToe.end(&state).is_none() && seen.insert(state) {
                found.push(state);
            }
        }
        next += 1;
    }
    found
}

/// The move that the network alone prefers in each position, as the player `FILE@policy` makes it.
fn preferred(file: &Path, positions: &[State]) -> Vec<Action> {
    let checkpoint = Checkpoint::load(file).unwrap();
    checkpoint.check_game(&TicTacToe).unwrap();
    let factory =
        InferenceFactory::open(&checkpoint.info.network, &checkpoint.weights, &EngineChoice::default()).unwrap();
    let mut network = NetEvaluator::new(&factory).unwrap();
    let (mut leaves, mut answers) = (Leaves::default(), Evaluations::default());
    for state in positions {
        leaves.push(state, &legal_list(&TicTacToe, state));
    }
    network.evaluate(&TicTacToe, &leaves, &mut answers).unwrap();
    (0..positions.len())
        .map(|index| {
            let priors = &answers.priors[leaves.span(index)];
            // The first of equals.
            let best = (0..priors.len()).rev().max_by(|&a, &b| priors[a].total_cmp(&priors[b]));
            leaves.legal(index)[best.expect("there is a move")]
        })
        .collect()
}

/// Positions in which a preferred move gives away the game, and those in which it gives away a win.
struct Faults {
    losing: Vec<String>,
    drawing: Vec<String>,
}

fn faults(positions: &[State], moves: &[Action]) -> Faults {
    let mut known = HashMap::new();
    let mut faults = Faults { losing: Vec::new(), drawing: Vec::new() };
    for (state, &action) in positions.iter().zip(moves) {
        let (before, value) = (negamax(state, &mut known), -negamax(&after(state, action), &mut known));
        let text = || format!("{} {}", TicTacToe.state_text(state), TicTacToe.action_text(action));
        match (before, value) {
            (0 | 1, -1) => faults.losing.push(text()),
            (1, 0) => faults.drawing.push(text()),
            _ => assert_eq!(before, value, "a move makes a position better: {}", text()),
        }
    }
    faults
}

#[test]
fn the_truth_is_known() {
    let positions = positions();
    // 5,478 positions in all, 958 of them finished.
    assert_eq!(positions.len(), 4520);
    let mut known = HashMap::new();
    assert_eq!(negamax(&TicTacToe.startpos(), &mut known), 0);
    let count = |value| positions.iter().filter(|state| known[*state] == value).count();
    assert_eq!((count(1), count(0), count(-1)), (2836, 1052, 632));
    // Where every first legal move is taken, both kinds of fault are found.
    let first: Vec<Action> = positions.iter().map(|state| legal_list(&TicTacToe, state)[0]).collect();
    let faults = faults(&positions, &first);
    assert!(faults.losing.len() > 100 && faults.drawing.len() > 100);
}

#[test]
#[ignore = "slow: trains for minutes"]
fn the_trained_network_alone_never_loses() {
    let scratch = tempfile::tempdir().unwrap();
    let file = match std::env::var_os("SPARRING_AGENT") {
        Some(file) => {
            println!("not trained: SPARRING_AGENT names {}", file.display());
            PathBuf::from(file)
        }
        None => {
            let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs/tictactoe.json");
            let done = Process::start(&mut train(&config, &scratch.path().join("tictactoe"), &[])).finish().expect(0);
            PathBuf::from(done.out.trim_end())
        }
    };
    let positions = positions();
    let faults = faults(&positions, &preferred(&file, &positions));
    println!("{} of {} positions: a losing move {:?}", faults.losing.len(), positions.len(), faults.losing);
    println!("{} of {} positions: a win given away {:?}", faults.drawing.len(), positions.len(), faults.drawing);
    assert!(faults.losing.is_empty(), "the network alone loses {} positions: {:?}", faults.losing.len(), faults.losing);

    let player = format!("{}@policy", file.display());
    let report = run(["pit", &player, "random", "--games", "200", "--opening-plies", "0", "--json"]).expect(0).json();
    println!("against random: {}", report["games"]);
    assert_eq!(report["games"]["losses"], 0, "{report}");
    // Perfect play against random moves scores about 0.99 as first and 0.9 as second player.
    let score = report["score"]["value"].as_f64().unwrap();
    assert!(score > 0.88, "{report}");
}
