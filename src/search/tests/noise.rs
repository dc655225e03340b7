//! Noise at the root, the draws of Gumbel, and the choice by temperature. Streams are fixed, so the statistical
//! tests cannot fail by chance; their tolerances say how likely a right sampler is to pass for a random seed.

use super::*;
use crate::eval::testgame::Pairs;
use crate::eval::{HashEval, Uniform};
use crate::game::toy::{DRAW, Graph, Spec, WIN1, WIN2, first, second};
use crate::game::{Outcome, Player, WdlAbs};

const NOISE: RootNoise = RootNoise { fraction: 0.25, concentration: 10.0 };

fn noisy(simulations: u32) -> Budget {
    Budget { simulations, noise: Some(NOISE), gumbel_noise: true }
}

fn with(algorithm: Algorithm) -> SearchParams {
    SearchParams { algorithm, ..Default::default() }
}

/// Priors of the root's edges as the search uses them.
fn used_priors<G: Game>(tree: &Tree<G>) -> Vec<f32> {
    tree.edges_of(tree.node(0).unwrap()).map(|edge| edge.prior).collect()
}

fn raw_priors<G: Game>(tree: &Tree<G>) -> Vec<f32> {
    tree.summary().unwrap().moves.iter().map(|m| m.prior).collect()
}

#[test]
fn noise_is_mixed_in_once_and_renewed() {
    let game = Pairs;
    let mut tree = Tree::new(with(Algorithm::Puct), game.startpos());
    let mut evaluator = HashEval::new(1);
    tree.begin(noisy(30), Stream::test(1));
    drive(&mut tree, &game, &mut evaluator, 1);
    let (raw, first) = (raw_priors(&tree), used_priors(&tree));
    let mut draw = vec![0.0; raw.len()];
    Stream::test(1).dirichlet(f64::from(NOISE.concentration) / raw.len() as f64, &mut draw);
    for ((raw, noise), used) in raw.iter().zip(&draw).zip(&first) {
        assert!((used - (0.75 * raw + 0.25 * noise)).abs() < 1e-6);
    }
    assert!((first.iter().sum::<f32>() - 1.0).abs() < 1e-5);

    // The same root again: other noise on the same priors, and without noise the priors themselves.
    tree.begin(noisy(30), Stream::test(2));
    let second = used_priors(&tree);
    assert_ne!(first, second);
    assert!(raw.iter().zip(&second).all(|(raw, used)| *used >= 0.75 * raw - 1e-6));
    assert_eq!(raw_priors(&tree), raw);
    for seed in 3..50 {
        tree.begin(noisy(1), Stream::test(seed));
        drive(&mut tree, &game, &mut evaluator, 1);
    }
    tree.begin(noisy(30), Stream::test(1));
    assert_eq!(used_priors(&tree), first);
    tree.begin(Budget::plain(30), Stream::test(1));
    assert_eq!(used_priors(&tree), raw);

    // The next root had none yet, and gets its own.
    tree.begin(noisy(60), Stream::test(5));
    drive(&mut tree, &game, &mut evaluator, 1);
    let summary = tree.summary().unwrap();
    tree.advance(&game, summary.moves[summary.best].action);
    let kept = used_priors(&tree);
    assert!(tree.summary().is_none(), "a new root has no search yet");
    tree.begin(noisy(60), Stream::test(6));
    assert_eq!(raw_priors(&tree), kept);
    assert_ne!(used_priors(&tree), kept);
}

#[test]
fn a_forced_move_and_a_gumbel_search_take_no_dirichlet_noise() {
    let forced = Graph::tree(&first([second([WIN1, DRAW])]));
    let mut tree = Tree::new(with(Algorithm::Puct), forced.startpos());
    tree.begin(noisy(1), Stream::test(1));
    drive(&mut tree, &forced, &mut Uniform, 1);
    assert_eq!(used_priors(&tree), [1.0]);
    let game = Pairs;
    let mut tree = Tree::new(with(Algorithm::Gumbel), game.startpos());
    tree.begin(noisy(5), Stream::test(1));
    drive(&mut tree, &game, &mut HashEval::new(1), 1);
    assert_eq!(used_priors(&tree), raw_priors(&tree));
}

/// Pearson's statistic of `counts` against `expected` shares.
fn chi_square(counts: &[u32], expected: &[f64]) -> f64 {
    let total: f64 = counts.iter().map(|&c| f64::from(c)).sum();
    counts
        .iter()
        .zip(expected)
        .map(|(&count, share)| (f64::from(count) - total * share).powi(2) / (total * share))
        .sum()
}

