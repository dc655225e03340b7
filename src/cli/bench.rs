//! `sparring bench`.

use std::io::Write as _;
use std::path::PathBuf;

use super::{Failure, Outcome, print};
use crate::bench::{Comparison, Document, Group, Measure, jobs, run};

/// Measure how fast this machine plays, searches, evaluates and trains
///
/// Each row is the median of several repetitions, with the lowest and the highest. Without TARGET: rules and search of
/// every game, and everything for uttt and connect4 with 6 residual blocks of 64 channels.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    sparring bench\n  \
    sparring bench configs/zener.json --only selfplay,training --seconds 5\n  \
    sparring bench uttt --json > before.json\n  \
    sparring bench uttt --compare before.json")]
pub struct Bench {
    /// A config file, or a game with its default config
    target: Option<String>,
    /// Overrides a key of the config; may be given many times
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Measure only these of rules, inference, search, selfplay, training, memory, signature
    #[arg(long, value_name = "GROUP,...", value_delimiter = ',')]
    only: Vec<Group>,
    /// Seconds of each repetition
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Repetitions of each row
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeats: u16,
    /// One JSON document instead of text
    #[arg(long)]
    json: bool,
    /// An earlier JSON document: says for each row how many times as much it is now
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
}

impl Bench {
    pub(super) fn run(self) -> Outcome {
        let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
        if !(self.seconds > 0.0 && self.seconds <= 3600.0) {
            return Err(Failure::Usage("--seconds must be above 0 and at most 3600".to_owned()));
        }
        let jobs = jobs(self.target.as_deref(), &self.set).map_err(|error| usage(&error))?;
        let earlier = self.compare.as_deref().map(Document::read).transpose();
        let earlier = earlier.map_err(|error| Failure::Usage(format!("--compare: {error}")))?;
        let groups = if self.only.is_empty() { &Group::ALL[..] } else { &self.only };
        let measure = Measure { seconds: self.seconds, repeats: self.repeats.into() };
        // Nobody may be listening; that is no reason not to measure.
        let mut tell = |what: &str| drop(writeln!(std::io::stderr(), "measuring {what}"));
        let mut document = run(&jobs, groups, measure, &mut tell)?;
        if let (Some(earlier), Some(path)) = (&earlier, &self.compare) {
            document.comparison = Some(Comparison::new(&path.display().to_string(), earlier, &document));
        }
        let text = if self.json { serde_json::to_string_pretty(&document)? + "\n" } else { document.to_string() };
        print(&text)
    }
}
