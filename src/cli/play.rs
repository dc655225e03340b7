//! `sparring play`: a game in the terminal.

use std::io::{IsTerminal as _, stdin, stdout};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::color::Color;
use super::{Failure, Outcome, game_of, usage_of};
use crate::game::{Game, Player};
use crate::games::{self, GameVisitor};
use crate::human::{self, Editor, Left, Lines, Plain, Saved, Seat, Terminal};
use crate::net::EngineChoice;
use crate::run::player::PlayerSpec;
use crate::run::stop::end_at_signals;
use crate::ugi::SeatThinker;
use crate::util::text::read_text;

/// Play against a network or any other player in the terminal
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    sparring play runs/tictactoe\n  \
    sparring play mcts:1000 --game zener --side second\n  \
    sparring play mcts:1000 --game uttt --load saved-game")]
pub struct Play {
    /// The opponent (as in `sparring pit`)
    #[arg(default_value = "mcts:1000")]
    player: String,
    /// The game, where the opponent's network does not imply it
    #[arg(long, value_name = "GAME")]
    game: Option<String>,
    /// Your side; with `none` you watch
    #[arg(long, visible_alias = "as", value_enum, default_value_t = Side::First)]
    side: Side,
    /// The position to start from [default: the start]
    #[arg(long, value_name = "FEN")]
    position: Option<String>,
    /// Go on with a game that `save` wrote
    #[arg(long, value_name = "FILE", conflicts_with = "position")]
    load: Option<PathBuf>,
    #[command(flatten)]
    color: Color,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Side {
    #[value(alias = "p1")]
    First,
    #[value(alias = "p2")]
    Second,
    None,
}

impl Play {
    pub(super) fn run(self) -> Outcome {
        let spec = PlayerSpec::parse(&self.player).map_err(|error| Failure::Usage(error.to_string()))?;
        let name = game_of(&spec, self.game.as_ref())?;
        games::dispatch(&name, At { play: self, spec }).map_err(|error| Failure::Usage(error.to_string()))?
    }

    /// Where the game begins.
    fn saved<G: Game>(&self, game: &G) -> Result<Saved<G>, Failure> {
        if let Some(file) = &self.load {
            let wrong = |problem: String| Failure::Usage(format!("--load {}: {problem}", file.display()));
            let text = read_text(file).map_err(|error| wrong(error.to_string()))?;
            return Saved::read(game, &text).map_err(wrong);
        }
        let start = match &self.position {
            Some(text) => game.parse_state(text).map_err(|e| Failure::Usage(format!("--position: {e}")))?,
            None => game.startpos(),
        };
        Ok(Saved::new(start))
    }
}

struct At {
    play: Play,
    spec: PlayerSpec,
}

impl GameVisitor for At {
    type Output = Outcome;

    fn visit<G: Game>(self, game: G) -> Outcome {
        let saved = self.play.saved(&game)?;
        let player = self.spec.open(&game, &EngineChoice::default()).map_err(usage_of)?;
        let side = match self.play.side {
            Side::First => Some(Player::First),
            Side::Second => Some(Player::Second),
            Side::None => None,
        };
        let color = self.play.color.of_stdout();
        let mut lines: Box<dyn Lines> = match (stdin().is_terminal(), stdout().is_terminal()) {
            (true, true) => Box::new(Editor::open(color)?),
            (true, false) => Box::new(Plain::prompting(stdin().lock(), color)),
            (false, _) => Box::new(Plain::piped(stdin().lock())),
        };
        let stop = Arc::new(AtomicBool::new(false));
        // Where nobody is there to be asked, the first signal ends the game.
        end_at_signals(lines.has_person().then(|| stop.clone()))?;
        let seat = Seat { side, opponent: self.play.player };
        let terminal = Terminal { lines: lines.as_mut(), output: stdout().lock(), color, stop: &stop };
        match human::play(&game, saved, Box::new(SeatThinker::new(player)), seat, terminal) {
            // A reader that has gone away is no failure.
            Err(human::HumanError::Stream(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            Ok(Left::Interrupted) => Err(Failure::Interrupted),
            played => Ok(played.map(drop)?),
        }
    }
}
