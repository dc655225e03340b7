//! Connect four solved by alpha-beta search.
//!
//! After the public descriptions of P. Pons, "Solving Connect Four" (blog.gamesolver.org, 2016 to 2019: bit boards, scores,
//! moves that do not lose at once, order by threats, null windows), and J. Tromp, "John's Connect Four Playground"
//! (tromp.github.io/c4/c4.html: both bounds of a position in a transposition table of fixed size).
//!
//! A *score* is that of the player to move, as Pons counts: 0 for a draw; for a win one more than the discs that the winner
//! has left when the game ends, so that earlier wins score more; the opposite for a loss. With `n` discs on the board a win
//! with the `d`-th disc from here scores `(44 - n - d) / 2`, rounded down.

use super::{BOTTOM, COLUMNS, ConnectFour, ROWS, STRIDE, State};
use crate::game::bits::ones;
use crate::game::{Action, Outcome, Refusal, Solved, SolvedMove, Solver};

const CELLS: i32 = (COLUMNS * ROWS) as i32;

/// All cells.
const BOARD: u64 = BOTTOM * ((1 << ROWS) - 1);

/// Columns from the centre outwards: central discs belong to more lines.
const FROM_CENTRE: [usize; COLUMNS] = [3, 2, 4, 1, 5, 0, 6];

/// Discs from which on every position is meant to be solved.
const FROM_DISCS: usize = 12;

/// Positions visited for one answer at most, some fifteen seconds: eight times what the hardest of a thousand random positions
/// with [`FROM_DISCS`] discs takes.
const NODES: u64 = 100_000_000;

/// The same with fewer discs: what a fifth of a second finds out, or nothing.
const NODES_EARLY: u64 = 1_000_000;

/// Positions are remembered in so many slots, of eight bytes each.
const SLOT_BITS: u32 = 22;

/// A position as the search sees it: it only needs to know whose discs the mover's are.
#[derive(Clone, Copy)]
struct Board {
    own: u64,
    all: u64,
    /// Discs on the board.
    count: i32,
}

impl Board {
    fn of(state: &State) -> Self {
        let all = state.all();
        Self { own: state.discs[state.to_move.index()], all, count: all.count_ones() as i32 }
    }

    /// The lowest free cell of each column that has one.
    fn playable(self) -> u64 {
        (self.all + BOTTOM) & BOARD
    }

    /// The cell that a disc in `column` falls to.
    fn cell(self, column: usize) -> u64 {
        self.playable() & column_mask(column)
    }

    /// After a disc in `cell`.
    fn after(self, cell: u64) -> Self {
        Self { own: self.own ^ self.all, all: self.all | cell, count: self.count + 1 }
    }

    /// Free cells, playable or not, that complete four discs of the mover.
    fn own_threats(self) -> u64 {
        completing(self.own) & !self.all
    }

    fn others_threats(self) -> u64 {
        completing(self.own ^ self.all) & !self.all
    }

    fn wins_at_once(self) -> bool {
        self.own_threats() & self.playable() != 0
    }

    /// Playable cells after which the opponent does not win at once. The mover cannot win at once.
    fn safe_cells(self) -> u64 {
        let (playable, threats) = (self.playable(), self.others_threats());
        let forced = playable & threats;
        let cells = match forced.count_ones() {
            0 => playable,
            1 => forced,
            _ => return 0,
        };
        // No disc right below a threat.
        cells & !(threats >> 1)
    }

    /// Distinct for different positions; see `ConnectFour::key`. Below 2^49.
    fn key(self) -> u64 {
        self.own + self.all
    }
}

fn column_mask(column: usize) -> u64 {
    ((1 << ROWS) - 1) << (column * STRIDE)
}

/// The cells of the board, free or not, that stand in line with three of `discs`.
fn completing(discs: u64) -> u64 {
    // Upwards only: below three discs in a column there is no free cell.
    let mut cells = (discs << 1) & (discs << 2) & (discs << 3);
    for step in [STRIDE, STRIDE - 1, STRIDE + 1] {
        let before = (discs << step) & (discs << (2 * step));
        let behind = (discs >> step) & (discs >> (2 * step));
        cells |= before & ((discs << (3 * step)) | (discs >> step));
        cells |= behind & ((discs >> (3 * step)) | (discs << step));
    }
    cells & BOARD
}

