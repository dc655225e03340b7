//! Perfect play is perfect: solvers against plain recursion over the rules, and against published results.

use std::collections::HashMap;

use sparring::game::{Action, Game, Outcome, Player, Solver, legal_list};
use sparring::games::connect4::{self, ConnectFour};
use sparring::games::tictactoe::{self, TicTacToe};
use sparring::games::{NAMES, solved_names};
use sparring::util::rng::Stream;

/// How a position ends, and after how many plies when the winner hurries and the loser holds out (not told for draws).
type Known<G> = HashMap<<G as Game>::State, (Outcome, usize)>;

/// The whole tree is searched.
fn recursion<G: Game>(game: &G, state: &G::State, known: &mut Known<G>) -> (Outcome, usize) {
    if let Some(end) = game.end(state) {
        return (end.outcome, 0);
    }
    if let Some(&found) = known.get(state) {
        return found;
    }
    let mover = game.to_move(state);
    let replies = legal_list(game, state).into_iter().map(|action| recursion(game, &after(game, state, action), known));
    let (outcome, plies) = replies.max_by_key(|&reply| rank(mover, reply)).expect("a game that goes on has a move");
    known.insert(state.clone(), (outcome, plies + 1));
    (outcome, plies + 1)
}

/// The larger, the better for `mover`.
fn rank(mover: Player, (outcome, plies): (Outcome, usize)) -> (i32, i32) {
    let plies = plies as i32;
    match outcome {
        Outcome::Win(winner) if winner == mover => (1, -plies),
        Outcome::Draw => (0, 0),
        Outcome::Win(_) => (-1, plies),
    }
}

fn after<G: Game>(game: &G, state: &G::State, action: Action) -> G::State {
    let mut next = state.clone();
    game.play(&mut next, action);
    next
}

/// The solver judges every move as recursion does, and its best moves are the quickest wins and the slowest losses.
fn agrees<G: Game>(game: &G, state: &G::State, solver: &mut dyn Solver<G>, known: &mut Known<G>) {
    let text = game.state_text(state);
    let mover = game.to_move(state);
    let truth: Vec<(Action, (Outcome, usize))> = legal_list(game, state)
        .into_iter()
        .map(|action| (action, recursion(game, &after(game, state, action), known)))
        .collect();
    let solved = solver.solve(state).unwrap_or_else(|refusal| panic!("{text}: {refusal}"));
    let told: Vec<(Action, Outcome)> = solved.moves().iter().map(|each| (each.action, each.outcome)).collect();
    let expected: Vec<(Action, Outcome)> = truth.iter().map(|&(action, (outcome, _))| (action, outcome)).collect();
    assert_eq!(told, expected, "{text}");
    assert_eq!(solved.outcome(), recursion(game, state, known).0, "{text}");
    let best = truth.iter().map(|&(_, reply)| rank(mover, reply)).max();
    let best: Vec<Action> =
        truth.iter().filter(|&&(_, reply)| Some(rank(mover, reply)) == best).map(|&(action, _)| action).collect();
    assert_eq!(solver.best_moves(state).unwrap(), best, "{text}");
}

/// A random position with so many plies that goes on.
fn random_position<G: Game>(game: &G, plies: usize, random: &mut Stream) -> G::State {
    loop {
        let mut state = game.start(random);
        while game.end(&state).is_none() && game.ply(&state) < plies {
            let action = game.random_action(&state, random, &mut Vec::new());
            game.play(&mut state, action);
        }
        if game.end(&state).is_none() {
            return state;
        }
    }
}

#[test]
fn the_games_with_a_solver() {
    assert_eq!(solved_names(), ["tictactoe", "connect4"]);
    assert!(solved_names().iter().all(|name| NAMES.contains(name)));
}

#[test]
fn every_position_of_tictactoe() {
    let game = TicTacToe;
    let mut solver = game.solver().unwrap();
    let mut known = HashMap::new();
    assert_eq!(recursion(&game, &game.startpos(), &mut known).0, Outcome::Draw);
    // 5,478 positions in all, 958 of them finished.
    let open: Vec<tictactoe::State> = known.keys().copied().collect();
    assert_eq!(open.len(), 4520);
    let mut counts = [0; 3];
    for state in &open {
        agrees(&game, state, solver.as_mut(), &mut known);
        let points = solver.solve(state).unwrap().outcome().points(game.to_move(state));
        counts[(2.0 * points) as usize] += 1;
    }
    assert_eq!(counts, [632, 1052, 2836], "lost, drawn and won for the player to move");
}

#[test]
fn endings_of_connect_four() {
    let game = ConnectFour;
    let (mut solver, mut random, mut known) = (game.solver().unwrap(), Stream::test(1), HashMap::new());
    for plies in 28..42 {
        for _ in 0..40 {
            agrees(&game, &random_position(&game, plies, &mut random), solver.as_mut(), &mut known);
        }
        known.clear();
    }
}

fn moves(columns: &str) -> connect4::State {
    let mut state = ConnectFour.startpos();
    for column in columns.split("").filter(|column| !column.is_empty()) {
        let action = ConnectFour.parse_action(column).unwrap();
        assert!(legal_list(&ConnectFour, &state).contains(&action), "{columns}");
        ConnectFour.play(&mut state, action);
    }
    state
}

/// What a score of the player to move means.
fn outcome(score: i32, mover: Player) -> Outcome {
    match score {
        0 => Outcome::Draw,
        1.. => Outcome::Win(mover),
        _ => Outcome::Win(mover.other()),
    }
}

