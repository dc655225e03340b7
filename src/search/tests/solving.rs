//! Proven results against plain recursion: double moves, cycles, kept trees. Real games are in `tests/search.rs`.

use std::collections::HashMap;

use super::*;
use crate::eval::testgame::Pairs;
use crate::eval::{HashEval, Uniform};
use crate::game::toy::{self, DRAW, Graph, WIN1, WIN2, first, second};
use crate::game::{Outcome, Player, legal_list};

/// The result under best play, remembered by position; only for games whose states carry no history.
fn solve<G: Game>(game: &G, state: &G::State, known: &mut HashMap<G::State, Outcome>) -> Outcome {
    if let Some(end) = game.end(state) {
        return end.outcome;
    }
    if let Some(&outcome) = known.get(state) {
        return outcome;
    }
    let mover = game.to_move(state);
    let best = legal_list(game, state)
        .into_iter()
        .map(|action| {
            let mut next = state.clone();
            game.play(&mut next, action);
            solve(game, &next, known)
        })
        .max_by(|a, b| a.points(mover).total_cmp(&b.points(mover)))
        .expect("a game that goes on has a move");
    known.insert(state.clone(), best);
    best
}

fn puct() -> SearchParams {
    SearchParams { algorithm: Algorithm::Puct, ..Default::default() }
}

fn gumbel() -> SearchParams {
    SearchParams { algorithm: Algorithm::Gumbel, ..Default::default() }
}

/// Parameters under which priors outweigh any value: with uniform ones every line is searched in the end, the bad ones
/// too. Ordinary parameters seldom prove a draw, since that takes the refutation of every move that looks worse.
fn broad(algorithm: Algorithm) -> SearchParams {
    let considered = SearchParams { gumbel_considered: 4096, gumbel_visit: 0.0, gumbel_scale: 0.0, ..gumbel() };
    SearchParams { algorithm, c_puct: 100.0, ..considered }
}

/// Searches `state` and compares with `expected`: the root's result, and that the best move keeps it.
fn proves<G: Game>(game: &G, state: &G::State, params: &SearchParams, simulations: u32, expected: Outcome) -> bool {
    let mut evaluator: Box<dyn Evaluator<G>> =
        if params.c_puct == 100.0 { Box::new(Uniform) } else { Box::new(HashEval::new(9)) };
    let tree = searched(game, state, params, Budget::plain(simulations), &mut evaluator);
    let summary = tree.summary().expect("searched");
    if let Some(proven) = summary.proven {
        assert_eq!(proven, expected, "{state:?}");
        assert_eq!(summary.value, expected.wdl());
        let best = summary.moves[summary.best];
        assert_eq!(best.proven, Some(expected), "the best move keeps the result at {state:?}");
        for m in &summary.moves {
            assert!(m.policy == 0.0 || m.proven == Some(expected), "{summary:?}");
        }
    }
    summary.proven.is_some()
}

#[test]
fn literal_trees() {
    let result = |spec| {
        let game = Graph::tree(&spec);
        let state = game.startpos();
        for params in [puct(), gumbel()] {
            assert!(proves(&game, &state, &params, 500, toy::solve(&game, &state)), "{spec:?}");
        }
        toy::solve(&game, &state)
    };
    let (win1, win2, draw) = (Outcome::Win(Player::First), Outcome::Win(Player::Second), Outcome::Draw);
    // The same player again: the second of the two moves must not be taken for a reply.
    assert_eq!(result(first([first([WIN2, WIN1]), WIN2])), win1);
    assert_eq!(result(second([second([WIN2, DRAW]), DRAW])), win2);
    assert_eq!(result(first([second([WIN1, WIN2]), first([WIN2, DRAW])])), draw);
    assert_eq!(result(first([second([WIN2, WIN2]), second([WIN2])])), win2);
    // Three in a row, then a reply.
    let deep = first([first([first([second([WIN1, DRAW]), second([WIN1, WIN1])]), WIN2]), DRAW]);
    assert_eq!(result(deep), win1);
    // One move only, all the way.
    assert_eq!(result(second([first([second([DRAW])])])), draw);
}

#[test]
fn heaps_with_double_moves() {
    let mut signs_by_ply_go_wrong = 0;
    for stones in 1..=12 {
        for misere in [false, true] {
            let game = Graph::heap(stones, misere);
            let state = game.startpos();
            let expected = toy::solve(&game, &state);
            for params in [puct(), gumbel()] {
                assert!(proves(&game, &state, &params, 200_000, expected), "{stones} {misere}");
            }
            let by_ply = toy::solve_alternating(&game, &state);
            signs_by_ply_go_wrong += u32::from((by_ply > 0.0) != (expected == Outcome::Win(Player::First)));
        }
    }
    assert!(signs_by_ply_go_wrong >= 5, "the game tells the two apart: {signs_by_ply_go_wrong}");
}

