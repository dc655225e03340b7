//! What is done with bytes from outside, one function for each kind of file or text that a stranger may hand over.
//!
//! Each takes any bytes, has the program read them as it would read them anywhere, and panics where something is not as it
//! should be: a panic inside, or an answer that contradicts itself (what was read and written again reads otherwise).
//! It tells whether the bytes as they are were taken for sound. Where a checksum would keep nearly all altered files from
//! being looked at any further, they are tried once more with the checksum put right.
//!
//! The programs of `cargo fuzz` and the ordinary test `tests/fuzz.rs` share this file.

mod files;
pub mod seal;
mod texts;

pub use files::{checkpoint, games_file, records, run_state, tiny_trainer, training_state};
pub use texts::{config, notation, ugi};

/// A target: its name, which is also that of its folder in `corpus/`, and what it does.
pub type Target = (&'static str, fn(&[u8]) -> bool);

/// All targets.
pub const TARGETS: [Target; 8] = [
    ("checkpoint", checkpoint),
    ("training_state", training_state),
    ("run_state", run_state),
    ("records", records),
    ("games_file", games_file),
    ("config", config),
    ("notation", notation),
    ("ugi", ugi),
];
