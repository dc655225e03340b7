//! What can be wrong with a config, and the list of it that a person reads.

use std::fmt;
use std::sync::Arc;

/// Where something was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum At {
    /// In the file.
    File {
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1, where it helps (broken syntax).
        column: Option<usize>,
    },
    /// In an override on the command line, given here as it was written (`search.simulations=0`).
    Set(Arc<str>),
    /// Nowhere: the problem is with the config as a whole or with something that is not there.
    Whole,
}

/// One thing that is wrong with a config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where it was written.
    pub at: At,
    /// The whole path of the key (`search.simulations`, `devices[1]`), empty for the config itself.
    pub path: String,
    /// What is wrong and what is allowed.
    pub message: String,
}

impl Problem {
    /// A problem with `path`, written at `at`.
    pub fn new(at: At, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { at, path: path.into(), message: message.into() }
    }
}

/// Everything that is wrong with a config, one line for each problem in the order of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors {
    /// What was read: the file as the user named it.
    pub source: String,
    /// At least one.
    pub problems: Vec<Problem>,
}

impl ConfigErrors {
    pub(super) fn new(source: &str, mut problems: Vec<Problem>) -> Self {
        problems.sort_by(|a, b| a.at.cmp(&b.at));
        Self { source: source.to_owned(), problems }
    }
}

impl std::error::Error for ConfigErrors {}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            match &problem.at {
                At::File { line, column: None } => write!(f, "{}:{line}: ", self.source)?,
                At::File { line, column: Some(column) } => write!(f, "{}:{line}:{column}: ", self.source)?,
                At::Set(text) => write!(f, "--set {text}: ")?,
                At::Whole => write!(f, "{}: ", self.source)?,
            }
            if !problem.path.is_empty() {
                write!(f, "{}: ", problem.path)?;
            }
            write!(f, "{}", problem.message)?;
        }
        Ok(())
    }
}

/// Collects what a semantic check finds wrong with a config whose keys and types are right.
#[derive(Clone, Debug, Default)]
pub struct Findings(pub(super) Vec<(String, String)>);

impl Findings {
    /// Notes that the value of `path` (`selfplay.games`) cannot be used; `message` says why and what to do.
    pub fn add(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.0.push((path.into(), message.into()));
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The entry of `known` that `wrong` was probably meant to be.
pub(crate) fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let fold = |text: &str| text.to_lowercase().replace(['-', '_', ' '], "");
    let wrong = fold(wrong);
    known
        .into_iter()
        .map(|name| (strsim::normalized_damerau_levenshtein(&wrong, &fold(name)), name))
        .filter(|(likeness, name)| *likeness >= 0.6 || (wrong.len() >= 3 && fold(name).starts_with(&wrong)))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}
