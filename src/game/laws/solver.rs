//! What a game's solver says agrees with the rules and with itself.

use super::{Broken, Checked, ensure, spread, texts};
use crate::game::{Action, Game, Outcome, Refusal, Solver, legal_list};

/// Positions to solve. Each is solved together with all that its moves and the symmetries make of it.
const MOST: usize = 100;

/// Checks the positions in the second half of what the solver is made for: they are the quick ones.
pub(super) fn check<G: Game>(game: &G, visited: &[G::State]) -> Checked {
    let Some(mut solver) = game.solver() else { return Ok(()) };
    let from = (solver.first_ply() + game.max_plies()) / 2;
    let late: Vec<&G::State> =
        visited.iter().filter(|state| game.end(state).is_none() && game.ply(state) >= from).collect();
    for state in spread(&late, MOST) {
        position(game, state, solver.as_mut())?;
    }
    Ok(())
}

fn position<G: Game>(game: &G, state: &G::State, solver: &mut dyn Solver<G>) -> Checked {
    let text = game.state_text(state);
    let refused = |Refusal(why)| Broken { law: "a solver solves late positions", detail: format!("{text}: {why}") };
    let solved = solver.solve(state).map_err(refused)?;
    let listed: Vec<Action> = solved.moves().iter().map(|solved| solved.action).collect();
    let legal = legal_list(game, state);
    ensure!(
        listed == legal,
        "a solver judges every legal move",
        "{text}: {} of {}",
        texts(game, &listed),
        texts(game, &legal)
    );
    for solved_move in solved.moves() {
        let mut next = state.clone();
        game.play(&mut next, solved_move.action);
        let outcome = match game.end(&next) {
            Some(end) => end.outcome,
            None => solver.solve(&next).map_err(refused)?.outcome(),
        };
        ensure!(
            solved_move.outcome == outcome,
            "a move is worth what the position after it is worth",
            "{text}: {} is {:?}, afterwards it is {outcome:?}",
            game.action_text(solved_move.action),
            solved_move.outcome
        );
    }
    let best = solver.best_moves(state).map_err(refused)?;
    let keeping: Vec<Action> = solved.keeping().collect();
    ensure!(
        !best.is_empty() && best.iter().all(|action| keeping.contains(action)),
        "the best moves keep the result",
        "{text}: {} of {}",
        texts(game, &best),
        texts(game, &keeping)
    );
    for symmetry in 0..game.symmetry_count() {
        let mapped = solver.solve(&game.map_state(state, symmetry)).map_err(refused)?;
        let expected: Vec<(Action, Outcome)> =
            solved.moves().iter().map(|each| (game.map_action(each.action, symmetry), each.outcome)).collect();
        ensure!(
            expected.iter().all(|&(action, outcome)| mapped.outcome_of(action) == Some(outcome)),
            "a solver judges mapped positions alike",
            "{text}, symmetry {symmetry}"
        );
    }
    Ok(())
}
