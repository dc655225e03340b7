//! What the network should say about a position of a stored game.

use crate::game::WdlAbs;

use super::packed::PackedGame;

/// Value target of ply `ply`, with the players named: the proven result where there is one; else the game's result
/// mixed with the root value, `(1 - q_mix) * result + q_mix * root`.
///
/// Where nothing was searched (a forced move) the root value is that of the next search in the game: the forced
/// move leads there whatever happens, and both values name the players. Where no search follows it is the result
/// alone.
pub(super) fn value_target(game: &PackedGame, ply: usize, q_mix: f32) -> WdlAbs {
    if let Some(proven) = game.proven(ply) {
        return proven.wdl();
    }
    let result = game.outcome.wdl();
    game.search_value(ply).map_or(result, |root| result.mix(root, q_mix))
}
