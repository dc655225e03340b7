//! The numbers of a tree add up after every step of searches that are led at random.

use super::*;
use crate::eval::testgame::Pairs;
use crate::eval::{HashEval, Rollout};
use crate::game::toy::{DRAW, Graph, WIN1, WIN2, first, second};

fn random_params(random: &mut Stream) -> SearchParams {
    SearchParams {
        algorithm: [Algorithm::Puct, Algorithm::Gumbel][random.below(2)],
        solver: random.below(2) == 0,
        reuse: random.below(4) > 0,
        draw_score: [0.0, -0.5, 0.2][random.below(3)],
        max_nodes: [100, 250, 100_000][random.below(3)],
        ..Default::default()
    }
}

/// What happened in all random searches together; each must have happened.
#[derive(Debug, Default)]
struct Seen {
    leaves: u32,
    known: u32,
    collisions: u32,
    full: u32,
    abandoned: u32,
    advanced: u32,
    resets: u32,
    proven: u32,
}

/// Gathers up to `batch` leaves, checks, answers them in random order, checks after each.
fn round<G: Game>(tree: &mut Tree<G>, game: &G, batch: usize, random: &mut Stream, seen: &mut Seen) {
    let (mut leaves, mut answers, mut tickets) = (Leaves::default(), Evaluations::default(), Vec::new());
    while tickets.len() < batch && !tree.finished() {
        match tree.gather(game, &mut leaves) {
            Gathered::Leaf(ticket) => {
                tickets.push((tickets.len(), ticket));
                seen.leaves += 1;
            }
            Gathered::Known => seen.known += 1,
            Gathered::Collision => {
                seen.collisions += 1;
                break;
            }
            Gathered::Full => {
                assert!(tree.finished());
                seen.full += 1;
            }
        }
        tree.check();
    }
    assert_eq!(leaves.len(), tickets.len());
    HashEval::new(3).evaluate(game, &leaves, &mut answers).unwrap();
    random.shuffle(&mut tickets);
    let fail = random.below(25) == 0;
    for (index, ticket) in tickets {
        if fail && random.below(2) == 0 {
            tree.abandon(ticket);
            seen.abandoned += 1;
        } else {
            tree.apply(ticket, answers.values[index], &answers.priors[leaves.span(index)]);
        }
        tree.check();
    }
}

