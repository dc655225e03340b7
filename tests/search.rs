//! The search on real games: what it proves is what plain recursion finds.

use std::collections::HashMap;
use std::hash::Hash;

use sparring::eval::{Evaluator, HashEval, Uniform};
use sparring::game::{Game, Outcome, legal_list};
use sparring::games::{connect4::ConnectFour, othello::Othello, tictactoe::TicTacToe};
use sparring::search::{Algorithm, Budget, SearchParams, SearchSummary, Solo, Tree};
use sparring::util::rng::Stream;

/// The result under best play. Positions are remembered, so the game must not depend on how they were reached.
fn solve<G: Game>(game: &G, state: &G::State, known: &mut HashMap<G::State, Outcome>) -> Outcome
where
    G::State: Hash,
{
    if let Some(end) = game.end(state) {
        return end.outcome;
    }
    if let Some(&outcome) = known.get(state) {
        return outcome;
    }
    let mover = game.to_move(state);
    let best = legal_list(game, state)
        .into_iter()
        .map(|action| solve(game, &after(game, state, action), known))
        .max_by(|a, b| a.points(mover).total_cmp(&b.points(mover)))
        .expect("a game that goes on has a move");
    known.insert(state.clone(), best);
    best
}

fn after<G: Game>(game: &G, state: &G::State, action: sparring::game::Action) -> G::State {
    let mut next = state.clone();
    game.play(&mut next, action);
    next
}

fn search<G: Game>(
    game: &G,
    state: &G::State,
    params: SearchParams,
    simulations: u32,
    evaluator: &mut dyn Evaluator<G>,
) -> SearchSummary {
    let mut tree = Tree::new(params, state.clone());
    tree.begin(Budget::plain(simulations), Stream::test(1));
    Solo::default().search(&mut tree, game, evaluator, |_| 4, |_| true).expect("the evaluator does not fail");
    tree.summary().expect("the game goes on")
}

/// What a search proves is true, for the root and for each move, and its best move keeps a proven result.
fn holds<G: Game>(game: &G, state: &G::State, summary: &SearchSummary, known: &mut HashMap<G::State, Outcome>) {
    let expected = solve(game, state, known);
    if let Some(proven) = summary.proven {
        assert_eq!(proven, expected, "{}", game.state_text(state));
        assert_eq!(summary.value, expected.wdl());
        assert_eq!(summary.moves[summary.best].proven, Some(expected), "{}", game.state_text(state));
    }
    for m in &summary.moves {
        let outcome = solve(game, &after(game, state, m.action), known);
        assert!(m.proven.is_none_or(|proven| proven == outcome), "{}", game.state_text(state));
        assert!(summary.proven.is_none() || m.policy == 0.0 || outcome == expected);
    }
}

/// Priors outweigh every value, so with uniform ones each line is searched in the end. Ordinary parameters seldom
/// prove a draw: that takes the refutation of every move that looks worse.
fn broad(algorithm: Algorithm) -> SearchParams {
    SearchParams {
        algorithm,
        c_puct: 100.0,
        gumbel_considered: 4096,
        gumbel_visit: 0.0,
        gumbel_scale: 0.0,
        ..Default::default()
    }
}

fn play(algorithm: Algorithm) -> SearchParams {
    SearchParams { algorithm, ..Default::default() }
}

#[test]
fn every_position_of_tictactoe_is_solved() {
    let game = TicTacToe;
    let mut known = HashMap::new();
    assert_eq!(solve(&game, &game.startpos(), &mut known), Outcome::Draw);
    assert_eq!(known.len(), 4520, "reachable positions that go on");
    let states: Vec<_> = known.keys().copied().collect();
    for state in &states {
        for algorithm in [Algorithm::Puct, Algorithm::Gumbel] {
            let summary = search(&game, state, broad(algorithm), 20_000_000, &mut Uniform);
            assert!(summary.proven.is_some(), "{}", game.state_text(state));
            holds(&game, state, &summary, &mut known);
            holds(&game, state, &search(&game, state, play(algorithm), 200, &mut HashEval::new(1)), &mut known);
        }
    }
}

/// Searches of ordinary width from random positions at least `from` plies deep.
fn proofs_hold<G: Game>(game: &G, from: usize, count: usize) {
    let mut random = Stream::test(9);
    let mut known = HashMap::new();
    let (mut searched, mut proven) = (0, 0);
    while searched < count {
        let mut state = game.startpos();
        let depth = from + random.below(4);
        while game.end(&state).is_none() && game.ply(&state) < depth {
            let action = game.random_action(&state, &mut random, &mut Vec::new());
            game.play(&mut state, action);
        }
        if game.end(&state).is_some() {
            continue;
        }
        searched += 1;
        for algorithm in [Algorithm::Puct, Algorithm::Gumbel] {
            let summary = search(game, &state, play(algorithm), 3000, &mut HashEval::new(2));
            holds(game, &state, &summary, &mut known);
            proven += usize::from(summary.proven.is_some());
        }
    }
    assert!(proven > count, "{proven} of {}", 2 * count);
}

#[test]
fn proofs_hold_in_connect_four_endings() {
    proofs_hold(&ConnectFour, 34, 100);
}

#[test]
fn proofs_hold_in_small_othello_with_its_passes() {
    let game = Othello::from_options(&[("size".to_owned(), "4".to_owned())]).expect("an allowed size");
    proofs_hold(&game, 5, 100);
}
