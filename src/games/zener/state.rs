//! Turns, repetition and ends: everything of a Zener position but the stacks.

use std::hash::{Hash, Hasher};

use crate::game::{Action, End, EndReason, Player};
use crate::util::rng::Stream;

use super::board::{Board, NONE, OFF, Step, map_pieces};
use super::tables::{CELLS, MOVES, OFF_PLANE, PERMUTATIONS, SYMBOLS, mirrored, target};

/// Where the player to move stands in the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// White's first turn, one single move.
    Opening,
    /// First move of a turn; the opponent has moved this symbol last.
    Compulsory(u8),
    /// Free move after the compulsory one of this symbol.
    Free(u8),
}

/// [`Turn`] as a number below 16: 0, then 1 + symbol, then 6 + symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TurnCode(u8);

impl TurnCode {
    pub const fn new(turn: Turn) -> Self {
        Self(match turn {
            Turn::Opening => 0,
            Turn::Compulsory(symbol) => 1 + symbol,
            Turn::Free(symbol) => 6 + symbol,
        })
    }

    pub const fn get(self) -> Turn {
        match self.0 {
            0 => Turn::Opening,
            code @ 1..=5 => Turn::Compulsory(code - 1),
            code => Turn::Free(code - 6),
        }
    }
}

/// What repetition compares, exactly: the packed pieces of white and, above them, of black, with the turn
/// code and the side to move in the spare highest bits of the two.
///
/// (One number and not two, because compilers like to fetch two as one vector, which makes the processor wait
/// for the separate writes before it.)
pub(super) type Position = u128;

/// Where the spare bits begin.
const SPARE: u32 = 60;

/// See [`Position`].
#[inline(always)]
pub(super) fn position(board: &Board, side: u8, turn: TurnCode) -> Position {
    let [white, black] = board.pieces();
    let (white, black) = (white | u64::from(turn.0) << SPARE, black | u64::from(side) << SPARE);
    u128::from(white) | u128::from(black) << 64
}

/// How a game ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finish {
    No,
    Won(u8),
    Repeated,
    Capped,
}

/// A position with the positions before it.
///
/// Two states are equal when the stacks, the turn, the number of moves, the end and the sequence of earlier
/// positions (since the start or the fen) are the same. The order of the earlier positions does not matter to
/// the rules, so this is finer than needed, never coarser.
#[derive(Debug)]
pub struct State {
    pub(super) board: Board,
    pub(super) side: u8,
    pub(super) turn: TurnCode,
    /// How often this position stood before: 0, 1, or 2, which ends the game.
    pub(super) earlier: u8,
    pub(super) finish: Finish,
    pub(super) ply: u16,
    /// All earlier positions in order; this one is not among them.
    pub(super) history: Vec<Position>,
}

impl Clone for State {
    fn clone(&self) -> Self {
        Self { history: self.history.clone(), ..*self }
    }

    /// Keeps the allocation of the history, so that a search can copy a state into an old one cheaply.
    fn clone_from(&mut self, source: &Self) {
        let mut history = std::mem::take(&mut self.history);
        history.clone_from(&source.history);
        *self = Self { history, ..*source };
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.position() == other.position()
            && self.ply == other.ply
            && self.finish == other.finish
            && self.history == other.history
    }
}

impl Eq for State {}

impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.position().hash(hasher);
        self.ply.hash(hasher);
        self.history.len().hash(hasher);
    }
}

impl State {
    /// A position whose history starts here. `finish` is what the stacks say; the cap is applied here.
    pub(super) fn new(board: Board, side: u8, turn: Turn, ply: u16, finish: Finish, max_plies: u16) -> Self {
        let finish = if finish == Finish::No && ply >= max_plies { Finish::Capped } else { finish };
        let turn = TurnCode::new(turn);
        Self { board, side, turn, earlier: 0, finish, ply, history: Vec::new() }
    }

    /// How the game ended, if it did.
    pub(super) fn end(&self) -> Option<End> {
        match self.finish {
            Finish::No => None,
            Finish::Won(side) => Some(End::win(player(side))),
            Finish::Repeated => Some(End::draw(EndReason::Repetition)),
            Finish::Capped => Some(End::draw(EndReason::PlyCap)),
        }
    }

    /// What repetition compares.
    #[inline]
    pub(super) fn position(&self) -> Position {
        position(&self.board, self.side, self.turn)
    }

    /// The symbols that may move now, a bit for each.
    pub(super) fn movable(&self) -> u32 {
        let free = self.board.free(usize::from(self.side));
        match self.turn.get() {
            Turn::Compulsory(symbol) if free >> symbol & 1 == 1 => 1 << symbol,
            Turn::Compulsory(_) | Turn::Opening => free,
            Turn::Free(symbol) => free & !(1 << symbol),
        }
    }

    /// Appends the legal moves in notation order.
    pub(super) fn legal(&self, out: &mut Vec<Action>) {
        if self.finish != Finish::No {
            return;
        }
        let side = usize::from(self.side);
        let movable = self.movable();
        let mut squares = [OFF; SYMBOLS];
        for symbol in (0..SYMBOLS).filter(|symbol| movable >> symbol & 1 == 1) {
            squares[symbol] = self.board.square(side, symbol);
        }
        squares.sort_unstable();
        for from in squares.into_iter().filter(|&square| square != OFF) {
            let moves = &MOVES[side][usize::from(from)];
            out.extend(moves.to[..usize::from(moves.count)].iter().map(|&to| action_of(from, to)));
        }
    }

