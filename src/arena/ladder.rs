//! A run's checkpoints over time, rated against players that never change.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::rated::{Ahead, Entrant, Field, Rated, RatedError, openings};
use super::{LadderChart, chart};
use crate::game::Game;
use crate::games::{self, GameNameError, GameVisitor};
use crate::net::{Checkpoint, CheckpointError};
use crate::play::MatchTally;
use crate::run::dir::{DirError, RunDir};
use crate::run::event::Scalar;
use crate::run::observer::ObserveError;
use crate::run::pointer::Which;
use crate::run::tensorboard::TensorBoard;
use crate::util::publish::{PublishError, write_atomic};
use crate::util::stats::{Estimate, Tally as _};

/// How a run is rated.
#[derive(Clone, Debug)]
pub struct LadderParams {
    /// Checkpoints to rate at most; those between the first and the last are spread evenly, and the best one is among them.
    pub checkpoints: usize,
    /// Players that do not change; where there are none, [`ANCHORS`] and perfect play if the game has it from its openings on.
    pub anchors: Vec<String>,
    /// The anchor at Elo 0; `None` for `mcts:1000` if it is among them, else the last one.
    pub zero: Option<String>,
    /// Games of each two that meet, an even number.
    pub games: usize,
    /// Simulations of the checkpoints.
    pub simulations: u32,
    /// Seeds openings and players.
    pub seed: u64,
    /// Worker threads.
    pub threads: usize,
}

impl LadderParams {
    /// The index of the anchor at Elo 0: that of the name `zero`, else of `mcts:1000`, else of the last one. `None` where there is no
    /// such anchor.
    pub fn zero_of(anchors: &[String], zero: Option<&str>) -> Option<usize> {
        let place = |name: &str| anchors.iter().position(|anchor| anchor == name);
        zero.map_or_else(|| place("mcts:1000").or(anchors.len().checked_sub(1)), place)
    }
}

/// The anchors where none are named.
pub const ANCHORS: [&str; 4] = ["random", "mcts:100", "mcts:1000", "mcts:10000"];

/// A ladder that cannot be made.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum LadderError {
    #[error("{folder} has no checkpoints yet; train it first")]
    NoCheckpoints { folder: String },
    #[error("Elo 0 is to be that of {zero:?}, which is none of the anchors {}", .anchors.join(", "))]
    NoZero { zero: String, anchors: Vec<String> },
    #[error("{folder}: {error}")]
    Game { folder: String, error: GameNameError },
    #[error(transparent)]
    Dir(#[from] DirError),
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error(transparent)]
    Rated(#[from] RatedError),
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error("the charts cannot be written: {0}")]
    Charts(#[from] ObserveError),
    #[error("the picture cannot be drawn: {0}")]
    Picture(String),
}

/// One rung.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rung {
    /// The generation of the run.
    pub generation: u32,
    /// Training steps behind it.
    pub step: u64,
    /// Elo relative to the anchor at 0.
    pub elo: Estimate,
    /// Its score against each anchor.
    pub scores: Vec<Option<f64>>,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ladder {
    /// The game with its options.
    pub game: String,
    /// The anchors by name.
    pub anchors: Vec<String>,
    /// Their ratings.
    pub anchor_elo: Vec<Estimate>,
    /// Simulations of the checkpoints.
    pub simulations: u32,
    /// Games of each two that met.
    pub games: usize,
    /// The seed.
    pub seed: u64,
    /// The checkpoints in order of their generations.
    pub rungs: Vec<Rung>,
}

/// Where a ladder is kept.
#[derive(Clone, Debug)]
pub struct LadderFiles {
    /// The games, from which an interrupted ladder goes on.
    pub games: PathBuf,
    /// The numbers.
    pub numbers: PathBuf,
    /// The picture.
    pub picture: PathBuf,
    /// The charts.
    pub charts: PathBuf,
}

impl LadderFiles {
    /// The files in a run's folder.
    pub fn of(dir: &RunDir) -> Self {
        let folder = dir.root().join("ladder");
        Self {
            games: folder.join("games.jsonl"),
            numbers: folder.join("ladder.json"),
            picture: folder.join("ladder.svg"),
            charts: dir.tensorboard().join("ladder"),
        }
    }
}

