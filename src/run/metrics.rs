//! `metrics.jsonl`: what happened in a run, one JSON object a line.
//!
//! The first line is `{"event":"metrics","format":1}`. Every other line has `event`, `time` (seconds since
//! 1970) and, where it is on a chart, `step` or `generation`; then the event's numbers by their tags. Numbers that are
//! not finite are `null`. A line `{"event":"mark",...}` stands where the state of the run was saved.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use super::event::{Axis, Event};
use super::observer::{Mark, ObserveError, Observer};
use crate::util::publish::{PublishError, still_there, sync_folder};

/// The format number in the first line.
const FORMAT: u64 = 1;
/// No line of the file is longer; a longer one is damage.
const MAX_LINE: u64 = 1 << 24;

/// Appends events to a file.
#[derive(Debug)]
pub struct Metrics {
    path: PathBuf,
    file: File,
    /// Bytes of whole lines in the file.
    length: u64,
}

impl Metrics {
    /// Begins the file of a new run, replacing one that is there.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(path: &Path) -> Result<Self, ObserveError> {
        let mut metrics = Self::open(path, 0)?;
        metrics.header()?;
        Ok(metrics)
    }

    /// Goes on with the file of a run that resumes at `mark`: what was recorded after the mark is cut off. Also returns
    /// a sentence when something was missing, for the user to see.
    ///
    /// # Errors
    /// When the file is of a newer format or cannot be read or written.
    pub fn resume(path: &Path, mark: &Mark) -> Result<(Self, Option<String>), ObserveError> {
        let cut = match File::open(path) {
            Ok(file) => scan(BufReader::new(file), mark).map_err(|fault| match fault {
                Fault::Io(source) => PublishError::reading(path, source),
                Fault::Format(found) => {
                    let found = u32::try_from(found).unwrap_or(u32::MAX);
                    PublishError::Format { file: path.to_owned(), found, expected: FORMAT as u32 }
                }
            })?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => Cut { length: 0, marked: false },
            Err(e) => return Err(PublishError::reading(path, e).into()),
        };
        let mut metrics = Self::open(path, cut.length)?;
        if cut.length == 0 {
            metrics.header()?;
        }
        let notice = (!cut.marked).then(|| {
            format!("{} does not hold everything up to the resumed point; it goes on with a gap", path.display())
        });
        Ok((metrics, notice))
    }

    /// Opens for appending behind `length` bytes.
    fn open(path: &Path, length: u64) -> Result<Self, PublishError> {
        let failed = |source| PublishError::writing(path, "write", source);
        let file = OpenOptions::new().append(true).create(true).open(path).map_err(failed)?;
        file.set_len(length).and_then(|()| file.sync_all()).map_err(failed)?;
        sync_folder(path.parent().unwrap_or(Path::new(".")))?;
        Ok(Self { path: path.to_owned(), file, length })
    }

    fn header(&mut self) -> Result<(), PublishError> {
        self.line(&json!({"event": "metrics", "format": FORMAT}))
    }

    fn line(&mut self, value: &Value) -> Result<(), PublishError> {
        let mut text = value.to_string();
        text.push('\n');
        match self.file.write_all(text.as_bytes()) {
            Ok(()) => {
                self.length += text.len() as u64;
                Ok(())
            }
            Err(source) => {
                // A torn line would run into the next one; if even this fails, resuming cuts it off.
                let _ = self.file.set_len(self.length);
                Err(PublishError::writing(&self.path, "write", source))
            }
        }
    }

    fn sync(&mut self) -> Result<(), PublishError> {
        self.file.sync_data().map_err(|source| PublishError::writing(&self.path, "save", source))
    }
}

impl Observer for Metrics {
    fn observe(&mut self, event: &Event) -> Result<(), ObserveError> {
        if let Some(record) = record(event) {
            self.line(&record)?;
        }
        if matches!(event, Event::GenerationFinished { .. } | Event::RunStopped { .. } | Event::RunFailed { .. }) {
            self.sync()?;
        }
        Ok(())
    }

    fn mark(&mut self, mark: &Mark) -> Result<(), ObserveError> {
        self.line(&json!({
            "event": "mark", "mark": mark.number, "generation": mark.generation, "step": mark.step,
        }))?;
        self.sync()?;
        Ok(still_there(&self.path)?)
    }
}

