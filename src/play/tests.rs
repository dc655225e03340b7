//! The game loop on small games: what is played does not depend on threads or slots, records are games, matches count.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::*;
use crate::data::{GameRecord, PlyKind};
use crate::eval::{
    Cached, Counting, EvalCache, EvalError, EvalWork, Evaluations, Evaluator, HashEval, Leaves, Symmetrized,
    SymmetryMode, Uniform,
};
use crate::game::Game;
use crate::games::connect4::ConnectFour;
use crate::games::tictactoe::TicTacToe;
use crate::search::{Algorithm, RootNoise, SearchParams};
use crate::util::rng::{Purpose, Stream};
use crate::util::stats::{Sprt, Tally as _, Verdict};

fn new<G: Game>() -> G {
    G::from_options(&[]).unwrap()
}

struct Count<G: Game> {
    game: G,
    games: usize,
    next: AtomicUsize,
}

impl<G: Game> Tables<G> for Count<G> {
    fn next(&self) -> Option<Table<G>> {
        let index = self.next.fetch_add(1, Relaxed);
        let mut random = Stream::keyed(7, Purpose::SelfPlay, &[index as u64]);
        let opening = random_opening(&self.game, index % 3, &mut random);
        (index < self.games).then(|| Table {
            index: index as u64,
            seats: [0, 0],
            start: opening.start,
            opening: opening.moves,
            random,
        })
    }
}

fn self_player<G: Game>(algorithm: Algorithm) -> Player<G> {
    let seat = SearchSeat {
        evaluators: Arc::new(|| HashEval::new(3)),
        search: SearchParams { algorithm, ..SearchParams::default() },
        simulations: 20,
        temperature: Temperature { initial: 1.0, plies: 6, later: 0.0 },
        noise: Some(RootNoise { fraction: 0.25, concentration: 10.0 }),
        gumbel_noise: true,
        fast: Some(FastMoves { full_share: 0.5, simulations: 5 }),
    };
    Player { name: "hash".to_owned(), seat: Seat::Search(seat) }
}

fn self_play<G: Game>(game: &G, algorithm: Algorithm, threads: usize, slots: usize, games: usize) -> Vec<GameRecord> {
    let tables = Count { game: game.clone(), games, next: AtomicUsize::new(0) };
    let out = Mutex::new(Vec::new());
    let stats = PoolStats::default();
    let pool = PoolParams { threads, slots };
    play_pool(game, &[self_player(algorithm)], &tables, pool, &|| false, &stats, &|game| {
        out.lock().unwrap().push(game.record);
    })
    .unwrap();
    assert_eq!(stats.games.load(Relaxed), games as u64);
    let mut records = out.into_inner().unwrap();
    records.sort_by_key(|record| record.index);
    records
}

#[test]
fn games_do_not_depend_on_threads_or_slots() {
    for algorithm in [Algorithm::Puct, Algorithm::Gumbel] {
        let game: ConnectFour = new();
        let alone = self_play(&game, algorithm, 1, 1, 12);
        assert_eq!(alone, self_play(&game, algorithm, 1, 5, 12));
        assert_eq!(alone, self_play(&game, algorithm, 3, 4, 12));
        for record in &alone {
            record.check(&game).unwrap();
        }
        let kinds = |kind| alone.iter().flat_map(|r| &r.plies).filter(|p| p.kind == kind).count();
        assert_eq!(kinds(PlyKind::Opening), 12);
        assert!(kinds(PlyKind::Full) > 20 && kinds(PlyKind::Fast) > 20);
        assert!(alone.windows(2).any(|pair| pair[0].plies != pair[1].plies));
    }
}

/// Tells of work that it did not do: a nanosecond of each kind for each position.
struct Busy(u64);

impl<G: Game> Evaluator<G> for Busy {
    fn evaluate(&mut self, game: &G, leaves: &Leaves<G>, out: &mut Evaluations) -> Result<(), EvalError> {
        self.0 += leaves.len() as u64;
        Uniform.evaluate(game, leaves, out)
    }

    fn take_work(&mut self) -> EvalWork {
        let positions = std::mem::take(&mut self.0);
        EvalWork { encode_ns: 2 * positions, inference_ns: 3 * positions, positions }
    }
}

#[test]
fn what_evaluators_did_is_counted_through_everything_around_them() {
    let game: ConnectFour = new();
    let cache = Arc::new(EvalCache::new(1 << 20));
    let shared = cache.clone();
    let evaluators = move || {
        let through = Symmetrized::new(Counting::new(Busy(0)), SymmetryMode::Hashed { seed: 1 });
        Cached::new(through, shared.clone())
    };
    let mut player = self_player(Algorithm::Gumbel);
    let Seat::Search(seat) = &mut player.seat else { panic!("it searches") };
    seat.evaluators = Arc::new(evaluators);
    let tables = Count { game, games: 10, next: AtomicUsize::new(0) };
    let stats = PoolStats::default();
    let pool = PoolParams { threads: 2, slots: 3 };
    play_pool(&game, &[player], &tables, pool, &|| false, &stats, &|_| {}).unwrap();
    let [inferences, encode, inference, evaluations] =
        [&stats.inferences, &stats.encode_ns, &stats.inference_ns, &stats.evaluations].map(|n| n.load(Relaxed));
    assert_eq!((inferences, evaluations), (cache.stats().misses, cache.stats().misses + cache.stats().hits));
    assert!(inferences > 0 && inferences < evaluations, "{inferences} of {evaluations}");
    assert_eq!((encode, inference), (2 * inferences, 3 * inferences));
    assert!(stats.evaluation_ns.load(Relaxed) < stats.total_ns.load(Relaxed));
}

