//! Speed of the rules on one core: random games, counting positions, and Ultimate Tic-Tac-Toe beside the
//! crate `board-game`, both with xoshiro256++.

use std::hint::black_box;

use board_game::board::Board as _;
use board_game::games::sttt::STTTBoard;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rand_for_board_game::SeedableRng as _;
use sparring::game::Game;
use sparring::game::perft::perft;
use sparring::games::{GameVisitor, NAMES, dispatch};
use sparring::util::rng::Stream;

/// Random games of one game from its start.
struct RandomGames<'c>(&'c mut Criterion);

impl GameVisitor for RandomGames<'_> {
    type Output = ();

    fn visit<G: Game>(self, game: G) {
        let (mut random, mut scratch) = (Stream::test(1), Vec::new());
        let mut group = self.0.benchmark_group("random games");
        group.throughput(Throughput::Elements(1));
        group.bench_function(G::NAME, |bencher| {
            bencher.iter(|| {
                let mut state = game.start(&mut random);
                black_box(game.playout(&mut state, &mut random, &mut scratch))
            });
        });
    }
}

/// Positions counted to a depth; the throughput is leaf positions.
struct Counted<'c>(&'c mut Criterion, usize);

impl GameVisitor for Counted<'_> {
    type Output = ();

    fn visit<G: Game>(self, game: G) {
        let state = game.startpos();
        let mut group = self.0.benchmark_group("perft");
        group.throughput(Throughput::Elements(perft(&game, &state, self.1)));
        group.bench_function(format!("{} {}", G::NAME, self.1), |bencher| {
            bencher.iter(|| perft(&game, black_box(&state), self.1));
        });
    }
}

fn random_games(criterion: &mut Criterion) {
    let mut random = rand_for_board_game::rngs::SmallRng::seed_from_u64(1);
    let mut group = criterion.benchmark_group("random games");
    group.throughput(Throughput::Elements(1));
    group.bench_function("uttt of the crate board-game", |bencher| {
        bencher.iter(|| {
            let mut board = STTTBoard::default();
            while let Ok(mv) = board.random_available_move(&mut random) {
                board.play(mv).expect("the move is available");
            }
            black_box(board.outcome())
        });
    });
    group.finish();
    for name in NAMES {
        dispatch(name, RandomGames(criterion)).expect("registered");
    }
}

fn counting(criterion: &mut Criterion) {
    for name in NAMES {
        dispatch(name, Counted(criterion, 5)).expect("registered");
    }
}

criterion_group!(benches, random_games, counting);
criterion_main!(benches);
