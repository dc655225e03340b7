//! Playing games: players, the one game loop, openings, matches.

mod contest;
mod engine;
mod opening;
mod pool;
mod resign;
mod running;
mod seat;
mod tally;
#[cfg(test)]
mod tests;
mod timed;

pub use contest::{MatchParams, Referee, gauntlet, play_match, round_robin};
pub use engine::{Engine, EngineMover, Pace, kill_engines};
pub use opening::{Opening, Openings, random_opening};
pub use pool::{Clock, Finished, PoolError, PoolParams, PoolStats, Table, Tables, play_pool};
pub use resign::{ResignParams, Resignations};
pub use seat::{Choice, EvaluatorSource, FastMoves, Mover, Player, SearchSeat, Seat, Teaching, Temperature, Turn};
pub use tally::{MatchReport, MatchTally};
