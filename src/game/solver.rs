//! Perfect play, where a game can supply it.

use super::{Action, Game, Outcome, Player};

/// Knows how positions of a game end when both players play perfectly.
///
/// What it says about a position does not depend on what it was asked before.
pub trait Solver<G: Game>: Send {
    /// What every legal move of `state` leads to. The game must not have ended.
    ///
    /// # Errors
    /// When the position would take too long.
    fn solve(&mut self, state: &G::State) -> Result<Solved, Refusal>;

    /// The moves between which perfect play is indifferent, in notation order, at least one. All keep the best outcome;
    /// a solver that knows how long games last leaves only the fastest wins and the slowest losses.
    ///
    /// # Errors
    /// When the position would take too long.
    fn best_moves(&mut self, state: &G::State) -> Result<Vec<Action>, Refusal> {
        Ok(self.solve(state)?.keeping().collect())
    }

    /// Plies from which on the solver is made to answer; it may refuse positions with fewer. 0 unless overridden.
    fn first_ply(&self) -> usize {
        0
    }
}

/// A position that a solver does not solve. The message names the position's size and the limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

/// A move and how the game ends after it when both players play perfectly from there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SolvedMove {
    /// The move.
    pub action: Action,
    /// The result it leads to.
    pub outcome: Outcome,
}

/// A solved position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solved {
    outcome: Outcome,
    moves: Vec<SolvedMove>,
}

impl Solved {
    /// A position in which `mover` chooses between `moves`, all legal ones in notation order.
    ///
    /// # Panics
    /// When there is no move: an ended game is not solved but over.
    pub fn new(mover: Player, moves: Vec<SolvedMove>) -> Self {
        let outcomes = moves.iter().map(|solved| solved.outcome);
        let best = outcomes.reduce(|a, b| if b.points(mover) > a.points(mover) { b } else { a });
        Self { outcome: best.expect("a game that goes on has a move"), moves }
    }

    /// How the game ends under perfect play.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Every legal move, in notation order.
    pub fn moves(&self) -> &[SolvedMove] {
        &self.moves
    }

    /// The moves that keep [`outcome`](Solved::outcome), in notation order.
    pub fn keeping(&self) -> impl Iterator<Item = Action> {
        self.moves.iter().filter(|solved| solved.outcome == self.outcome).map(|solved| solved.action)
    }

    /// What `action` leads to; `None` for a move that is not legal.
    pub fn outcome_of(&self, action: Action) -> Option<Outcome> {
        self.moves.iter().find(|solved| solved.action == action).map(|solved| solved.outcome)
    }

    /// Whether some move gives something away.
    pub fn is_choice(&self) -> bool {
        self.moves.iter().any(|solved| solved.outcome != self.outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mover_keeps_what_is_best_for_it() {
        let outcomes = [Outcome::Win(Player::Second), Outcome::Draw, Outcome::Draw, Outcome::Win(Player::First)];
        let moves = |of: &[Outcome]| -> Vec<SolvedMove> {
            of.iter().zip(3..).map(|(&outcome, index)| SolvedMove { action: Action(index), outcome }).collect()
        };
        for (mover, best) in [(Player::First, 6), (Player::Second, 3)] {
            let solved = Solved::new(mover, moves(&outcomes));
            assert_eq!(solved.outcome(), Outcome::Win(mover));
            assert_eq!(solved.keeping().collect::<Vec<_>>(), [Action(best)]);
            assert!(solved.is_choice());
            assert_eq!(solved.outcome_of(Action(4)), Some(Outcome::Draw));
            assert_eq!(solved.outcome_of(Action(0)), None);
        }
        let drawn = Solved::new(Player::Second, moves(&outcomes[1..3]));
        assert_eq!((drawn.outcome(), drawn.keeping().count(), drawn.is_choice()), (Outcome::Draw, 2, false));
    }
}