/// Generations to rate: at most `most` of `all`, among them the first, the last and `best`.
pub fn spread(all: &[u32], best: Option<u32>, most: usize) -> Vec<u32> {
    let mut chosen: Vec<u32> = match all.len() {
        count if count <= most => return all.to_vec(),
        count => (0..most).map(|at| all[at * (count - 1) / (most - 1).max(1)]).collect(),
    };
    if let Some(best) = best.filter(|best| all.contains(best) && !chosen.contains(best)) {
        // It takes the place of its nearest neighbour that is neither the first nor the last.
        let last = chosen.len() - 1;
        let inner = 1..last.max(1);
        if let Some(place) = inner.min_by_key(|&at| chosen[at].abs_diff(best)) {
            chosen[place] = best;
        }
    }
    chosen
}

/// A run that is about to be rated.
#[derive(Debug)]
pub struct Climb {
    dir: RunDir,
    params: LadderParams,
    generations: Vec<u32>,
    infos: Vec<(u64, String)>,
    /// Index of the anchor at Elo 0.
    zero: usize,
    /// The game with its options.
    pub game: String,
}

impl Climb {
    /// Chooses the checkpoints and looks at each of them.
    ///
    /// # Errors
    /// When there are none, or one is damaged.
    pub fn new(root: &Path, mut params: LadderParams) -> Result<Self, LadderError> {
        let dir = RunDir::new(root);
        let folder = || root.display().to_string();
        let all = if root.join("checkpoints").is_dir() { dir.checkpoints()? } else { Vec::new() };
        let best = dir.read_pointer(Which::Best).ok().flatten().map(|pointer| pointer.generation);
        let generations = spread(&all, best, params.checkpoints);
        let mut infos = Vec::new();
        let mut game = None;
        for &generation in &generations {
            let checkpoint = Checkpoint::load(&dir.checkpoint(generation))?;
            infos.push((checkpoint.info.step, checkpoint.weights.digest()));
            game = Some(checkpoint.info.game);
        }
        let game = game.ok_or_else(|| LadderError::NoCheckpoints { folder: folder() })?;
        if params.anchors.is_empty() {
            let solved = games::dispatch(&game, SolvesOpenings { seed: params.seed });
            let solved = solved.map_err(|error| LadderError::Game { folder: folder(), error })?;
            params.anchors = ANCHORS.into_iter().chain(solved.then_some("solver")).map(str::to_owned).collect();
        }
        let zero = LadderParams::zero_of(&params.anchors, params.zero.as_deref()).ok_or_else(|| {
            LadderError::NoZero { zero: params.zero.clone().unwrap_or_default(), anchors: params.anchors.clone() }
        })?;
        Ok(Self { dir, params, generations, infos, zero, game })
    }

    /// Every checkpoint meets each anchor and the checkpoint before it; each anchor meets the next one. What is close together
    /// decides ratings best, and the whole is linked.
    fn encounters(&self) -> Vec<[usize; 2]> {
        let (rungs, anchors) = (self.generations.len(), self.params.anchors.len());
        let with_anchors = (0..rungs).flat_map(|rung| (0..anchors).map(move |anchor| [rung, rungs + anchor]));
        let neighbours = (1..rungs).map(|rung| [rung, rung - 1]);
        let among_anchors = (1..anchors).map(|anchor| [rungs + anchor, rungs + anchor - 1]);
        with_anchors.chain(neighbours).chain(among_anchors).collect()
    }

    /// The checkpoints and the anchors.
    fn field(&self) -> Result<Field, LadderError> {
        let params = &self.params;
        let networks = self.generations.iter().zip(&self.infos).map(|(generation, (_, digest))| {
            let (name, file) = (format!("generation {generation}"), self.dir.checkpoint(*generation));
            Entrant::checkpoint(name, file, digest, params.simulations)
        });
        let mut entrants: Vec<Entrant> = networks.collect();
        for anchor in &params.anchors {
            entrants.push(Entrant::named(anchor)?);
        }
        Ok(Field {
            entrants,
            encounters: self.encounters(),
            zero: self.generations.len() + self.zero,
            games: params.games,
            seed: params.seed,
            threads: params.threads,
            file: LadderFiles::of(&self.dir).games,
        })
    }

