//! Othello on 4x4 to 10x10 boards.

use std::hash::{Hash, Hasher};

use crate::game::bits::{nth_one_wide, ones_wide};
use crate::game::{
    Action, Drawing, End, EndReason, Game, Ink, OptionInfo, Outcome, PlaneShape, Player, PolicyShape, TextError,
    bad_value, grid, option_values,
};
use crate::util::rng::Stream;

mod lines;

use lines::Board;

const SIGNS: [char; 2] = ['x', 'o'];
const PASS: &str = "pass";

/// The game with its board size. Action and cell indices are `size * column + row`, so that ascending
/// index is notation order; the last action is the pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Othello {
    size: usize,
}

impl Default for Othello {
    fn default() -> Self {
        Self { size: 8 }
    }
}

/// A position. The number of moves made so far is kept beside it and does not count for equality: it
/// matters to nothing, and after a pass the text form cannot tell it.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// Discs of each player, bit = cell index.
    discs: [u128; 2],
    to_move: Player,
    /// Where the mover can place a disc; 0 when the mover must pass or the game is over.
    places: u128,
    over: bool,
    ply: u16,
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        // `places` and `over` follow from these.
        (self.discs, self.to_move) == (other.discs, other.to_move)
    }
}

impl Eq for State {}

impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (self.discs, self.to_move).hash(hasher);
    }
}

impl Othello {
    /// The game on a board of `size` x `size` cells.
    ///
    /// # Errors
    /// When `size` is not 4, 6, 8 or 10.
    pub fn new(size: usize) -> Result<Self, TextError> {
        match size {
            4 | 6 | 8 | 10 => Ok(Self { size }),
            _ => Err(bad_value(Self::NAME, &Self::option_infos()[0], &size.to_string())),
        }
    }

    fn cells(&self) -> usize {
        self.size * self.size
    }

    fn pass(&self) -> Action {
        Action(self.cells() as u16)
    }

    #[inline]
    fn places(&self, own: u128, other: u128) -> u128 {
        match self.size {
            4 => Board::<4>::places::<u64>(own, other),
            6 => Board::<6>::places::<u64>(own, other),
            8 => Board::<8>::places::<u64>(own, other),
            _ => Board::<10>::places::<u128>(own, other),
        }
    }

    #[inline]
    fn turned(&self, own: u128, other: u128, cell: usize) -> u128 {
        match self.size {
            4 => Board::<4>::turned::<u64>(own, other, cell),
            6 => Board::<6>::turned::<u64>(own, other, cell),
            8 => Board::<8>::turned::<u64>(own, other, cell),
            _ => Board::<10>::turned::<u128>(own, other, cell),
        }
    }

    /// Works out what the mover can do.
    #[inline]
    fn refresh(&self, state: &mut State) {
        let [own, other] = state.seen();
        state.places = self.places(own, other);
        state.over = state.places == 0 && self.places(other, own) == 0;
    }

    /// The four cells in the middle, filled from the start on.
    fn middle(&self) -> [usize; 4] {
        let (low, high) = (self.size / 2 - 1, self.size / 2);
        [(low, low), (low, high), (high, low), (high, high)].map(|(column, row)| self.size * column + row)
    }

    /// `cells` and all their neighbours.
    fn grown(&self, cells: u128) -> u128 {
        let neighbours = |cell: usize| {
            let (column, row) = (cell / self.size, cell % self.size);
            let span = |at: usize| at.saturating_sub(1)..=(at + 1).min(self.size - 1);
            span(column).flat_map(move |c| span(row).map(move |r| self.size * c + r)).fold(0, |mask, c| mask | 1 << c)
        };
        ones_wide(cells).fold(0, |mask: u128, cell| mask | neighbours(cell))
    }

    fn sign(&self, state: &State, column: usize, row: usize) -> Option<char> {
        let cell = self.size * column + row;
        (0..2).find(|&player| state.discs[player] >> cell & 1 == 1).map(|player| SIGNS[player])
    }
}

