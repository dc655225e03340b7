//! `sparring ugi`: the engine protocol on standard input and output.

use std::io::{stdin, stdout};

use super::{Failure, Outcome, usage_of};
use crate::game::Game;
use crate::games::{self, GameVisitor};
use crate::net::EngineChoice;
use crate::run::player::PlayerSpec;
use crate::ugi::{SeatThinker, serve};

/// Speak the engine protocol UGI on standard input and output
#[derive(clap::Args)]
#[command(after_help = "Example:\n  sparring ugi zener runs/zener@sims=400")]
pub struct Ugi {
    /// The game
    game: String,
    /// Who answers `go` (as in `sparring pit`)
    #[arg(default_value = "mcts:1000")]
    player: String,
}

impl Ugi {
    pub(super) fn run(self) -> Outcome {
        let player = PlayerSpec::parse(&self.player).map_err(|error| Failure::Usage(error.to_string()))?;
        games::dispatch(&self.game, Serve(player)).map_err(|error| Failure::Usage(error.to_string()))?
    }
}

struct Serve(PlayerSpec);

impl GameVisitor for Serve {
    type Output = Outcome;

    fn visit<G: Game>(self, game: G) -> Outcome {
        let player = self.0.open(&game, &EngineChoice::default()).map_err(usage_of)?;
        Ok(serve(game, Box::new(SeatThinker::new(player)), stdin().lock(), stdout())?)
    }
}
