//! The rules alone: random games, counted positions.

use super::{Bench, BenchError, Rows};
use crate::game::{Action, Game, perft};
use crate::util::rng::{Purpose, Stream};

/// Random games of one piece of work.
const GAMES: u64 = 64;

/// The counted depth is the last with at most so many positions.
const MOST_POSITIONS: u64 = 300_000;

/// What a thread works with.
struct Worker {
    random: Stream,
    scratch: Vec<Action>,
}

/// Random games of one thread.
fn random_games<G: Game>(game: &G, worker: &mut Worker) -> u64 {
    for _ in 0..GAMES {
        let mut state = game.start(&mut worker.random);
        game.playout(&mut state, &mut worker.random, &mut worker.scratch);
    }
    GAMES
}

/// The last depth with at most [`MOST_POSITIONS`] positions.
fn depth_to_count<G: Game>(game: &G) -> usize {
    let (start, mut depth) = (game.startpos(), 1);
    while depth < game.max_plies() && (1..=MOST_POSITIONS).contains(&perft::perft(game, &start, depth + 1)) {
        depth += 1;
    }
    depth
}

pub(super) fn measure<G: Game>(bench: &Bench<'_, G>, rows: &mut Rows<'_>) -> Result<(), BenchError> {
    let (game, start) = (&bench.game, bench.game.startpos());
    let depth = depth_to_count(game);
    let count = |_: &mut Worker| perft::perft(game, &start, depth);
    let play = |worker: &mut Worker| random_games(game, worker);
    type Work<'a> = &'a (dyn Fn(&mut Worker) -> u64 + Sync);
    let cases: [(String, &str, Work<'_>); 2] =
        [("random games".to_owned(), "games/s", &play), (format!("perft {depth}"), "nodes/s", &count)];
    for (case, unit, work) in cases {
        let worker = || Ok(Worker { random: Stream::keyed(0, Purpose::Analysis, &[]), scratch: Vec::new() });
        rows.add(&case, unit, bench.rate(1, &worker, &|worker| Ok(work(worker)))?);
    }
    Ok(())
}
