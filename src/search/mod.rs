//! Monte Carlo tree search: one tree for self-play, matches and analysis.
//!
//! A [`Tree`] gathers leaves and takes their evaluations; many trees share one batch (`play`), one tree can have many
//! leaves in flight ([`run`]).

mod halving;
mod node;
mod params;
mod select;
mod summary;
#[cfg(test)]
mod tests;
mod tree;

pub use params::{Algorithm, RootNoise, SearchParams};
pub use summary::{MoveSummary, SearchSummary};
pub use tree::{Budget, Gathered, Ticket, Tree};
