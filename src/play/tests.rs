//! The game loop on small games: what is played does not depend on threads or slots, records are games, matches count.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::*;
use crate::data::{Finish, GameRecord, OldGame, PlyKind};
use crate::eval::{
    Cached, Counting, EvalCache, EvalError, EvalWork, Evaluations, Evaluator, HashEval, Leaves, Symmetrized,
    SymmetryMode, Uniform,
};
use crate::game::{Game, Outcome};
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
            script: None,
            random,
        })
    }
}

fn self_player<G: Game>(algorithm: Algorithm) -> Player<G> {
    let seat = SearchSeat {
        evaluators: Arc::new(|| HashEval::new(3)),
        search: SearchParams { algorithm, ..SearchParams::default() },
        simulations: 20,
        time: None,
        temperature: Temperature { initial: 1.0, plies: 6, later: 0.0 },
        noise: Some(RootNoise { fraction: 0.25, concentration: 10.0 }),
        gumbel_noise: true,
        fast: Some(FastMoves { full_share: 0.5, simulations: 5 }),
        teaching: Teaching::default(),
    };
    Player::new("hash", Seat::Search(seat))
}

fn self_play<G: Game>(game: &G, algorithm: Algorithm, threads: usize, slots: usize, games: usize) -> Vec<GameRecord> {
    played_by(game, self_player(algorithm), PoolParams { threads, slots }, games)
}

