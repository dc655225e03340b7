//! Zener (Carlos Seabra, 2017): ten pieces with five symbols, stacks, and moves that the opponent dictates.
//!
//! Board of 5 columns and 7 rows; white, the first player, starts on row G, black on row A. A piece steps
//! one square orthogonally, also onto other pieces, which are then blocked. After white's first single move a
//! turn is a *compulsory* move, of the symbol that the opponent moved last, if that piece is free, and a *free*
//! move of another piece, if one is free. Who brings a piece over the opponent's home edge, or leaves the
//! opponent without a free piece, wins at once. The third occurrence of a position and `max_plies` single
//! moves are draws.
//!
//! A game that was won is left with the winner to move and the turn as it was before the winning move.

mod board;
mod encode;
mod paint;
mod playout;
mod state;
mod tables;
mod text;

#[cfg(test)]
mod cases;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

pub use encode::Key;
pub use state::State;

use crate::game::{
    Action, Drawing, End, Game, OptionInfo, PlaneShape, Player, PolicyShape, TextError, bad_value, option_values,
};
use crate::util::rng::Stream;

use board::{Board, Piece, piece};
use state::{Finish, Turn};
use tables::{CELLS, COLUMNS, PLANES, ROWS};

/// Symbols of white's row G and of black's row A in the standard start, columns 1 to 5.
const STANDARD: [[usize; COLUMNS]; 2] = [[2, 1, 0, 3, 4], [4, 3, 0, 1, 2]];

/// How a game starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Setup {
    /// Always the same position, the one usual online.
    #[default]
    Standard,
    /// The printed rules: both orders drawn at random; where both symbols of a column match, black's piece
    /// stands one square ahead.
    Official,
}

/// Zener with its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zener {
    setup: Setup,
    max_plies: u16,
}

impl Default for Zener {
    fn default() -> Self {
        Self { setup: Setup::Standard, max_plies: 200 }
    }
}

impl Zener {
    /// The start with these orders of symbols, of white and of black.
    fn arranged(&self, orders: [[usize; COLUMNS]; 2]) -> State {
        let mut stacks: [Vec<Piece>; CELLS] = std::array::from_fn(|_| Vec::new());
        for column in 0..COLUMNS {
            let [white, black] = [orders[0][column], orders[1][column]];
            let ahead = self.setup == Setup::Official && white == black;
            stacks[(ROWS - 1) * COLUMNS + column].push(piece(0, white));
            stacks[usize::from(ahead) * COLUMNS + column].push(piece(1, black));
        }
        State::new(Board::from_stacks(&stacks), 0, Turn::Opening, 0, Finish::No, self.max_plies)
    }
}

impl Game for Zener {
    type State = State;
    type Key = Key;

    const NAME: &'static str = "zener";
    const ENCODING_VERSION: u32 = 1;
    const RULES_VERSION: u32 = 1;

