//! `sparring ugi`: the engine protocol on standard input and output.

use std::io::{stdin, stdout};

use super::{Failure, Outcome, usage_of};
use crate::game::Game;
use crate::games::{self, GameVisitor};
use crate::net::EngineChoice;
use crate::play::Player;
use crate::run::player::PlayerSpec;
use crate::run::stop::end_at_signals;
use crate::ugi::{SeatThinker, serve};

/// Speak the engine protocol UGI on standard input and output
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    sparring ugi zener runs/zener@sims=400\n  \
    printf 'position startpos moves e5\\ngo nodes 2000\\n' | sparring ugi uttt")]
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

/// What the option `Checkpoint` names: nothing but a network, whoever asks.
fn load_network<G: Game>(game: &G, text: &str) -> Result<Player<G>, String> {
    let spec = PlayerSpec::parse(text).map_err(|error| error.to_string())?;
    if spec.checkpoint().map_err(|error| error.to_string())?.is_none() {
        return Err(format!("player {text:?} is no network: expected the path of a checkpoint or run"));
    }
    spec.open(game, &EngineChoice::default()).map_err(|error| error.to_string())
}

struct Serve(PlayerSpec);

impl GameVisitor for Serve {
    type Output = Outcome;

    fn visit<G: Game>(self, game: G) -> Outcome {
        end_at_signals(None)?;
        let player = self.0.open(&game, &EngineChoice::default()).map_err(usage_of)?;
        let played = game.clone();
        let load = move |text: &str| load_network(&played, text);
        let thinker = SeatThinker::new(player).with_networks(Box::new(load));
        Ok(serve(game, Box::new(thinker), stdin().lock(), stdout())?)
    }
}
