//! A run: its config, its directory, the cycle of self-play, training and gate, and what can be watched of it.

pub mod dir;
pub mod pointer;
pub mod stop;
pub mod strict;
