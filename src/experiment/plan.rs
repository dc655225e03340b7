//! The file that describes an experiment.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::work::ExperimentFiles;
use crate::arena::{ANCHORS, LadderParams};
use crate::run::config::RunConfig;
use crate::run::player::PlayerSpec;
use crate::run::strict::{ConfigErrors, Findings, Reader};

/// What is compared, at what price, and how it is rated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// What the experiment is to answer, in words.
    #[serde(default)]
    pub question: String,
    /// The config of a run that all variants begin from; a relative path begins at the experiment's file.
    pub config: PathBuf,
    /// Overrides for all variants, each `KEY=VALUE` as behind `sparring train --set`.
    #[serde(default)]
    pub set: Vec<String>,
    /// What is compared; the others are compared with the first.
    #[schemars(length(min = 1, max = 64))]
    pub variants: Vec<Variant>,
    /// Each variant is trained once with each of these seeds.
    #[serde(default = "one_seed")]
    #[schemars(length(min = 1, max = 64))]
    pub seeds: Vec<u64>,
    /// What each run may use.
    pub budget: Budget,
    /// How checkpoints are rated.
    #[serde(default)]
    pub rating: Rating,
}

fn one_seed() -> Vec<u64> {
    vec![0]
}

/// A variant of the config.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Its name, which is that of its folder: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Its overrides, after those of all variants.
    #[serde(default)]
    pub set: Vec<String>,
}

/// The end of each run: the first of these that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Positions of self-play games.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub positions: Option<u64>,
    /// Hours of processor time.
    #[serde(default)]
    #[schemars(range(min = 0.001))]
    pub cpu_hours: Option<f64>,
}

/// How checkpoints are rated: all in one pool, from games against the anchors, against the checkpoint before, and against that of
/// the first variant at the same place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Rating {
    /// Checkpoints of each run, spread evenly over it.
    #[schemars(range(min = 1, max = 100))]
    pub checkpoints: usize,
    /// Players that do not change.
    #[schemars(length(min = 1, max = 16))]
    pub anchors: Vec<String>,
    /// The anchor at Elo 0; null for mcts:1000 if it is among them, else the last one.
    pub zero: Option<String>,
    /// Games of each two that meet, an even number.
    #[schemars(range(min = 2, max = 100_000))]
    pub games: usize,
    /// Simulations of the checkpoints; 0 is the network alone.
    #[schemars(range(min = 0, max = 100_000_000))]
    pub simulations: u32,
    /// Seeds openings and players.
    pub seed: u64,
}

impl Default for Rating {
    fn default() -> Self {
        let anchors = ANCHORS.iter().skip(1).map(|&anchor| anchor.to_owned()).collect();
        Self { checkpoints: 5, anchors, zero: None, games: 40, simulations: 100, seed: 0 }
    }
}

impl Rating {
    /// The index of the anchor at Elo 0; `None` where the one named is no anchor.
    pub fn zero(&self) -> Option<usize> {
        LadderParams::zero_of(&self.anchors, self.zero.as_deref())
    }
}

/// One training of an experiment.
#[derive(Clone, Debug)]
pub struct Training {
    /// Index of the variant.
    pub variant: usize,
    /// The config, complete, with the seed.
    pub config: RunConfig,
}

/// Keys that the experiment itself sets.
const OWN: [&str; 2] = ["seed", "stop"];

