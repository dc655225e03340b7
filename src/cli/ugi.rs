//! `sparring ugi`: the engine protocol on standard input and output.

use std::io::{stdin, stdout};

use crate::game::Game;
use crate::games::{GameVisitor, dispatch};
use crate::ugi::{RandomThinker, UgiError, serve};

/// Speaks the protocol about the game that `spec` names, playing random moves.
///
/// # Errors
/// When there is no such game, or a stream fails.
pub fn run(spec: &str) -> Result<(), String> {
    let served = dispatch(spec, Serve).map_err(|error| error.to_string())?;
    served.map_err(|error| error.to_string())
}

struct Serve;

impl GameVisitor for Serve {
    type Output = Result<(), UgiError>;

    fn visit<G: Game>(self, game: G) -> Self::Output {
        serve(game, Box::new(RandomThinker::default()), stdin().lock(), stdout())
    }
}
