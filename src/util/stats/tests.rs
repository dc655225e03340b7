use super::*;
use crate::util::rng::Stream;

fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance, "{a} is not within {tolerance} of {b}");
}

/// A tally of pairs in which every game is drawn from these probabilities of loss, draw, win.
fn random_pairs(pairs: usize, chances: &[f64; 3], random: &mut Stream) -> PairCounts {
    let mut counts = PairCounts::default();
    for _ in 0..pairs {
        let mut game = || random.weighted(chances) as f64 / 2.0;
        let (first, second) = (game(), game());
        counts.add(first, second);
    }
    counts
}

/// Probabilities of loss, draw, win for a player `elo` stronger with this share of draws.
fn chances(elo: f64, draws: f64) -> [f64; 3] {
    let win = score_of_elo(elo) - draws / 2.0;
    [1.0 - draws - win, draws, win]
}

#[test]
fn worked_examples_of_the_distribution_functions() {
    close(normal_cdf(0.0), 0.5, 1e-15);
    close(normal_cdf(Z95), 0.975, 1e-14);
    close(normal_cdf(-3.0), 0.001_349_898_031_630_094_6, 1e-15);
    assert_eq!((normal_cdf(9.0), normal_cdf(-9.0)), (1.0, 0.0));
    close(score_of_elo(400.0), 10.0 / 11.0, 1e-15);
    close(elo_of_score(score_of_elo(-123.0)), -123.0, 1e-10);
    assert_eq!(elo_of_score(1.0), f64::INFINITY);
    assert_eq!(elo_of_score(0.0), f64::NEG_INFINITY);
}

#[test]
fn wilson_worked_examples() {
    let half = wilson(5.0, 10.0).expect("there are trials");
    close(half.low, 0.236_593, 1e-6);
    close(half.high, 0.763_407, 1e-6);
    let none = wilson(0.0, 10.0).expect("there are trials");
    assert_eq!(none.low, 0.0);
    close(none.high, 0.277_533, 1e-6);
    assert_eq!(wilson(0.0, 0.0), None);
}

#[test]
fn games_and_pairs_are_scored_alike() {
    let games = GameCounts { wins: 20, draws: 10, losses: 10 };
    assert_eq!(games.score(), Some(0.625));
    close(games.los(), normal_cdf(10.0 / 30f64.sqrt()), 1e-15);
    close(games.elo().expect("games").value, 88.739_499, 1e-6);
    let mut pairs = PairCounts::default();
    pairs.add(1.0, 0.5);
    pairs.add(0.0, 1.0);
    assert_eq!(pairs, PairCounts([0, 0, 1, 1, 0]));
    assert_eq!(pairs.score(), Some(0.625));
    let empty = GameCounts::default();
    assert_eq!((empty.score(), empty.elo(), empty.los()), (None, None, 0.5));
    assert_eq!(GameCounts { draws: 9, ..empty }.los(), 0.5);
}

#[test]
fn the_interval_agrees_with_the_normal_one_when_there_are_many_games() {
    let games = GameCounts { wins: 4000, draws: 2500, losses: 3500 };
    let got = games.score_interval().expect("games");
    // Variance of one game: 0.75 quarter points about the mean 0.525.
    let error = Z95 * ((0.75 * 0.25 - 0.025f64.powi(2)) / 10_000.0).sqrt();
    close(got.low, 0.525 - error, 1e-4);
    close(got.high, 0.525 + error, 1e-4);
}

#[test]
fn one_sided_results_have_an_honest_interval() {
    let wins = GameCounts { wins: 20, ..Default::default() };
    let score = wins.score_interval().expect("games");
    // All won: the likelihood of a score s is at best s^20, so that the interval ends where 20 ln s = -1.92.
    close(score.low, (-Z95 * Z95 / 40.0).exp(), 1e-12);
    assert_eq!(score.high, 1.0);
    let elo = wins.elo().expect("games");
    assert_eq!((elo.value, elo.high), (f64::INFINITY, f64::INFINITY));
    close(elo.low, 399.0, 1.0);

    let nearly = GameCounts { wins: 18, draws: 1, losses: 1 }.elo().expect("games");
    close(nearly.value, 436.43, 0.01);
    assert!(nearly.low > 200.0 && nearly.low < 300.0 && nearly.high > 600.0 && nearly.high < 1000.0, "{nearly:?}");

    let drawn = GameCounts { draws: 10, ..Default::default() }.elo().expect("games");
    close(drawn.value, 0.0, 1e-9);
    assert!(drawn.low < -20.0 && drawn.high > 20.0, "ten draws prove little: {drawn:?}");
    close(drawn.low, -drawn.high, 1e-6);
}