#[test]
fn gumbel_draws_sample_from_the_prior() {
    let game = Pairs;
    let draws = 20_000;
    for simulations in [0, 1] {
        let mut counts = [0; 16];
        let mut priors = Vec::new();
        let mut tree = Tree::new(with(Algorithm::Gumbel), game.startpos());
        for seed in 0..draws {
            tree.reset(&game.startpos());
            tree.begin(noisy(simulations), Stream::test(seed));
            drive(&mut tree, &game, &mut HashEval::new(8), 1);
            let summary = tree.summary().unwrap();
            assert_eq!(summary.simulations, simulations);
            counts[summary.best] += 1;
            priors = summary.moves.iter().map(|m| f64::from(m.prior)).collect();
        }
        // 15 degrees of freedom: mean 15, standard deviation 5.5; a right sampler exceeds 44.3 once in 10,000.
        let statistic = chi_square(&counts, &priors);
        assert!(statistic < 44.3, "{simulations} simulations: {statistic}, {counts:?}");
        // The test can tell: against the uniform distribution the statistic is far out.
        assert!(chi_square(&counts, &[1.0 / 16.0; 16]) > 500.0);
    }
}

#[test]
fn without_draws_the_best_prior_is_played_at_no_and_one_simulation() {
    let game = Pairs;
    for algorithm in [Algorithm::Gumbel, Algorithm::Puct] {
        for simulations in [0, 1] {
            let tree =
                searched(&game, &game.startpos(), &with(algorithm), Budget::plain(simulations), &mut HashEval::new(8));
            let summary = tree.summary().unwrap();
            let top = summary.moves.iter().map(|m| m.prior).fold(0.0, f32::max);
            assert_eq!(summary.moves[summary.best].prior, top);
            assert!(summary.moves.iter().all(|m| m.policy.is_finite()));
        }
    }
}

#[test]
fn sequential_halving_visits_what_the_paper_says() {
    let game = Pairs;
    let params = SearchParams { gumbel_considered: 8, solver: false, ..with(Algorithm::Gumbel) };
    for seed in 0..20 {
        let mut tree = Tree::new(params.clone(), game.startpos());
        tree.begin(noisy(96), Stream::test(seed));
        drive(&mut tree, &game, &mut HashEval::new(seed), 1);
        let mut visits: Vec<u32> = tree.summary().unwrap().moves.iter().map(|m| m.visits).collect();
        visits.sort_unstable_by(|a, b| b.cmp(a));
        // Three phases of 32: 8 moves 4 times, 4 moves 8 times more, 2 moves 16 times more.
        assert_eq!(visits[..9], [28, 28, 12, 12, 4, 4, 4, 4, 0]);
    }
}

#[test]
fn endless_analysis_goes_on_beyond_the_schedule() {
    let game = Pairs;
    for algorithm in [Algorithm::Gumbel, Algorithm::Puct] {
        let mut tree = Tree::new(SearchParams { solver: false, ..with(algorithm) }, game.startpos());
        tree.begin(Budget::plain(10), Stream::test(1));
        drive(&mut tree, &game, &mut HashEval::new(1), 1);
        tree.extend(3000);
        drive(&mut tree, &game, &mut HashEval::new(1), 1);
        let summary = tree.summary().unwrap();
        assert_eq!(summary.simulations, 3000);
        let looked_at = summary.moves.iter().filter(|m| m.visits > 10).count();
        assert!(looked_at > 1, "{summary:?}");
        if algorithm == Algorithm::Gumbel {
            // Visits follow the policy that the search ends with, as inside the tree.
            let best = summary.moves[summary.best];
            assert!(summary.moves.iter().all(|m| m.visits <= best.visits));
        }
        // The largest budget costs nothing up front.
        tree.begin(Budget::plain(u32::MAX), Stream::test(1));
        assert!(!tree.finished());
    }
}

fn summary_of(policies: &[f32]) -> SearchSummary {
    let value = WdlAbs { first: 0.5, draw: 0.0, second: 0.5 };
    let moves: Vec<MoveSummary> = policies
        .iter()
        .enumerate()
        .map(|(at, &policy)| MoveSummary {
            action: Action(at as u16),
            prior: 0.0,
            visits: 0,
            policy,
            value,
            proven: None,
        })
        .collect();
    SearchSummary { mover: Player::First, value, proven: None, simulations: 1, moves, best: 0 }
}

#[test]
fn temperature_one_follows_the_policy_and_two_its_root() {
    let policy = [0.5, 0.3, 0.15, 0.05, 0.0];
    let summary = summary_of(&policy);
    let mut random = Stream::test(40);
    for temperature in [0.5f64, 1.0, 2.0] {
        let weights = policy.map(|p| f64::from(p).powf(1.0 / temperature));
        let total: f64 = weights.iter().sum();
        let mut counts = [0; 5];
        (0..40_000).for_each(|_| counts[summary.choose(temperature as f32, &mut random)] += 1);
        assert_eq!(counts[4], 0, "a move without policy is never drawn");
        // Three degrees of freedom: a right sampler exceeds 21.1 once in 10,000.
        let statistic = chi_square(&counts[..4], &weights.map(|w| w / total)[..4]);
        assert!(statistic < 21.1, "temperature {temperature}: {statistic}, {counts:?}");
    }
}

