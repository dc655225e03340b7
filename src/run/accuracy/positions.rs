//! The positions that a player is examined on.

use std::collections::HashSet;

use super::DEFAULT_POSITIONS;
use crate::game::{Game, legal_list};
use crate::util::rng::{Purpose, Stream};

/// A game with no more open positions than this is examined in all of them.
const SMALL_GAME: usize = 10_000;

/// Random games that are tried for one position. Deep ones are rare where games end early.
const TRIES: usize = 2000;

/// Open positions to examine, by ascending plies, no two alike: of a small game all, or `count` of them drawn without
/// preference; of a larger one positions of random games with `first_ply` plies and more, as many of each number of plies as
/// of the others where there are such.
pub(super) fn positions<G: Game>(game: &G, first_ply: usize, count: Option<usize>, seed: u64) -> Vec<G::State> {
    if let Some(mut all) = all(game) {
        if let Some(count) = count {
            Stream::keyed(seed, Purpose::Analysis, &[]).shuffle(&mut all);
            all.truncate(count);
            all.sort_by_key(|state| game.ply(state));
        }
        return all;
    }
    let count = count.unwrap_or(DEFAULT_POSITIONS);
    let plies: Vec<usize> = (first_ply..game.max_plies()).collect();
    let mut found = Vec::with_capacity(count);
    let mut seen = HashSet::new();
    for (at, &ply) in plies.iter().enumerate() {
        let wanted = (at + 1) * count / plies.len() - at * count / plies.len();
        let mut random = Stream::keyed(seed, Purpose::Analysis, &[ply as u64]);
        let before = found.len();
        for _ in 0..wanted * TRIES {
            if found.len() == before + wanted {
                break;
            }
            if let Some(state) = draw(game, ply, &mut random)
                && seen.insert(game.key(&state))
            {
                found.push(state);
            }
        }
    }
    found
}

/// The position after `ply` random plies; `None` when the game ends before.
fn draw<G: Game>(game: &G, ply: usize, random: &mut Stream) -> Option<G::State> {
    let mut state = game.start(random);
    let mut scratch = Vec::new();
    while game.end(&state).is_none() {
        if game.ply(&state) == ply {
            return Some(state);
        }
        let action = game.random_action(&state, random, &mut scratch);
        game.play(&mut state, action);
    }
    None
}

/// Every open position that can come of the start position, by ascending plies, `None` when there are too many.
fn all<G: Game>(game: &G) -> Option<Vec<G::State>> {
    let mut seen = HashSet::from([game.startpos()]);
    let mut found = vec![game.startpos()];
    let mut next = 0;
    while next < found.len() {
        for action in legal_list(game, &found[next]) {
            let mut state = found[next].clone();
            game.play(&mut state, action);
            if game.end(&state).is_none() && seen.insert(state.clone()) {
                found.push(state);
            }
        }
        if found.len() > SMALL_GAME {
            return None;
        }
        next += 1;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::games::connect4::ConnectFour;
    use crate::games::tictactoe::TicTacToe;

    #[test]
    fn a_small_game_is_examined_in_all_positions() {
        let plies = |states: &[_]| -> Vec<usize> { states.iter().map(|state| TicTacToe.ply(state)).collect() };
        let every = positions(&TicTacToe, 0, None, 1);
        assert_eq!((every.len(), every[0]), (4520, TicTacToe.startpos()));
        assert!(plies(&every).is_sorted());
        let some = positions(&TicTacToe, 0, Some(50), 1);
        assert_eq!(some.iter().collect::<HashSet<_>>().len(), 50);
        assert!(plies(&some).is_sorted());
        assert_ne!(some, positions(&TicTacToe, 0, Some(50), 2));
        assert_eq!(positions(&TicTacToe, 0, Some(5000), 2).len(), 4520);
    }

    #[test]
    fn a_large_game_is_examined_evenly() {
        let game = ConnectFour;
        let states = positions(&game, 12, Some(100), 3);
        assert_eq!(states, positions(&game, 12, Some(100), 3));
        let mut counts = [0; 42];
        states.iter().for_each(|state| counts[game.ply(state)] += 1);
        assert!(counts[..12].iter().all(|&count| count == 0));
        assert!(counts[12..38].iter().all(|&count| count == 3 || count == 4), "{counts:?}");
        assert!(states.iter().all(|state| game.end(state).is_none()));
        assert_eq!(states.iter().map(|state| game.key(state)).collect::<HashSet<_>>().len(), states.len());
    }
}