    /// Plays and rates; `None` when it was interrupted, what was played is kept. `begin` is told what is ahead.
    ///
    /// # Errors
    /// When a player cannot be opened, or a file not written.
    pub fn play<G: Game>(
        &self,
        game: &G,
        stop: &(dyn Fn() -> bool + Sync),
        begin: &dyn Fn(Ahead),
        progress: &(dyn Fn(&[MatchTally]) + Sync),
    ) -> Result<Option<Ladder>, LadderError> {
        let (params, files) = (&self.params, LadderFiles::of(&self.dir));
        let field = self.field()?;
        let folder = self.dir.root().join("ladder");
        for folder in [&folder, &files.charts] {
            std::fs::create_dir_all(folder).map_err(|error| PublishError::writing(folder, "create", error))?;
        }
        let Some(Rated { elo, report }) = field.rate(game, stop, begin, progress)? else { return Ok(None) };
        let rungs = self.generations.len();
        let score = |rung: usize, anchor: usize| report.tallies[rung * params.anchors.len() + anchor].games().score();
        let ladder = Ladder {
            game: self.game.clone(),
            anchors: params.anchors.clone(),
            anchor_elo: elo[rungs..].to_vec(),
            simulations: params.simulations,
            games: params.games,
            seed: params.seed,
            rungs: (0..rungs)
                .map(|rung| Rung {
                    generation: self.generations[rung],
                    step: self.infos[rung].0,
                    elo: elo[rung],
                    scores: (0..params.anchors.len()).map(|anchor| score(rung, anchor)).collect(),
                })
                .collect(),
        };
        self.keep(&ladder, &files)?;
        Ok(Some(ladder))
    }

    fn keep(&self, ladder: &Ladder, files: &LadderFiles) -> Result<(), LadderError> {
        let numbers = serde_json::to_string_pretty(ladder).expect("numbers can be written") + "\n";
        write_atomic(&files.numbers, numbers.as_bytes())?;
        let title = self.dir.root().file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let picture = chart(&LadderChart { title: &title, ladder }).map_err(LadderError::Picture)?;
        write_atomic(&files.picture, picture.as_bytes())?;
        let mut charts = TensorBoard::create(&files.charts)?;
        for rung in &ladder.rungs {
            let scalar = |tag, help, value| Scalar { tag, help, value };
            let numbers = [
                scalar(
                    "ladder/elo",
                    "Elo of the checkpoint of a generation, relative to a fixed player.",
                    rung.elo.value,
                ),
                scalar("ladder/elo_low", "Lower end of its 95 % interval.", rung.elo.low),
                scalar("ladder/elo_high", "Upper end of its 95 % interval.", rung.elo.high),
            ];
            charts.numbers(u64::from(rung.generation), &numbers)?;
        }
        Ok(())
    }
}

/// Whether perfect play can answer where games begin.
struct SolvesOpenings {
    seed: u64,
}

impl GameVisitor for SolvesOpenings {
    type Output = bool;

    fn visit<G: Game>(self, game: G) -> bool {
        let position = openings(&game, self.seed).get(&game, 0).position(&game);
        game.solver().is_some_and(|mut solver| solver.solve(&position).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_are_spread_over_the_run() {
        let all: Vec<u32> = (0..=30).collect();
        assert_eq!(spread(&all, Some(30), 4), [0, 10, 20, 30]);
        assert_eq!(spread(&all, Some(23), 4), [0, 10, 23, 30]);
        assert_eq!(spread(&all[..3], Some(1), 4), [0, 1, 2]);
        assert_eq!(spread(&all, None, 2), [0, 30]);
        assert_eq!(spread(&all, Some(7), 2), [0, 30], "there is no place between two");
        assert_eq!(spread(&[], None, 4), Vec::<u32>::new());
    }
}