#[test]
fn no_temperature_breaks_the_choice() {
    let mut random = Stream::test(41);
    let summary = summary_of(&[0.2, 0.5, 0.299_999, 1e-6, 0.0]);
    for exponent in -9..=9 {
        let temperature = 10f32.powi(exponent);
        let mut counts = [0; 5];
        (0..300).for_each(|_| counts[summary.choose(temperature, &mut random)] += 1);
        assert_eq!(counts[4], 0);
        if temperature <= 1e-3 {
            assert_eq!(counts[1], 300, "cold is greedy");
        }
        if temperature >= 1e3 {
            assert!(counts[..4].iter().all(|&c| c > 40), "hot is uniform: {counts:?}");
        }
    }
    for temperature in [0.0, f32::MIN_POSITIVE, f32::MAX, f32::INFINITY] {
        assert!(summary.choose(temperature, &mut random) < 4);
    }
    assert_eq!(summary.choose(0.0, &mut random), summary.best);
    let proven = SearchSummary { proven: Some(Outcome::Draw), best: 2, ..summary };
    assert!((0..50).all(|_| proven.choose(1.0, &mut random) == 2), "a proven result is not gambled away");
}

/// A tree of draws, too large for a small search.
fn bush(depth: u32) -> Spec {
    if depth == 0 { DRAW } else { Spec::Move(Player::First, vec![bush(depth - 1), bush(depth - 1), bush(depth - 1)]) }
}

#[test]
fn moves_proven_lost_are_not_drawn() {
    let game = Graph::tree(&second([WIN1, bush(6), first([WIN1, DRAW]), bush(6), WIN1]));
    let mut random = Stream::test(42);
    for algorithm in [Algorithm::Gumbel, Algorithm::Puct] {
        let tree = searched(&game, &game.startpos(), &with(algorithm), Budget::plain(80), &mut Uniform);
        let summary = tree.summary().unwrap();
        assert_eq!(summary.proven, None);
        for lost in [0, 2, 4] {
            assert_eq!(summary.moves[lost].proven, Some(Outcome::Win(Player::First)));
            assert_eq!(summary.moves[lost].policy, 0.0);
        }
        assert!((0..200).all(|_| [1, 3].contains(&summary.choose(100.0, &mut random))));
        assert!([1, 3].contains(&summary.best));
    }
}

#[test]
fn the_principal_line_keeps_a_proven_result() {
    // The first reply looks best to a uniform search for long, and loses; the line must not show it.
    let game = Graph::tree(&first([second([bush(3), first([DRAW]), WIN2]), second([WIN1, first([WIN1, WIN2])])]));
    for algorithm in [Algorithm::Gumbel, Algorithm::Puct] {
        let tree = searched(&game, &game.startpos(), &with(algorithm), Budget::plain(3000), &mut HashEval::new(1));
        let summary = tree.summary().unwrap();
        assert_eq!(summary.proven, Some(Outcome::Win(Player::First)));
        let mut state = game.startpos();
        for action in tree.principal_line(&game, 10) {
            assert_eq!(game.end(&state), None);
            game.play(&mut state, action);
        }
        assert_eq!(game.end(&state).map(|end| end.outcome), Some(Outcome::Win(Player::First)));
    }
}

#[test]
fn forced_playouts_reach_every_visited_move_and_are_pruned_again() {
    let game = Pairs;
    let search = |forced_playouts: f32, budget: Budget| {
        let mut tree = Tree::new(
            SearchParams { forced_playouts, c_puct: 0.1, solver: false, ..with(Algorithm::Puct) },
            game.startpos(),
        );
        tree.begin(budget, Stream::test(4));
        drive(&mut tree, &game, &mut HashEval::new(1), 1);
        (used_priors(&tree), tree.summary().unwrap().moves)
    };
    let (priors, moves) = search(10.0, noisy(200));
    let total: u32 = moves.iter().map(|m| m.visits).sum();
    for (m, prior) in moves.iter().zip(&priors).filter(|(m, _)| m.visits > 0) {
        // The last descents may have been forced on others.
        assert!(f64::from(m.visits) + 2.0 > f64::from(10.0 * prior * total as f32).sqrt().floor(), "{m:?}");
    }
    assert!((moves.iter().map(|m| m.policy).sum::<f32>() - 1.0).abs() < 1e-5);
    // Less of the target on what was forced, more on the most visited move.
    let share = |m: &MoveSummary| m.policy - m.visits as f32 / total as f32;
    let most = moves.iter().max_by_key(|m| m.visits).unwrap();
    assert!(share(most) > 0.0);
    assert!(moves.iter().filter(|m| m.action != most.action).any(|m| share(m) < 0.0));
    // Nothing of the kind without noise, or without the key.
    assert_eq!(search(10.0, Budget::plain(200)), search(0.0, Budget::plain(200)));
    let (_, plain) = search(0.0, noisy(200));
    assert!(plain.iter().all(|m| m.policy == m.visits as f32 / total as f32));
}
