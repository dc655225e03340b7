//! What a run will take of memory and disk, told before it starts.
//!
//! Both are upper bounds from the config, the game and, where the run has begun, what it has done so far. Lengths of games and
//! numbers of moves come from a few random games, with room for those of trained networks. What libraries take was measured and
//! has room as well (`docs/run-directory.md` says how good the predictions are).

mod disk;
mod memory;
mod nature;

use std::fmt;
use std::path::Path;

use serde::Serialize;

use super::config::RunConfig;
use super::state::RunState;
use crate::game::Game;
use crate::games::{self, GameNameError, GameVisitor};
use crate::net::{NetSpec, Resolved};
use crate::util::machine;
use crate::util::publish::free_space;
use nature::Nature;

/// One of the things that take memory or disk space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// What it is.
    pub what: &'static str,
    /// What it takes at most.
    pub bytes: u64,
    /// Keys of the config that make it smaller when they are lowered; empty where none does.
    pub keys: &'static [&'static str],
}

/// What a run takes on disk, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Disk {
    /// Generations until the config ends the run; `None` where that cannot be known (no end, an Elo, hours without a
    /// generation that was timed).
    pub generations: Option<u64>,
    /// Everything when they are done, or after ten where their number cannot be known.
    pub parts: Vec<Part>,
    /// What each further generation adds.
    pub each: u64,
    /// What is still to come, at most: the rest of the run, or one generation where the end cannot be known.
    pub missing: u64,
    /// What the next generation needs, files that are soon removed again included.
    pub next: u64,
}

/// What a run takes, at most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Budget {
    /// Memory of the process, largest parts first.
    pub memory: Vec<Part>,
    /// Disk space.
    pub disk: Disk,
    /// Whether a goal of the run is reached, so that nothing is to come.
    #[serde(skip)]
    complete: bool,
}

/// A run that does not fit here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BudgetError {
    /// It needs more memory than the process may have.
    #[error(
        "the run can take {} of memory, and this machine allows {}: lower {keys}",
        Size(*.wanted), Size(*.have)
    )]
    Memory {
        /// What it can take, in bytes.
        wanted: u64,
        /// What there is, in bytes.
        have: u64,
        /// What to lower.
        keys: String,
    },
    /// There is no space for the next generation.
    #[error(
        "no space left in {folder} for another generation: it can take {}, and {} are free; free some and start again",
        Size(*.wanted), Size(*.have)
    )]
    Disk {
        /// The folder of the run.
        folder: String,
        /// What a generation can take, in bytes.
        wanted: u64,
        /// What is free, in bytes.
        have: u64,
    },
}

impl Budget {
    /// What a run of `config` takes whose evaluations are made by `engine`, and which has come as far as `state`.
    ///
    /// # Errors
    /// When there is no such game.
    pub fn predict(config: &RunConfig, engine: &Resolved, state: &RunState) -> Result<Self, GameNameError> {
        games::dispatch(&config.game, Predict { config, engine, state })
    }

    /// Memory of all parts.
    pub fn memory_bytes(&self) -> u64 {
        sum(&self.memory)
    }

    /// Whether this machine has the memory.
    ///
    /// # Errors
    /// When it has not; allocations that fail would end the process without a word.
    pub fn check_memory(&self) -> Result<(), BudgetError> {
        self.check_memory_of(machine::memory())
    }

    fn check_memory_of(&self, have: Option<u64>) -> Result<(), BudgetError> {
        let wanted = self.memory_bytes();
        match have {
            Some(have) if wanted > have => Err(BudgetError::Memory { wanted, have, keys: self.to_lower() }),
            _ => Ok(()),
        }
    }

    /// The keys of the parts that matter, those of the largest first.
    fn to_lower(&self) -> String {
        let most = self.memory_bytes() / 20;
        let all = || self.memory.iter().filter(|part| !part.keys.is_empty());
        let mut told: Vec<String> = all().filter(|part| part.bytes >= most).map(Part::with_keys).collect();
        if told.is_empty() {
            told.extend(all().next().map(Part::with_keys));
        }
        told.join(", or ")
    }

