//! Matches as users see them: openings from files, games kept in a file, reports.

mod games_file;
mod openings;
mod replay;
mod report;

pub use games_file::{GamesFile, GamesFileError, Header};
pub use openings::{OpeningsError, parse_line, read_openings};
pub use replay::{Shown, ShownError, game_of, read_games};
pub use report::Summary;
