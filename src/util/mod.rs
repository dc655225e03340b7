//! What every layer may use and what knows no game: random streams, statistics, atomic publication.

pub mod rng;