    /// Whether the file system of `folder`, which need not be there yet, has space for the next generation. Returns a warning
    /// where it has not for the whole run.
    ///
    /// # Errors
    /// When it has not even that.
    pub fn check_disk(&self, folder: &Path) -> Result<Option<String>, BudgetError> {
        self.check_disk_of(folder, free(folder))
    }

    fn check_disk_of(&self, folder: &Path, have: Option<u64>) -> Result<Option<String>, BudgetError> {
        let Some(have) = have.filter(|_| !self.complete) else { return Ok(None) };
        let Disk { next, missing, .. } = self.disk;
        if next > have {
            return Err(BudgetError::Disk { folder: folder.display().to_string(), wanted: next, have });
        }
        Ok((missing > have).then(|| {
            format!(
                "the rest of the run can take {} on disk, and {} are free: free some, or let the section `keep` of the \
                 config remove what is old",
                Size(missing),
                Size(have)
            )
        }))
    }

    /// What is said at the start of a run in `folder`: one line for memory, one for the disk.
    pub fn notes(&self, folder: &Path) -> [String; 2] {
        let of =
            |have: Option<u64>, word: &str| have.map_or_else(String::new, |have| format!("; {} {word}", Size(have)));
        [
            format!(
                "memory: at most {} ({}{})",
                Size(self.memory_bytes()),
                list(&self.memory),
                of(machine::memory(), "are there")
            ),
            format!("{} ({}{})", self.disk, list(&self.disk.parts), of(free(folder), "are free")),
        ]
    }

    /// All parts as a table.
    pub fn table(&self) -> String {
        let disk = format!("disk after {}", self.disk.span());
        let mut text = String::new();
        for (title, parts) in [("memory", &self.memory), (&*disk, &self.disk.parts)] {
            text += &format!("{title:<42}{:>10}\n", Size(sum(parts)).to_string());
            for part in parts {
                text += &format!("  {:<40}{:>10}  {}\n", part.what, Size(part.bytes).to_string(), part.keys.join(", "));
            }
        }
        text + &format!("{:<42}{:>10}\n", "disk for each further generation", Size(self.disk.each).to_string())
    }
}

impl fmt::Display for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "disk: at most {} after {}", Size(sum(&self.parts)), self.span())?;
        match self.generations {
            Some(_) => Ok(()),
            None => write!(f, " and {} for each more", Size(self.each)),
        }
    }
}

impl Disk {
    fn span(&self) -> String {
        match self.generations {
            Some(1) => "1 generation".to_owned(),
            Some(count) => format!("{count} generations"),
            None => format!("{UNKNOWN} generations"),
        }
    }
}

impl Part {
    fn with_keys(&self) -> String {
        format!("{} ({}: {})", self.keys.join(" or "), self.what, Size(self.bytes))
    }
}

/// Generations that are spoken of where a run has no end that can be counted.
const UNKNOWN: u64 = 10;

/// No run has so many; a goal that is farther is none that can be counted.
const MOST: u64 = 1_000_000_000;

fn sum(parts: &[Part]) -> u64 {
    parts.iter().fold(0, |sum, part| sum.saturating_add(part.bytes))
}

fn list(parts: &[Part]) -> String {
    parts.iter().map(|part| format!("{} {}", part.what, Size(part.bytes))).collect::<Vec<_>>().join(", ")
}

/// What is free where `folder` is or will be; `None` where the system does not tell.
fn free(folder: &Path) -> Option<u64> {
    let there = folder.ancestors().find(|folder| folder.is_dir());
    free_space(there.unwrap_or(Path::new("."))).ok()
}

struct Predict<'a> {
    config: &'a RunConfig,
    engine: &'a Resolved,
    state: &'a RunState,
}

