//! What of a run stays on disk.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::dir::{DirError, RunDir};

/// What a run keeps on disk. Its best and its newest network and everything that it goes on from always stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct KeepParams {
    /// Newest checkpoints that stay; null keeps all.
    #[schemars(range(min = 1, max = 1_000_000_000), extend("x-unit" = "checkpoints"))]
    pub checkpoints: Option<u32>,
    /// Of older checkpoints, each one of so many generations stays as well; null keeps none of them.
    #[schemars(range(min = 1, max = 1_000_000_000), extend("x-unit" = "generations"))]
    pub every: Option<u32>,
    /// Which games stay.
    pub games: KeepGames,
}

/// Which games stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KeepGames {
    /// All of them.
    #[default]
    All,
    /// Those of the replay window, as it stands at the oldest end of a generation that the run can go back to.
    Window,
}

impl KeepParams {
    /// Which of the checkpoints `all` (ascending) are to be removed when `needed` are.
    fn superseded(&self, all: &[u32], needed: &BTreeSet<u32>) -> Vec<u32> {
        let Some(newest) = self.checkpoints else { return Vec::new() };
        let (older, _) = all.split_at(all.len().saturating_sub(newest as usize));
        let stays = |generation: &u32| {
            needed.contains(generation) || self.every.is_some_and(|every| generation.is_multiple_of(every))
        };
        older.iter().copied().filter(|generation| !stays(generation)).collect()
    }

    /// Removes what is superseded: checkpoints that are none of `needed`, and games of generations before `window`. A file that
    /// cannot be removed costs only disk space.
    ///
    /// # Errors
    /// When a folder cannot be read.
    pub fn tidy(&self, dir: &RunDir, needed: &BTreeSet<u32>, window: u32) -> Result<(), DirError> {
        for generation in self.superseded(&dir.checkpoints()?, needed) {
            let _ = std::fs::remove_file(dir.checkpoint(generation));
        }
        if self.games == KeepGames::Window {
            for generation in dir.game_files()?.into_iter().filter(|&generation| generation < window) {
                let _ = std::fs::remove_file(dir.games(generation));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_regular_and_needed_checkpoints_stay() {
        let all: Vec<u32> = (0..=12).collect();
        let needed = BTreeSet::from([3, 12]);
        let keep = |checkpoints, every| KeepParams { checkpoints, every, ..KeepParams::default() };
        assert_eq!(keep(None, None).superseded(&all, &needed), Vec::<u32>::new());
        assert_eq!(keep(Some(2), None).superseded(&all, &needed), [0, 1, 2, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(keep(Some(2), Some(5)).superseded(&all, &needed), [1, 2, 4, 6, 7, 8, 9]);
        assert_eq!(keep(Some(20), Some(5)).superseded(&all, &needed), Vec::<u32>::new());
    }
}
