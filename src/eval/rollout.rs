//! Evaluation by playing at random to the end, as plain Monte Carlo tree search does.

use super::uniform::uniform_priors;
use super::{EvalError, Evaluations, Evaluator, Leaves};
use crate::game::{Action, Game, Outcome, WdlPov};
use crate::util::rng::Stream;

/// Equal priors; the value is the mean result of uniformly random playouts.
///
/// The one exception to the law that an answer depends on the position alone: the playouts are drawn from a
/// stream that this evaluator owns, so an answer depends on how many positions were evaluated before. It
/// does not depend on anything else: the same positions in the same order, however they are cut into
/// batches, get the same values. Give each game its own evaluator with its own stream, and never put a cache
/// around it (a cached value would be one playout repeated, not a new sample).
#[derive(Clone, Debug)]
pub struct Rollout<G: Game> {
    stream: Stream,
    playouts: u32,
    state: Option<G::State>,
    scratch: Vec<Action>,
}

impl<G: Game> Rollout<G> {
    /// Values of `playouts` random games (at least 1) per position, drawn from `stream`.
    pub fn new(stream: Stream, playouts: u32) -> Self {
        Self { stream, playouts: playouts.max(1), state: None, scratch: Vec::new() }
    }
}

impl<G: Game> Evaluator<G> for Rollout<G> {
    fn evaluate(&mut self, game: &G, leaves: &Leaves<G>, out: &mut Evaluations) -> Result<(), EvalError> {
        out.reset(leaves);
        uniform_priors(leaves, out);
        let share = 1.0 / self.playouts as f32;
        for (index, value) in out.values.iter_mut().enumerate() {
            let leaf = leaves.state(index);
            let mover = game.to_move(leaf);
            let [mut wins, mut draws, mut losses] = [0u32; 3];
            for _ in 0..self.playouts {
                let state = match &mut self.state {
                    Some(state) => {
                        state.clone_from(leaf);
                        state
                    }
                    empty => empty.insert(leaf.clone()),
                };
                match game.playout(state, &mut self.stream, &mut self.scratch).outcome {
                    Outcome::Win(winner) if winner == mover => wins += 1,
                    Outcome::Win(_) => losses += 1,
                    Outcome::Draw => draws += 1,
                }
            }
            *value = WdlPov { win: wins as f32 * share, draw: draws as f32 * share, loss: losses as f32 * share };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testgame::Pairs;
    use super::super::testleaves::{leaves_of, random_states};
    use super::*;

    #[test]
    fn batches_do_not_matter_and_the_mean_is_near_the_truth() {
        let game = Pairs;
        let states = random_states(&game, 5, 40);
        let mut whole = Evaluations::default();
        Rollout::new(Stream::test(1), 3).evaluate(&game, &leaves_of(&game, &states), &mut whole).unwrap();
        let mut cut = Rollout::new(Stream::test(1), 3);
        let mut values = Vec::new();
        for part in states.chunks(7) {
            let mut out = Evaluations::default();
            cut.evaluate(&game, &leaves_of(&game, part), &mut out).unwrap();
            values.extend(out.values);
        }
        assert_eq!(whole.values, values);

        // Against as many independent playouts.
        let state = game.parse_state("xx....o......o..").unwrap();
        let mut out = Evaluations::default();
        let near = [state];
        Rollout::new(Stream::test(2), 4000).evaluate(&game, &leaves_of(&game, &near), &mut out).unwrap();
        let (value, mover) = (out.values[0], game.to_move(&near[0]));
        assert!((value.win + value.draw + value.loss - 1.0).abs() < 1e-5);
        let mut stream = Stream::test(3);
        let mut points = 0.0;
        for _ in 0..4000 {
            let end = game.playout(&mut near[0].clone(), &mut stream, &mut Vec::new());
            points += end.outcome.points(mover) / 4000.0;
        }
        // Two independent means of 4000 games: standard deviation of the difference below 0.012.
        assert!((f64::from(value.points()) - points).abs() < 0.06, "{value:?} against {points}");
    }
}
