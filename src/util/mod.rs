//! What every layer may use and what knows no game: random streams, statistics, atomic publication, places, memory,
//! the machine, how fast something is done, texts
//! of others.

pub mod machine;
pub mod memory;
pub mod places;
pub mod publish;
pub mod rate;
pub mod rng;
pub mod stats;
pub mod text;
