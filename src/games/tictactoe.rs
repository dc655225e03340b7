//! Tic-tac-toe.

mod solver;

use crate::game::bits::{THREE_IN_LINE, nth_one, ones};
use crate::game::{
    Action, Drawing, End, EndReason, Game, Ink, PlaneShape, Player, PolicyShape, Solver, TextError, grid, option_values,
};
use crate::util::rng::Stream;

const ALL: u16 = 0o777;
const SIGNS: [char; 2] = ['x', 'o'];

/// The game; it has no options. Action and cell indices are `3 * column + row`, so that ascending index
/// is notation order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TicTacToe;

/// A position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// Stones of each player, bit = cell index.
    stones: [u16; 2],
    to_move: Player,
}

impl State {
    fn free(&self) -> u16 {
        ALL & !(self.stones[0] | self.stones[1])
    }

    fn winner(&self) -> Option<Player> {
        Player::BOTH.into_iter().find(|player| THREE_IN_LINE[usize::from(self.stones[player.index()])])
    }

    /// Whether some stone of the player who is not to move can have been placed last.
    fn has_last_move(&self) -> bool {
        let mut before = *self;
        let mover = self.to_move.other().index();
        self.stones == [0, 0]
            || ones(self.stones[mover].into()).any(|cell| {
                before.stones[mover] = self.stones[mover] & !(1 << cell);
                before.winner().is_none()
            })
    }
}

impl Game for TicTacToe {
    type State = State;
    /// Stones of the mover and, nine bits higher, of the opponent.
    type Key = u32;

    const NAME: &'static str = "tictactoe";
    const ENCODING_VERSION: u32 = 1;
    const RULES_VERSION: u32 = 1;

    fn from_options(options: &[(String, String)]) -> Result<Self, TextError> {
        option_values(Self::NAME, Self::option_infos(), options).map(|_| Self)
    }

    fn action_count(&self) -> usize {
        9
    }

    fn policy_shape(&self) -> PolicyShape {
        PolicyShape { planes: 1, flat: 0 }
    }

    fn plane_shape(&self) -> PlaneShape {
        PlaneShape { channels: 2, height: 3, width: 3 }
    }

    fn plane_names(&self) -> Vec<String> {
        ["mover's stones", "opponent's stones"].map(String::from).into()
    }

    fn max_plies(&self) -> usize {
        9
    }

    fn start(&self, _: &mut Stream) -> State {
        State { stones: [0, 0], to_move: Player::First }
    }

    fn to_move(&self, state: &State) -> Player {
        state.to_move
    }

    fn end(&self, state: &State) -> Option<End> {
        match state.winner() {
            Some(player) => Some(End::win(player)),
            None => (state.free() == 0).then(|| End::draw(EndReason::Rules)),
        }
    }

    fn legal(&self, state: &State, out: &mut Vec<Action>) {
        if state.winner().is_none() {
            out.extend(ones(state.free().into()).map(|cell| Action(cell as u16)));
        }
    }

    fn play(&self, state: &mut State, action: Action) {
        state.stones[state.to_move.index()] |= 1 << action.index();
        state.to_move = state.to_move.other();
    }

    fn ply(&self, state: &State) -> usize {
        9 - state.free().count_ones() as usize
    }

    fn random_action(&self, state: &State, random: &mut Stream, _: &mut Vec<Action>) -> Action {
        let free = u64::from(state.free());
        Action(nth_one(free, random.below(free.count_ones() as usize)) as u16)
    }

    fn key(&self, state: &State) -> u32 {
        let [own, opponent] = [state.to_move, state.to_move.other()].map(|player| state.stones[player.index()]);
        u32::from(own) | u32::from(opponent) << 9
    }

    fn encode(&self, state: &State, out: &mut [f32]) {
        for (plane, player) in out.chunks_exact_mut(9).zip([state.to_move, state.to_move.other()]) {
            ones(state.stones[player.index()].into()).for_each(|cell| plane[cell] = 1.0);
        }
    }

    fn symmetry_count(&self) -> usize {
        grid::SQUARE_SYMMETRIES
    }

