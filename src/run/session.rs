//! Starting and resuming a run in its folder.

use super::budget::{Budget, BudgetError};
use super::config::{IDENTITY, RunConfig};
use super::console::Console;
use super::cycle::{Cycle, Ended, RunError, States};
use super::dir::{DirError, Found, RunDir};
use super::event::Event;
use super::metrics::Metrics;
use super::observer::{Mark, Observers};
use super::start::{StartError, start_network};
use super::state::RunState;
use super::stop::StopFlag;
use super::strict::{Change, ConfigErrors, diff, resolved_json, resolved_value};
use super::tensorboard::TensorBoard;
use crate::game::Game;
use crate::games::{self, GameNameError, GameVisitor};
use crate::net::{ChoiceError, NetSpec, Resolved, available};
use crate::util::publish::{PublishError, write_atomic};

/// A run could not be started or has failed.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The config changes what the run is.
    #[error(
        "{folder} is a run with another config:\n{}\nThese keys cannot change. Put them back, or name another folder \
         with --run.",
        list(.changes)
    )]
    Identity {
        /// The run's folder.
        folder: String,
        /// What differs: the run's value, then the new one.
        changes: Vec<Change>,
    },
    /// The run has results but no state.
    #[error(
        "{folder} holds games or trained networks but no state/run.state, so it is not known where it stopped: restore \
         that file from a copy, or start a new run in another folder with --run"
    )]
    NoState {
        /// The run's folder.
        folder: String,
    },
    /// The run does not fit into this machine.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The config stored in the run is damaged.
    #[error("the config that this run keeps cannot be read; restore that file from a copy:\n{0}")]
    StoredConfig(ConfigErrors),
    /// There is no such game.
    #[error(transparent)]
    Game(#[from] GameNameError),
    /// The engine or device asked for cannot be had.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// The run failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl SessionError {
    /// Whether the config or the command line is at fault.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Identity { .. } | Self::Game(_) | Self::Choice(_) | Self::Budget(BudgetError::Memory { .. }) => true,
            Self::Run(RunError::Start(_) | RunError::Grown { .. }) => true,
            Self::Run(RunError::Dir(error)) => matches!(error, DirError::NotFolder(_) | DirError::Foreign { .. }),
            _ => false,
        }
    }
}

impl From<DirError> for SessionError {
    fn from(error: DirError) -> Self {
        Self::Run(error.into())
    }
}

fn list(changes: &[Change]) -> String {
    changes.iter().map(|change| format!("  {change}")).collect::<Vec<_>>().join("\n")
}

/// Starts the run `config` in `dir`, or resumes it when `dir` holds it, and works until it is complete or `stop` is set.
///
/// Keys that decide what a run is (game, seed, network, optimizer, training threads) cannot change on resume; others
/// may, and the changes are told.
///
/// # Errors
/// When the folder is something else, the config does not fit the run, or the work fails. Everything published stays.
pub fn train(mut config: RunConfig, dir: &RunDir, stop: &StopFlag) -> Result<Ended, SessionError> {
    let resolved = config.engine_choice().resolve(&available())?;
    let mut notes = vec![Event::Notice(format!("evaluations by {resolved}"))];
    let mut changed = false;
    let lock = match dir.find()? {
        Found::Run => {
            let lock = dir.open()?;
            let text = std::fs::read_to_string(dir.config())
                .map_err(|e| DirError::from(PublishError::reading(&dir.config(), e)))?;
            let mut stored = RunConfig::parse(&dir.config().display().to_string(), &text, &[])
                .map_err(SessionError::StoredConfig)?;
            config.training_threads = config.training_threads.or(stored.training_threads);
            // Somebody who has lost the file may have made it anew, without what was chosen at the start.
            config.training_threads = Some(config.training_threads() as u32);
            changed = stored.training_threads.is_none();
            stored.training_threads = stored.training_threads.or(config.training_threads);
            let changes = diff(&resolved_value(&stored), &resolved_value(&config));
            let (fixed, free): (Vec<Change>, Vec<Change>) = changes.into_iter().partition(|change| {
                IDENTITY.iter().any(|key| change.path == *key || change.path.starts_with(&format!("{key}.")))
            });
            if !fixed.is_empty() {
                return Err(SessionError::Identity { folder: dir.root().display().to_string(), changes: fixed });
            }
            if !free.is_empty() {
                notes.push(Event::Notice(format!("the config has changed since:\n{}", list(&free))));
                changed = true;
            }
            lock
        }
        _ => {
            config.training_threads = Some(config.training_threads() as u32);
            // Before there is a folder.
            fits(&config, &resolved, dir, &RunState::new())?;
            notes.extend(check_start(&config)?);
            dir.create(&resolved_json(&config))?
        }
    };
    let states = match States::load(dir)? {
        Some(states) => states,
        None if dir.has_work()? => return Err(SessionError::NoState { folder: dir.root().display().to_string() }),
        None => States::new(),
    };
    notes.extend(fits(&config, &resolved, dir, states.newest())?);
    let task = Task { config: &config, dir, states, resolved, stop: stop.clone(), notes, changed };
    let ended = games::dispatch(&config.game, task)??;
    drop(lock);
    Ok(ended)
}

