//! `sparring config`.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Failure, Outcome, print};
use crate::net::available;
use crate::run::budget::Budget;
use crate::run::config::{RunConfig, preset};
use crate::run::session::check_start;
use crate::run::state::RunState;
use crate::run::strict::{UnknownKey, explain, resolved_json, resolved_value, schema_json};

/// Print a config with every default written out or what its run will take, explain a key, or print the JSON Schema
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    sparring config configs/uttt.json\n  \
    sparring config configs/uttt.json --budget --set keep.games=window\n  \
    sparring config --explain selfplay.simulations\n  \
    sparring config --schema > configs/schema.json")]
pub struct Config {
    /// The config file
    #[arg(required_unless_present_any = ["schema", "explain"])]
    config: Option<PathBuf>,
    /// Overrides a key of the config; may be given many times
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Print what a run of the config will take of memory and disk, at most
    #[arg(long, requires = "config", conflicts_with_all = ["schema", "explain"])]
    budget: bool,
    /// Print that as JSON, in bytes
    #[arg(long, requires = "budget")]
    json: bool,
    /// What a key means, its unit, range and default, and the value of the paper it is from
    #[arg(long, value_name = "KEY")]
    explain: Option<String>,
    /// The JSON Schema of configs
    #[arg(long, conflicts_with_all = ["config", "explain"])]
    schema: bool,
}

impl Config {
    pub(super) fn run(self) -> Outcome {
        if self.schema {
            return print(&schema_json::<RunConfig>());
        }
        let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
        let config = match &self.config {
            Some(path) => Some(RunConfig::read(path, &self.set).map_err(|e| usage(&e))?),
            None => None,
        };
        if let Some(config) = config.as_ref().filter(|_| self.budget) {
            let engine = config.engine_choice().resolve(&available()).map_err(|e| usage(&e))?;
            let budget = Budget::predict(config, &engine, &RunState::new()).map_err(|e| usage(&e))?;
            return print(&if self.json { serde_json::to_string_pretty(&budget)? + "\n" } else { budget.table() });
        }
        match (&self.explain, config) {
            (Some(key), config) => print(&explained(key, &self.config, config).map_err(|e| usage(&e))?),
            (None, config) => {
                let config = config.expect("clap asks for it");
                // It may be one for another machine.
                if let Err(error) = check_start(&config) {
                    anstream::eprintln!("warning: {error}");
                }
                print(&resolved_json(&config))
            }
        }
    }
}

/// What `key` means, with the defaults of the game of `config`, and what it is there.
fn explained(key: &str, path: &Option<PathBuf>, config: Option<RunConfig>) -> Result<String, UnknownKey> {
    const EXAMPLE: &str = "uttt";
    let game = config.as_ref().map_or(EXAMPLE, |config| &config.game);
    let whole = RunConfig::parse("", &json!({ "game": game }).to_string(), &[]);
    let mut defaults = resolved_value(&whole.expect("the name of a game is a config"));
    // It has none.
    defaults.as_object_mut().and_then(|keys| keys.shift_remove("game"));
    let at = |value: &Value| value.pointer(&format!("/{}", key.replace('.', "/"))).cloned();
    let mut text = String::new();
    for explanation in explain::<RunConfig>(key, Some(&defaults))? {
        text += &format!("{explanation}\n");
        if let (Some(path), Some(value)) = (path, config.as_ref().and_then(|config| at(&resolved_value(config)))) {
            text += &format!("  in {}: {value}\n", path.display());
        } else if preset(EXAMPLE).as_ref().and_then(at).is_some() {
            text += &format!("  The default depends on the game; this is that of {EXAMPLE}.\n");
        }
    }
    Ok(text)
}
