//! Connect four: 7 columns of 6 cells, discs fall to the lowest free one.

mod solver;

use crate::game::bits::{nth_one, ones};
use crate::game::{
    Action, Drawing, End, EndReason, Game, Ink, Outcome, PlaneShape, Player, PolicyShape, Solver, TextError, grid,
    option_values,
};
use crate::util::rng::Stream;

const COLUMNS: usize = 7;
const ROWS: usize = 6;
/// Bits of a column: one more than its cells, so that lines never run over the top into the next column.
const STRIDE: usize = ROWS + 1;
const SIGNS: [char; 2] = ['x', 'o'];

/// The lowest cell of each column.
const BOTTOM: u64 = {
    let (mut mask, mut column) = (0, 0);
    while column < COLUMNS {
        mask |= 1 << (column * STRIDE);
        column += 1;
    }
    mask
};
const TOP: u64 = BOTTOM << (ROWS - 1);

/// The game; it has no options. An action's index is its column, 0 at the left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectFour;

/// A position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// Discs of each player, bit = `7 * column + height`, height 0 at the bottom.
    discs: [u64; 2],
    to_move: Player,
    outcome: Option<Outcome>,
}

impl State {
    fn all(&self) -> u64 {
        self.discs[0] | self.discs[1]
    }

    /// The top cells of the columns that are not full.
    fn open(&self) -> u64 {
        TOP & !self.all()
    }

    fn drop(&mut self, column: usize) {
        let all = self.all();
        let own = &mut self.discs[self.to_move.index()];
        // Adding to the column's filled bits carries into its lowest free one.
        *own |= (all + (1 << (column * STRIDE))) & (((1 << ROWS) - 1) << (column * STRIDE));
        if has_four(*own) {
            self.outcome = Some(Outcome::Win(self.to_move));
        } else if self.open() == 0 {
            self.outcome = Some(Outcome::Draw);
        }
        self.to_move = self.to_move.other();
    }

    fn sign(&self, row_from_top: usize, column: usize) -> Option<char> {
        let bit = cell_bit(row_from_top, column);
        (0..2).find(|&player| self.discs[player] >> bit & 1 == 1).map(|player| SIGNS[player])
    }
}

fn cell_bit(row_from_top: usize, column: usize) -> usize {
    column * STRIDE + ROWS - 1 - row_from_top
}

/// Whether four of `discs` stand in line: a pair next to a pair, in each of the four directions.
fn has_four(discs: u64) -> bool {
    [1, STRIDE, STRIDE - 1, STRIDE + 1].into_iter().any(|step| {
        let pairs = discs & (discs >> step);
        pairs & (pairs >> (2 * step)) != 0
    })
}

impl Game for ConnectFour {
    type State = State;
    /// The mover's discs plus all discs: in each column the sum of a pattern and of the `2^height - 1` above
    /// it, which no two different columns share (P. Pons, "Solving Connect Four", part on transpositions).
    type Key = u64;

    const NAME: &'static str = "connect4";
    const ENCODING_VERSION: u32 = 1;
    const RULES_VERSION: u32 = 1;

    fn from_options(options: &[(String, String)]) -> Result<Self, TextError> {
        option_values(Self::NAME, Self::option_infos(), options).map(|_| Self)
    }

    fn action_count(&self) -> usize {
        COLUMNS
    }

    fn policy_shape(&self) -> PolicyShape {
        PolicyShape { planes: 0, flat: COLUMNS }
    }

    /// Row 0 is the top row.
    fn plane_shape(&self) -> PlaneShape {
        PlaneShape { channels: 2, height: ROWS, width: COLUMNS }
    }

    fn plane_names(&self) -> Vec<String> {
        ["mover's discs", "opponent's discs"].map(String::from).into()
    }

    fn max_plies(&self) -> usize {
        ROWS * COLUMNS
    }

    fn start(&self, _: &mut Stream) -> State {
        State { discs: [0, 0], to_move: Player::First, outcome: None }
    }

