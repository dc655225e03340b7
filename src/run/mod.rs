//! A run: its config, its directory, the cycle of self-play, training and gate, and what can be watched of it.

pub mod console;
pub mod dir;
pub mod event;
pub mod metrics;
pub mod observer;
pub mod pointer;
mod scalars;
pub mod stop;
pub mod strict;
pub mod tensorboard;