impl Plan {
    /// Reads and checks the file `path` and the configs of all its trainings, seed after seed.
    ///
    /// # Errors
    /// Everything that is wrong with the experiment, or with the first variant's config that is wrong.
    pub fn read(path: &Path) -> Result<(Self, Vec<Training>), PlanError> {
        let plan: Self = Reader::new().check(check).read_file(path, &[])?;
        let base = path.parent().unwrap_or(Path::new("")).join(&plan.config);
        let mut trainings = Vec::new();
        for seed in &plan.seeds {
            for (variant, Variant { name, set }) in plan.variants.iter().enumerate() {
                let stop = serde_json::json!(plan.budget);
                let own = [format!("seed={seed}"), format!("stop={stop}")];
                let sets: Vec<String> = plan.set.iter().chain(set).cloned().chain(own).collect();
                let config = RunConfig::read(&base, &sets)
                    .map_err(|errors| PlanError::Variant { name: name.clone(), errors })?;
                if config.keep.checkpoints.is_some() {
                    return Err(PlanError::Keep { name: name.clone() });
                }
                trainings.push(Training { variant, config });
            }
        }
        let games: Vec<&str> = trainings.iter().map(|training| training.config.game.as_str()).collect();
        match games.iter().position(|game| *game != games[0]) {
            Some(at) => Err(PlanError::Games {
                first: plan.variants[0].name.clone(),
                game: games[0].to_owned(),
                other: plan.variants[trainings[at].variant].name.clone(),
                other_game: games[at].to_owned(),
            }),
            None => Ok((plan, trainings)),
        }
    }
}

/// An experiment's file is wrong.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum PlanError {
    #[error(transparent)]
    File(#[from] ConfigErrors),
    #[error("variant `{name}`:\n{errors}")]
    Variant { name: String, errors: ConfigErrors },
    #[error("variant `{name}`: keep.checkpoints must be null: any checkpoint may be rated")]
    Keep { name: String },
    #[error(
        "variant `{first}` plays {game} and variant `{other}` {other_game}: checkpoints of one game alone can be rated together"
    )]
    Games { first: String, game: String, other: String, other_game: String },
}

fn check(plan: &Plan, findings: &mut Findings) {
    let mut seen = HashSet::new();
    for (at, variant) in plan.variants.iter().enumerate() {
        let path = format!("variants[{at}].name");
        let plain = |sign: char| sign.is_ascii_alphanumeric() || "-_.".contains(sign);
        if !variant.name.chars().all(plain)
            || variant.name.is_empty()
            || variant.name.starts_with('.')
            || variant.name.len() > 100
        {
            findings.add(path, "must be letters, digits, `-`, `_` and `.` only, as a folder is named so");
        } else if ExperimentFiles::has(&variant.name) {
            findings.add(path, "is the name of a file that the experiment writes");
        } else if !seen.insert(variant.name.to_ascii_lowercase()) {
            findings.add(path, "another variant has this name");
        }
    }
    let lists = plan.variants.iter().enumerate().map(|(at, variant)| (format!("variants[{at}].set"), &variant.set));
    for (path, set) in std::iter::once(("set".to_owned(), &plan.set)).chain(lists) {
        for key in set.iter().filter_map(|set| set.split('=').next()) {
            if let Some(own) = OWN.iter().find(|own| key.split('.').next() == Some(own)) {
                findings.add(path.clone(), format!("`{own}` comes from `seeds` and `budget` of the experiment"));
            }
        }
    }
    if plan.seeds.iter().collect::<HashSet<_>>().len() < plan.seeds.len() {
        findings.add("seeds", "the same seed twice would be the same run twice");
    }
    if plan.budget.positions.is_none() && plan.budget.cpu_hours.is_none() {
        findings.add("budget", "set positions, cpu_hours or both: the runs would have no end");
    }
    if plan.rating.games % 2 == 1 {
        findings.add("rating.games", "must be even: every opening is played from both sides");
    }
    for (at, anchor) in plan.rating.anchors.iter().enumerate() {
        if let Err(error) = PlayerSpec::parse(anchor) {
            findings.add(format!("rating.anchors[{at}]"), error.to_string());
        }
    }
    if plan.rating.anchors.iter().collect::<HashSet<_>>().len() < plan.rating.anchors.len() {
        findings.add("rating.anchors", "the same player twice would be rated twice");
    }
    if plan.rating.zero().is_none() {
        findings.add("rating.zero", "must be one of the anchors");
    }
}
