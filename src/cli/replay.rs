//! `sparring replay`.

use std::path::PathBuf;

use super::{Failure, Outcome, print};
use crate::arena::{Shown, ShownError, game_of, read_games};
use crate::game::Game;
use crate::games::{self, GameVisitor};

/// Show games from a file: those of a match (`pit --games-out`) or of a run's self-play
///
/// Without --game the games are listed. With it they are shown move by move, with the board after each move and what the
/// player thought of the position before it.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    sparring replay games.jsonl\n  \
    sparring replay games.jsonl --game 12\n  \
    sparring replay runs/uttt/games/gen-000012.games --game 0 --game 1")]
pub struct Replay {
    /// The file of games
    file: PathBuf,
    /// The number of a game to show; may be repeated
    #[arg(long = "game", value_name = "N")]
    games: Vec<u64>,
}

impl Replay {
    pub(super) fn run(self) -> Outcome {
        let name = game_of(&self.file).map_err(failure)?;
        // The name comes from a file: a game that is not known is no wrong command line.
        games::dispatch(&name, self)?
    }
}

fn failure(error: ShownError) -> Failure {
    Failure::of(&error, matches!(error, ShownError::Foreign { .. }))
}

impl GameVisitor for Replay {
    type Output = Outcome;

    fn visit<G: Game>(self, game: G) -> Outcome {
        let games = read_games(&game, &self.file).map_err(failure)?;
        if self.games.is_empty() {
            let lines: String = games.iter().map(|game| format!("{}\n", game.line())).collect();
            return print(&format!("{lines}{} games; show one with --game N\n", games.len()));
        }
        for number in self.games {
            let last = games.last().map_or(0, |game: &Shown| game.index);
            let missing = || Failure::Usage(format!("there is no game {number}; they go up to {last}"));
            let shown = games.iter().find(|game| game.index == number).ok_or_else(missing)?;
            print(&shown.text(&game, |state, _| game.draw(state)).map_err(Failure::Failed)?)?;
        }
        Ok(())
    }
}