/// Whether the run fits into this machine. Returns what it will take, and a warning where it will not fit in the end.
fn fits(config: &RunConfig, engine: &Resolved, dir: &RunDir, state: &RunState) -> Result<Vec<Event>, SessionError> {
    let budget = Budget::predict(config, engine, state)?;
    budget.check_memory()?;
    let warning = budget.check_disk(dir.root())?;
    Ok(budget.notes(dir.root()).map(Event::Notice).into_iter().chain(warning.map(Event::Warning)).collect())
}

/// Terminal, `metrics.jsonl` and TensorBoard, the latter two cut back to the state that is resumed. All are told `notes`.
fn observers(dir: &RunDir, state: &RunState, notes: Vec<Event>) -> Result<Observers, RunError> {
    let mut observers = Observers::new();
    observers.add(Console::stderr());
    let mut notes = notes;
    if state.mark == 0 {
        observers.add(Metrics::create(&dir.metrics())?);
        observers.add(TensorBoard::create(&dir.tensorboard())?);
    } else {
        let mark = Mark { number: state.mark, generation: state.generation, step: state.step };
        let (metrics, gap) = Metrics::resume(&dir.metrics(), &mark)?;
        notes.extend(gap.map(Event::Notice));
        let (board, gap) = TensorBoard::resume(&dir.tensorboard(), &mark)?;
        notes.extend(gap.map(Event::Notice));
        observers.add(metrics);
        observers.add(board);
    }
    for note in notes {
        observers.observe(&note)?;
    }
    Ok(observers)
}

/// Whether the run can begin with the checkpoint that its config names, and what is to be told of it.
///
/// # Errors
/// When that cannot be read or does not fit.
pub fn check_start(config: &RunConfig) -> Result<Option<Event>, SessionError> {
    Ok(games::dispatch(&config.game, Start(config))?.map_err(RunError::from)?)
}

struct Start<'a>(&'a RunConfig);

impl GameVisitor for Start<'_> {
    type Output = Result<Option<Event>, StartError>;

    /// What is to be told of it.
    fn visit<G: Game>(self, game: G) -> Self::Output {
        let Some(file) = &self.0.start else { return Ok(None) };
        let spec = NetSpec::for_game(&game, self.0.network.clone());
        let info = start_network(&game, &spec, file)?.info;
        Ok(Some(Event::Notice(format!(
            "begins with the network in {}: generation {}, {} training steps",
            file.display(),
            info.generation,
            info.step
        ))))
    }
}

struct Task<'a> {
    config: &'a RunConfig,
    dir: &'a RunDir,
    states: States,
    resolved: Resolved,
    stop: StopFlag,
    notes: Vec<Event>,
    /// Whether the config is another one than the run keeps.
    changed: bool,
}

impl GameVisitor for Task<'_> {
    type Output = Result<Ended, RunError>;

    fn visit<G: Game>(self, game: G) -> Self::Output {
        let Self { config, dir, states, resolved, stop, notes, changed } = self;
        let observers = |state: &RunState| observers(dir, state, notes);
        let mut cycle = Cycle::new(game, config, dir, states, observers, resolved, stop)?;
        if changed {
            // Only now: a config that the run cannot go on with is not kept.
            write_atomic(&dir.config(), resolved_json(config).as_bytes()).map_err(DirError::from)?;
        }
        cycle.run()
    }
}
