//! Matches as users see them: games kept in a file, reports, a run's ladder, a model's card.

mod card;
mod chart;
mod games_file;
mod hold;
mod ladder;
mod rated;
mod replay;
mod report;

pub use card::{Card, CardParams, Training, json as card_json, measure};
pub use chart::{Curve, LadderChart, Plot, chart, plot};
pub use games_file::{Begins, GamesFile, GamesFileError, Header, read_header};
pub use hold::{Held, hold};
pub use ladder::{ANCHORS, Climb, Ladder, LadderError, LadderFiles, LadderParams, Rung, spread};
pub use rated::{Ahead, Entrant, Field, Rated, RatedError};
pub use replay::{Shown, ShownError, game_of, read_games};
pub use report::{Summary, signed, signed_interval};