fn played_by<G: Game>(game: &G, player: Player<G>, pool: PoolParams, games: usize) -> Vec<GameRecord> {
    let tables = Count { game: game.clone(), games, next: AtomicUsize::new(0) };
    let out = Mutex::new(Vec::new());
    let stats = PoolStats::default();
    play_pool(game, &[player], &tables, pool, &|| false, &stats, &|game| {
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

fn params<G: Game>(encounters: Vec<[usize; 2]>, pairs: usize, threads: usize) -> MatchParams<G> {
    let openings = Openings::random(2, Stream::keyed(5, Purpose::Opening, &[]));
    MatchParams { encounters, pairs, openings, sprt: None, seed: 5, pool: PoolParams { threads, slots: 3 } }
}

/// Plays a match; its report, and all its games in order.
fn contest<G: Game>(
    game: &G,
    players: &[Player<G>],
    params: &MatchParams<G>,
    played: Vec<Finished>,
) -> (MatchReport, Vec<Finished>) {
    let games = Mutex::new(played.clone());
    let finished = |game: &Finished| games.lock().unwrap().push(game.clone());
    let referee = Referee { stop: &|| false, finished: &finished, progress: &|_| {} };
    let report = play_match(game, players, params, played, &PoolStats::default(), &referee).unwrap();
    let mut games = games.into_inner().unwrap();
    games.sort_by_key(|game| game.index);
    (report, games)
}

#[test]
fn plain_mcts_beats_random_play_and_the_report_adds_up() {
    let game: ConnectFour = new();
    let players = [Player::mcts(200, 1.0), Player::random()];
    let (report, all) = contest(&game, &players, &params(vec![[0, 1]], 20, 2), Vec::new());
    let games = report.tally().games();
    assert_eq!((games.total(), report.games, all.len()), (40, 40, 40));
    assert_eq!(report.tally().pairs.total(), 20);
    assert!(games.score().unwrap() > 0.9, "{games:?}");
    assert_eq!((report.distinct, report.reasons.values().sum::<u64>()), (40, 40));
    let plies: usize = all.iter().map(|game| game.record.plies.len()).sum();
    assert_eq!((report.plies, report.own_plies), (plies as u64, plies as u64 - 80));
    // Who moves is known from the record; the last column of a full board is no decision.
    assert!(report.clocks.iter().map(|clock| clock.moves).sum::<u64>() <= report.own_plies);
    assert!(report.clocks[0].average() > report.clocks[1].average());
    for (index, game) in all.iter().enumerate() {
        assert_eq!((game.index, game.fault.clone()), (index as u64, None));
        // Random play has no opinion, the search has one whenever there is a choice.
        let mcts = usize::from(game.seats[1] == 0);
        for (ply, opinion) in game.opinions.iter().enumerate().skip(2) {
            assert!(opinion.is_none() || ply % 2 == mcts, "game {index}, ply {ply}");
        }
        assert!(game.opinions.iter().flatten().count() > 0);
    }
    // Each opening is played from both sides.
    for pair in all.chunks(2) {
        let opening = |game: &Finished| game.record.plies[..2].iter().map(|ply| ply.action).collect::<Vec<_>>();
        assert_eq!(opening(&pair[0]), opening(&pair[1]));
        assert_eq!((pair[0].seats, pair[1].seats), ([0, 1], [1, 0]));
    }
    let (again, _) = contest(&game, &players, &params(vec![[0, 1]], 20, 1), Vec::new());
    assert_eq!(again.tally(), report.tally());
}

#[test]
fn players_in_another_order_play_the_same_games() {
    let game: TicTacToe = new();
    let names = |games: &[Finished], players: &[Player<TicTacToe>]| -> Vec<([String; 2], Vec<u16>)> {
        let named = |game: &Finished| {
            let moves = game.record.plies.iter().map(|ply| ply.action.0).collect();
            (game.seats.map(|seat| players[seat].name.clone()), moves)
        };
        let mut all: Vec<_> = games.iter().map(named).collect();
        all.sort();
        all
    };
    let players = [Player::mcts(20, 1.0), Player::random(), Player::mcts(50, 1.0)];
    let swapped = [players[2].clone(), players[1].clone(), players[0].clone()];
    let (report, games) = contest(&game, &players, &params(round_robin(3), 30, 2), Vec::new());
    let (mirrored, others) = contest(&game, &swapped, &params(round_robin(3), 30, 1), Vec::new());
    assert_eq!(names(&games, &players), names(&others, &swapped));
    assert_eq!(report.encounters, [[0, 1], [0, 2], [1, 2]]);
    // The second encounter is that of the two that changed places.
    let (a, b) = (&report.tallies[1], &mirrored.tallies[1]);
    assert_eq!((a.as_first.wins, a.as_second.wins), (b.as_second.losses, b.as_first.losses));
    let (alone, _) = contest(&game, &[players[0].clone(), players[2].clone()], &params(gauntlet(2), 30, 2), Vec::new());
    assert_eq!(alone.tally(), a, "others make no difference");
    // A player against itself plays two different games from each opening.
    let twins = [Player::random(), Player::random()];
    let (report, games) = contest(&game, &twins, &params(gauntlet(2), 50, 2), Vec::new());
    assert!(report.distinct > 90, "{}", report.distinct);
    assert!(games.chunks(2).any(|pair| pair[0].record.plies != pair[1].record.plies));
}

#[test]
fn a_match_goes_on_from_the_games_that_were_played() {
    let game: ConnectFour = new();
    let players = [Player::mcts(30, 1.0), Player::random(), Player::mcts(60, 1.0)];
    let params = params(round_robin(3), 6, 2);
    let (whole, games) = contest(&game, &players, &params, Vec::new());
    let some: Vec<Finished> = games.iter().filter(|game| game.index % 3 != 1).cloned().rev().collect();
    let (report, again) = contest(&game, &players, &params, some);
    assert_eq!(again.len(), 36);
    assert_eq!((report.tallies, report.distinct, report.plies), (whole.tallies, whole.distinct, whole.plies));
    assert!(again.iter().zip(&games).all(|(a, b)| a.record == b.record));
    let (report, again) = contest(&game, &players, &params, games);
    assert_eq!((report.games, report.interrupted, again.len()), (36, false, 36));
}

#[test]
fn a_sequential_test_ends_the_match_at_the_same_pair_whatever_the_threads() {
    let game: TicTacToe = new();
    let players = [Player::mcts(300, 1.0), Player::random()];
    let [one, three] = [1, 3].map(|threads| {
        let params = MatchParams { sprt: Some(Sprt::new(0.0, 100.0)), ..params(vec![[0, 1]], 300, threads) };
        contest(&game, &players, &params, Vec::new()).0
    });
    assert_eq!(one.verdict, Some(Verdict::AcceptH1));
    assert!(one.games < 600 && !one.interrupted);
    assert_eq!(one.tally(), three.tally());
}

#[test]
fn a_clock_ends_the_search_of_a_move() {
    let game: ConnectFour = new();
    let time = Some(std::time::Duration::from_millis(3));
    let seat = SearchSeat {
        evaluators: Arc::new(|| Uniform),
        search: SearchParams { max_nodes: 50_000_000, ..SearchParams::default() },
        simulations: u32::MAX,
        time,
        temperature: Temperature::GREEDY,
        noise: None,
        gumbel_noise: false,
        fast: None,
        teaching: Teaching::default(),
    };
    let network = Player::new("timed", Seat::Search(seat));
    let mcts = Player::new("mcts", Seat::Mcts { simulations: 100_000_000, time, c: 1.0 });
    let (report, games) = contest(&game, &[network, mcts], &params(vec![[0, 1]], 1, 2), Vec::new());
    assert_eq!(report.games, 2);
    for clock in &report.clocks {
        // A search that proves its result is over earlier.
        assert!(clock.average().unwrap() < std::time::Duration::from_millis(500), "{clock:?}");
    }
    assert!(games.iter().all(|game| game.fault.is_none() && game.opinions.iter().flatten().count() > 5));
}

#[test]
fn the_policy_alone_plays_without_simulations() {
    let game: ConnectFour = new();
    let player = || {
        let seat = SearchSeat {
            evaluators: Arc::new(|| Uniform),
            search: SearchParams::default(),
            simulations: 0,
            time: None,
            temperature: Temperature::GREEDY,
            noise: None,
            gumbel_noise: false,
            fast: None,
            teaching: Teaching::default(),
        };
        Player::new("policy", Seat::Search(seat))
    };
    let (report, _) = contest(&game, &[player(), player()], &params(vec![[0, 1]], 3, 1), Vec::new());
    assert_eq!(report.tally().games().total(), 6);
}

#[test]
fn a_mover_that_breaks_the_rules_loses_and_is_named() {
    struct Cheat;
    impl Mover<TicTacToe> for Cheat {
        fn choose(&mut self, _: &TicTacToe, _: &Turn<'_, TicTacToe>, _: Stream) -> Result<Choice, String> {
            Ok(crate::game::Action(0).into())
        }
    }
    let game: TicTacToe = new();
    let cheat = Player::new("cheat", Seat::Mover(Arc::new(|| Box::new(Cheat) as Box<dyn Mover<_>>)));
    let (report, games) = contest(&game, &[cheat, Player::random()], &params(vec![[0, 1]], 4, 1), Vec::new());
    assert_eq!(report.tally().games().wins, 0);
    let fault = "cheat played the illegal move a1";
    assert!(games.iter().any(|game| game.fault.as_deref() == Some(fault)) && report.faults[fault] > 0);
    assert_eq!(report.reasons[&Finish::Adjudicated], report.faults[fault]);
}

/// Self-play that teaches as asked.
fn taught<G: Game>(game: &G, teaching: Teaching) -> Vec<GameRecord> {
    let mut player = self_player::<G>(Algorithm::Puct);
    if let Seat::Search(seat) = &mut player.seat {
        (seat.teaching, seat.fast) = (teaching, None);
    }
    played_by(game, player, PoolParams { threads: 2, slots: 3 }, 12)
}

#[test]
fn games_end_when_they_are_proven_and_stay_what_they_were_until_then() {
    let game: TicTacToe = new();
    let whole = taught(&game, Teaching::default());
    let ended = taught(&game, Teaching { end_proven: true, ..Teaching::default() });
    assert!(ended.iter().any(|record| record.end.reason == Finish::Proven));
    for (whole, ended) in whole.iter().zip(&ended) {
        assert_eq!(ended.plies[..ended.plies.len() - 1], whole.plies[..ended.plies.len() - 1]);
        // Whoever plays on from a proven position comes to that result.
        assert_eq!(ended.end.outcome, whole.end.outcome);
        assert!(ended.replay(&game).is_ok());
    }
}

#[test]
fn who_gives_up_loses_and_what_that_is_worth_is_known_from_games_played_on() {
    let game: ConnectFour = new();
    // Searches of hash values below 0.45 are no rarity.
    let resign = |play_on| ResignParams { score: 0.45, searches: 1, play_on };
    let play = |play_on| taught(&game, Teaching { resign: Some(resign(play_on)), ..Teaching::default() });
    let (whole, ended) = (play(1.0), play(0.0));
    let mut wrong = 0;
    for (whole, ended) in whole.iter().zip(&ended) {
        assert_ne!(whole.end.reason, Finish::Resigned);
        let moves = |record: &GameRecord| record.plies.iter().map(|ply| ply.action).collect::<Vec<_>>();
        assert!(moves(whole).starts_with(&moves(ended)));
        let (last, _) = ended.replay(&game).unwrap().last().unwrap();
        if ended.end.reason == Finish::Resigned {
            assert_eq!(ended.end.outcome, Outcome::Win(game.to_move(&last).other()));
            wrong += u64::from(whole.end.outcome != ended.end.outcome);
        } else {
            assert_eq!(whole.plies.len(), ended.plies.len());
        }
    }
    let resigned = ended.iter().filter(|record| record.end.reason == Finish::Resigned).count() as u64;
    assert!(resigned > 2, "{resigned}");
    let of = |records: &[GameRecord]| Resignations::of(&game, resign(0.5), records);
    assert_eq!(of(&ended), Resignations { resigned, played_on: 0, wrong: 0 });
    assert_eq!(of(&whole), Resignations { resigned: 0, played_on: resigned, wrong });
    assert_eq!(of(&whole).wrong_share(), Some(wrong as f64 / resigned as f64));
    assert_eq!(of(&ended).wrong_share(), None);
}

/// Old games as a pool plays them.
struct Again<'a>(&'a ConnectFour, Vec<GameRecord>, AtomicUsize);

impl Tables<ConnectFour> for Again<'_> {
    fn next(&self) -> Option<Table<ConnectFour>> {
        let Self(game, records, next) = self;
        let record = records.get(next.fetch_add(1, Relaxed))?;
        let moves: Vec<_> = record.plies.iter().map(|ply| ply.action).collect();
        let opening = record.plies.iter().take_while(|ply| ply.kind == PlyKind::Opening).count();
        let old = OldGame { start: None, opening, moves: moves.clone(), end: record.end };
        Some(Table {
            index: u64::from(record.index),
            seats: [0, 0],
            start: game.parse_state(&record.start).unwrap(),
            opening: moves[..opening].to_vec(),
            script: Some(old),
            random: Stream::test(u64::from(record.index)),
        })
    }
}

#[test]
fn old_games_are_searched_anew_move_by_move() {
    let game: ConnectFour = new();
    let resign = Some(ResignParams { score: 0.45, searches: 2, play_on: 0.0 });
    let old = taught(&game, Teaching { resign, ..Teaching::default() });
    // Another network, which finds other moves and would give up elsewhere.
    let mut player = self_player::<ConnectFour>(Algorithm::Gumbel);
    if let Seat::Search(seat) = &mut player.seat {
        seat.evaluators = Arc::new(|| HashEval::new(99));
        seat.teaching.resign = resign;
    }
    let tables = Again(&game, old.clone(), AtomicUsize::new(0));
    let found = Mutex::new(Vec::new());
    let pool = PoolParams { threads: 2, slots: 3 };
    play_pool(&game, &[player], &tables, pool, &|| false, &PoolStats::default(), &|game| {
        found.lock().unwrap().push(game.record);
    })
    .unwrap();
    let mut found = found.into_inner().unwrap();
    found.sort_by_key(|record| record.index);
    assert_eq!(found.len(), old.len());
    let mut changed = 0;
    for (new, old) in found.iter().zip(&old) {
        assert_eq!((&new.start, new.end), (&old.start, old.end));
        assert_eq!(new.plies.len(), old.plies.len());
        for (new, old) in new.plies.iter().zip(&old.plies) {
            assert_eq!(new.action, old.action);
            assert_eq!(new.kind == PlyKind::Opening, old.kind == PlyKind::Opening);
            changed += usize::from(new.kind == PlyKind::Full && new.value != old.value);
        }
        new.replay(&game).unwrap().for_each(drop);
    }
    assert!(changed > 50, "{changed}");
}

#[test]
fn surprising_searches_weigh_more_and_the_whole_as_much() {
    let game: TicTacToe = new();
    let (plain, weighed) =
        (taught(&game, Teaching::default()), taught(&game, Teaching { surprise_share: 0.5, ..Teaching::default() }));
    for (plain, weighed) in plain.iter().zip(&weighed) {
        let full = || weighed.plies.iter().filter(|ply| ply.kind == PlyKind::Full);
        let count = full().count() as f32;
        assert!((full().map(|ply| ply.weight).sum::<f32>() - count).abs() < 1e-3);
        assert!(full().all(|ply| ply.weight >= 0.5));
        assert!(count < 2.0 || full().any(|ply| ply.weight > 1.0));
        let moves = |record: &GameRecord| record.plies.iter().map(|ply| ply.action).collect::<Vec<_>>();
        assert_eq!(moves(plain), moves(weighed));
    }
}
