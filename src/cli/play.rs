//! `sparring play`: a game in the terminal.

use std::io::{IsTerminal as _, stdin, stdout};

use super::{Failure, Outcome, usage_of};
use crate::game::{Game, Player};
use crate::games::{self, GameVisitor};
use crate::human::{self, Seat};
use crate::net::EngineChoice;
use crate::run::player::PlayerSpec;
use crate::ugi::SeatThinker;

/// Play against a network or any other player in the terminal
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    sparring play runs/tictactoe\n  \
    sparring play mcts:1000 --game zener --side second")]
pub struct Play {
    /// The opponent (as in `sparring pit`)
    #[arg(default_value = "mcts:1000")]
    player: String,
    /// The game, where the opponent's network does not imply it
    #[arg(long, value_name = "GAME")]
    game: Option<String>,
    /// Your side; with `none` you watch
    #[arg(long, value_enum, default_value_t = Side::First)]
    side: Side,
    /// The position to start from [default: the start]
    #[arg(long, value_name = "FEN")]
    position: Option<String>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Side {
    First,
    Second,
    None,
}

impl Play {
    pub(super) fn run(self) -> Outcome {
        let spec = PlayerSpec::parse(&self.player).map_err(|error| Failure::Usage(error.to_string()))?;
        let name = match &self.game {
            Some(name) => Some(name.clone()),
            None => spec.checkpoint().map_err(usage_of)?.map(|checkpoint| checkpoint.info.game),
        };
        let unnamed = || Failure::Usage("name the game with --game: the player does not imply it".to_owned());
        let name = name.ok_or_else(unnamed)?;
        games::dispatch(&name, Terminal { play: self, spec }).map_err(|error| Failure::Usage(error.to_string()))?
    }
}

struct Terminal {
    play: Play,
    spec: PlayerSpec,
}

impl GameVisitor for Terminal {
    type Output = Outcome;

    fn visit<G: Game>(self, game: G) -> Outcome {
        let start = match &self.play.position {
            Some(text) => game.parse_state(text).map_err(|e| Failure::Usage(format!("--position: {e}")))?,
            None => game.startpos(),
        };
        let player = self.spec.open(&game, &EngineChoice::default()).map_err(usage_of)?;
        let side = match self.play.side {
            Side::First => Some(Player::First),
            Side::Second => Some(Player::Second),
            Side::None => None,
        };
        let seat = Seat { side, opponent: self.play.player, prompt: stdin().is_terminal() };
        let thinker = Box::new(SeatThinker::new(player));
        match human::play(&game, start, thinker, seat, stdin().lock(), stdout().lock()) {
            // A reader that has gone away is no failure.
            Err(human::HumanError::Stream(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            played => Ok(played?),
        }
    }
}