/// The search has visited as many positions as it may.
struct Exhausted;

/// What is known of the scores of positions. A slot holds one position, the last that came to it: the rest of its key, the
/// number of the answer that it belongs to, and both bounds of its score.
struct Table {
    slots: Vec<u64>,
    /// Only slots of this number count: an answer must not depend on earlier ones.
    epoch: u64,
}

const KEY_BITS: u32 = 49;
/// Bits of the key that the place of the slot does not tell.
const REST_BITS: u32 = KEY_BITS - SLOT_BITS;
const BOUND_BITS: u32 = 6;
const EPOCHS: u64 = 1 << (64 - REST_BITS - 2 * BOUND_BITS);
/// Makes bounds positive.
const OFFSET: i32 = CELLS / 2 + 1;

impl Table {
    const fn new() -> Self {
        Self { slots: Vec::new(), epoch: 0 }
    }

    /// Forgets everything.
    fn forget(&mut self) {
        self.epoch += 1;
        if self.slots.is_empty() || self.epoch == EPOCHS {
            self.slots.clear();
            self.slots.resize(1 << SLOT_BITS, 0);
            self.epoch = 1;
        }
    }

    /// Slot of a key, and what the slot holds of it above the bounds. An odd factor permutes the keys.
    fn place(&self, key: u64) -> (usize, u64) {
        let spread = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) & ((1 << KEY_BITS) - 1);
        let rest = spread & ((1 << REST_BITS) - 1);
        ((spread >> REST_BITS) as usize, self.epoch << REST_BITS | rest)
    }

    /// The bounds of the score, where they are known.
    fn get(&self, key: u64) -> Option<(i32, i32)> {
        let (slot, tag) = self.place(key);
        let entry = self.slots[slot];
        let bound = |shift: u32| (entry >> shift & ((1 << BOUND_BITS) - 1)) as i32 - OFFSET;
        (entry >> (2 * BOUND_BITS) == tag).then(|| (bound(0), bound(BOUND_BITS)))
    }

    fn put(&mut self, key: u64, (low, high): (i32, i32)) {
        let (slot, tag) = self.place(key);
        self.slots[slot] = tag << (2 * BOUND_BITS) | ((high + OFFSET) as u64) << BOUND_BITS | (low + OFFSET) as u64;
    }
}

/// Solves positions of [`ConnectFour`].
pub(super) struct Perfect {
    table: Table,
    nodes: u64,
    limit: u64,
}

impl Perfect {
    /// A solver. It takes its memory, 32 MiB, when it is first asked.
    pub(super) fn new() -> Self {
        Self { table: Table::new(), nodes: 0, limit: 0 }
    }

    fn begin(&mut self, state: &State) -> Board {
        let board = Board::of(state);
        self.table.forget();
        self.nodes = 0;
        self.limit = if board.count as usize >= FROM_DISCS { NODES } else { NODES_EARLY };
        board
    }

    fn refusal(&self, state: &State) -> Refusal {
        let discs = match state.all().count_ones() {
            0 => "no discs".to_owned(),
            1 => "1 disc".to_owned(),
            discs => format!("{discs} discs"),
        };
        Refusal(format!(
            "a connect4 position with {discs} takes too long to solve: it is not certain after {} positions, the limit; ask \
             from {FROM_DISCS} discs on",
            self.limit
        ))
    }

    /// A bound of the score of a board on which the mover does not win at once: a lower one, if it is `target` or more, else
    /// an upper one that is less.
    fn bound(&mut self, board: Board, target: i32) -> Result<i32, Exhausted> {
        self.nodes += 1;
        if self.nodes > self.limit {
            return Err(Exhausted);
        }
        let cells = board.safe_cells();
        if cells == 0 {
            // The next disc but one wins for the opponent, or the board is full.
            return Ok(-(CELLS - board.count) / 2);
        }
        if board.count >= CELLS - 2 {
            return Ok(0);
        }
        // The opponent wins with the fourth disc from here at the earliest, the mover with the third.
        let (mut low, mut high) = (-(CELLS - 2 - board.count) / 2, (CELLS - 1 - board.count) / 2);
        let key = board.key();
        if let Some((known_low, known_high)) = self.table.get(key) {
            (low, high) = (low.max(known_low), high.min(known_high));
        }
        if low >= target || low == high {
            return Ok(low);
        }
        if high < target {
            return Ok(high);
        }
        let mut best = i32::MIN;
        let (order, count) = in_order(board, cells);
        for &cell in &order[..count] {
            let score = -self.bound(board.after(cell), 1 - target)?;
            if score >= target {
                self.table.put(key, (score.max(low), high));
                return Ok(score);
            }
            best = best.max(score);
        }
        high = high.min(best);
        self.table.put(key, (low, high));
        Ok(high)
    }

