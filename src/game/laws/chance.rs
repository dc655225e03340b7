//! Laws of random moves and random games.

use super::{Checked, ensure, spread};
use crate::game::{Action, Game, Outcome, Player, legal_list};
use crate::util::rng::Stream;

/// Standard deviations that a frequency may be off.
const SIGMAS: f64 = 6.0;
/// Draws for each legal move.
const DRAWS: usize = 400;

pub(super) fn check<G: Game>(game: &G, visited: &[G::State], games: usize, random: &mut Stream) -> Checked {
    let going_on: Vec<&G::State> = visited.iter().filter(|state| game.end(state).is_none()).collect();
    for state in spread(&going_on, 24) {
        uniform_moves(game, state, random)?;
    }
    for state in [game.startpos(), going_on[going_on.len() - 1 - going_on.len() / 8].clone()] {
        playouts(game, &state, 20 * games, random)?;
    }
    Ok(())
}

/// `random_action` draws each legal move equally often.
fn uniform_moves<G: Game>(game: &G, state: &G::State, random: &mut Stream) -> Checked {
    let legal = legal_list(game, state);
    let mut counts = vec![0usize; legal.len()];
    let mut scratch = vec![Action(u16::MAX); 3];
    for _ in 0..DRAWS * legal.len() {
        let action = game.random_action(state, random, &mut scratch);
        let Some(at) = legal.iter().position(|&move_| move_ == action) else {
            ensure!(false, "random moves are legal", "{}: {action:?}", game.state_text(state));
            return Ok(());
        };
        counts[at] += 1;
    }
    for (action, count) in legal.iter().zip(counts) {
        ensure!(
            (count as f64 - DRAWS as f64).abs() <= SIGMAS * (DRAWS as f64).sqrt(),
            "random moves are uniform",
            "{}: {} came {count} times of {DRAWS} expected",
            game.state_text(state),
            game.action_text(*action)
        );
    }
    Ok(())
}

/// Results and lengths of random games.
#[derive(Default)]
struct Sample {
    /// First player won, second player won, drawn.
    results: [f64; 3],
    plies: f64,
    squares: f64,
}

impl Sample {
    fn add(&mut self, outcome: Outcome, plies: usize) {
        let result = match outcome {
            Outcome::Win(Player::First) => 0,
            Outcome::Win(Player::Second) => 1,
            Outcome::Draw => 2,
        };
        self.results[result] += 1.0;
        self.plies += plies as f64;
        self.squares += (plies * plies) as f64;
    }
}

/// `playout` ends a game and has the same distribution as moves drawn from the list one by one.
fn playouts<G: Game>(game: &G, from: &G::State, count: usize, random: &mut Stream) -> Checked {
    let [mut fast, mut plain] = [Sample::default(), Sample::default()];
    let mut scratch = Vec::new();
    let place = game.state_text(from);
    for _ in 0..count {
        let mut state = from.clone();
        let end = game.playout(&mut state, random, &mut scratch);
        ensure!(
            game.end(&state) == Some(end) && legal_list(game, &state).is_empty(),
            "a random game leaves the position it ended in",
            "from {place}: {end:?} at {}",
            game.state_text(&state)
        );
        let reread = game.parse_state(&game.state_text(&state)).map(|parsed| game.state_text(&parsed));
        ensure!(
            reread.as_ref() == Ok(&game.state_text(&state)) && game.ply(&state) <= game.max_plies(),
            "a random game leaves a position like any other",
            "from {place}: {}",
            game.state_text(&state)
        );
        fast.add(end.outcome, game.ply(&state));

        let mut state = from.clone();
        let end = loop {
            if let Some(end) = game.end(&state) {
                break end;
            }
            let legal = legal_list(game, &state);
            game.play(&mut state, legal[random.below(legal.len())]);
        };
        plain.add(end.outcome, game.ply(&state));
    }
    for (name, fast, plain) in
        [("first", 0), ("second", 1), ("nobody", 2)].map(|(n, i)| (n, fast.results[i], plain.results[i]))
    {
        ensure!(
            (fast - plain).abs() <= SIGMAS * (fast + plain + 1.0).sqrt(),
            "random games have the distribution of uniform moves",
            "from {place}: {name} won {fast} of {count} games, {plain} when drawn from the list"
        );
    }
    let number = count.max(1) as f64;
    let variance = |sample: &Sample| sample.squares / number - (sample.plies / number).powi(2);
    let deviation = ((variance(&fast) + variance(&plain)).max(0.0) / number).sqrt();
    ensure!(
        (fast.plies - plain.plies).abs() / number <= SIGMAS * deviation + 1e-9,
        "random games have the distribution of uniform moves",
        "from {place}: {} plies on average, {} when drawn from the list",
        fast.plies / number,
        plain.plies / number
    );
    Ok(())
}
