//! A self-play game as text, for people who watch a run.

use std::fmt::Write as _;

use crate::data::GameRecord;
use crate::game::{Game, Outcome};

/// The moves of a game, its last position and its result; of a record that is not a game, what is wrong with it.
pub fn text<G: Game>(game: &G, record: &GameRecord) -> String {
    let last = match record.check(game) {
        Ok(state) => state,
        Err(error) => return error.to_string(),
    };
    let mut out = format!("{}\nstart: {}\nmoves:", record.game, record.start);
    for ply in &record.plies {
        write!(out, " {}", game.action_text(ply.action)).expect("writing to a string");
    }
    let result = match record.end.outcome {
        Outcome::Win(player) => format!("{} wins", game.player_names()[player.index()]),
        Outcome::Draw => "draw".to_owned(),
    };
    write!(out, "\n\n{}\nresult: {result} ({:?}, {} plies)\n", game.draw(&last), record.end.reason, record.plies.len())
        .expect("writing to a string");
    out
}