    /// A uniformly random legal move of a game that goes on.
    pub(super) fn random_step(&self, random: &mut Stream) -> Step {
        let side = usize::from(self.side);
        match self.turn.get() {
            Turn::Compulsory(symbol) if self.board.is_free(side, usize::from(symbol)) => {
                self.board.random_step_of(side, usize::from(symbol), random)
            }
            _ => self.board.random_step(side, self.movable(), random),
        }
    }

    /// The move that `action` means here.
    ///
    /// # Panics
    /// When it is no move of the side to move.
    pub(super) fn step_of(&self, action: Action) -> Step {
        let (plane, from) = (action.index() / CELLS, action.index() % CELLS);
        let to = target(from, plane).expect("a legal action has a target");
        let piece = self.board.top(from as u8);
        assert!(piece != NONE && piece >> 3 == self.side, "a legal action moves a free own piece");
        Step { symbol: usize::from(piece & 7), from: from as u8, to }
    }

    /// Makes a legal move.
    pub(super) fn play(&mut self, step: Step, max_plies: u16) {
        self.history.push(self.position());
        self.advance(step);
        if self.finish == Finish::No {
            self.earlier = self.count_earlier();
            self.settle(max_plies);
        }
    }

    /// Moves a piece, decides whether that wins, and passes the turn as far as it passes.
    ///
    /// A winning move leaves side and turn as they were: nobody is next.
    #[inline]
    fn advance(&mut self, step: Step) {
        let side = usize::from(self.side);
        self.board.make(side, step);
        self.ply += 1;
        if step.to == OFF || self.board.free(side ^ 1) == 0 {
            self.finish = Finish::Won(self.side);
            self.earlier = 0;
            return;
        }
        let symbol = step.symbol as u8;
        let others = self.board.free(side) & !(1 << symbol);
        // A blocked compulsory piece cannot have moved, so its symbol tells the compulsory move.
        if self.turn.get() == Turn::Compulsory(symbol) && others != 0 {
            self.turn = TurnCode::new(Turn::Free(symbol));
        } else {
            self.turn = TurnCode::new(Turn::Compulsory(symbol));
            self.side ^= 1;
        }
    }

    /// Ends the game by repetition or by the cap.
    #[inline]
    fn settle(&mut self, max_plies: u16) {
        if self.earlier >= 2 {
            self.finish = Finish::Repeated;
        } else if self.ply >= max_plies {
            self.finish = Finish::Capped;
        }
    }

    /// How often the present position stood before.
    #[inline]
    fn count_earlier(&self) -> u8 {
        count_earlier(&self.history, &self.position())
    }

    /// The state as seen through symmetry `index`: mirrored when it is odd, symbols through
    /// permutation `index / 2`.
    pub(super) fn mapped(&self, index: usize) -> Self {
        let symbols = &PERMUTATIONS[index / 2];
        let square = |square| if index % 2 == 1 { mirrored(square) } else { square };
        let turn = |code: TurnCode| {
            TurnCode::new(match code.get() {
                Turn::Opening => Turn::Opening,
                Turn::Compulsory(symbol) => Turn::Compulsory(symbols[usize::from(symbol)]),
                Turn::Free(symbol) => Turn::Free(symbols[usize::from(symbol)]),
            })
        };
        let history = self.history.iter().map(|&position| {
            let (white, black) = (position as u64, (position >> 64) as u64);
            let code = turn(TurnCode((white >> SPARE) as u8));
            let side = black >> SPARE;
            let mask = (1 << SPARE) - 1;
            let [white, black] = map_pieces([white & mask, black & mask], square, symbols);
            let (white, black) = (white | u64::from(code.0) << SPARE, black | side << SPARE);
            u128::from(white) | u128::from(black) << 64
        });
        Self {
            board: Board::from_pieces(map_pieces(self.board.pieces(), square, symbols)),
            turn: turn(self.turn),
            history: history.collect(),
            ..*self
        }
    }
}

/// How often `now` is in the positions before it, at most 2 counted, by exact comparison.
///
/// Each single move changes the parity of one piece's row + column, so a position can only recur after an even
/// number of moves. After two it cannot: no piece moves twice in a row, since a turn's two moves are of
/// different pieces and between turns the opponent moves.
#[inline]
pub(super) fn count_earlier(history: &[Position], now: &Position) -> u8 {
    let earlier = history.iter().rev().skip(3).step_by(2);
    earlier.filter(|&then| then == now).count().min(2) as u8
}

/// The action index of a move.
pub(super) fn action_of(from: u8, to: u8) -> Action {
    let plane = match (to, i16::from(to) - i16::from(from)) {
        (OFF, _) => OFF_PLANE,
        (_, -1) => 1,
        (_, 1) => 2,
        (_, difference) if difference < 0 => 0,
        _ => 3,
    };
    Action((plane * CELLS + usize::from(from)) as u16)
}

/// The player of a side: white is the first.
pub(super) const fn player(side: u8) -> Player {
    if side == 0 { Player::First } else { Player::Second }
}

#[cfg(test)]
impl State {
    pub(super) fn history_capacity(&self) -> usize {
        self.history.capacity()
    }

    /// How the game ended, exits told from blocks.
    pub(super) fn finish_name(&self) -> &'static str {
        match self.finish {
            Finish::No => "goes on",
            Finish::Won(side) if self.board.free(usize::from(side ^ 1)) == 0 => "blocked",
            Finish::Won(_) => "left",
            Finish::Repeated => "repeated",
            Finish::Capped => "capped",
        }
    }
}
