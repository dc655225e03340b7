//! What a measurement leaves behind, as JSON and as text.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::figure::text;
use super::{Comparison, Group, Measure, Signature};
use crate::util::machine::cpu;

/// The format of the document. Another number is another format.
pub const FORMAT: u32 = 1;

/// No document is larger.
const MAX_BYTES: u64 = 64 << 20;

/// All that was measured at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// [`FORMAT`]; also says what the document is.
    pub sparring_bench: u32,
    /// Version of the program.
    pub version: String,
    /// When it began: `2026-11-30T12:00:00Z`.
    pub date: String,
    /// Where it was measured.
    pub machine: Machine,
    /// What evaluates the network in search and self-play, and why; `None` when nothing was measured.
    pub engine: Option<String>,
    /// Seconds of each repetition.
    pub seconds: f64,
    /// Repetitions of each row.
    pub repeats: usize,
    /// The behaviour signature, when it was asked for.
    pub signature: Option<Signature>,
    /// Everything measured.
    pub rows: Vec<Row>,
    /// The same next to an earlier document, when one was given.
    #[serde(default, skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Name of the processor.
    pub cpu: String,
    /// Threads that the program may use.
    pub cores: usize,
    /// Abilities of the processor that matter here, named as Linux does.
    pub features: Vec<String>,
}

/// A measured number: the median of its repetitions, with the smallest and the largest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Where it belongs.
    pub group: Group,
    /// The game, then what was measured.
    pub name: String,
    /// The median.
    pub value: f64,
    /// What `value`, `low` and `high` count.
    pub unit: String,
    /// The smallest repetition.
    pub low: f64,
    /// The largest repetition.
    pub high: f64,
}

/// What tells a row from all others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct RowName {
    /// Where it belongs.
    pub group: Group,
    /// The game, then what was measured.
    pub name: String,
    /// What it counts.
    pub unit: String,
}

impl Row {
    /// What tells it from all others.
    pub fn key(&self) -> RowName {
        RowName { group: self.group, name: self.name.clone(), unit: self.unit.clone() }
    }
}

/// A file that is no document.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {problem}; expected the output of `sparring bench --json`")]
pub struct DocumentError {
    /// The file.
    pub file: String,
    /// What is wrong with it.
    pub problem: String,
}

impl Document {
    /// A document of this machine and moment, with nothing in it.
    pub(super) fn new(measure: Measure) -> Self {
        let cpu = cpu();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        Self {
            sparring_bench: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            date: date(now),
            machine: Machine {
                cpu: cpu.model,
                cores: cpu.threads,
                features: cpu.features.into_iter().map(str::to_owned).collect(),
            },
            engine: None,
            seconds: measure.seconds,
            repeats: measure.repeats,
            signature: None,
            rows: Vec::new(),
            comparison: None,
        }
    }

    /// Reads a document that was written as JSON.
    ///
    /// # Errors
    /// When the file cannot be read, is something else, or is of another format.
    pub fn read(path: &Path) -> Result<Self, DocumentError> {
        /// What every format has.
        #[derive(Deserialize)]
        struct Head {
            sparring_bench: u32,
        }
        let fail = |problem: String| DocumentError { file: path.display().to_string(), problem };
        let mut bytes = Vec::new();
        File::open(path)
            .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
            .map_err(|error| fail(format!("cannot be read: {error}")))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(fail(format!("is larger than {MAX_BYTES} bytes, which no measurement is")));
        }
        let head: Head = serde_json::from_slice(&bytes).map_err(|error| fail(error.to_string()))?;
        if head.sparring_bench != FORMAT {
            let found = head.sparring_bench;
            return Err(fail(format!("is of format {found}, and this version of sparring knows {FORMAT}")));
        }
        serde_json::from_slice(&bytes).map_err(|error| fail(error.to_string()))
    }
}

/// Seconds since 1970 as `2026-11-30T12:00:00Z`.
fn date(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Howard Hinnant, "chrono-compatible low-level date algorithms", civil_from_days: years begin in March, so that the
    // day that is sometimes missing is the last one; 146097 days are 400 years.
    let day = days + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { cpu, cores, .. } = &self.machine;
        writeln!(f, "sparring {} on {cpu}, {cores} threads, {}", self.version, self.date)?;
        if let Some(engine) = &self.engine {
            writeln!(f, "network: {engine}")?;
        }
        writeln!(f, "median of {} x {} s (lowest .. highest)", self.repeats, self.seconds)?;
        let width = self.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
        let mut group = None;
        for row in &self.rows {
            if group != Some(row.group) {
                group = Some(row.group);
                writeln!(f, "\n{}", row.group.name())?;
            }
            let Row { name, value, unit, low, high, .. } = row;
            write!(f, "  {name:<width$}  {:>11} {unit:<13}", text(*value))?;
            let spread = if low == high { String::new() } else { format!("({} .. {})", text(*low), text(*high)) };
            match self.comparison.as_ref().map(|comparison| comparison.ratio_of(&row.key())) {
                None => writeln!(f, " {spread}")?,
                Some(ratio) => writeln!(f, " {spread:<23} {ratio}")?,
            }
        }
        if let Some(signature) = &self.signature {
            writeln!(f, "\nsignature {}", signature.hash)?;
        }
        self.comparison.as_ref().map_or(Ok(()), |comparison| write!(f, "\n{comparison}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        // By `date -u -d @SECONDS`.
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (1_796_000_461, "2026-11-30T01:01:01Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(date(seconds), expected);
        }
    }
}
