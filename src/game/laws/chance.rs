//! Laws of random moves and random games.

use super::{Checked, broken, encoding, ensure, spread};
use crate::game::{Action, End, Game, Outcome, Player, legal_list};
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
            return broken("random moves are legal", format!("{}: {action:?}", game.state_text(state)));
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

/// Sums over the ends of random games: each result, the length, and each number of the last encoding.
struct Sample {
    sums: Vec<f64>,
    squares: Vec<f64>,
}

impl Sample {
    const RESULTS: [Outcome; 3] = [Outcome::Win(Player::First), Outcome::Win(Player::Second), Outcome::Draw];

    fn new<G: Game>(game: &G) -> Self {
        let columns = Self::RESULTS.len() + 1 + game.plane_shape().len();
        Self { sums: vec![0.0; columns], squares: vec![0.0; columns] }
    }

    fn add<G: Game>(&mut self, game: &G, end: End, state: &G::State) {
        let results = Self::RESULTS.map(|outcome| if outcome == end.outcome { 1.0 } else { 0.0 });
        let planes = encoding(game, state);
        let numbers = results.into_iter().chain([game.ply(state) as f64]).chain(planes.into_iter().map(f64::from));
        for ((sum, square), number) in self.sums.iter_mut().zip(&mut self.squares).zip(numbers) {
            *sum += number;
            *square += number * number;
        }
    }

    /// What column `column` is about.
    fn name(column: usize) -> String {
        match column {
            0..3 => format!("{:?}", Self::RESULTS[column]),
            3 => "length".to_owned(),
            _ => format!("number {} of the last encoding", column - 4),
        }
    }

    /// Mean and its variance in a column of `count` games.
    fn mean(&self, column: usize, count: f64) -> (f64, f64) {
        let mean = self.sums[column] / count;
        (mean, (self.squares[column] / count - mean * mean).max(0.0) / count)
    }
}

/// `playout` ends a game and has the same distribution as moves drawn from the list one by one.
fn playouts<G: Game>(game: &G, from: &G::State, count: usize, random: &mut Stream) -> Checked {
    let [mut fast, mut plain] = [Sample::new(game), Sample::new(game)];
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
        let text = game.state_text(&state);
        let reread = game.parse_state(&text).map(|parsed| game.state_text(&parsed));
        ensure!(
            reread.as_ref() == Ok(&text) && game.ply(&state) <= game.max_plies(),
            "a random game leaves a position like any other",
            "from {place}: {text} became {reread:?}"
        );
        fast.add(game, end, &state);

        let mut state = from.clone();
        let end = loop {
            if let Some(end) = game.end(&state) {
                break end;
            }
            let legal = legal_list(game, &state);
            game.play(&mut state, legal[random.below(legal.len())]);
        };
        plain.add(game, end, &state);
    }
    let number = count.max(1) as f64;
    for column in 0..fast.sums.len() {
        let ((fast, fast_variance), (plain, plain_variance)) = (fast.mean(column, number), plain.mean(column, number));
        // What never differs has no variance; rounding alone may then set the means apart.
        let allowed = SIGMAS * (fast_variance + plain_variance).sqrt() + 2.0 / number;
        ensure!(
            (fast - plain).abs() <= allowed,
            "random games have the distribution of uniform moves",
            "from {place}: {} is {fast} on average, {plain} when drawn from the list",
            Sample::name(column)
        );
    }
    Ok(())
}
