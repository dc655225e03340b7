//! A run: its config, its directory, the cycle of self-play, training and gate, and what can be watched of it.

pub mod accuracy;
pub mod config;
pub mod console;
pub mod cycle;
pub mod dir;
pub mod engine;
pub mod event;
pub mod gate;
pub mod generate;
mod journal;
pub mod learn;
pub mod metrics;
pub mod observer;
pub mod player;
pub mod pointer;
pub mod positions;
pub mod rating;
mod report;
pub mod sample;
mod scalars;
pub mod session;
pub mod state;
pub mod stop;
pub mod strict;
pub mod tensorboard;
pub mod tune;
pub mod verify;