#[test]
fn forced_moves_are_not_searched_and_take_the_value_behind_them() {
    let game: TicTacToe = new();
    let records = self_play(&game, Algorithm::Gumbel, 2, 8, 60);
    let mut seen = 0;
    for record in &records {
        record.check(&game).unwrap();
        let forced = record.plies.iter().enumerate().filter(|(_, ply)| ply.kind == PlyKind::Forced);
        for (at, ply) in forced {
            // Only the last cell of a full board is forced.
            assert_eq!((at, record.plies.len()), (8, 9));
            assert_eq!(ply.value, record.end.outcome.wdl());
            seen += 1;
        }
    }
    assert!(seen > 5);
}

fn contest<G: Game>(
    game: &G,
    players: [Player<G>; 2],
    pairs: usize,
    sprt: Option<Sprt>,
    threads: usize,
) -> MatchReport {
    let params = MatchParams { pairs, opening_plies: 2, sprt, seed: 5, pool: PoolParams { threads, slots: 3 } };
    play_match(game, &players, &params, &|| false, &PoolStats::default(), &|_| {}).unwrap()
}

#[test]
fn plain_mcts_beats_random_play_and_the_report_adds_up() {
    let game: ConnectFour = new();
    let report = contest(&game, [Player::mcts(200, 1.0), Player::random()], 20, None, 2);
    let games = report.tally.games();
    assert_eq!((games.total(), report.games.len()), (40, 40));
    assert_eq!(report.tally.pairs.total(), 20);
    assert!(games.score().unwrap() > 0.9, "{games:?}");
    assert_eq!(report.distinct, 40);
    for (index, game) in report.games.iter().enumerate() {
        assert_eq!((game.index, game.fault.clone()), (index as u64, None));
    }
    // Each opening is played from both sides.
    for pair in report.games.chunks(2) {
        let opening = |game: &Finished| game.record.plies[..2].iter().map(|ply| ply.action).collect::<Vec<_>>();
        assert_eq!(opening(&pair[0]), opening(&pair[1]));
        assert_eq!((pair[0].seats, pair[1].seats), ([0, 1], [1, 0]));
    }
    let again = contest(&game, [Player::mcts(200, 1.0), Player::random()], 20, None, 1);
    assert_eq!(again.tally, report.tally);
}

#[test]
fn a_sequential_test_ends_the_match_at_the_same_pair_whatever_the_threads() {
    let game: TicTacToe = new();
    let sprt = Some(Sprt::new(0.0, 100.0));
    let reports: Vec<MatchReport> =
        [1, 3].map(|threads| contest(&game, [Player::mcts(300, 1.0), Player::random()], 300, sprt, threads)).into();
    assert_eq!(reports[0].verdict, Some(Verdict::AcceptH1));
    assert!(reports[0].games.len() < 600 && !reports[0].interrupted);
    assert_eq!(reports[0].tally, reports[1].tally);
}

#[test]
fn the_policy_alone_plays_without_simulations() {
    let game: ConnectFour = new();
    let player = || {
        let seat = SearchSeat {
            evaluators: Arc::new(|| Uniform),
            search: SearchParams::default(),
            simulations: 0,
            temperature: Temperature::GREEDY,
            noise: None,
            gumbel_noise: false,
            fast: None,
        };
        Player { name: "policy".to_owned(), seat: Seat::Search(seat) }
    };
    let report = contest(&game, [player(), player()], 3, None, 1);
    assert_eq!(report.tally.games().total(), 6);
}

#[test]
fn a_mover_that_breaks_the_rules_loses_and_is_named() {
    struct Cheat;
    impl Mover<TicTacToe> for Cheat {
        fn choose(&mut self, _: &TicTacToe, _: &Turn<'_, TicTacToe>, _: Stream) -> Result<crate::game::Action, String> {
            Ok(crate::game::Action(0))
        }
    }
    let game: TicTacToe = new();
    let cheat =
        Player { name: "cheat".to_owned(), seat: Seat::Mover(Arc::new(|| Box::new(Cheat) as Box<dyn Mover<_>>)) };
    let report = contest(&game, [cheat, Player::random()], 4, None, 1);
    assert_eq!(report.tally.games().wins, 0);
    assert!(report.games.iter().any(|g| g.fault.as_deref() == Some("cheat played the illegal move a1")));
}