    fn map_state(&self, state: &State, symmetry: usize) -> State {
        let map = |stones: u16| {
            ones(stones.into()).fold(0, |mapped, cell| mapped | 1 << self.map_action(Action(cell as u16), symmetry).0)
        };
        State { stones: state.stones.map(map), to_move: state.to_move }
    }

    fn map_action(&self, action: Action, symmetry: usize) -> Action {
        let (column, row) = grid::map_square(symmetry, 3, action.index() / 3, action.index() % 3);
        Action((3 * column + row) as u16)
    }

    fn action_text(&self, action: Action) -> String {
        grid::square_text(action.index() / 3, action.index() % 3)
    }

    fn parse_action(&self, text: &str) -> Result<Action, TextError> {
        grid::parse_square(text, 3).map(|(column, row)| Action((3 * column + row) as u16))
    }

    fn state_text(&self, state: &State) -> String {
        let board = grid::rows_text(3, 3, |row, column| {
            (0..2).find(|&player| state.stones[player] >> (3 * column + row) & 1 == 1).map(|player| SIGNS[player])
        });
        format!("{board} {}", SIGNS[state.to_move.index()])
    }

    /// Positions that no game reaches are refused: the counts of x and o must fit the side to move, and the
    /// last move must have been possible.
    fn parse_state(&self, text: &str) -> Result<State, TextError> {
        let [board, side] = grid::fields(text, ["board", "side to move"])?;
        let mut stones = [0u16; 2];
        for (index, cell) in grid::parse_rows(board, 3, 3, &SIGNS)?.into_iter().enumerate() {
            if let Some(player) = cell {
                stones[player] |= 1 << (3 * (index % 3) + index / 3);
            }
        }
        let state = State { stones, to_move: grid::parse_side(side, SIGNS)? };
        let [x, o] = stones.map(u16::count_ones);
        grid::check_counts([x, o], state.to_move)?;
        if !state.has_last_move() {
            return Err(TextError::new(format!(
                "board {}: impossible, the game would have been over before the last move",
                grid::quoted(board)
            )));
        }
        Ok(state)
    }

    fn paint(&self, state: &State, last: Option<Action>) -> Drawing {
        let last = last.map(|action| (action.index() / 3, action.index() % 3));
        let board = grid::paint_square(3, None, last, |column, row| {
            let is = |player: &Player| state.stones[player.index()] >> (3 * column + row) & 1 == 1;
            let owner = Player::BOTH.into_iter().find(is);
            owner.map_or((Ink::Frame, '.'), |player| (Ink::Piece(player), SIGNS[player.index()]))
        });
        board.above(grid::caption(self, state))
    }

    fn player_names(&self) -> [&'static str; 2] {
        ["x", "o"]
    }

    fn solver(&self) -> Option<Box<dyn Solver<Self>>> {
        Some(Box::new(solver::Perfect))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_positions_name_the_field() {
        for (text, error) in [
            (
                "3/3/3",
                "position \"3/3/3\": expected 2 fields with single spaces between them (board, side to move), found 1",
            ),
            ("3/3/3 X", "side to move \"X\": expected x or o"),
            ("3/3/2x x", "board: 1 x and 0 o, but with x to move there are as many x as o"),
            ("3/3/3 o", "board: 0 x and 0 o, but with o to move there is one x more than o"),
            ("xxx/ooo/3 x", "board \"xxx/ooo/3\": impossible, the game would have been over before the last move"),
            ("xxx/o1o/1o1 x", "board \"xxx/o1o/1o1\": impossible, the game would have been over before the last move"),
        ] {
            assert_eq!(TicTacToe.parse_state(text).unwrap_err().to_string(), error, "{text}");
        }
        // Two lines made by one move are possible, two by different moves are not.
        assert!(TicTacToe.parse_state("xxx/xoo/xoo o").is_ok());
    }

    #[test]
    fn drawn_with_coordinates() {
        let state = TicTacToe.parse_state("x2/1o1/2x o").unwrap();
        assert_eq!(TicTacToe.draw(&state), "    a b c\n 1  x . .\n 2  . o .\n 3  . . x\no to move\n");
        let last = TicTacToe.parse_action("c3").unwrap();
        let marked = TicTacToe.paint(&state, Some(last)).to_string();
        assert!(marked.ends_with(" 2  . o .\n 3  . .[x]\no to move\n"), "{marked}");
    }
}