    /// Whether the score of the board, on which the mover may win at once, is `target` or more.
    fn reaches(&mut self, board: Board, target: i32) -> Result<bool, Exhausted> {
        if board.wins_at_once() {
            return Ok((CELLS + 1 - board.count) / 2 >= target);
        }
        Ok(self.bound(board, target)? >= target)
    }

    /// The score, by null windows that halve what is possible, from its ends inwards: quick wins and losses are found by
    /// shallow searches.
    fn score(&mut self, board: Board) -> Result<i32, Exhausted> {
        if board.wins_at_once() {
            return Ok((CELLS + 1 - board.count) / 2);
        }
        let (mut low, mut high) = (-(CELLS - board.count) / 2, (CELLS - 1 - board.count) / 2);
        while low < high {
            let mut target = low + (high - low + 1) / 2;
            if target <= 0 && low / 2 < target {
                target = (low / 2).max(low + 1);
            } else if target > 0 && high / 2 >= target {
                target = high / 2 + 1;
            }
            let bound = self.bound(board, target)?;
            if bound >= target { low = bound } else { high = bound }
        }
        Ok(low)
    }

    fn outcomes(&mut self, board: Board, state: &State) -> Result<Vec<SolvedMove>, Exhausted> {
        let mover = state.to_move;
        let mut moves = Vec::new();
        for column in ones(state.open()).map(|bit| bit / STRIDE) {
            let cell = board.cell(column);
            let outcome = if board.own_threats() & cell != 0 {
                Outcome::Win(mover)
            } else {
                let next = board.after(cell);
                if next.count < CELLS && self.reaches(next, 1)? {
                    Outcome::Win(mover.other())
                } else if next.count == CELLS || self.reaches(next, 0)? {
                    Outcome::Draw
                } else {
                    Outcome::Win(mover)
                }
            };
            moves.push(SolvedMove { action: Action(column as u16), outcome });
        }
        Ok(moves)
    }

    /// Columns that keep the score.
    fn best(&mut self, board: Board) -> Result<Vec<Action>, Exhausted> {
        let score = self.score(board)?;
        let mut moves = Vec::new();
        for column in 0..COLUMNS {
            let cell = board.cell(column);
            let keeps = if board.own_threats() & cell != 0 {
                true
            } else if cell == 0 || board.wins_at_once() {
                false
            } else {
                let next = board.after(cell);
                if next.count == CELLS { score == 0 } else { !self.reaches(next, 1 - score)? }
            };
            if keeps {
                moves.push(Action(column as u16));
            }
        }
        Ok(moves)
    }
}

/// `cells` with the most promising first: those that leave the mover the most threats, then central ones.
fn in_order(board: Board, cells: u64) -> ([u64; COLUMNS], usize) {
    let (mut order, mut threats, mut count) = ([0; COLUMNS], [0; COLUMNS], 0);
    for column in FROM_CENTRE {
        let cell = cells & column_mask(column);
        if cell != 0 {
            let made = (completing(board.own | cell) & !board.all & !cell).count_ones();
            let mut at = count;
            while at > 0 && threats[at - 1] < made {
                (order[at], threats[at]) = (order[at - 1], threats[at - 1]);
                at -= 1;
            }
            (order[at], threats[at]) = (cell, made);
            count += 1;
        }
    }
    (order, count)
}

impl Solver<ConnectFour> for Perfect {
    fn solve(&mut self, state: &State) -> Result<Solved, Refusal> {
        let board = self.begin(state);
        let moves = self.outcomes(board, state).map_err(|Exhausted| self.refusal(state))?;
        Ok(Solved::new(state.to_move, moves))
    }