/// The line for an event; `None` for what is not recorded.
fn record(event: &Event) -> Option<Value> {
    if matches!(event, Event::Progress { .. } | Event::PhaseStarted { .. }) {
        return None;
    }
    let mut line = Map::new();
    line.insert("event".into(), event.name().into());
    match event.axis() {
        Some(Axis::Step(step)) => line.insert("step".into(), step.into()),
        Some(Axis::Generation(generation)) => line.insert("generation".into(), generation.into()),
        None => None,
    };
    let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
    line.insert("time".into(), ((time * 1000.0).round() / 1000.0).into());
    for scalar in event.scalars() {
        // Whole numbers without a fraction read better, and f64 holds them exactly up to 2^53.
        let whole = scalar.value.fract() == 0.0 && scalar.value.abs() < 9e15;
        let value = if whole { Value::from(scalar.value as i64) } else { Value::from(scalar.value) };
        line.insert(scalar.tag.into(), value);
    }
    match event {
        Event::RunStarted { run, game, resumed, generation, step } => {
            let more =
                json!({"run": run, "game": game, "resumed": resumed, "at_generation": generation, "at_step": step});
            extend(&mut line, more);
        }
        Event::TrainStep(step) => extend(&mut line, json!({"of_generation": step.generation})),
        Event::BatchRejected { generation, term, file, .. } => {
            extend(&mut line, json!({"of_generation": generation, "term": term, "file": file}));
        }
        Event::RolledBack { generation, reason, .. } => {
            extend(&mut line, json!({"of_generation": generation, "reason": reason}));
        }
        Event::Gate(gate) => {
            extend(&mut line, json!({"verdict": format!("{:?}", gate.verdict).to_lowercase()}));
        }
        Event::Histogram(histogram) => {
            let more = json!({
                "tag": histogram.tag, "min": histogram.range.0, "max": histogram.range.1, "sum": histogram.sum,
                "sum_squares": histogram.sum_squares, "limits": histogram.limits, "counts": histogram.counts,
            });
            extend(&mut line, more);
        }
        Event::SampleGame { text, .. } | Event::Notice(text) | Event::Warning(text) => {
            extend(&mut line, json!({"text": text}));
        }
        Event::RunFailed { reason } => extend(&mut line, json!({"reason": reason})),
        Event::RunStopped { reason, complete } => extend(&mut line, json!({"reason": reason, "complete": complete})),
        _ => {}
    }
    Some(line.into())
}

fn extend(line: &mut Map<String, Value>, more: Value) {
    if let Value::Object(more) = more {
        line.extend(more);
    }
}

/// What a run had come to when a generation was finished.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GenerationEnd {
    /// Positions of self-play games.
    pub positions: u64,
    /// Hours of work.
    pub hours: f64,
    /// Hours of processor time.
    pub cpu_hours: f64,
}

/// The ends of all generations by the file of a run. Lines that cannot be read are passed over, as are generations whose line does
/// not say all of it.
///
/// # Errors
/// When the file cannot be read.
pub fn generation_ends(path: &Path) -> Result<BTreeMap<u32, GenerationEnd>, PublishError> {
    let failed = |error| PublishError::reading(path, error);
    let mut ends = BTreeMap::new();
    for line in BufReader::new(File::open(path).map_err(failed)?).split(b'\n') {
        let Ok(event) = serde_json::from_slice::<Value>(&line.map_err(failed)?) else { continue };
        let number = |tag: &str| event.get(tag).and_then(Value::as_f64);
        let numbers = (number("generation"), number("run/positions"), number("run/hours"), number("run/cpu_hours"));
        if let (Some("generation"), (Some(generation), Some(positions), Some(hours), Some(cpu_hours))) =
            (event.get("event").and_then(Value::as_str), numbers)
        {
            ends.insert(generation as u32, GenerationEnd { positions: positions as u64, hours, cpu_hours });
        }
    }
    Ok(ends)
}

/// How much of a file stays.
#[derive(Debug, PartialEq, Eq)]
struct Cut {
    length: u64,
    /// Whether the mark was found.
    marked: bool,
}

#[derive(Debug)]
enum Fault {
    Io(io::Error),
    Format(u64),
}