/// Positions as columns played, with their score as P. Pons counts it (blog.gamesolver.org, "Solving Connect Four", part 2 and
/// its test files).
const SCORES: [(&str, i32); 13] = [
    ("44455554221", -15),
    ("43745416472735", -13),
    ("274552224131661", 0),
    ("6242432155656447531617622", 0),
    ("25567612321766542715753451236", 2),
    ("15153233665512265253266243367171", -2),
    ("7422341735647741166133573473242566", 1),
    ("65214673556155731566316327373221417", -1),
    ("2252576253462244111563365343671351441", -1),
    ("2135616344362616617444333774221777125", 2),
    ("3642756176227637211322113551637574556", 2),
    ("23163416124767223154467471272416755633", 0),
    ("71255763773133525731261364622167124446454", 0),
];

/// The same with the scores of all seven moves, 100 for a full column.
const MOVE_SCORES: [(&str, [i32; 7]); 5] = [
    ("5512243243536", [-3, 4, 12, 13, 8, -3, -2]),
    ("122435527534575161761", [-1, 0, 10, 10, -2, -2, -2]),
    ("52753311433677442422121", [2, 3, 7, 7, 8, 7, 2]),
    ("5554224333234511764415115", [-8, -8, -8, -8, 100, 4, -8]),
    ("2252576253462244111563365343671351441", [100, 100, 100, 100, 100, -1, -2]),
];

#[test]
fn published_positions_of_connect_four() {
    let game = ConnectFour;
    let mut solver = game.solver().unwrap();
    for (columns, score) in SCORES {
        let state = moves(columns);
        assert_eq!(columns.len(), game.ply(&state));
        match solver.solve(&state) {
            Ok(solved) => assert_eq!(solved.outcome(), outcome(score, game.to_move(&state)), "{columns}"),
            // Early positions may be too hard.
            Err(refusal) => assert!(columns.len() < solver.first_ply(), "{columns}: {refusal}"),
        }
    }
    for (columns, scores) in MOVE_SCORES {
        let state = moves(columns);
        let mover = game.to_move(&state);
        let legal = (0..7).zip(scores).filter(|&(_, score)| score != 100);
        let expected: Vec<_> = legal.clone().map(|(column, score)| (Action(column), outcome(score, mover))).collect();
        let solved = solver.solve(&state).unwrap();
        let told: Vec<_> = solved.moves().iter().map(|each| (each.action, each.outcome)).collect();
        assert_eq!(told, expected, "{columns}");
        // The scores tell wins and losses apart by their length.
        let most = legal.clone().map(|(_, score)| score).max();
        let best: Vec<_> = legal.filter(|&(_, score)| Some(score) == most).map(|(column, _)| Action(column)).collect();
        assert_eq!(solver.best_moves(&state).unwrap(), best, "{columns}");
    }
}

#[test]
fn middle_games_of_connect_four_agree_with_themselves() {
    let game = ConnectFour;
    let (mut solver, mut random) = (game.solver().unwrap(), Stream::test(2));
    for plies in [14, 16, 18, 20, 22] {
        for _ in 0..8 {
            let state = random_position(&game, plies, &mut random);
            let text = game.state_text(&state);
            let solved = solver.solve(&state).unwrap();
            let mirrored = solver.solve(&game.map_state(&state, 1)).unwrap();
            for each in solved.moves() {
                assert_eq!(mirrored.outcome_of(game.map_action(each.action, 1)), Some(each.outcome), "{text}");
                let next = after(&game, &state, each.action);
                let later = match game.end(&next) {
                    Some(end) => end.outcome,
                    None => solver.solve(&next).unwrap().outcome(),
                };
                assert_eq!(each.outcome, later, "{text}: {}", game.action_text(each.action));
            }
            // What it said before changes nothing, and a solver that is asked for the first time says the same.
            assert_eq!(game.solver().unwrap().solve(&state).unwrap(), solved, "{text}");
        }
    }
}

#[test]
fn perfect_players_of_connect_four_keep_the_result_to_the_end() {
    let game = ConnectFour;
    let (mut solver, mut random) = (game.solver().unwrap(), Stream::test(3));
    for _ in 0..10 {
        let mut state = random_position(&game, 14, &mut random);
        let expected = solver.solve(&state).unwrap().outcome();
        while game.end(&state).is_none() {
            let best = solver.best_moves(&state).unwrap();
            game.play(&mut state, best[random.below(best.len())]);
        }
        assert_eq!(game.end(&state).unwrap().outcome, expected);
    }
}

#[test]
fn what_takes_too_long_is_refused() {
    let mut solver = ConnectFour.solver().unwrap();
    assert_eq!(solver.first_ply(), 12);
    for (columns, discs) in [("", "no discs"), ("4", "1 disc"), ("44444", "5 discs")] {
        let state = moves(columns);
        for message in [solver.solve(&state).unwrap_err(), solver.best_moves(&state).unwrap_err()] {
            let message = message.to_string();
            assert!(
                message.contains(discs) && message.contains("1000000") && message.contains("12 discs"),
                "{message}"
            );
        }
    }
    // What is plain to see is answered: two in the bottom row that become three, open on both sides.
    let state = moves("4151");
    assert_eq!(solver.best_moves(&state).unwrap(), [Action(2), Action(5)]);
    assert_eq!(solver.solve(&moves("41516")).unwrap().outcome(), Outcome::Win(Player::First));
}
