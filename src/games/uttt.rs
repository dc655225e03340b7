//! Ultimate Tic-Tac-Toe: nine small boards that form a large one.

use crate::game::bits::{THREE_IN_LINE, ones};
use crate::game::{
    Action, Drawing, End, EndReason, Game, Outcome, PlaneShape, Player, PolicyShape, TextError, grid, option_values,
};
use crate::util::rng::Stream;

mod fen;
mod paint;

/// Rows and columns of the whole grid.
const SIZE: usize = 9;
const CELLS: usize = SIZE * SIZE;
const BOARD: u32 = 0o777;
/// The target when the choice is free, or the game over.
const FREE: u8 = 9;
const SIGNS: [char; 2] = ['x', 'o'];

/// The game; it has no options. An action's index is `9 * cell + board`, both numbered as in [`State`].
///
/// A network sees a grid of 3x3 small boards, not of 9x9 cells: what is in a board are channels of its place. Its
/// first layer then reads a whole small board at once, with the same weights for all nine, and every later one
/// relates whole boards to each other, which is how the game works; a convolution over 9x9 cells would mostly relate
/// cells that happen to lie side by side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uttt;

/// A position.
///
/// Boards are numbered `3 * column + row` of the large board, cells `3 * column + row` within theirs (the fen
/// numbers boards in reading order instead). A set of nine of either for both players is one number: bits 0
/// to 8 for the first, 9 to 17 for the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// Stones in each small board.
    stones: [u32; 9],
    /// Small boards won.
    won: u32,
    /// Small boards undecided, nine bits.
    open: u32,
    /// The board to play in, or `FREE`.
    target: u8,
    ply: u8,
    to_move: Player,
    outcome: Option<Outcome>,
}

/// Board and cell within it of the square at `9 * column + row` of the whole grid. Ascending, these squares are in
/// notation order.
static SPLIT: [(u8, u8); CELLS] = {
    let mut table = [(0, 0); CELLS];
    let mut square = 0;
    while square < CELLS {
        let (column, row) = (square / SIZE, square % SIZE);
        table[square] = ((3 * (column / 3) + row / 3) as u8, (3 * (column % 3) + row % 3) as u8);
        square += 1;
    }
    table
};

/// The move into `cell` of `board`.
#[inline(always)]
fn join(board: usize, cell: usize) -> Action {
    Action((9 * cell + board) as u16)
}

/// The move on the square `9 * column + row`.
#[inline(always)]
fn square(square: usize) -> Action {
    let (board, cell) = SPLIT[square];
    join(board.into(), cell.into())
}

/// Board and cell of a move.
#[inline(always)]
fn split(action: Action) -> (usize, usize) {
    (action.index() % 9, action.index() / 9)
}

/// `NTH_CELL[cells][n]`: the `n`-th set bit of nine.
static NTH_CELL: [[u8; 16]; 512] = {
    let mut table = [[0; 16]; 512];
    let mut cells = 0;
    while cells < 512 {
        let (mut cell, mut count) = (0, 0);
        while cell < 9 {
            if cells >> cell & 1 == 1 {
                table[cells][count] = cell as u8;
                count += 1;
            }
            cell += 1;
        }
        cells += 1;
    }
    table
};

/// Where each symmetry moves each of nine boards or cells.
static MAP_NINE: [[u8; 9]; grid::SQUARE_SYMMETRIES] = {
    let mut table = [[0; 9]; grid::SQUARE_SYMMETRIES];
    let mut symmetry = 0;
    while symmetry < grid::SQUARE_SYMMETRIES {
        let mut cell = 0;
        while cell < 9 {
            let (column, row) = grid::map_square(symmetry, 3, cell / 3, cell % 3);
            table[symmetry][cell] = (3 * column + row) as u8;
            cell += 1;
        }
        symmetry += 1;
    }
    table
};

/// The cells of both players that are occupied, nine bits.
#[inline(always)]
fn occupied(stones: u32) -> u32 {
    (stones | stones >> 9) & BOARD
}

/// The part of `player`, nine bits.
#[inline(always)]
fn part(pair: u32, player: Player) -> u32 {
    pair >> (9 * player.index()) & BOARD
}

#[inline(always)]
fn has_line(cells: u32) -> bool {
    THREE_IN_LINE[(cells & BOARD) as usize]
}

/// Counts `n` (less than their sum) through `counts`: the board, and the number within it. Without branches
/// that depend on the numbers, as those are random.
#[inline(always)]
fn pick(counts: &[u32; 9], n: usize) -> (usize, usize) {
    let n = n as u32;
    let (mut board, mut before, mut sum) = (0, 0, 0);
    for count in counts {
        sum += count;
        board += usize::from(sum <= n);
        before = if sum <= n { sum } else { before };
    }
    (board.min(8), (n - before) as usize)
}

