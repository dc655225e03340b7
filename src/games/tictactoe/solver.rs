//! Tic-tac-toe solved: a table of all its positions, made once when it is first asked for.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::{State, TicTacToe};
use crate::game::{Action, Game as _, Outcome, Player, Refusal, Solved, SolvedMove, Solver, legal_list};

/// How a position ends, and after how many plies when the winner hurries and the loser holds out.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Entry {
    outcome: Outcome,
    plies: i8,
}

impl Entry {
    /// The larger, the better for `player`.
    fn rank(self, player: Player) -> (i8, i8) {
        match self.outcome {
            Outcome::Win(winner) if winner == player => (1, -self.plies),
            Outcome::Draw => (0, 0),
            Outcome::Win(_) => (-1, self.plies),
        }
    }
}

/// Looks positions up.
pub(super) struct Perfect;

/// Every position that can come up, ended ones included.
fn table() -> &'static HashMap<State, Entry> {
    static TABLE: OnceLock<HashMap<State, Entry>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = HashMap::new();
        enter(&TicTacToe.startpos(), &mut table);
        table
    })
}

fn after(state: &State, action: Action) -> State {
    let mut next = *state;
    TicTacToe.play(&mut next, action);
    next
}

/// Enters the position and all that can come of it.
fn enter(state: &State, table: &mut HashMap<State, Entry>) -> Entry {
    if let Some(&known) = table.get(state) {
        return known;
    }
    let entry = match TicTacToe.end(state) {
        Some(end) => Entry { outcome: end.outcome, plies: 0 },
        None => {
            let mover = TicTacToe.to_move(state);
            let replies = legal_list(&TicTacToe, state).into_iter().map(|action| enter(&after(state, action), table));
            let best = replies.max_by_key(|reply| reply.rank(mover)).expect("a game that goes on has a move");
            Entry { plies: best.plies + 1, ..best }
        }
    };
    table.insert(*state, entry);
    entry
}

/// Every legal move with what it leads to.
fn replies(state: &State) -> Result<Vec<(Action, Entry)>, Refusal> {
    let look_up = |action| table().get(&after(state, action)).map(|&entry| (action, entry));
    let found: Option<Vec<_>> = legal_list(&TicTacToe, state).into_iter().map(look_up).collect();
    found.ok_or_else(|| Refusal(format!("no game of tictactoe comes to {}", TicTacToe.state_text(state))))
}

impl Solver<TicTacToe> for Perfect {
    fn solve(&mut self, state: &State) -> Result<Solved, Refusal> {
        let moves = replies(state)?.into_iter().map(|(action, entry)| SolvedMove { action, outcome: entry.outcome });
        Ok(Solved::new(state.to_move, moves.collect()))
    }

    fn best_moves(&mut self, state: &State) -> Result<Vec<Action>, Refusal> {
        let replies = replies(state)?;
        let rank = |entry: &Entry| entry.rank(state.to_move);
        let best = replies.iter().map(|(_, entry)| rank(entry)).max();
        Ok(replies.iter().filter(|(_, entry)| Some(rank(entry)) == best).map(|&(action, _)| action).collect())
    }
}
