//! Random games at speed.
//!
//! The rules are those of [`State::play`], written once more for whole turns, which alternate strictly: the
//! side is a constant of the code, and whether the compulsory piece is free is a branch and no data that the
//! rest has to wait for. Tests hold the two together move by move.

use crate::util::rng::Stream;

use super::board::{Board, OFF, Step};
use super::state::{Finish, Position, State, Turn, TurnCode, count_earlier, position};

/// Plays uniformly random moves to the end.
pub(super) fn playout(state: &mut State, random: &mut Stream, max_plies: u16) {
    // The rest of a turn that has begun.
    let last = loop {
        match state.turn.get() {
            _ if state.finish != Finish::No => return,
            Turn::Compulsory(symbol) => break symbol,
            Turn::Opening | Turn::Free(_) => state.play(state.random_step(random), max_plies),
        }
    };
    let mut game = RandomGame {
        board: state.board,
        history: std::mem::take(&mut state.history),
        filter: Filter([0; Filter::WORDS]),
        random: random.clone(),
        ply: state.ply,
        max_plies,
    };
    game.history.reserve(usize::from(max_plies.saturating_sub(state.ply)).min(256) + 1);
    game.history.push(state.position());
    for position in &game.history {
        game.filter.insert(position);
    }
    let Over { side, turn, finish, earlier } = game.play(state.side, last);
    *random = game.random;
    *state = State {
        board: game.board,
        side,
        turn: TurnCode::new(turn),
        earlier,
        finish,
        ply: game.ply,
        history: game.history,
    };
}

/// A game under way. The history ends with the present position.
struct RandomGame {
    board: Board,
    history: Vec<Position>,
    filter: Filter,
    random: Stream,
    ply: u16,
    max_plies: u16,
}

/// How a game stood at its end, as in [`State`].
struct Over {
    side: u8,
    turn: Turn,
    finish: Finish,
    earlier: u8,
}

impl RandomGame {
    /// Plays from the beginning of a turn of `side`, whose opponent moved `last` last.
    fn play(&mut self, side: u8, mut last: u8) -> Over {
        if side == 1 {
            match self.turn::<1>(last) {
                Ok(symbol) => last = symbol,
                Err(over) => return over,
            }
        }
        loop {
            match self.turn::<0>(last).and_then(|symbol| self.turn::<1>(symbol)) {
                Ok(symbol) => last = symbol,
                Err(over) => return over,
            }
        }
    }

    /// One turn; the symbol that it moved last.
    #[inline(always)]
    fn turn<const SIDE: usize>(&mut self, last: u8) -> Result<u8, Over> {
        let mut movable = self.board.free(SIDE);
        let mut turn = Turn::Compulsory(last);
        if self.board.is_free(SIDE, usize::from(last)) {
            let step = self.board.random_step_of(SIDE, usize::from(last), &mut self.random);
            self.make::<SIDE>(step, turn)?;
            movable = self.board.free(SIDE) & !(1 << last);
            if movable == 0 {
                return self.stand(SIDE ^ 1, Turn::Compulsory(last)).map(|()| last);
            }
            turn = Turn::Free(last);
            self.stand(SIDE, turn)?;
        }
        let step = self.board.random_step(SIDE, movable, &mut self.random);
        self.make::<SIDE>(step, turn)?;
        let symbol = step.symbol as u8;
        self.stand(SIDE ^ 1, Turn::Compulsory(symbol)).map(|()| symbol)
    }

    /// Moves a piece; an error when that wins.
    #[inline(always)]
    fn make<const SIDE: usize>(&mut self, step: Step, turn: Turn) -> Result<(), Over> {
        self.board.make(SIDE, step);
        self.ply += 1;
        if step.to == OFF || self.board.free(SIDE ^ 1) == 0 {
            return Err(Over { side: SIDE as u8, turn, finish: Finish::Won(SIDE as u8), earlier: 0 });
        }
        Ok(())
    }

    /// A position has come about that is not won; an error when it is drawn.
    #[inline(always)]
    fn stand(&mut self, side: usize, turn: Turn) -> Result<(), Over> {
        let now = position(&self.board, side as u8, TurnCode::new(turn));
        let may_recur = self.filter.insert(&now);
        let earlier = if may_recur { count_earlier(&self.history, &now) } else { 0 };
        let finish = match () {
            () if earlier >= 2 => Finish::Repeated,
            () if self.ply >= self.max_plies => Finish::Capped,
            () => {
                self.history.push(now);
                return Ok(());
            }
        };
        Err(Over { side: side as u8, turn, finish, earlier })
    }
}

/// A set of positions that may report a position it does not hold, never the other way round.
struct Filter([u64; Filter::WORDS]);

impl Filter {
    /// 4096 bits: with 100 positions inserted, one question in forty is answered wrongly.
    const WORDS: usize = 64;

    /// Inserts a position; whether it may have been there before.
    #[inline(always)]
    fn insert(&mut self, position: &Position) -> bool {
        // Multiplicative hashing (Knuth, TAOCP 6.4): the product's highest bits depend on all bits below.
        let (white, black) = (*position as u64, (*position >> 64) as u64);
        let folded = white ^ black.rotate_left(23).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let place = folded.wrapping_mul(0xd1b5_4a32_d192_ed03) >> 52;
        let (word, bit) = (&mut self.0[(place >> 6) as usize], 1 << (place & 63));
        let before = *word & bit != 0;
        *word |= bit;
        before
    }
}