impl State {
    /// The mover's discs and the opponent's.
    #[inline]
    fn seen(&self) -> [u128; 2] {
        [self.to_move, self.to_move.other()].map(|player| self.discs[player.index()])
    }

    fn count(&self) -> [u32; 2] {
        self.discs.map(u128::count_ones)
    }
}

impl Game for Othello {
    type State = State;
    /// The mover's discs and the opponent's.
    type Key = [u128; 2];

    const NAME: &'static str = "othello";
    const ENCODING_VERSION: u32 = 1;
    const RULES_VERSION: u32 = 1;

    fn option_infos() -> &'static [OptionInfo] {
        const INFOS: [OptionInfo; 1] = [OptionInfo {
            name: "size",
            allowed: "4, 6, 8 or 10",
            default: "8",
            help: "Rows and columns of the board.",
        }];
        &INFOS
    }

    fn from_options(options: &[(String, String)]) -> Result<Self, TextError> {
        let infos = Self::option_infos();
        let value = option_values(Self::NAME, infos, options)?[0];
        ["4", "6", "8", "10"]
            .into_iter()
            .zip([4, 6, 8, 10])
            .find(|&(text, _)| text == value)
            .map(|(_, size)| Self { size })
            .ok_or_else(|| bad_value(Self::NAME, &infos[0], value))
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        vec![("size", self.size.to_string())]
    }

    fn action_count(&self) -> usize {
        self.cells() + 1
    }

    fn policy_shape(&self) -> PolicyShape {
        PolicyShape { planes: 1, flat: 1 }
    }

    fn plane_shape(&self) -> PlaneShape {
        PlaneShape { channels: 3, height: self.size, width: self.size }
    }

    fn plane_names(&self) -> Vec<String> {
        ["mover's discs", "opponent's discs", "where the mover can place a disc"].map(String::from).into()
    }

    /// Twice the cells that are free at the start, less one: after each disc placed there may be one pass, as
    /// two in a row do not occur, and none after the last disc.
    fn max_plies(&self) -> usize {
        2 * (self.cells() - 4) - 1
    }

    fn start(&self, _: &mut Stream) -> State {
        let [upper_left, lower_left, upper_right, lower_right] = self.middle().map(|cell| 1 << cell);
        let discs = [lower_left | upper_right, upper_left | lower_right];
        let mut state = State { discs, to_move: Player::First, places: 0, over: false, ply: 0 };
        self.refresh(&mut state);
        state
    }

    fn to_move(&self, state: &State) -> Player {
        state.to_move
    }

    fn end(&self, state: &State) -> Option<End> {
        state.over.then(|| {
            let [x, o] = state.count();
            match x.cmp(&o) {
                std::cmp::Ordering::Greater => End::win(Player::First),
                std::cmp::Ordering::Less => End::win(Player::Second),
                std::cmp::Ordering::Equal => End { outcome: Outcome::Draw, reason: EndReason::Rules },
            }
        })
    }

    fn legal(&self, state: &State, out: &mut Vec<Action>) {
        if state.places != 0 {
            out.extend(ones_wide(state.places).map(|cell| Action(cell as u16)));
        } else if !state.over {
            out.push(self.pass());
        }
    }

    fn play(&self, state: &mut State, action: Action) {
        if action != self.pass() {
            let [own, other] = state.seen();
            let turned = self.turned(own, other, action.index());
            state.discs[state.to_move.index()] = own | turned | 1 << action.0;
            state.discs[state.to_move.other().index()] = other & !turned;
        }
        state.to_move = state.to_move.other();
        state.ply += 1;
        self.refresh(state);
    }

    /// Passes count as moves. From a fen: the discs placed since the start, as it cannot tell passes.
    fn ply(&self, state: &State) -> usize {
        state.ply.into()
    }

    fn random_action(&self, state: &State, random: &mut Stream, _: &mut Vec<Action>) -> Action {
        match state.places.count_ones() as usize {
            0 => self.pass(),
            count => Action(nth_one_wide(state.places, random.below(count)) as u16),
        }
    }

    fn key(&self, state: &State) -> [u128; 2] {
        state.seen()
    }

    fn encode(&self, state: &State, out: &mut [f32]) {
        let [own, other] = state.seen();
        for (plane, mask) in out.chunks_exact_mut(self.cells()).zip([own, other, state.places]) {
            ones_wide(mask).for_each(|cell| plane[cell] = 1.0);
        }
    }

    /// All eight of the square. Half of them move the start position onto the one with colours exchanged,
    /// which is a position like any other to a network.
    fn symmetry_count(&self) -> usize {
        grid::SQUARE_SYMMETRIES
    }

    fn map_state(&self, state: &State, symmetry: usize) -> State {
        let map = |mask: u128| {
            ones_wide(mask).fold(0, |mapped, cell| mapped | 1 << self.map_action(Action(cell as u16), symmetry).0)
        };
        State { discs: state.discs.map(map), places: map(state.places), ..*state }
    }

    fn map_action(&self, action: Action, symmetry: usize) -> Action {
        if action == self.pass() {
            return action;
        }
        let (column, row) =
            grid::map_square(symmetry, self.size, action.index() / self.size, action.index() % self.size);
        Action((self.size * column + row) as u16)
    }

    fn action_text(&self, action: Action) -> String {
        match action == self.pass() {
            true => PASS.to_owned(),
            false => grid::square_text(action.index() / self.size, action.index() % self.size),
        }
    }

    fn parse_action(&self, text: &str) -> Result<Action, TextError> {
        if text == PASS {
            return Ok(self.pass());
        }
        match grid::parse_square(text, self.size) {
            Ok((column, row)) => Ok(Action((self.size * column + row) as u16)),
            Err(error) => Err(TextError::new(format!("{error}, or {PASS}"))),
        }
    }

    fn state_text(&self, state: &State) -> String {
        let board = grid::rows_text(self.size, self.size, |row, column| self.sign(state, column, row));
        format!("{board} {}", SIGNS[state.to_move.index()])
    }

    /// Refused as impossible are: a free cell among the four in the middle, discs that do not hang together
    /// with the middle, and any other board of four discs than the start. With more discs either side may be to
    /// move, as there may have been passes.
    fn parse_state(&self, text: &str) -> Result<State, TextError> {
        let [board, side] = grid::fields(text, ["board", "side to move"])?;
        let mut discs = [0u128; 2];
        for (index, cell) in grid::parse_rows(board, self.size, self.size, &SIGNS)?.into_iter().enumerate() {
            if let Some(player) = cell {
                discs[player] |= 1 << (self.size * (index % self.size) + index / self.size);
            }
        }
        let to_move = grid::parse_side(side, SIGNS)?;
        let all = discs[0] | discs[1];
        let middle = self.middle().into_iter().fold(0, |mask: u128, cell| mask | 1 << cell);
        let impossible = |why: &str| Err(TextError::new(format!("board {}: impossible, {why}", grid::quoted(board))));
        if all & middle != middle {
            return impossible("the four cells in the middle are filled from the start on");
        }
        let mut joined = middle;
        while self.grown(joined) & all != joined {
            joined = self.grown(joined) & all;
        }
        if joined != all {
            return impossible(
                "each disc is placed next to another one, but some do not hang together with the middle",
            );
        }
        let ply = all.count_ones() as u16 - 4;
        let mut state = State { discs, to_move, places: 0, over: false, ply };
        if ply == 0 && state != self.startpos() {
            return impossible("with four discs there is only the start, x to move");
        }
        self.refresh(&mut state);
        Ok(state)
    }

    /// `+` marks where the mover can place a disc.
    fn paint(&self, state: &State, last: Option<Action>) -> Drawing {
        let last = last.filter(|&action| action != self.pass());
        let last = last.map(|action| (action.index() / self.size, action.index() % self.size));
        let board = grid::paint_square(self.size, None, last, |column, row| {
            let is = |cells: u128| cells >> (self.size * column + row) & 1 == 1;
            match Player::BOTH.into_iter().find(|player| is(state.discs[player.index()])) {
                Some(player) => (Ink::Piece(player), SIGNS[player.index()]),
                None if is(state.places) => (Ink::Open, '+'),
                None => (Ink::Frame, '.'),
            }
        });
        let [x, o] = state.count();
        board.with(Ink::Text, format_args!("{x} x, {o} o; ")).above(grid::caption(self, state))
    }

    /// Black, who moves first, is x.
    fn player_names(&self) -> [&'static str; 2] {
        ["x", "o"]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_starts() {
        for (size, start) in [
            ("4", "4/1ox1/1xo1/4 x"),
            ("6", "6/6/2ox2/2xo2/6/6 x"),
            ("8", "8/8/8/3ox3/3xo3/8/8/8 x"),
            ("10", "10/10/10/10/4ox4/4xo4/10/10/10/10 x"),
        ] {
            let game = Othello::from_options(&[("size".into(), size.into())]).unwrap();
            assert_eq!(game.state_text(&game.startpos()), start);
            assert_eq!(game.parse_state(start).unwrap(), game.startpos());
        }
        assert_eq!(
            Othello::from_options(&[("size".into(), "08".into())]).unwrap_err().to_string(),
            "option \"size\" of othello is \"08\", allowed: 4, 6, 8 or 10"
        );
        assert_eq!(
            Othello::new(5).unwrap_err().to_string(),
            "option \"size\" of othello is \"5\", allowed: 4, 6, 8 or 10"
        );
    }

    #[test]
    fn impossible_positions_name_the_field() {
        let game = Othello::new(4).unwrap();
        for (text, error) in [
            ("4/1o2/1xo1/4 x", "the four cells in the middle are filled from the start on"),
            ("4/1xo1/1ox1/4 x", "with four discs there is only the start, x to move"),
            ("4/1ox1/1xo1/4 o", "with four discs there is only the start, x to move"),
        ] {
            let found = game.parse_state(text).unwrap_err().to_string();
            assert!(found.starts_with("board ") && found.ends_with(error), "{found}");
        }
        let game = Othello::new(8).unwrap();
        let found = game.parse_state("x7/8/8/3ox3/3xo3/8/8/8 x").unwrap_err().to_string();
        assert!(found.ends_with("some do not hang together with the middle"), "{found}");
        assert_eq!(
            game.parse_action("i1").unwrap_err().to_string(),
            "move \"i1\": expected a column letter a to h and a row number 1 to 8, or pass"
        );
    }

    #[test]
    fn drawn_with_the_places_and_the_last_move() {
        let game = Othello::new(4).unwrap();
        let mut state = game.startpos();
        assert_eq!(
            game.draw(&state),
            "    a b c d\n 1  . + . .\n 2  + o x .\n 3  . x o +\n 4  . . + .\n2 x, 2 o; x to move\n"
        );
        let action = game.parse_action("b1").unwrap();
        game.play(&mut state, action);
        let marked = game.paint(&state, Some(action)).to_string();
        assert_eq!(marked, "    a b c d\n 1  +[x]+ .\n 2  . x x .\n 3  + x o .\n 4  . . . .\n4 x, 1 o; o to move\n");
        assert_eq!(game.paint(&state, Some(game.pass())).to_string(), game.draw(&state));
    }

    #[test]
    fn lines_do_not_run_round_the_edge() {
        // The disc a4 is the last bit of its column and b1, b2, b3 are the next ones: no line joins them, so b4 is no move.
        let game = Othello::new(4).unwrap();
        let state = game.parse_state("1o2/1oo1/1ox1/x3 x").unwrap();
        let places: Vec<String> =
            crate::game::legal_list(&game, &state).into_iter().map(|a| game.action_text(a)).collect();
        assert_eq!(places, ["a1", "a3", "c1", "d1"]);
    }
}
