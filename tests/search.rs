//! The search on real games: what it proves is what plain recursion finds.

use std::collections::HashMap;
use std::hash::Hash;

use sparring::eval::{Evaluator, HashEval, Rollout, Uniform};
use sparring::game::{Game, Outcome, Player, legal_list};
use sparring::games::tictactoe::{State, TicTacToe};
use sparring::games::{connect4::ConnectFour, othello::Othello};
use sparring::search::{Algorithm, Budget, Insight, Proven, SearchParams, SearchSummary, Solo, Tree};
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

/// The result under best play and the plies until then: the winner hastens, the loser delays.
fn distance(game: &TicTacToe, state: &State, known: &mut HashMap<State, Proven>) -> Proven {
    if let Some(end) = game.end(state) {
        return Proven { outcome: end.outcome, plies: 0 };
    }
    if let Some(&proven) = known.get(state) {
        return proven;
    }
    let mover = game.to_move(state);
    let key = |proven: &Proven| match rank(proven.outcome, mover) {
        2 => (2, -i64::from(proven.plies)),
        other => (other, i64::from(proven.plies)),
    };
    let replies =
        legal_list(game, state).into_iter().map(|action| later(distance(game, &after(game, state, action), known)));
    let best = replies.max_by_key(key).expect("a game that goes on has a move");
    known.insert(*state, best);
    best
}

/// How good a result is for `player`.
fn rank(outcome: Outcome, player: Player) -> usize {
    (2.0 * outcome.points(player)) as usize
}

fn later(proven: Proven) -> Proven {
    Proven { plies: proven.plies + 1, ..proven }
}

fn insight(game: &TicTacToe, state: &State, simulations: u32) -> Insight {
    let mut tree = Tree::new(play(Algorithm::Puct), *state);
    tree.begin(Budget::plain(simulations), Stream::test(1));
    Solo::default().search(&mut tree, game, &mut HashEval::new(3), |_| 1, |_| true).expect("it does not fail");
    tree.insight(game, 100).expect("the game goes on")
}

#[test]
fn what_a_search_proves_holds_and_the_distance_is_no_less_than_the_true_one() {
    let game = TicTacToe;
    let mut known = HashMap::new();
    let mut proofs = [0; 3];
    distance(&game, &game.startpos(), &mut known);
    let mut states: Vec<State> = known.keys().copied().collect();
    states.sort_by_key(|state| game.state_text(state));
    for state in states.into_iter().step_by(7) {
        let truth = distance(&game, &state, &mut known);
        let found = insight(&game, &state, 400);
        for (line, m) in found.lines.iter().zip(&found.summary.moves) {
            let mut next = state;
            game.play(&mut next, m.action);
            let wins_at_once = line.proven == Some(Proven { outcome: Outcome::Win(found.summary.mover), plies: 1 });
            assert_eq!(wins_at_once, game.end(&next).is_some_and(|end| end.outcome != Outcome::Draw));
            assert!(line.proven.map(|proven| proven.outcome) == m.proven || wins_at_once, "as the search has it");
            let after = later(distance(&game, &next, &mut known));
            assert!(line.proven.is_none_or(|p| p.outcome == after.outcome && p.plies >= after.plies));
        }
        let at_once = found.proven.is_some_and(|proven| proven.plies == 1);
        assert!(found.proven.map(|proven| proven.outcome) == found.summary.proven || at_once);
        if let Some(proven) = found.proven {
            assert!(proven.outcome == truth.outcome && proven.plies >= truth.plies);
            proofs[rank(proven.outcome, found.summary.mover)] += 1;
            // The line is one of legal moves to the end, as long as it says.
            let mut at = state;
            for &action in &found.lines[found.best()].moves {
                assert!(legal_list(&game, &at).contains(&action));
                game.play(&mut at, action);
            }
            assert_eq!(game.end(&at).map(|end| end.outcome), Some(truth.outcome));
            if truth.outcome != Outcome::Draw {
                assert_eq!(found.lines[found.best()].moves.len(), proven.plies as usize);
            }
        }
    }
    assert!(proofs.iter().all(|&count| count > 5), "{proofs:?}");
}

#[test]
fn plain_tree_search_proves_what_its_tree_holds() {
    let game = TicTacToe;
    let state = game.parse_state("xx1/oo1/3 x").unwrap();
    let mut tree = Tree::ucb1(1.0, 1_000_000, state);
    tree.begin(Budget::plain(20_000), Stream::test(5));
    Solo::default().search(&mut tree, &game, &mut Rollout::new(Stream::test(6), 1), |_| 1, |_| true).unwrap();
    let found = tree.insight(&game, 9).unwrap();
    let truth = distance(&game, &state, &mut HashMap::new());
    assert_eq!((found.proven, found.summary.proven), (Some(truth), None));
    assert_eq!(game.action_text(found.summary.moves[found.best()].action), "c1");
    assert_eq!(tree.depth(), 5, "to the last free cell");
    assert!((1.0..5.0).contains(&tree.mean_depth()));
}