    fn to_move(&self, state: &State) -> Player {
        state.to_move
    }

    fn end(&self, state: &State) -> Option<End> {
        state.outcome.map(|outcome| End { outcome, reason: EndReason::Rules })
    }

    fn legal(&self, state: &State, out: &mut Vec<Action>) {
        if state.outcome.is_none() {
            out.extend(ones(state.open()).map(|bit| Action((bit / STRIDE) as u16)));
        }
    }

    fn play(&self, state: &mut State, action: Action) {
        state.drop(action.index());
    }

    fn ply(&self, state: &State) -> usize {
        state.all().count_ones() as usize
    }

    fn random_action(&self, state: &State, random: &mut Stream, _: &mut Vec<Action>) -> Action {
        let open = state.open();
        Action((nth_one(open, random.below(open.count_ones() as usize)) / STRIDE) as u16)
    }

    fn key(&self, state: &State) -> u64 {
        state.discs[state.to_move.index()] + state.all()
    }

    fn encode(&self, state: &State, out: &mut [f32]) {
        for (plane, player) in out.chunks_exact_mut(ROWS * COLUMNS).zip([state.to_move, state.to_move.other()]) {
            for bit in ones(state.discs[player.index()]) {
                plane[(ROWS - 1 - bit % STRIDE) * COLUMNS + bit / STRIDE] = 1.0;
            }
        }
    }

    /// The identity and the mirror.
    fn symmetry_count(&self) -> usize {
        2
    }

    fn map_state(&self, state: &State, symmetry: usize) -> State {
        if symmetry == 0 {
            return *state;
        }
        let mirror = |discs: u64| {
            (0..COLUMNS).fold(0, |mirrored, column| {
                let cells = discs >> (column * STRIDE) & ((1 << ROWS) - 1);
                mirrored | cells << ((COLUMNS - 1 - column) * STRIDE)
            })
        };
        State { discs: state.discs.map(mirror), ..*state }
    }

    fn map_action(&self, action: Action, symmetry: usize) -> Action {
        if symmetry == 0 { action } else { Action(COLUMNS as u16 - 1 - action.0) }
    }

    fn action_text(&self, action: Action) -> String {
        (action.0 + 1).to_string()
    }

    fn parse_action(&self, text: &str) -> Result<Action, TextError> {
        match text.as_bytes() {
            [digit @ b'1'..=b'7'] => Ok(Action(u16::from(digit - b'1'))),
            _ => Err(TextError::new(format!("move {}: expected a column number 1 to {COLUMNS}", grid::quoted(text)))),
        }
    }

    fn state_text(&self, state: &State) -> String {
        format!(
            "{} {}",
            grid::rows_text(ROWS, COLUMNS, |row, column| state.sign(row, column)),
            SIGNS[state.to_move.index()]
        )
    }

    /// Refused as impossible are: discs with nothing below them, counts of x and o that do not fit the side to
    /// move, and boards on which the game would have been over before the last move. Whether there is an
    /// order of moves that builds the columns is not checked.
    fn parse_state(&self, text: &str) -> Result<State, TextError> {
        let [board, side] = grid::fields(text, ["board", "side to move"])?;
        let mut discs = [0u64; 2];
        for (index, cell) in grid::parse_rows(board, ROWS, COLUMNS, &SIGNS)?.into_iter().enumerate() {
            if let Some(player) = cell {
                discs[player] |= 1 << cell_bit(index / COLUMNS, index % COLUMNS);
            }
        }
        let mut state = State { discs, to_move: grid::parse_side(side, SIGNS)?, outcome: None };
        let all = state.all();
        for column in 0..COLUMNS {
            let cells = all >> (column * STRIDE) & ((1 << ROWS) - 1);
            if cells & (cells + 1) != 0 {
                return Err(TextError::new(format!("board, column {}: a disc lies above an empty cell", column + 1)));
            }
        }
        grid::check_counts(discs.map(u64::count_ones), state.to_move)?;
        let [x, o] = discs.map(has_four);
        let mover = state.to_move.other();
        // The highest disc of each column; one of the mover's came last, and no line stood without it.
        let highest = all & !(all >> 1);
        let has_last_move = all == 0
            || ones(highest & discs[mover.index()]).any(|bit| {
                let mut before = discs;
                before[mover.index()] &= !(1 << bit);
                !before.into_iter().any(has_four)
            });
        if !has_last_move {
            return Err(TextError::new(format!(
                "board {}: impossible, no disc of {} can have been the last move{}",
                grid::quoted(board),
                SIGNS[mover.index()],
                if x || o { " (the game would have been over before it)" } else { "" }
            )));
        }
        state.outcome = if x || o { Some(Outcome::Win(mover)) } else { (state.open() == 0).then_some(Outcome::Draw) };
        Ok(state)
    }

