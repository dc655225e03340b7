//! What games of a game are like, as far as memory and disk are concerned.

use crate::game::Game;
use crate::run::state::RunState;
use crate::util::rng::{Purpose, Stream};

/// Random games that are looked at.
const SAMPLE: u64 = 40;
/// Games of a run that say more than random ones.
const ENOUGH: u64 = 200;

/// What games are like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nature {
    /// Plies of a game, on average.
    pub mean_plies: f64,
    /// The same at most: games of trained networks can be longer than random ones.
    pub plies: f64,
    /// Legal moves of a position, on average, with room for better games.
    pub moves: f64,
    /// Bytes of a position as search holds it.
    pub state: u64,
}

impl Nature {
    /// Looks at random games, and at those that a run has played.
    pub(super) fn of<G: Game>(game: &G, state: &RunState) -> Self {
        let (mut plies, mut moves) = (0u64, 0u64);
        let mut legal = Vec::new();
        for index in 0..SAMPLE {
            let mut random = Stream::keyed(0, Purpose::Analysis, &[index]);
            let mut position = game.start(&mut random);
            while game.end(&position).is_none() {
                legal.clear();
                game.legal(&position, &mut legal);
                game.play(&mut position, legal[random.below(legal.len())]);
                plies += 1;
                moves += legal.len() as u64;
            }
        }
        let random = plies as f64 / SAMPLE as f64;
        let seen = (state.games >= ENOUGH).then(|| state.positions as f64 / state.games as f64);
        let mean_plies = seen.unwrap_or(random).max(1.0);
        Self {
            mean_plies,
            plies: (mean_plies * 1.8).min(game.max_plies() as f64).max(mean_plies),
            moves: moves as f64 / plies.max(1) as f64 * 1.2,
            state: size_of::<G::State>() as u64,
        }
    }
}
