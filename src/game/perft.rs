//! Counting the positions at a depth ("perft"), the usual check of rules against published tables.

use super::{Action, Game, legal_list};

/// Leaf nodes after exactly `depth` single moves from `state`; a finished game has no successors.
pub fn perft<G: Game>(game: &G, state: &G::State, depth: usize) -> u64 {
    match depth {
        0 => 1,
        _ => count(game, state, depth, &mut vec![Vec::new(); depth.min(game.max_plies())]),
    }
}

/// [`perft`] of each legal move's position at one depth less, in notation order. With depth 0 there is no
/// move to make and the list is empty.
pub fn divide<G: Game>(game: &G, state: &G::State, depth: usize) -> Vec<(Action, u64)> {
    if depth == 0 {
        return Vec::new();
    }
    let count_after = |action| {
        let mut next = state.clone();
        game.play(&mut next, action);
        (action, perft(game, &next, depth - 1))
    };
    legal_list(game, state).into_iter().map(count_after).collect()
}

/// Counts below `state` at `depth` >= 1; `lists` are move lists to use, one for each level while games last.
fn count<G: Game>(game: &G, state: &G::State, depth: usize, lists: &mut [Vec<Action>]) -> u64 {
    let Some((list, deeper)) = lists.split_first_mut() else {
        return 0; // Deeper than any game is long.
    };
    list.clear();
    game.legal(state, list);
    if depth == 1 {
        return list.len() as u64;
    }
    let mut total = 0;
    for &action in list.iter() {
        let mut next = state.clone();
        game.play(&mut next, action);
        total += count(game, &next, depth - 1, deeper);
    }
    total
}
