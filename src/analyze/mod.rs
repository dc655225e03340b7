//! Positions analysed by a player that searches: `sparring analyze`, and the search behind the engine protocol.
//!
//! [`Searcher`] is the one way in which a player searches outside of matches. [`analyze`] searches positions and makes
//! an [`Analysis`] of each; [`table`] and [`progress`] show it to a person, its JSON form to a program.

mod live;
mod report;
mod searcher;
mod table;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use crate::eval::EvalError;
use crate::game::{Game, Place};
use crate::search::Tree;
use crate::util::rng::{Purpose, Stream};

pub use live::Live;
pub use report::{Analysis, Certain, MoveReport, Speaker, Verdict};
pub use searcher::{Bounds, Ended, NoSearch, Searcher};
pub use table::{Look, progress, table};

/// Positions that share a search. More would make no better batches and take memory.
const TOGETHER: usize = 64;

/// The part of the time that may go into telling how far a search is.
const TELLING_SHARE: u32 = 10;

/// The random stream of every analysis: the same position is analysed in the same way wherever it stands in a file.
fn stream() -> Stream {
    Stream::keyed(0, Purpose::Analysis, &[0])
}

/// Analyses one position. `tell` is called about every `pace` with what is known so far. A search without limits ends when the
/// result is proven by what its tree holds, whoever searches.
///
/// `None` when it was stopped before there was anything to tell.
///
/// # Errors
/// When the network fails.
pub fn analyze<G: Game>(
    game: &G,
    searcher: &mut Searcher<G>,
    place: &Place<G>,
    bounds: &Bounds,
    stop: &dyn Fn() -> bool,
    pace: Duration,
    tell: &mut dyn FnMut(&Analysis),
) -> Result<Option<Analysis>, EvalError> {
    searcher.open()?;
    let mut tree = searcher.tree(&place.state);
    let began = Instant::now();
    let timed = |analysis: Analysis| {
        let simulations = u64::from(analysis.simulations);
        analysis.timed(simulations, began.elapsed())
    };
    let endless = *bounds == Bounds::simulations(u32::MAX);
    let mut next = began + pace;
    let mut is_proven = false;
    // The searcher is lent to the search; what a report needs of it does not change.
    let speaker = searcher.speaker();
    let mut watch = |tree: &Tree<G>| {
        if Instant::now() >= next {
            let telling = Instant::now();
            if let Some(analysis) = Analysis::of(game, &speaker, place, tree, None) {
                let analysis = timed(analysis);
                is_proven = endless && analysis.proven.is_some();
                tell(&analysis);
            }
            // In a large tree looking takes a while; most of the time is to go into searching.
            next = Instant::now() + pace.max(telling.elapsed() * TELLING_SHARE);
        }
        !is_proven && !stop()
    };
    let ended = searcher.search(game, &mut tree, bounds, stream(), &mut watch)?;
    let ended = if is_proven { Ended::Proven } else { ended };
    Ok(Analysis::of(game, &speaker, place, &tree, Some(ended)).map(timed))
}

/// Analyses several positions, up to 64 at once with shared batches. `done` gets the analyses in order, as soon as those of
/// a group are there. Each is exactly that of the position alone, but for times, where `bounds` are other than time.
///
/// Ends early with what it has when `stop` says so.
///
/// # Errors
/// When the network fails.
pub fn analyze_all<G: Game>(
    game: &G,
    searcher: &mut Searcher<G>,
    places: &[Place<G>],
    bounds: &Bounds,
    stop: &(dyn Fn() -> bool + Sync),
    done: &mut dyn FnMut(Analysis, &Place<G>),
) -> Result<(), EvalError> {
    searcher.open()?;
    let speaker = searcher.speaker();
    for group in places.chunks(TOGETHER) {
        if stop() {
            break;
        }
        let began = Instant::now();
        let mut trees: Vec<Tree<G>> = group.iter().map(|place| searcher.tree(&place.state)).collect();
        let ended = searcher.search_all(game, &mut trees, bounds, &stream(), stop)?;
        let time = began.elapsed();
        let simulations: u64 = trees.iter().map(|tree| u64::from(tree.simulations())).sum();
        for ((place, tree), ended) in group.iter().zip(&trees).zip(ended) {
            if let Some(analysis) = Analysis::of(game, &speaker, place, tree, Some(ended)) {
                done(analysis.timed(simulations, time), place);
            }
        }
    }
    Ok(())
}
