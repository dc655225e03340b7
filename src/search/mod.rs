//! Monte Carlo tree search: one tree for self-play, matches and analysis.
//!
//! A [`Tree`] gathers leaves and takes their evaluations. Many trees share one batch in the pool of games of
//! `play`; [`Solo`] searches one tree, or some that are not played on, with several leaves in flight, evaluated on several
//! threads by [`Spread`]. [`Insight`] is what analysis reads of a finished search.

mod halving;
mod node;
mod params;
mod proof;
mod select;
mod solo;
mod spread;
mod summary;
#[cfg(test)]
mod tests;
mod tree;

pub use params::{Algorithm, RootNoise, SearchParams};
pub use proof::{Insight, Line, Proven};
pub use solo::{Solo, width_of};
pub use spread::Spread;
pub use summary::{MoveSummary, SearchSummary};
pub use tree::{Budget, Gathered, Ticket, Tree, TreeMemory};