    fn paint(&self, state: &State, last: Option<Action>) -> Drawing {
        let mut drawing = Drawing::new();
        // The last disc is the highest of its column.
        let height = |column: usize| (state.all() >> (column * STRIDE) & ((1 << ROWS) - 1)).count_ones() as usize;
        let last = last.map(|action| (ROWS.saturating_sub(height(action.index())), action.index()));
        for row in 0..ROWS {
            let cells = (0..COLUMNS).map(|column| {
                let owner =
                    Player::BOTH.into_iter().find(|player| state.sign(row, column) == Some(SIGNS[player.index()]));
                let (ink, sign) = owner.map_or((Ink::Frame, '.'), |player| (Ink::Piece(player), SIGNS[player.index()]));
                grid::Cell { ink, sign, is_last: last == Some((row, column)), border: false }
            });
            grid::paint_row(&mut drawing, cells);
        }
        (1..=COLUMNS).for_each(|column| drawing.push(Ink::Frame, format_args!(" {column}")));
        drawing.with(Ink::Frame, "\n").above(grid::caption(self, state))
    }

    fn player_names(&self) -> [&'static str; 2] {
        ["x", "o"]
    }

    fn solver(&self) -> Option<Box<dyn Solver<Self>>> {
        Some(Box::new(solver::Perfect::new()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_positions_name_the_field() {
        for (text, error) in [
            ("7/7/7/7/7 x", "board \"7/7/7/7/7\": expected 6 rows with / between them, found 5"),
            ("7/7/7/7/3x3/7 o", "board, column 4: a disc lies above an empty cell"),
            ("7/7/7/7/7/3x3 x", "board: 1 x and 0 o, but with x to move there are as many x as o"),
            ("7/7/7/7/7/1xxxxx1 o", "board: 5 x and 0 o, but with o to move there is one x more than o"),
            ("7/7/7/o6/xxxx3/oooo3 x", "board: 4 x and 5 o, but with x to move there are as many x as o"),
            (
                "7/7/7/7/xxxx3/oooo3 x",
                "board \"7/7/7/7/xxxx3/oooo3\": impossible, no disc of o can have been the last move \
                 (the game would have been over before it)",
            ),
            ("7/7/7/7/x6/o6 x", "board \"7/7/7/7/x6/o6\": impossible, no disc of o can have been the last move"),
        ] {
            assert_eq!(ConnectFour.parse_state(text).unwrap_err().to_string(), error, "{text}");
        }
    }

    #[test]
    fn drawn_with_coordinates() {
        let state = ConnectFour.parse_state("7/7/7/7/3o3/3x2x o").unwrap();
        let drawn = ConnectFour.draw(&state);
        assert!(drawn.ends_with(" . . . o . . .\n . . . x . . x\n 1 2 3 4 5 6 7\no to move\n"), "{drawn}");
        let marked = ConnectFour.paint(&state, Some(Action(6))).to_string();
        assert!(marked.contains(" . . . o . . .\n . . . x . .[x]\n 1 2"), "{marked}");
    }
}
