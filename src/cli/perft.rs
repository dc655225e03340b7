//! `sparring perft` and `sparring games`.

use std::fmt::Write as _;

use super::{Failure, Outcome, print};
use crate::game::{Game, OptionInfo};
use crate::games::{self, GameVisitor};

/// Count the positions after exactly DEPTH single moves, by first move
#[derive(clap::Args)]
#[command(after_help = "Example:\n  sparring perft uttt 5")]
pub struct Perft {
    /// The game
    game: String,
    /// Single moves to make, at least 1
    #[arg(value_parser = clap::value_parser!(u32).range(1..=64))]
    depth: u32,
    /// The position to start from [default: the start]
    #[arg(long, value_name = "FEN")]
    position: Option<String>,
}

impl Perft {
    pub(super) fn run(self) -> Outcome {
        games::dispatch(&self.game.clone(), self).map_err(|error| Failure::Usage(error.to_string()))?
    }
}

impl GameVisitor for Perft {
    type Output = Outcome;

    fn visit<G: Game>(self, game: G) -> Outcome {
        let state = match &self.position {
            Some(text) => game.parse_state(text).map_err(|e| Failure::Usage(format!("--position: {e}")))?,
            None => game.startpos(),
        };
        let mut out = String::new();
        let mut total = 0;
        for (action, count) in crate::game::perft::divide(&game, &state, self.depth as usize) {
            total += count;
            writeln!(out, "{}: {count}", game.action_text(action)).expect("writing to a string");
        }
        writeln!(out, "Nodes searched: {total}").expect("writing to a string");
        print(&out)
    }
}

/// Lists the games.
pub(super) fn list_games() -> Outcome {
    struct Describe;
    impl GameVisitor for Describe {
        type Output = String;
        fn visit<G: Game>(self, game: G) -> String {
            let shape = game.plane_shape();
            let mut out = format!(
                "{}: {} moves, {} planes of {}x{}, {} symmetries, at most {} plies\n",
                G::NAME,
                game.action_count(),
                shape.channels,
                shape.height,
                shape.width,
                game.symmetry_count(),
                game.max_plies()
            );
            for OptionInfo { name, allowed, default, help } in G::option_infos() {
                writeln!(out, "    {name}={allowed} [{default}]  {help}").expect("writing to a string");
            }
            out
        }
    }
    let mut out = String::new();
    for name in games::NAMES {
        out.push_str(&games::dispatch(name, Describe)?);
    }
    print(&out)
}
