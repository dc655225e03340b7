//! Perft that can be stopped.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::game::perft::perft;
use crate::game::{Game, legal_list};

/// The lines that answer `go perft depth`; `None` when it was stopped before the end.
pub(super) fn lines<G: Game>(game: &G, state: &G::State, depth: usize, stop: &AtomicBool) -> Option<String> {
    if depth == 0 {
        return Some("Nodes searched: 1".to_owned());
    }
    let mut out = String::new();
    let mut total = 0;
    for action in legal_list(game, state) {
        let mut next = state.clone();
        game.play(&mut next, action);
        let count = count(game, &next, depth - 1, stop)?;
        total += count;
        out.push_str(&format!("{}: {count}\n", game.action_text(action)));
    }
    Some(format!("{out}Nodes searched: {total}"))
}

/// Leaf nodes `depth` moves below `state`. Looks at `stop` before each count of the last three moves.
fn count<G: Game>(game: &G, state: &G::State, depth: usize, stop: &AtomicBool) -> Option<u64> {
    if stop.load(Ordering::Relaxed) {
        return None;
    }
    if depth <= 3 {
        return Some(perft(game, state, depth));
    }
    let children = legal_list(game, state).into_iter().map(|action| {
        let mut next = state.clone();
        game.play(&mut next, action);
        count(game, &next, depth - 1, stop)
    });
    children.sum()
}