impl State {
    const START: Self =
        Self { stones: [0; 9], won: 0, open: BOARD, target: FREE, ply: 0, to_move: Player::First, outcome: None };

    /// Free cells of a board, nine bits.
    #[inline(always)]
    fn free(&self, board: usize) -> u32 {
        !occupied(self.stones[board]) & BOARD
    }

    /// The boards that may be played in, nine bits.
    fn playable(&self) -> u32 {
        match (self.outcome, self.target) {
            (Some(_), _) => 0,
            (None, FREE) => self.open,
            (None, board) => 1 << board,
        }
    }

    /// Makes the mover's move.
    #[inline(always)]
    fn put(&mut self, board: usize, cell: usize) {
        let shift = 9 * self.to_move.index();
        let stones = self.stones[board] | 1 << (cell + shift);
        self.stones[board] = stones;
        self.ply += 1;
        if has_line(stones >> shift) {
            self.won |= 1 << (board + shift);
            self.open &= !(1 << board);
            if has_line(self.won >> shift) {
                self.outcome = Some(Outcome::Win(self.to_move));
            }
        } else if occupied(stones) == BOARD {
            self.open &= !(1 << board);
        }
        if self.open == 0 && self.outcome.is_none() {
            self.outcome = Some(Outcome::Draw);
        }
        let is_sent = self.open >> cell & 1 == 1 && self.outcome.is_none();
        self.target = if is_sent { cell as u8 } else { FREE };
        self.to_move = self.to_move.other();
    }

    /// A uniformly random legal move of a game that goes on, as board and cell.
    #[inline(always)]
    fn random_cell(&self, random: &mut Stream) -> (usize, usize) {
        if self.target != FREE {
            let board = usize::from(self.target);
            let free = self.free(board);
            let cell = NTH_CELL[free as usize][random.below(free.count_ones() as usize)];
            return (board, cell.into());
        }
        let mut counts = [0; 9];
        for (board, count) in counts.iter_mut().enumerate() {
            *count = self.free(board).count_ones() * (self.open >> board & 1);
        }
        let (board, nth) = pick(&counts, random.below(counts.iter().sum::<u32>() as usize));
        (board, NTH_CELL[self.free(board) as usize][nth].into())
    }

    /// Whose stone is on a square.
    fn owner(&self, column: usize, row: usize) -> Option<Player> {
        let (board, cell) = SPLIT[SIZE * column + row];
        Player::BOTH.into_iter().find(|&player| part(self.stones[usize::from(board)], player) >> cell & 1 == 1)
    }
}

impl Game for Uttt {
    type State = State;
    /// Eighteen bits for each board, three boards in a number, the mover's part below: the stones of an
    /// undecided one; all nine of the winner's half for a won one; all of both for a drawn one, neither of
    /// which an undecided board can hold. Above them in the first number what `State::key_target` says.
    type Key = [u64; 3];

    const NAME: &'static str = "uttt";
    const ENCODING_VERSION: u32 = 2;
    const RULES_VERSION: u32 = 2;

    fn from_options(options: &[(String, String)]) -> Result<Self, TextError> {
        option_values(Self::NAME, Self::option_infos(), options).map(|_| Self)
    }

    fn action_count(&self) -> usize {
        CELLS
    }

    fn policy_shape(&self) -> PolicyShape {
        PolicyShape { planes: 9, flat: 0 }
    }

    fn plane_shape(&self) -> PlaneShape {
        PlaneShape { channels: 22, height: 3, width: 3 }
    }

    /// The stones in a decided board matter to nothing any more and are left out, so that positions that
    /// differ only in them share an evaluation.
    fn plane_names(&self) -> Vec<String> {
        let stones = |whose: &str| -> Vec<String> {
            let (rows, columns) = (["top", "middle", "bottom"], ["left", "centre", "right"]);
            let place = |cell: usize| format!("{} {}", rows[cell % 3], columns[cell / 3]);
            (0..9).map(|cell| format!("{whose} stone at the {} of an undecided board", place(cell))).collect()
        };
        let boards = ["won by the mover", "won by the opponent", "drawn", "where the mover can move"];
        let boards = boards.map(|what| format!("boards {what}")).into();
        [stones("mover's"), stones("opponent's"), boards].concat()
    }

    fn max_plies(&self) -> usize {
        CELLS
    }

    fn start(&self, _: &mut Stream) -> State {
        State::START
    }