fn random_game<G: Game>(game: &G, random: &mut Stream, seen: &mut Seen) {
    let params = random_params(random);
    let mut tree = match random.below(4) {
        0 => Tree::ucb1(0.7, params.max_nodes, game.startpos()),
        _ => Tree::new(params, game.startpos()),
    };
    for _ in 0..12 {
        let budget = Budget {
            simulations: random.below(200) as u32,
            noise: (random.below(2) == 0).then_some(RootNoise { fraction: 0.25, concentration: 10.0 }),
            gumbel_noise: random.below(2) == 0,
        };
        tree.begin(budget, Stream::test(random.bits()));
        tree.check();
        let batch = 1 + random.below(8);
        let leave_early = random.below(6) == 0;
        while !(tree.finished() || leave_early && random.below(10) == 0) {
            round(&mut tree, game, batch, random, seen);
        }
        let Some(summary) = tree.summary() else {
            if game.end(tree.state()).is_some() || random.below(2) == 0 {
                tree.reset(&game.startpos());
                seen.resets += 1;
            }
            continue;
        };
        assert!(summary.simulations <= budget.simulations);
        let total: f32 = summary.moves.iter().map(|m| m.policy).sum();
        assert!((total - 1.0).abs() < 1e-4, "{summary:?}");
        for m in &summary.moves {
            let parts = [m.value.first, m.value.draw, m.value.second];
            assert!(parts.iter().all(|part| (0.0..=1.0).contains(part)), "{m:?}");
            assert!((parts.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{m:?}");
        }
        seen.proven += u32::from(summary.proven.is_some());
        match random.below(5) {
            // The same position again.
            0 => {}
            1 => {
                tree.reset(&game.startpos());
                seen.resets += 1;
            }
            _ => {
                let at = summary.choose(1.0, random);
                tree.advance(game, summary.moves[at].action);
                seen.advanced += 1;
            }
        }
        tree.check();
    }
}

#[test]
fn every_step_of_random_searches_adds_up() {
    let mut random = Stream::test(50);
    let mut seen = Seen::default();
    for _ in 0..40 {
        random_game(&Pairs, &mut random, &mut seen);
        random_game(&Graph::heap(15, false), &mut random, &mut seen);
        random_game(&Graph::random(&mut random, 15, 3, 20), &mut random, &mut seen);
    }
    let Seen { leaves, known, collisions, full, abandoned, advanced, resets, proven } = seen;
    let least = [leaves, known, collisions, full, abandoned, advanced, resets, proven].into_iter().min();
    assert!(least > Some(20), "{seen:?}");
}

#[test]
fn many_leaves_in_flight_spread_and_all_are_counted() {
    let game = Pairs;
    for algorithm in [Algorithm::Puct, Algorithm::Gumbel] {
        let params = SearchParams { algorithm, ..Default::default() };
        let mut tree = searched(&game, &game.startpos(), &params, Budget::plain(50), &mut HashEval::new(1));
        tree.begin(Budget::plain(60), Stream::test(1));
        let mut leaves = Leaves::default();
        let mut tickets = Vec::new();
        while let Gathered::Leaf(ticket) = tree.gather(&game, &mut leaves) {
            tickets.push(ticket);
            if tickets.len() == 60 {
                break;
            }
        }
        assert!(tickets.len() >= 5, "virtual loss sends descents elsewhere: {}", tickets.len());
        let distinct: std::collections::HashSet<_> = (0..leaves.len()).map(|at| leaves.state(at).0).collect();
        assert_eq!(distinct.len(), leaves.len(), "no position twice from this start in one small batch");
        let mut answers = Evaluations::default();
        HashEval::new(1).evaluate(&game, &leaves, &mut answers).unwrap();
        for (index, ticket) in tickets.into_iter().enumerate().rev() {
            tree.apply(ticket, answers.values[index], &answers.priors[leaves.span(index)]);
        }
        tree.check();
        assert_eq!(tree.node(0).unwrap().visits, 51 + leaves.len() as u32);
    }
}

#[test]
fn one_leaf_at_a_time_never_collides() {
    let game = Pairs;
    let mut tree = Tree::new(SearchParams::default(), game.startpos());
    tree.begin(Budget::plain(500), Stream::test(1));
    let (mut leaves, mut answers) = (Leaves::default(), Evaluations::default());
    while !tree.finished() {
        leaves.clear();
        match tree.gather(&game, &mut leaves) {
            Gathered::Leaf(ticket) => {
                HashEval::new(1).evaluate(&game, &leaves, &mut answers).unwrap();
                tree.apply(ticket, answers.values[0], &answers.priors);
            }
            Gathered::Known => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(tree.simulations(), 500);
}

#[test]
fn a_full_tree_ends_the_search_with_an_answer() {
    let game = Pairs;
    for algorithm in [Algorithm::Puct, Algorithm::Gumbel] {
        let params = SearchParams { algorithm, max_nodes: 120, ..Default::default() };
        let tree = searched(&game, &game.startpos(), &params, Budget::plain(100_000), &mut HashEval::new(1));
        tree.check();
        assert!(tree.finished() && tree.node_count() == 120);
        let summary = tree.summary().expect("the search has an answer");
        assert!((100..100_000).contains(&summary.simulations));
        let visits: u32 = summary.moves.iter().map(|m| m.visits).sum();
        assert_eq!(visits, summary.simulations);
    }
}

#[test]
fn a_failed_evaluation_starts_the_search_anew() {
    let game = Pairs;
    let expected =
        searched(&game, &game.startpos(), &SearchParams::default(), Budget::plain(90), &mut HashEval::new(4));
    let mut tree = Tree::new(SearchParams::default(), game.startpos());
    tree.begin(Budget::plain(90), Stream::test(77));
    for answered in [0, 1, 2] {
        let (mut leaves, mut answers) = (Leaves::default(), Evaluations::default());
        for _ in 0..answered {
            leaves.clear();
            if let Gathered::Leaf(ticket) = tree.gather(&game, &mut leaves) {
                HashEval::new(4).evaluate(&game, &leaves, &mut answers).unwrap();
                tree.apply(ticket, answers.values[0], &answers.priors);
            }
        }
        leaves.clear();
        let Gathered::Leaf(ticket) = tree.gather(&game, &mut leaves) else { panic!("a new position") };
        tree.abandon(ticket);
        assert!(!tree.finished() && tree.node_count() == 0);
    }
    drive(&mut tree, &game, &mut HashEval::new(4), 1);
    assert_eq!(tree.summary(), expected.summary());
}

#[test]
fn ucb1_with_rollouts_finds_the_winning_move() {
    let game = Graph::tree(&first([second([WIN1, WIN1, WIN2]), WIN1, DRAW, second([DRAW, WIN1])]));
    let mut tree = Tree::ucb1(1.0, 10_000, game.startpos());
    tree.begin(Budget::plain(300), Stream::test(5));
    drive(&mut tree, &game, &mut Rollout::new(Stream::test(6), 1), 1);
    tree.check();
    let summary = tree.summary().unwrap();
    assert_eq!(summary.best, 1);
    // Plain search goes on where a solver would stop, and tries everything.
    assert_eq!(summary.simulations, 300);
    assert!(summary.moves.iter().all(|m| m.visits > 0));
}