#[test]
fn the_interval_covers_the_truth_as_often_as_it_says() {
    let mut random = Stream::test(1);
    for (elo, draws) in [(0.0, 0.3), (150.0, 0.1), (-60.0, 0.7)] {
        let (truth, chances) = (score_of_elo(elo), chances(elo, draws));
        let trials = 2000;
        let covered = (0..trials).filter(|_| {
            let interval = random_pairs(50, &chances, &mut random).score_interval().expect("games");
            interval.low <= truth && truth <= interval.high
        });
        // The standard deviation of the share is 0.5 %; small samples are off by about one per cent.
        close(covered.count() as f64 / f64::from(trials), 0.95, 0.022);
    }
}

/// Made with an own transcription of the testing framework's two formulas, solved by bisection (not of this code).
#[test]
fn likelihood_ratios_equal_the_reference() {
    let games = GameCounts { losses: 200, draws: 500, wins: 300 };
    close(Sprt::new(0.0, 5.0).llr(&games), 2.674_719_314_285, 1e-9);
    close(Sprt::new(0.0, 20.0).llr(&games), 8.235_198_502_943, 1e-9);
    close(Sprt::new(0.0, 20.0).llr(&PairCounts([3, 40, 130, 60, 7])), 2.835_796_612_616, 1e-9);
    close(Sprt::new(0.0, 5.0).llr(&PairCounts([10, 50, 200, 100, 40])), 3.432_184_812_792, 1e-9);
    // The reference counts results that did not occur as 1/1000.
    close(Sprt::new(0.0, 20.0).llr(&PairCounts([0, 2, 10, 5, 1])), 0.867_818_869, 0.01);
    // The normalised form is an approximation, good to a few per cent.
    let normalized = |elo1| Sprt { scale: EloScale::Normalized, ..Sprt::new(0.0, elo1) };
    close(normalized(5.0).llr(&games), 1.932_153_055, 0.02);
    close(normalized(20.0).llr(&PairCounts([10, 50, 200, 100, 40])), 8.271_902_743, 0.2);
    close(normalized(20.0).llr(&PairCounts([3, 40, 130, 60, 7])), 2.199_994_016, 0.01);
    close(normalized(20.0).llr(&GameCounts { losses: 15, draws: 0, wins: 34 }), 1.012_083_241, 0.06);
    assert_eq!(normalized(20.0).llr(&PairCounts::default()), 0.0);
    assert!(normalized(20.0).llr(&GameCounts { draws: 3, ..Default::default() }).is_finite());
}

#[test]
fn test_bounds_and_verdicts() {
    let sprt = Sprt::new(0.0, 20.0);
    let (lower, upper) = sprt.bounds();
    close(upper, 19f64.ln(), 1e-12);
    close(lower, -upper, 1e-12);
    assert_eq!(sprt.status(&GameCounts::default()), Verdict::Continue);
    assert_eq!(sprt.status(&GameCounts { wins: 200, draws: 0, losses: 100 }), Verdict::AcceptH1);
    assert_eq!(sprt.status(&GameCounts { wins: 100, draws: 0, losses: 200 }), Verdict::AcceptH0);
    assert_eq!(sprt.check(), Ok(()));
    assert_eq!(Sprt::new(5.0, 5.0).check(), Err(SprtError::Hypotheses(5.0, 5.0)));
    assert_eq!(Sprt { alpha: 0.5, ..sprt }.check(), Err(SprtError::ErrorRate("alpha", 0.5)));
    assert!(Sprt { beta: f64::NAN, ..sprt }.check().is_err());
}

/// The share of tests that accept H1 when games come from `chances`, tested after each pair.
fn acceptance(sprt: &Sprt, chances: &[f64; 3], trials: u32, random: &mut Stream) -> f64 {
    let accepted = (0..trials).filter(|_| {
        let mut counts = PairCounts::default();
        loop {
            let mut game = || random.weighted(chances) as f64 / 2.0;
            let (first, second) = (game(), game());
            counts.add(first, second);
            match sprt.status(&counts) {
                Verdict::Continue => {}
                Verdict::AcceptH0 => break false,
                Verdict::AcceptH1 => break true,
            }
        }
    });
    accepted.count() as f64 / f64::from(trials)
}