#[test]
fn pairs_with_two_stones_a_turn() {
    let game = Pairs;
    let mut known = HashMap::new();
    let mut seen = [0; 3];
    for state in positions(&game, &mut Stream::test(21), 60, 9) {
        if game.ply(&state) < 5 {
            continue;
        }
        let expected = solve(&game, &state, &mut known);
        seen[(2.0 * expected.points(Player::First)) as usize] += 1;
        assert!(proves(&game, &state, &puct(), 1_000_000, expected));
        proves(&game, &state, &gumbel(), 5_000, expected);
    }
    assert!(seen[0] > 0 && seen[2] > 0, "{seen:?}");
}

#[test]
fn cycles_as_the_game_sees_them() {
    for (repeats, cap) in [(2, 100), (3, 100), (3, 4), (4, 7)] {
        let game = Graph::circle(repeats, cap);
        let state = game.startpos();
        assert!(proves(&game, &state, &puct(), 20_000, Outcome::Draw), "{repeats} {cap}");
        proves(&game, &state, &gumbel(), 20_000, Outcome::Draw);
        // A move later, from the kept tree, with the history of the game that was played.
        for params in [puct(), gumbel()] {
            let mut tree = Tree::new(params, state.clone());
            let mut plies = 0;
            while game.end(tree.state()).is_none() {
                tree.begin(Budget::plain(300), Stream::test(plies));
                drive(&mut tree, &game, &mut HashEval::new(2), 1);
                tree.check();
                let summary = tree.summary().unwrap();
                let action = summary.moves[summary.best].action;
                tree.advance(&game, action);
                plies += 1;
            }
            let end = game.end(tree.state()).unwrap();
            assert_eq!(end.outcome, Outcome::Draw, "leaving the circle loses");
            assert!(plies <= u64::from(cap) && plies <= u64::from(repeats) * 4);
        }
    }
}

#[test]
fn random_graphs_with_cycles_and_double_moves() {
    let mut random = Stream::test(31);
    let mut seen = [0; 3];
    for _ in 0..300 {
        let repeats = 2 + random.below(2) as u8;
        let game = Graph::random(&mut random, 10, repeats, 8);
        let state = game.startpos();
        let expected = toy::solve(&game, &state);
        seen[(2.0 * expected.points(Player::First)) as usize] += 1;
        for algorithm in [Algorithm::Puct, Algorithm::Gumbel] {
            assert!(proves(&game, &state, &broad(algorithm), 5_000_000, expected), "{game:?}");
        }
        proves(&game, &state, &puct(), 400, expected);
        proves(&game, &state, &gumbel(), 400, expected);
    }
    assert!(seen.iter().all(|&count| count > 20), "{seen:?}");
}

#[test]
fn results_stay_true_through_reuse() {
    let mut random = Stream::test(32);
    for round in 0..200 {
        let game = Graph::random(&mut random, 10, 3, 8);
        let params = if round % 2 == 0 { puct() } else { gumbel() };
        let mut tree = Tree::new(params, game.startpos());
        while game.end(tree.state()).is_none() {
            tree.begin(Budget::plain(40), Stream::test(round));
            drive(&mut tree, &game, &mut HashEval::new(round), 3);
            let summary = tree.summary().unwrap();
            if let Some(proven) = summary.proven {
                assert_eq!(proven, toy::solve(&game, tree.state()), "{game:?}");
            }
            for m in &summary.moves {
                let mut next = tree.state().clone();
                game.play(&mut next, m.action);
                assert!(m.proven.is_none_or(|proven| proven == toy::solve(&game, &next)));
            }
            tree.advance(&game, summary.moves[random.below(summary.moves.len())].action);
        }
    }
}

#[test]
fn a_proven_root_ends_the_search() {
    let reply = || second([WIN2, first([WIN1, WIN2, DRAW])]);
    let game = Graph::tree(&first([reply(), first([reply(), second([WIN1, WIN1])]), reply()]));
    for params in [puct(), gumbel()] {
        let tree = searched(&game, &game.startpos(), &params, Budget::plain(100_000), &mut Uniform);
        let summary = tree.summary().unwrap();
        assert_eq!((summary.proven, summary.best), (Some(Outcome::Win(Player::First)), 1));
        assert!(summary.simulations < 200, "{summary:?}");
        // Without the solver the whole budget is spent, and the move is found all the same.
        let plain = SearchParams { solver: false, ..params };
        let tree = searched(&game, &game.startpos(), &plain, Budget::plain(1000), &mut Uniform);
        let summary = tree.summary().unwrap();
        assert_eq!((summary.proven, summary.simulations, summary.best), (None, 1000, 1));
    }
}

#[test]
fn a_finished_game_needs_no_search() {
    let game = Graph::tree(&first([WIN1]));
    let mut tree = Tree::new(puct(), game.startpos());
    tree.begin(Budget::plain(10), Stream::test(1));
    drive(&mut tree, &game, &mut Uniform, 1);
    tree.advance(&game, Action(0));
    for _ in 0..2 {
        tree.begin(Budget::plain(10), Stream::test(1));
        drive(&mut tree, &game, &mut Uniform, 1);
        assert!(tree.finished() && tree.summary().is_none());
        let end = tree.state().clone();
        tree.reset(&end);
    }
}
