//! Monte Carlo tree search: one tree for self-play, matches and analysis.
//!
//! A [`Tree`] gathers leaves and takes their evaluations. Many trees share one batch in the pool of games of
//! `play`, and in [`Many`] where positions are judged without being played on; [`Solo`] searches one tree with several leaves
//! in flight, evaluated on several threads by [`Spread`].

mod halving;
mod many;
mod node;
mod params;
mod select;
mod solo;
mod spread;
mod summary;
#[cfg(test)]
mod tests;
mod tree;

pub use many::Many;
pub use params::{Algorithm, RootNoise, SearchParams};
pub use solo::{Solo, width_of};
pub use spread::Spread;
pub use summary::{MoveSummary, SearchSummary};
pub use tree::{Budget, Gathered, Ticket, Tree, TreeMemory};
