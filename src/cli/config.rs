//! `sparring config`.

use std::path::PathBuf;

use super::{Failure, Outcome, print};
use crate::run::config::{RunConfig, preset};
use crate::run::strict::{explain, resolved_json, resolved_value, schema_json};

/// Print a config with every default written out, explain a key, or print the JSON Schema
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    sparring config configs/uttt.json\n  \
    sparring config --explain selfplay.simulations\n  \
    sparring config --schema > configs/schema.json")]
pub struct Config {
    /// The config file
    #[arg(required_unless_present_any = ["schema", "explain"])]
    config: Option<PathBuf>,
    /// Overrides a key of the config; may be given many times
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// What a key means, its range and default
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
        if let Some(key) = &self.explain {
            let defaults = config.as_ref().map(resolved_value).or_else(|| preset("uttt"));
            let found = explain::<RunConfig>(key, defaults.as_ref()).map_err(|e| usage(&e))?;
            return print(&found.iter().map(|explanation| format!("{explanation}\n")).collect::<String>());
        }
        print(&resolved_json(&config.expect("clap asks for it")))
    }
}
