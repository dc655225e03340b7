//! The simplest thinker.

use std::sync::atomic::AtomicBool;

use crate::game::{Action, Game};
use crate::util::rng::{Purpose, Stream};

use super::{Info, Limits, OptionKind, Position, Thinker, UgiOption};

/// Plays uniformly random moves at once, whatever the limits. Each search draws from its own stream, so that the same
/// seed and the same searches give the same moves.
#[derive(Clone, Debug, Default)]
pub struct RandomThinker {
    seed: u64,
    searches: u64,
}

impl RandomThinker {
    /// A random player with this seed.
    pub fn new(seed: u64) -> Self {
        Self { seed, searches: 0 }
    }
}

impl<G: Game> Thinker<G> for RandomThinker {
    fn think(
        &mut self,
        game: &G,
        position: &Position<'_, G>,
        _limits: &Limits,
        _stop: &AtomicBool,
        _info: &mut dyn FnMut(Info),
    ) -> Result<Action, String> {
        let mut random = Stream::keyed(self.seed, Purpose::Analysis, &[self.searches]);
        self.searches += 1;
        Ok(game.random_action(position.state, &mut random, &mut Vec::new()))
    }

    fn new_game(&mut self) {}

    fn options(&self) -> Vec<UgiOption> {
        let kind = OptionKind::Spin { default: 0, min: 0, max: i64::MAX };
        vec![UgiOption { name: "seed".to_owned(), kind }]
    }

    fn set_option(&mut self, name: &str, value: &str) -> Result<(), String> {
        if name != "seed" {
            return Err(format!("no option {name:?}"));
        }
        let seed = value.parse().map_err(|_| format!("seed {value:?} is not a whole number from 0"))?;
        *self = Self::new(seed);
        Ok(())
    }
}
