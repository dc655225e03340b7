//! Positions to check laws on.

use std::collections::{HashSet, VecDeque};

use super::{Broken, ensure};
use crate::game::{Game, legal_list};
use crate::util::rng::{Purpose, Stream};

/// Positions near the start.
const NEAR: usize = 3000;

/// The positions of `games` random games, ended ones included, and those that few moves reach from the start
/// (different orders of moves lead to the same ones, which random games hardly do).
pub(super) fn visit<G: Game>(game: &G, seed: u64, games: usize) -> Result<Vec<G::State>, Broken> {
    let mut visited = near(game);
    for index in 0..games {
        let mut random = Stream::keyed(seed, Purpose::Test, &[0, index as u64]);
        let mut state = game.start(&mut random);
        ensure!(game.ply(&state) == 0, "a start has ply 0", "{}", game.state_text(&state));
        ensure!(game.end(&state).is_none(), "a start is not the end", "{}", game.state_text(&state));
        loop {
            visited.push(state.clone());
            let legal = legal_list(game, &state);
            if game.end(&state).is_some() || legal.is_empty() {
                break;
            }
            let ply = game.ply(&state);
            let text = game.state_text(&state);
            let action = legal[random.below(legal.len())];
            game.play(&mut state, action);
            ensure!(
                game.ply(&state) == ply + 1,
                "a move raises the ply by one",
                "{} after {} in {text}: {ply} to {}",
                game.state_text(&state),
                game.action_text(action),
                game.ply(&state)
            );
            ensure!(
                game.ply(&state) <= game.max_plies(),
                "no game is longer than max_plies",
                "{} is at ply {} of {}",
                game.state_text(&state),
                game.ply(&state),
                game.max_plies()
            );
        }
    }
    Ok(visited)
}

/// The first positions, breadth first. Those that look the same are followed once.
fn near<G: Game>(game: &G) -> Vec<G::State> {
    let mut visited = Vec::new();
    let mut followed = HashSet::new();
    let mut queue = VecDeque::from([game.startpos()]);
    while let Some(state) = queue.pop_front() {
        if visited.len() >= NEAR {
            break;
        }
        if followed.insert(game.key(&state)) && queue.len() < NEAR {
            for action in legal_list(game, &state) {
                let mut next = state.clone();
                game.play(&mut next, action);
                queue.push_back(next);
            }
        }
        visited.push(state);
    }
    visited
}