impl GameVisitor for Predict<'_> {
    type Output = Budget;

    fn visit<G: Game>(self, game: G) -> Budget {
        let Self { config, engine, state } = self;
        let nature = Nature::of(&game, state);
        let generations = generations(config, state, nature.mean_plies).filter(|&generations| generations <= MOST);
        let last = generations.and_then(|last| u32::try_from(last).ok()).unwrap_or(u32::MAX);
        let networks = config.trained_networks(&game, last);
        let outlook = Outlook {
            config,
            engine,
            spec: networks.max_by_key(NetSpec::parameter_count).expect("a run has a network"),
            generations,
            nature,
            done: u64::from(state.generation) - 1,
            played: state.positions,
        };
        let mut memory = memory::parts(&outlook);
        memory.sort_by_key(|part| std::cmp::Reverse(part.bytes));
        Budget { memory, disk: disk::predict(&outlook), complete: state.is_complete(&config.stop) }
    }
}

/// What the bounds are made from.
struct Outlook<'a> {
    config: &'a RunConfig,
    engine: &'a Resolved,
    spec: NetSpec,
    nature: Nature,
    /// Generations of the whole run, where they can be counted.
    generations: Option<u64>,
    /// Generations done.
    done: u64,
    /// Positions played.
    played: u64,
}

impl Outlook<'_> {
    /// Positions of a generation, at most.
    fn positions(&self) -> f64 {
        f64::from(self.config.selfplay.games) * self.nature.plies
    }

    /// Trainable numbers of the network, and all of them.
    fn numbers(&self) -> [u64; 2] {
        let all = self.spec.tensors().iter().map(|tensor| tensor.len() as u64).sum();
        [self.spec.parameter_count() as u64, all]
    }

    /// Positions in the replay window when `generations` are done, without the limit in bytes. All count that are played, though
    /// most weigh less than 1: the law is about weighted ones, so that more of light ones are held.
    fn window_positions(&self, generations: u64) -> f64 {
        let (play, samples) = (&self.config.selfplay, &self.config.samples);
        let fast = 1.0 - f64::from(play.full_share);
        // One in ten positions of a game with forced moves is one.
        let light = 0.1 * (1.0 - f64::from(samples.forced_weight)) + fast * (1.0 - f64::from(samples.fast_weight));
        let more = generations.saturating_sub(self.done) as f64;
        let total = self.played as f64 + more * self.positions();
        (self.config.replay.window_positions(total) / (1.0 - light).max(0.01)).min(total)
    }

    /// Worker threads of self-play, and games that each plays at once, at most.
    fn pool(&self) -> [u64; 2] {
        let play = &self.config.selfplay;
        let threads = play.threads.map_or_else(|| machine::cores() as u64, u64::from);
        // As `tune` chooses them.
        let chosen = (u64::from(play.games) / (threads * 4)).clamp(1, 256);
        let games = play.parallel_games.map_or(chosen, u64::from);
        [threads, games].map(|count| count.min(u64::from(play.games)))
    }
}

/// Generations until `stop` ends the run, where they can be counted.
fn generations(config: &RunConfig, state: &RunState, plies: f64) -> Option<u64> {
    let (stop, done) = (&config.stop, u64::from(state.generation) - 1);
    let games = u64::from(config.selfplay.games);
    let by_games = stop.games.map(|goal| done.saturating_add(goal.saturating_sub(state.games).div_ceil(games)));
    let by_positions = stop.positions.map(|goal| {
        let missing = goal.saturating_sub(state.positions) as f64;
        done.saturating_add((missing / (games as f64 * plies)).ceil() as u64)
    });
    // Known once some generations were timed.
    let by_time = |goal: Option<f64>, spent: f64| {
        let goal = goal.filter(|_| done >= 3 && spent > 0.0)?;
        Some(done.max((done as f64 * goal / spent).ceil() as u64))
    };
    let (by_hours, by_cpu_hours) = (by_time(stop.hours, state.hours), by_time(stop.cpu_hours, state.cpu_hours));
    [stop.iterations.map(u64::from), by_games, by_positions, by_hours, by_cpu_hours].into_iter().flatten().min()
}

/// A number of bytes for people: `870 MB`, `1.3 GB`, in steps of 1024.
pub struct Size(pub u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
        let mut value = self.0 as f64 / 1024.0;
        let mut unit = 0;
        while value >= 1000.0 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        let digits = if value < 10.0 { 1 } else { 0 };
        write!(f, "{value:.digits$} {}", UNITS[unit])
    }
}

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
