//! The laws of [`Game`], as checks that run over any game.
//!
//! Every registered game is checked by this crate's tests; run [`check_all`] in the tests of your own
//! game too. Most faults that spoil a training run silently (a symmetry that mirrors the board but not the moves,
//! an encoding that forgets a rule, a move list with doubles) break one of these laws.

mod chance;
mod position;
mod solver;
mod symmetry;
mod text;
mod walk;

pub use text::notation_order;

use super::{Action, Game};
use crate::util::rng::{Purpose, Stream};

/// A law that a game breaks, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{game}: {law}: {detail}")]
pub struct LawViolation {
    /// The game with its options.
    pub game: String,
    /// What must hold.
    pub law: &'static str,
    /// What was found instead, with the position.
    pub detail: String,
}

/// What is wrong, before the name of the game is added.
struct Broken {
    law: &'static str,
    detail: String,
}

type Checked = Result<(), Broken>;

/// A law is broken.
fn broken(law: &'static str, detail: String) -> Checked {
    Err(Broken { law, detail })
}

/// Leaves the function with a broken law unless the condition holds.
macro_rules! ensure {
    ($holds:expr, $law:expr, $($detail:tt)*) => {{
        let holds: bool = $holds;
        if !holds {
            return Err($crate::game::laws::Broken { law: $law, detail: format!($($detail)*) });
        }
    }};
}
use ensure;

/// Checks all laws on the positions of `games` random games and on the first few thousand positions that
/// the start can reach. A hundred games take a second or so.
///
/// The random choices follow from `seed`. The comparisons of chances allow six standard deviations, so that a
/// correct game fails for about one seed in a million.
///
/// # Errors
/// The first law that is broken.
pub fn check_all<G: Game>(game: &G, seed: u64, games: usize) -> Result<(), LawViolation> {
    check(game, seed, games).map_err(|Broken { law, detail }| LawViolation {
        game: super::full_name(game),
        law,
        detail,
    })
}

fn check<G: Game>(game: &G, seed: u64, games: usize) -> Checked {
    let stream = |index| Stream::keyed(seed, Purpose::Test, &[index]);
    shapes(game)?;
    let visited = walk::visit(game, seed, games)?;
    for state in &visited {
        position::check(game, state)?;
    }
    position::check_keys(game, &visited, &mut stream(1))?;
    text::check(game, &visited, &mut stream(2))?;
    symmetry::check(game, &visited, &mut stream(3))?;
    chance::check(game, &visited, games, &mut stream(4))?;
    solver::check(game, &visited)
}

/// Numbers and names that do not depend on a position.
fn shapes<G: Game>(game: &G) -> Checked {
    let (planes, policy, actions) = (game.plane_shape(), game.policy_shape(), game.action_count());
    ensure!(!planes.is_empty(), "an encoding has numbers", "shape {planes:?}");
    ensure!((1..=1 << 16).contains(&actions), "there are 1 to 65536 actions", "{actions}");
    ensure!(
        policy.planes * planes.cells() + policy.flat == actions,
        "the policy's planes and flat actions add up to the action count",
        "{policy:?} on {planes:?} against {actions}"
    );
    let names = game.plane_names();
    ensure!(names.len() == planes.channels, "each plane has a name", "{names:?} for {} planes", planes.channels);
    ensure!(game.max_plies() > 0, "games have at least one ply", "max_plies is 0");
    let [first, second] = game.player_names();
    ensure!(first != second && !first.is_empty() && !second.is_empty(), "players have names", "{first:?}, {second:?}");

    let options = game.options();
    let known: Vec<&str> = G::option_infos().iter().map(|info| info.name).collect();
    let given: Vec<&str> = options.iter().map(|&(name, _)| name).collect();
    ensure!(known == given, "options are listed in the order of option_infos", "{given:?} against {known:?}");
    let owned: Vec<(String, String)> =
        options.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    match G::from_options(&owned) {
        Ok(again) => ensure!(
            again.options() == options,
            "a game's options give the same game",
            "{options:?} became {:?}",
            again.options()
        ),
        Err(error) => return broken("a game's options give the same game", format!("{options:?}: {error}")),
    }
    let unknown = [("no such option".to_owned(), "1".to_owned())];
    ensure!(G::from_options(&unknown).is_err(), "unknown options are refused", "{unknown:?} is taken");
    Ok(())
}

/// The encoding of a position.
fn encoding<G: Game>(game: &G, state: &G::State) -> Vec<f32> {
    let mut out = vec![0.0; game.plane_shape().len()];
    game.encode(state, &mut out);
    out
}

/// Moves as text, for messages.
fn texts<G: Game>(game: &G, actions: &[Action]) -> String {
    actions.iter().map(|&action| game.action_text(action)).collect::<Vec<_>>().join(" ")
}

/// Up to `most` of `items`, spread evenly.
fn spread<T>(items: &[T], most: usize) -> impl Iterator<Item = &T> {
    items.iter().step_by(items.len().div_ceil(most).max(1))
}