    fn best_moves(&mut self, state: &State) -> Result<Vec<Action>, Refusal> {
        let board = self.begin(state);
        match self.best(board) {
            Ok(moves) => Ok(moves),
            // How the game ends is sooner found than when.
            Err(Exhausted) => Ok(self.solve(state)?.keeping().collect()),
        }
    }

    fn first_ply(&self) -> usize {
        FROM_DISCS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::Game as _;
    use crate::games::connect4::has_four;
    use crate::util::rng::Stream;

    /// A position of a random game with so many discs that goes on.
    fn random_position(discs: usize, random: &mut Stream) -> State {
        loop {
            let mut state = ConnectFour.startpos();
            while state.outcome.is_none() && ConnectFour.ply(&state) < discs {
                let action = ConnectFour.random_action(&state, random, &mut Vec::new());
                ConnectFour.play(&mut state, action);
            }
            if state.outcome.is_none() {
                return state;
            }
        }
    }

    #[test]
    fn threats_are_the_cells_that_make_four() {
        let mut random = Stream::test(1);
        for _ in 0..2000 {
            let board = Board::of(&random_position(random.below(42), &mut random));
            let others = board.own ^ board.all;
            let [own, other] = [board.own, others].map(|discs| {
                let four = ones(BOARD & !board.all).filter(|cell| has_four(discs | 1 << cell));
                four.fold(0, |cells, cell| cells | 1 << cell)
            });
            assert_eq!((board.own_threats(), board.others_threats()), (own, other));
            assert_eq!(board.wins_at_once(), own & board.playable() != 0);
            if !board.wins_at_once() {
                let safe = ones(board.playable()).filter(|cell| !board.after(1 << cell).wins_at_once());
                assert_eq!(board.safe_cells(), safe.fold(0, |cells, cell| cells | 1 << cell));
            }
        }
    }

    #[test]
    fn the_table_keeps_bounds_and_forgets() {
        let mut table = Table::new();
        table.forget();
        let keys: Vec<u64> = (0..1000).map(|key| key * 0x1_2345_6789 % (1 << KEY_BITS)).collect();
        let bounds = |key: u64| (-((key % 22) as i32), (key % 23) as i32 - 1);
        assert!(keys.iter().all(|&key| table.get(key).is_none()));
        let mut kept = 0;
        for &key in &keys {
            table.put(key, bounds(key));
            assert_eq!(table.get(key), Some(bounds(key)));
        }
        for &key in &keys {
            kept += usize::from(table.get(key).is_some_and(|known| known == bounds(key)));
            assert!(table.get(key).is_none_or(|known| known == bounds(key)));
        }
        assert!(kept > 990, "{kept}");
        table.forget();
        assert!(keys.iter().all(|&key| table.get(key).is_none()));
        // The numbers of answers begin anew some day; nothing may be taken for what was known at the first time.
        table.epoch = 1;
        assert!(keys.iter().any(|&key| table.get(key).is_some()));
        table.epoch = EPOCHS - 1;
        table.forget();
        assert_eq!(table.epoch, 1);
        assert!(keys.iter().all(|&key| table.get(key).is_none()));
    }

    #[test]
    fn the_limit_holds() {
        let mut solver = Perfect::new();
        assert!(solver.solve(&ConnectFour.startpos()).is_err());
        assert_eq!(solver.nodes, NODES_EARLY + 1);
    }

    /// `cargo test --release connect4::solver -- --ignored --nocapture` prints what an answer takes.
    #[test]
    #[ignore = "slow: a thousand positions with 12 discs take minutes"]
    fn twelve_discs_are_far_from_the_limit() {
        let (mut solver, mut random) = (Perfect::new(), Stream::test(7));
        for (discs, count) in [(20, 1000), (16, 1000), (14, 1000), (FROM_DISCS, 1000)] {
            let (mut total, mut most, mut longest) = (0, 0, std::time::Duration::ZERO);
            let began = std::time::Instant::now();
            for _ in 0..count {
                let state = random_position(discs, &mut random);
                let began = std::time::Instant::now();
                solver.solve(&state).unwrap();
                (total, most) = (total + solver.nodes, most.max(solver.nodes));
                longest = longest.max(began.elapsed());
            }
            let mean = began.elapsed() / count;
            println!("{discs} discs: {mean:?} at a mean, {longest:?} at most; {total} positions, {most} at most");
            assert!(most < NODES / 4, "{most}");
        }
    }
}
