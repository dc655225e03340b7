//! The command line: one thin file for each verb, no logic.

pub mod doctor;

use std::process::ExitCode;

/// Runs the command line; the exit code is 0 done, 1 failed, 2 wrong command line, 130 interrupted.
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