    fn to_move(&self, state: &State) -> Player {
        state.to_move
    }

    fn end(&self, state: &State) -> Option<End> {
        state.outcome.map(|outcome| End { outcome, reason: EndReason::Rules })
    }

    fn legal(&self, state: &State, out: &mut Vec<Action>) {
        let playable = state.playable();
        if playable.is_power_of_two() {
            let board = playable.trailing_zeros() as usize;
            out.extend(ones(state.free(board).into()).map(|cell| join(board, cell)));
            return;
        }
        let free: [u64; 9] =
            std::array::from_fn(|board| if playable >> board & 1 == 1 { state.free(board).into() } else { 0 });
        for column in 0..SIZE {
            // The three boards that the column runs through, and their columns that are part of it.
            let (boards, shift) = (&free[column / 3 * 3..][..3], 3 * (column % 3));
            let rows = (0..3).fold(0, |rows, board| rows | (boards[board] >> shift & 7) << (3 * board));
            out.extend(ones(rows).map(|row| square(SIZE * column + row)));
        }
    }

    fn play(&self, state: &mut State, action: Action) {
        let (board, cell) = split(action);
        state.put(board, cell);
    }

    fn ply(&self, state: &State) -> usize {
        state.ply.into()
    }

    fn random_action(&self, state: &State, random: &mut Stream, _: &mut Vec<Action>) -> Action {
        let (board, cell) = state.random_cell(random);
        join(board, cell)
    }

    /// The same as move by move, on less: a decided board is kept as one without free cells, so that a
    /// target without any means a free choice, and no free cell at all a draw.
    fn playout(&self, state: &mut State, random: &mut Stream, _: &mut Vec<Action>) -> End {
        if let Some(end) = self.end(state) {
            return end;
        }
        let mut stones = Player::BOTH.map(|player| state.stones.map(|stones| part(stones, player)));
        let mut won = Player::BOTH.map(|player| part(state.won, player));
        let mut free: [u32; 9] =
            std::array::from_fn(|board| if state.open >> board & 1 == 1 { state.free(board) } else { 0 });
        let mut mover = state.to_move.index();
        let mut board = if state.target == FREE { usize::MAX } else { state.target.into() };
        let outcome = loop {
            let mut cells = free.get(board).copied().unwrap_or(0);
            let nth;
            if cells != 0 {
                nth = random.below(cells.count_ones() as usize);
            } else {
                let counts = free.map(u32::count_ones);
                let total: u32 = counts.iter().sum();
                if total == 0 {
                    break Outcome::Draw;
                }
                (board, nth) = pick(&counts, random.below(total as usize));
                cells = free[board];
            }
            let cell = usize::from(NTH_CELL[cells as usize & 511][nth & 15]);
            let own = stones[mover][board] | 1 << cell;
            stones[mover][board] = own;
            free[board] = cells & !(1 << cell);
            if has_line(own) {
                free[board] = 0;
                won[mover] |= 1 << board;
                if has_line(won[mover]) {
                    break Outcome::Win(Player::BOTH[mover]);
                }
            }
            mover ^= 1;
            board = cell;
        };
        // A win leaves the loop before the turn passes on, a draw after it.
        let last = if outcome == Outcome::Draw { mover ^ 1 } else { mover };
        *state = State {
            stones: std::array::from_fn(|board| stones[0][board] | stones[1][board] << 9),
            won: won[0] | won[1] << 9,
            open: (0..9).filter(|&board| free[board] != 0).fold(0, |open, board| open | 1 << board),
            target: FREE,
            ply: stones.as_flattened().iter().map(|cells| cells.count_ones() as u8).sum(),
            to_move: Player::BOTH[last].other(),
            outcome: Some(outcome),
        };
        End { outcome, reason: EndReason::Rules }
    }

    fn key(&self, state: &State) -> [u64; 3] {
        let (own, other) = (state.to_move, state.to_move.other());
        let mut key = [0; 3];
        for board in 0..9 {
            let is = |set: u32| set >> board & 1 == 1;
            let content = if is(state.open) {
                part(state.stones[board], own) | part(state.stones[board], other) << 9
            } else if is(part(state.won, own)) {
                BOARD
            } else if is(part(state.won, other)) {
                BOARD << 9
            } else {
                BOARD | BOARD << 9
            };
            key[board / 3] |= u64::from(content) << (18 * (board % 3));
        }
        key[0] |= state.key_target() << 54;
        key
    }

