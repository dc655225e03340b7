//! What self-play leaves behind and training lives on: game records, their files, the replay window, samples.
//!
//! - [`GameRecord`]: one game with everything its plies can teach. Records hold moves and targets, never
//!   encoded planes, so a new encoding does not void old games.
//! - [`write()`], [`read`], [`RecordReader`]: the record file; [`RecordWriter`]: the journal of a generation that is
//!   still being played.
//! - [`ReplayWindow`]: the newest games, packed in memory, as many as the window law says.
//! - [`Sampler`] fills a [`Batch`]: a position drawn by weight, its moves replayed, a random symmetry, targets.
//!
//! Policies, values and weights are rounded to a grid when they are stored (see [`quant`]). The window applies the
//! same rounding to records from memory, and rounding what is already rounded changes nothing, so training on
//! games from memory and on games read back from disk is the same, bit for bit.

mod codec;
mod file;
mod journal;
mod packed;
pub mod quant;
mod record;
mod sample;
mod targets;
#[cfg(test)]
#[path = "../eval/testgame.rs"]
#[expect(clippy::duplicate_mod, reason = "one test game for two layers that may not import each other")]
mod testgame;
#[cfg(test)]
mod testrecords;
mod window;

pub use codec::{DecodeError, decode_record, encode_record};
pub use file::{Damage, ReadRecords, RecordFileError, RecordReader, read, write};
pub use journal::{Opened, RecordWriter};
pub use record::{Finish, GameRecord, Origin, PlyKind, PlyRecord, RecordEnd, Replay, ReplayError, ReplayFault};
pub use sample::{Batch, BatchRows, FurtherTargets, SampleError, SampleKey, SampleParams, Sampler};
pub use window::{OldGame, ReplayParams, ReplayWindow, WindowStats};
