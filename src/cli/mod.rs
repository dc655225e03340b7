//! The command line: one thin file for each verb, no logic.

pub mod doctor;

use std::process::ExitCode;

mod ugi;

/// Runs the command line; the exit code is 0 done, 1 failed, 2 wrong command line, 130 interrupted.
pub fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["ugi", game] => match ugi::run(game) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
        },
        _ => ExitCode::SUCCESS,
    }
}
