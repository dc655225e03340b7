//! Playing games: players, the one game loop, openings, matches.

mod contest;
mod engine;
mod opening;
mod pool;
mod running;
mod seat;
#[cfg(test)]
mod tests;

pub use contest::{MatchParams, MatchReport, MatchTally, play_match};
pub use engine::{Engine, EngineMover, Pace};
pub use opening::{Opening, Openings, random_opening};
pub use pool::{Finished, PoolError, PoolParams, PoolStats, Table, Tables, play_pool};
pub use seat::{EvaluatorSource, FastMoves, Mover, Player, SearchSeat, Seat, Temperature, Turn};