/// Finds what of the file belongs to the part of the run before `mark`: all up to the mark. Without the mark, all
/// lines before the first that is torn or certainly later.
fn scan(mut reader: impl io::BufRead, mark: &Mark) -> Result<Cut, Fault> {
    let mut at = 0;
    // Where the file is cut if the mark does not come.
    let mut without_mark = None;
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = io::Read::take(&mut reader, MAX_LINE).read_until(b'\n', &mut line).map_err(Fault::Io)? as u64;
        if length == 0 {
            return Ok(Cut { length: without_mark.unwrap_or(at), marked: false });
        }
        let parsed = line.strip_suffix(b"\n").and_then(|text| serde_json::from_slice::<Value>(text).ok());
        let number = |key: &str| parsed.as_ref().and_then(|value| value.get(key)).and_then(Value::as_u64);
        let is =
            |name: &str| parsed.as_ref().is_some_and(|value| value.get("event").is_some_and(|event| event == name));
        if at == 0
            && let Some(format) = number("format").filter(|_| is("metrics"))
            && format > FORMAT
        {
            return Err(Fault::Format(format));
        }
        if is("mark") && number("mark") == Some(mark.number) {
            return Ok(Cut { length: at + length, marked: true });
        }
        let later = is("mark") && number("mark").is_none_or(|found| found > mark.number)
            || number("step").is_some_and(|step| step > mark.step)
            || number("generation").is_some_and(|generation| generation > u64::from(mark.generation));
        if (parsed.is_none() || later) && without_mark.is_none() {
            without_mark = Some(at);
        }
        at += length;
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::{Histogram, Replay, TrainStep};
    use super::*;

    fn step(step: u64) -> Event {
        Event::TrainStep(TrainStep {
            step,
            generation: 1,
            policy_loss: 0.5,
            grad_norm: f64::NAN,
            ..TrainStep::default()
        })
    }

    fn lines(path: &Path) -> Vec<Value> {
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.ends_with('\n'));
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn steps(path: &Path) -> Vec<u64> {
        lines(path).iter().filter(|line| line["event"] == "train").map(|line| line["step"].as_u64().unwrap()).collect()
    }

    fn mark(number: u64, step: u64) -> Mark {
        Mark { number, generation: 1, step }
    }

    #[test]
    fn lines_hold_the_numbers_by_their_tags() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("metrics.jsonl");
        let mut metrics = Metrics::create(&path).unwrap();
        metrics.observe(&step(7)).unwrap();
        metrics
            .observe(&Event::Progress { phase: super::super::event::Phase::Learn, done: 1, note: String::new() })
            .unwrap();
        metrics.observe(&Event::Replay(Replay { generation: 3, positions: 1000, bytes: 64, age: 2 })).unwrap();
        metrics.observe(&Event::Histogram(Histogram::of(3, "weights/a", &[1.0, 2.0]).unwrap())).unwrap();
        metrics.observe(&Event::Warning("a \"quote\"\nand a line".into())).unwrap();
        let lines = lines(&path);
        assert_eq!(lines.len(), 5);
        assert_eq!(lines[0], json!({"event": "metrics", "format": 1}));
        assert_eq!((&lines[1]["step"], &lines[1]["loss/policy"]), (&json!(7), &json!(0.5)));
        assert_eq!(lines[1]["train/gradient_norm"], Value::Null);
        assert!(lines[1].get("train/gradient_norm").is_some());
        assert_eq!((&lines[2]["generation"], &lines[2]["replay/positions"]), (&json!(3), &json!(1000)));
        assert_eq!(lines[3]["counts"].as_array().unwrap().len(), 40);
        assert_eq!(lines[4]["text"], "a \"quote\"\nand a line");
    }

    #[test]
    fn resuming_repeats_nothing_wherever_the_file_was_torn() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("metrics.jsonl");
        let mut metrics = Metrics::create(&path).unwrap();
        for number in 1..=3 {
            metrics.observe(&step(2 * number - 1)).unwrap();
            metrics.observe(&step(2 * number)).unwrap();
            metrics.mark(&mark(number, 2 * number)).unwrap();
        }
        metrics.observe(&step(7)).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let saved = whole.windows(11).rposition(|w| w == b"{\"event\":\"t").unwrap();
        for length in saved..=whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let (mut metrics, notice) = Metrics::resume(&path, &mark(3, 6)).unwrap();
            assert_eq!(notice, None);
            metrics.observe(&step(7)).unwrap();
            assert_eq!(steps(&path), [1, 2, 3, 4, 5, 6, 7], "cut to {length}");
        }
        // An older state is resumed because the newest was damaged.
        let (mut metrics, _) = Metrics::resume(&path, &mark(1, 2)).unwrap();
        metrics.observe(&step(3)).unwrap();
        assert_eq!(steps(&path), [1, 2, 3]);
    }

    #[test]
    fn missing_and_foreign_files_are_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("metrics.jsonl");
        let (_, notice) = Metrics::resume(&path, &mark(1, 5)).unwrap();
        assert!(notice.unwrap().contains("goes on with a gap"));
        assert_eq!(lines(&path).len(), 1);
        // Damage in the middle, and no mark behind it: everything before stays.
        std::fs::write(
            &path,
            b"{\"event\":\"metrics\",\"format\":1}\n{\"event\":\"train\",\"step\":1}\n\xff\xfe\n{\"step\":9}\n",
        )
        .unwrap();
        let (_, notice) = Metrics::resume(&path, &mark(1, 5)).unwrap();
        assert!(notice.is_some());
        assert_eq!(steps(&path), [1]);
        std::fs::write(&path, "{\"event\":\"metrics\",\"format\":2}\n").unwrap();
        let error = Metrics::resume(&path, &mark(1, 5)).unwrap_err().to_string();
        assert!(error.contains("has format 2, but this program reads format 1"), "{error}");
        assert!(
            Metrics::create(&dir.path().join("gone/metrics.jsonl")).unwrap_err().to_string().contains("is not there")
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_an_error_and_no_panic() {
        // /dev/full refuses every write as a full disk does.
        let file = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let mut metrics = Metrics { path: PathBuf::from("/somewhere/metrics.jsonl"), file, length: 0 };
        let error = metrics.observe(&step(1)).unwrap_err().to_string();
        assert_eq!(error, "recording failed: no space left in /somewhere: free some and start again");
    }
}