    fn encode(&self, state: &State, out: &mut [f32]) {
        let (own, other) = (state.to_move, state.to_move.other());
        let playable = state.playable();
        for board in 0..9 {
            let is = |boards: u32| boards >> board & 1 == 1;
            let mut set = |plane: usize| out[9 * plane + board] = 1.0;
            if is(state.open) {
                ones(part(state.stones[board], own).into()).for_each(&mut set);
                ones(part(state.stones[board], other).into()).for_each(|cell| set(9 + cell));
            } else if is(part(state.won, own)) {
                set(18);
            } else if is(part(state.won, other)) {
                set(19);
            } else {
                set(20);
            }
            if is(playable) {
                set(21);
            }
        }
    }

    /// For each small board whether the player has won it in the end, then whether the opponent has.
    fn ending_shape(&self) -> PolicyShape {
        PolicyShape { planes: 2, flat: 0 }
    }

    fn encode_ending(&self, end: &State, viewer: Player, out: &mut [f32]) {
        for (plane, player) in [viewer, viewer.other()].into_iter().enumerate() {
            ones(part(end.won, player).into()).for_each(|board| out[9 * plane + board] = 1.0);
        }
    }

    fn symmetry_count(&self) -> usize {
        grid::SQUARE_SYMMETRIES
    }

    fn map_state(&self, state: &State, symmetry: usize) -> State {
        let map = &MAP_NINE[symmetry];
        let nine = |set: u32| ones(set.into()).fold(0, |mapped, at| mapped | 1 << map[at]);
        let pair = |pair: u32| nine(pair & BOARD) | nine(pair >> 9) << 9;
        let mut stones = [0; 9];
        for (board, &content) in state.stones.iter().enumerate() {
            stones[usize::from(map[board])] = pair(content);
        }
        let target = map.get(usize::from(state.target)).copied().unwrap_or(FREE);
        State { stones, won: pair(state.won), open: nine(state.open), target, ..*state }
    }

    fn map_action(&self, action: Action, symmetry: usize) -> Action {
        let (board, cell) = split(action);
        let map = &MAP_NINE[symmetry];
        join(map[board].into(), map[cell].into())
    }

    fn action_text(&self, action: Action) -> String {
        let (board, cell) = split(action);
        grid::square_text(3 * (board / 3) + cell / 3, 3 * (board % 3) + cell % 3)
    }

    fn parse_action(&self, text: &str) -> Result<Action, TextError> {
        grid::parse_square(text, SIZE).map(|(column, row)| square(SIZE * column + row))
    }

    fn state_text(&self, state: &State) -> String {
        fen::write(state)
    }

    /// Refused as impossible are: counts of x and o that do not fit the side to move; lines in one small board
    /// for both players; a board to play in that is decided, or any when the game is over (`-` then); and
    /// positions that no last move explains, which must have been made in an undecided board of a game that
    /// went on, and have sent the opponent where the last field says.
    fn parse_state(&self, text: &str) -> Result<State, TextError> {
        fen::read(text)
    }

    fn paint(&self, state: &State, last: Option<Action>) -> Drawing {
        paint::paint(state, last)
    }

    fn player_names(&self) -> [&'static str; 2] {
        ["x", "o"]
    }
}

impl State {
    /// What the key says about where the mover can move: the target, `FREE`, or 15 when the game is over. A
    /// free choice with one undecided board left is the same as being sent there.
    fn key_target(&self) -> u64 {
        match self.playable() {
            0 => 15,
            one if one.is_power_of_two() => one.trailing_zeros().into(),
            _ => FREE.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ending_tells_who_won_which_board() {
        // x has the left column of boards, o the one in the middle of the top.
        let end = Uttt.parse_state("xxxooo3/9/9/xxx6/9/9/xxx1oo3/oo7/o8 o -").unwrap();
        assert!(Uttt.end(&end).is_some());
        let seen = |viewer| {
            let mut out = [0.0; 18];
            Uttt.encode_ending(&end, viewer, &mut out);
            out.map(|x| x as u8)
        };
        // Boards column by column.
        assert_eq!(seen(Player::First), [1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0]);
        assert_eq!(seen(Player::Second), [0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn stones_of_decided_boards_do_not_reach_key_or_encoding() {
        // Board 1 is won by x in two different ways; all else is the same.
        let [one, other] = ["xxx6/oo7/9/9/9/9/9/9/9 o -", "xo7/ox7/2x6/9/9/9/9/9/9 o -"].map(|text| {
            let state = Uttt.parse_state(text).unwrap();
            let mut planes = vec![0.0; Uttt.plane_shape().len()];
            Uttt.encode(&state, &mut planes);
            (Uttt.key(&state), planes)
        });
        assert_eq!(one, other);
    }
}
