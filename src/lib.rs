//! `sparring` trains agents for two-player board games by self-play alone.
//!
//! Modules are layers; each may import only what stands before it in this list (the table in
//! `tests/layering.rs` is exact): [`util`], [`game`], [`games`], [`eval`], [`search`], [`data`], [`net`],
//! [`play`], [`train`], [`run`], [`arena`], [`analyze`](mod@analyze), [`ugi`], [`human`],
//! [`export`], [`bench`](mod@bench), [`cli`].
//!
//! Words with one meaning everywhere: a *ply* is one single move; a *turn* may have several plies. A
//! *simulation* is one descent of the search tree, a *rollout* a game played out at random. A *prior* is a
//! policy head's probability for a move, a *policy target* what the search made of it. A *value* says who
//! wins: [`game::WdlAbs`] with the players named, [`game::WdlPov`] as one of them sees it. A *generation* is one
//! turn of the cycle of self-play, training and gate.

pub mod analyze;
pub mod arena;
pub mod bench;
pub mod cli;
pub mod data;
pub mod eval;
pub mod experiment;
pub mod export;
pub mod game;
pub mod games;
pub mod human;
pub mod net;
pub mod play;
pub mod run;
pub mod search;
pub mod train;
pub mod ugi;
pub mod util;