#[test]
fn the_test_errs_no_more_often_than_it_says() {
    let mut random = Stream::test(2);
    let sprt = Sprt::new(0.0, 60.0);
    // The standard deviation of each share is below 0.7 %; overshoot makes errors rarer than 5 %, but they do occur.
    let wrong = acceptance(&sprt, &chances(0.0, 0.3), 1000, &mut random);
    assert!((0.01..0.075).contains(&wrong), "{wrong}");
    let right = acceptance(&sprt, &chances(60.0, 0.3), 1000, &mut random);
    assert!((0.925..0.99).contains(&right), "{right}");
    // Normalised: an Elo difference that is as many standard deviations of one game.
    let sprt = Sprt { scale: EloScale::Normalized, ..sprt };
    let deviation = 0.7f64.sqrt() / 2.0;
    let elo = elo_of_score(0.5 + deviation * 60.0 * std::f64::consts::LN_10 / 800.0);
    let right = acceptance(&sprt, &chances(elo, 0.3), 1000, &mut random);
    assert!((0.925..0.99).contains(&right), "{right}");
}

#[test]
fn two_players_are_rated_by_the_elo_formula() {
    let games = [Encounter { a: 1, b: 0, points: 75.0, games: 100.0 }];
    let ratings = rate(2, Anchor { player: 0, elo: 1000.0 }, &games, 0.0).expect("determined");
    assert_eq!(ratings[0], Estimate { value: 1000.0, low: 1000.0, high: 1000.0 });
    close(ratings[1].value, 1000.0 + elo_of_score(0.75), 1e-6);
    // Standard error: 400 / ln 10 / √(n p (1 - p)).
    close(ratings[1].high - ratings[1].value, Z95 * 400.0 / 10f64.ln() / 18.75f64.sqrt(), 1e-6);
    close(ratings[1].value - ratings[1].low, ratings[1].high - ratings[1].value, 1e-9);
}

#[test]
fn consistent_results_give_back_the_ratings_they_came_from() {
    let truth = [0.0, 310.0, -80.0, 1200.0, 655.0];
    let mut games = Vec::new();
    for (a, b) in [(1, 0), (2, 0), (3, 1), (4, 1), (3, 4), (2, 4)] {
        games.push(Encounter { a, b, points: 40.0 * score_of_elo(truth[a] - truth[b]), games: 40.0 });
    }
    let ratings = rate(5, Anchor { player: 1, elo: 310.0 }, &games, 0.0).expect("determined");
    for (rating, truth) in ratings.iter().zip(truth) {
        close(rating.value, truth, 1e-5);
        assert!(rating.low <= truth + 1e-5 && truth - 1e-5 <= rating.high);
    }
    assert!(ratings[3].high - ratings[3].low > ratings[4].high - ratings[4].low, "farther is less certain");
}

#[test]
fn joint_intervals_cover_the_truth() {
    let truth = [0.0, 100.0, 250.0, 180.0];
    let mut random = Stream::test(3);
    let (mut covered, mut cases) = (0, 0);
    for _ in 0..400 {
        let mut games = Vec::new();
        for a in 1..4 {
            for b in 0..a {
                let chance = score_of_elo(truth[a] - truth[b]);
                let points = (0..60).filter(|_| random.unit() < chance).count() as f64;
                games.push(Encounter { a, b, points, games: 60.0 });
            }
        }
        let ratings = rate(4, Anchor { player: 0, elo: 0.0 }, &games, 0.0).expect("determined");
        cases += 3;
        covered += (1..4).filter(|&a| ratings[a].low <= truth[a] && truth[a] <= ratings[a].high).count();
    }
    close(covered as f64 / f64::from(cases), 0.95, 0.025);
}

#[test]
fn undetermined_ratings_are_refused_with_the_player() {
    let anchor = Anchor { player: 0, elo: 0.0 };
    let swept =
        [Encounter { a: 1, b: 0, points: 10.0, games: 10.0 }, Encounter { a: 2, b: 1, points: 6.0, games: 10.0 }];
    assert_eq!(rate(3, anchor, &swept, 0.0), Err(RatingError::Unbounded(1)));
    let ratings = rate(3, anchor, &swept, 1.0).expect("the prior bounds it");
    close(ratings[1].value, elo_of_score(10.5 / 11.0), 1e-6);
    assert_eq!(rate(4, anchor, &swept, 1.0), Err(RatingError::Unconnected(3)));
    let nonsense = [Encounter { a: 1, b: 1, points: 1.0, games: 1.0 }];
    assert_eq!(rate(2, anchor, &nonsense, 0.0), Err(RatingError::Impossible(0)));
    assert_eq!(rate(1, anchor, &[], 0.0).expect("the anchor alone").len(), 1);
}
