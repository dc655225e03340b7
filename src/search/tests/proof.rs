//! Distances of proven results against plain recursion, and lines.

use std::collections::HashMap;

use super::*;
use crate::eval::Uniform;
use crate::game::toy::{DRAW, Graph, WIN1, WIN2, first, second};
use crate::game::{Outcome, Player, legal_list};

/// How good a result is for `player`.
fn rank(outcome: Outcome, player: Player) -> usize {
    (2.0 * outcome.points(player)) as usize
}

fn one_ply_more(proven: Proven) -> Proven {
    Proven { plies: proven.plies + 1, ..proven }
}

fn broad(solver: bool) -> SearchParams {
    SearchParams { algorithm: Algorithm::Puct, c_puct: 100.0, solver, ..SearchParams::default() }
}

/// What a search finds out, and whether its tree holds every line to the end.
fn insight<G: Game>(
    game: &G,
    state: &G::State,
    params: SearchParams,
    simulations: u32,
    evaluator: &mut dyn Evaluator<G>,
) -> (Insight, bool) {
    let mut tree = Tree::new(params, state.clone());
    tree.begin(Budget::plain(simulations), Stream::test(5));
    Solo::default().search(&mut tree, game, evaluator, |_| 1, |_| true).unwrap();
    tree.check();
    let is_whole =
        (0..tree.node_count() as u32).all(|at| tree.edges_of(tree.node(at).unwrap()).all(|e| e.child.is_some()));
    (tree.insight(game, 100).unwrap(), is_whole)
}

/// The result and its distance by plain recursion: the winner hastens, the loser delays.
fn solve<G: Game>(game: &G, state: &G::State, known: &mut HashMap<G::State, Proven>) -> Proven {
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
    let replies = legal_list(game, state).into_iter().map(|action| {
        let mut next = state.clone();
        game.play(&mut next, action);
        one_ply_more(solve(game, &next, known))
    });
    let best = replies.max_by_key(key).expect("a game that goes on has a move");
    known.insert(state.clone(), best);
    best
}

#[test]
fn distances_by_hand() {
    let one = |spec| {
        let game = Graph::tree(&spec);
        let (found, _) = insight(&game, &game.startpos(), broad(false), 3000, &mut Uniform);
        let lines: Vec<(Option<u32>, usize)> =
            found.lines.iter().map(|line| (line.proven.map(|proven| proven.plies), line.moves.len())).collect();
        (found.proven.unwrap(), lines, found.ranked)
    };
    let (win1, win2) = (Outcome::Win(Player::First), Outcome::Win(Player::Second));
    // The same player moves twice, or the other one answers: each single move is a ply.
    let (proven, lines, ranked) = one(first([first([WIN2, WIN1]), second([WIN1, first([WIN1])]), WIN2]));
    assert_eq!(proven, Proven { outcome: win1, plies: 2 });
    assert_eq!(lines, [(Some(2), 2), (Some(3), 3), (Some(1), 1)]);
    assert_eq!(ranked, [0, 1, 2]);
    // The loser takes the long way, and a draw before it.
    let (proven, lines, ranked) = one(first([WIN2, second([WIN2, DRAW]), first([WIN2])]));
    assert_eq!(proven, Proven { outcome: win2, plies: 2 });
    assert_eq!(lines, [(Some(1), 1), (Some(2), 2), (Some(2), 2)]);
    assert_eq!(ranked[2], 0);
    let (proven, _, ranked) = one(first([WIN2, second([DRAW]), first([WIN2])]));
    assert_eq!((proven.outcome, ranked[0], ranked[2]), (Outcome::Draw, 1, 0));
}

#[test]
fn a_tree_that_holds_everything_knows_the_true_distances() {
    let mut random = Stream::test(41);
    let mut whole = 0;
    for _ in 0..200 {
        let game = Graph::random(&mut random, 9, 2, 7);
        let state = game.startpos();
        let truth = solve(&game, &state, &mut HashMap::new());
        let (found, is_whole) = insight(&game, &state, broad(false), 100_000, &mut Uniform);
        if is_whole {
            whole += 1;
            assert_eq!(found.proven, Some(truth), "{game:?}");
        }
        let Some(proven) = found.proven else { continue };
        assert_eq!(proven.outcome, truth.outcome, "{game:?}");
        let best = found.lines[found.best()].proven.unwrap();
        assert_eq!(best.outcome, proven.outcome);
        if proven.outcome != Outcome::Draw {
            assert!(proven.plies >= truth.plies && best.plies == proven.plies, "{game:?}");
            assert_eq!(found.lines[found.best()].moves.len(), proven.plies as usize, "{game:?}");
        }
    }
    assert!(whole > 50, "{whole}");
}