    fn option_infos() -> &'static [OptionInfo] {
        &[
            OptionInfo {
                name: "setup",
                allowed: "standard or official",
                default: "standard",
                help: "How games start: always the usual position, or as printed with both orders drawn at random.",
            },
            OptionInfo {
                name: "max_plies",
                allowed: "1 to 10000",
                default: "200",
                help: "After this many single moves the game is a draw.",
            },
        ]
    }

    fn from_options(options: &[(String, String)]) -> Result<Self, TextError> {
        let infos = Self::option_infos();
        let values = option_values(Self::NAME, infos, options)?;
        let setup = match values[0] {
            "standard" => Setup::Standard,
            "official" => Setup::Official,
            value => return Err(bad_value(Self::NAME, &infos[0], value)),
        };
        let digits = values[1].bytes().all(|byte| byte.is_ascii_digit());
        let max_plies = values[1].parse().ok().filter(|plies| digits && (1..=10_000).contains(plies));
        let max_plies = max_plies.ok_or_else(|| bad_value(Self::NAME, &infos[1], values[1]))?;
        Ok(Self { setup, max_plies })
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        let setup = match self.setup {
            Setup::Standard => "standard",
            Setup::Official => "official",
        };
        vec![("setup", setup.to_owned()), ("max_plies", self.max_plies.to_string())]
    }

    fn action_count(&self) -> usize {
        PLANES * CELLS
    }

    fn policy_shape(&self) -> PolicyShape {
        PolicyShape { planes: PLANES, flat: 0 }
    }

    fn plane_shape(&self) -> PlaneShape {
        PlaneShape { channels: encode::CHANNELS, height: ROWS, width: COLUMNS }
    }

    fn plane_names(&self) -> Vec<String> {
        encode::plane_names()
    }

    fn max_plies(&self) -> usize {
        usize::from(self.max_plies)
    }

    fn start(&self, random: &mut Stream) -> State {
        match self.setup {
            Setup::Standard => self.startpos(),
            Setup::Official => {
                let mut orders = [[0, 1, 2, 3, 4]; 2];
                for order in &mut orders {
                    random.shuffle(order);
                }
                self.arranged(orders)
            }
        }
    }

    /// The standard start, with either setup.
    fn startpos(&self) -> State {
        // The middle columns of both rows hold the wave, and black's stays on row A: this is not a draw of
        // the official setup.
        Self { setup: Setup::Standard, ..*self }.arranged(STANDARD)
    }

    fn to_move(&self, state: &State) -> Player {
        state::player(state.side)
    }

    fn end(&self, state: &State) -> Option<End> {
        state.end()
    }

    fn legal(&self, state: &State, out: &mut Vec<Action>) {
        state.legal(out);
    }

    fn play(&self, state: &mut State, action: Action) {
        state.play(state.step_of(action), self.max_plies);
    }

    fn ply(&self, state: &State) -> usize {
        usize::from(state.ply)
    }

    fn random_action(&self, state: &State, random: &mut Stream, _scratch: &mut Vec<Action>) -> Action {
        let step = state.random_step(random);
        state::action_of(step.from, step.to)
    }

    fn playout(&self, state: &mut State, random: &mut Stream, _scratch: &mut Vec<Action>) -> End {
        playout::playout(state, random, self.max_plies);
        state.end().expect("a playout goes on to the end")
    }

    fn key(&self, state: &State) -> Key {
        encode::key(state, self.max_plies)
    }

    fn encode(&self, state: &State, out: &mut [f32]) {
        encode::encode(state, self.max_plies, out);
    }

    /// For each symbol whether the player's piece is free in the end, then whether it has left the board; then the same of the
    /// opponent's. A piece that is neither is blocked.
    fn ending_shape(&self) -> PolicyShape {
        PolicyShape { planes: 0, flat: encode::ENDING }
    }

    fn encode_ending(&self, end: &State, viewer: Player, out: &mut [f32]) {
        encode::encode_ending(end, viewer.index(), out);
    }

    /// The left-right mirror times the 120 permutations of the symbols: `2 * permutation + mirror`.
    fn symmetry_count(&self) -> usize {
        2 * tables::PERMUTATIONS.len()
    }

    fn map_state(&self, state: &State, symmetry: usize) -> State {
        state.mapped(symmetry)
    }

    fn map_action(&self, action: Action, symmetry: usize) -> Action {
        if symmetry.is_multiple_of(2) {
            return action;
        }
        let (plane, square) = (action.index() / CELLS, action.index() % CELLS);
        let plane = [0, 2, 1, 3, 4][plane];
        Action((plane * CELLS + usize::from(tables::mirrored(square as u8))) as u16)
    }

    fn action_text(&self, action: Action) -> String {
        text::action_text(action)
    }

    fn parse_action(&self, text: &str) -> Result<Action, TextError> {
        text::parse_action(text)
    }

    fn state_text(&self, state: &State) -> String {
        text::state_text(state)
    }

    fn parse_state(&self, text: &str) -> Result<State, TextError> {
        text::parse_state(text, self.max_plies)
    }

    fn paint(&self, state: &State, last: Option<Action>) -> Drawing {
        paint::paint(state, last, self.max_plies)
    }

    fn turn_text(&self, state: &State) -> String {
        paint::turn_text(state)
    }

    fn player_names(&self) -> [&'static str; 2] {
        text::SIDE_NAMES
    }
}
