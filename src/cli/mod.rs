//! The command line: one thin file for each verb, no logic.

mod accuracy;
mod analyze;
mod bench;
mod card;
mod color;
mod config;
mod doctor;
mod experiment;
mod export;
mod inspect;
mod ladder;
mod live;
mod perft;
mod pit;
mod play;
mod replay;
mod threads;
mod train;
mod ugi;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::run::dir::RunDir;
use crate::run::player::{PlayerError, PlayerSpec};
use crate::run::stop::{INTERRUPTED, outlive_file_limits};
use crate::util::text::cut;

/// How a verb ended without success.
#[derive(Debug)]
pub enum Failure {
    /// It failed; one message says why and what to do. Exit code 1.
    Failed(String),
    /// The command line or config is wrong. Exit code 2.
    Usage(String),
    /// It was interrupted, its state is saved. Exit code 130.
    Interrupted,
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Failed(error.to_string())
    }
}

impl Failure {
    /// The failure that `error` is: of the command line or config where `is_usage`, else of the work.
    fn of(error: &impl std::error::Error, is_usage: bool) -> Self {
        if is_usage { Self::Usage(error.to_string()) } else { Self::Failed(error.to_string()) }
    }
}

/// What a name on the command line stands for cannot be had: a wrong command line, unless the system is at fault.
fn usage_of(error: PlayerError) -> Failure {
    Failure::of(&error, error.is_usage())
}

/// The game of a verb with one player: the one that was `given`, else that of the player's network.
fn game_of(spec: &PlayerSpec, given: Option<&String>) -> Result<String, Failure> {
    if let Some(name) = given {
        return Ok(name.clone());
    }
    let checkpoint = spec.checkpoint().map_err(usage_of)?;
    let unnamed = || Failure::Usage("name the game with --game: the player does not imply it".to_owned());
    checkpoint.map(|checkpoint| checkpoint.info.game).ok_or_else(unnamed)
}

/// Where what is made from a config or plan lies unless it is said: `runs/NAME` after the file.
fn folder_after(file: &Path) -> PathBuf {
    Path::new("runs").join(file.file_stem().unwrap_or("run".as_ref()))
}

/// A run's folder belongs to the run: files of other verbs would be taken for damage there.
fn outside_of_runs(path: &Path) -> Outcome {
    // Links may lead into one: of the file, or of its folder where there is no file yet.
    let whole = std::path::absolute(path)?;
    let resolved =
        whole.canonicalize().ok().or_else(|| Some(whole.parent()?.canonicalize().ok()?.join(whole.file_name()?)));
    match RunDir::around(&whole).or_else(|| RunDir::around(&resolved?)) {
        Some(run) => Err(Failure::Usage(format!(
            "{} lies in the folder of the run {}, which is its own: name a file elsewhere",
            path.display(),
            run.display()
        ))),
        None => Ok(()),
    }
}

/// What a verb comes to.
pub type Outcome = Result<(), Failure>;

#[derive(Parser)]
#[command(name = "sparring", version, about = "Trains agents for two-player board games by self-play alone")]
#[command(after_help = "Exit codes: 0 done, 1 failed, 2 wrong command line or config, 130 interrupted (state saved).")]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Train(train::Train),
    Pit(pit::Pit),
    Play(play::Play),
    Replay(replay::Replay),
    Ladder(ladder::LadderVerb),
    Experiment(experiment::ExperimentVerb),
    Analyze(analyze::Analyze),
    Ugi(ugi::Ugi),
    Accuracy(accuracy::Accuracy),
    Perft(perft::Perft),
    /// List the games with their options
    #[command(after_help = "Example:\n  sparring games")]
    Games,
    Config(config::Config),
    Inspect(inspect::Inspect),
    Export(export::Export),
    Card(card::CardVerb),
    Bench(bench::Bench),
    Doctor(doctor::Doctor),
}

/// Runs the command line.
pub fn main() -> ExitCode {
    crate::util::memory::keep_freed();
    outlive_file_limits();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are results; clap writes them to stdout and everything else to stderr.
            let code = if error.use_stderr() { 2 } else { 0 };
            return match error.print() {
                Ok(()) => ExitCode::from(code),
                Err(_) => ExitCode::FAILURE,
            };
        }
    };
    let outcome = match arguments.verb {
        Verb::Train(verb) => verb.run(),
        Verb::Pit(verb) => verb.run(),
        Verb::Play(verb) => verb.run(),
        Verb::Replay(verb) => verb.run(),
        Verb::Ladder(verb) => verb.run(),
        Verb::Experiment(verb) => verb.run(),
        Verb::Analyze(verb) => verb.run(),
        Verb::Ugi(verb) => verb.run(),
        Verb::Accuracy(verb) => verb.run(),
        Verb::Perft(verb) => verb.run(),
        Verb::Games => perft::list_games(),
        Verb::Config(verb) => verb.run(),
        Verb::Inspect(verb) => verb.run(),
        Verb::Export(verb) => verb.run(),
        Verb::Card(verb) => verb.run(),
        Verb::Bench(verb) => verb.run(),
        Verb::Doctor(verb) => verb.run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Failed(message)) => complain(&message, 1),
        Err(Failure::Usage(message)) => complain(&message, 2),
        Err(Failure::Interrupted) => ExitCode::from(INTERRUPTED as u8),
    }
}

/// Tells stderr; nobody is left to tell when that fails too.
fn complain(message: &str, code: u8) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "error: {}", cut(message));
    ExitCode::from(code)
}

/// Writes a result to stdout. A reader that has gone away (`| head`) is no failure.
fn print(text: &str) -> Outcome {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::Failed(format!("the output cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}
