//! Event files for TensorBoard.
//!
//! The only file that uses `tensorboard-rs`. Its `SummaryWriter` writes from a thread that panics when the disk
//! is full, so only its parts are used: the summaries and the record format. Every start of the program
//! begins one file; the names sort in the order of their beginnings, which is how TensorBoard reads them.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use protobuf::Message as _;
use tensorboard_proto::event::{Event as Record, SessionLog, SessionLog_SessionStatus};
use tensorboard_proto::summary::{Summary, Summary_Value};
use tensorboard_proto::types::DataType;
use tensorboard_rs::masked_crc32c::masked_crc32c;
use tensorboard_rs::record_writer::RecordWriter;
use tensorboard_rs::summary::{histogram_raw, scalar};

use super::event::{Event, Scalar};
use super::observer::{Mark, ObserveError, Observer};
use crate::util::publish::{PublishError, still_there, sync_folder};

const PREFIX: &str = "events.out.tfevents.";

/// Appends events to a file that TensorBoard reads.
#[derive(Debug)]
pub struct TensorBoard {
    path: PathBuf,
    file: File,
    /// Bytes of whole records in the file.
    length: u64,
    /// Tags whose meaning is already in the file.
    described: BTreeSet<&'static str>,
}

impl TensorBoard {
    /// Begins the charts of a new run in `folder`; event files that are there are removed.
    ///
    /// # Errors
    /// When the folder cannot be read or written.
    pub fn create(folder: &Path) -> Result<Self, ObserveError> {
        for file in event_files(folder)? {
            fs::remove_file(&file).map_err(|e| PublishError::writing(&file, "remove", e))?;
        }
        Self::begin(folder, 0).map_err(ObserveError::from)
    }

    /// Goes on with the charts of a run that resumes at `mark`: what was recorded after the mark is cut off, and a
    /// TensorBoard that has read it already is told to forget it. Also returns a sentence when something was
    /// missing, for the user to see.
    ///
    /// # Errors
    /// When the files cannot be read or written.
    pub fn resume(folder: &Path, mark: &Mark) -> Result<(Self, Option<String>), ObserveError> {
        let files = event_files(folder)?;
        let mut found = false;
        for file in &files {
            let failed = |action| move |source| PublishError::writing(file, action, source);
            if found {
                fs::remove_file(file).map_err(failed("remove"))?;
                continue;
            }
            let end = scan(file, mark).map_err(|source| PublishError::reading(file, source))?;
            found = end.marked;
            let handle = OpenOptions::new().write(true).open(file).map_err(failed("write"))?;
            handle.set_len(end.length).and_then(|()| handle.sync_all()).map_err(failed("cut"))?;
        }
        let last = files.iter().filter_map(|file| begun_at(file)).max().unwrap_or(0);
        let mut charts = Self::begin(folder, last + 1)?;
        // "START at step s" makes TensorBoard drop what it has at s and later, on every axis: safe unless the
        // generations have outrun the training steps.
        if mark.step + 1 > u64::from(mark.generation) {
            charts.session(SessionLog_SessionStatus::START, mark.step + 1, None)?;
        }
        let notice = (!found).then(|| {
            format!("{} does not hold everything up to the resumed point; its charts have a gap", folder.display())
        });
        Ok((charts, notice))
    }

    /// Begins a file that sorts after those begun before the second `earliest`.
    fn begin(folder: &Path, earliest: u64) -> Result<Self, PublishError> {
        let second = (now() as u64).max(earliest);
        let path = folder.join(format!("{PREFIX}{second:010}.{}.sparring", std::process::id()));
        let file = OpenOptions::new().append(true).create_new(true).open(&path);
        let file = file.map_err(|source| PublishError::writing(&path, "create", source))?;
        let mut charts = Self { path, file, length: 0, described: BTreeSet::new() };
        let mut record = Record::new();
        record.set_file_version("brain.Event:2".to_owned());
        charts.write(record, 0)?;
        sync_folder(folder)?;
        Ok(charts)
    }

    fn session(
        &mut self,
        status: SessionLog_SessionStatus,
        step: u64,
        path: Option<String>,
    ) -> Result<(), PublishError> {
        let mut log = SessionLog::new();
        log.set_status(status);
        if let Some(path) = path {
            log.set_checkpoint_path(path);
        }
        let mut record = Record::new();
        record.set_session_log(log);
        self.write(record, step)
    }

    fn write(&mut self, mut record: Record, step: u64) -> Result<(), PublishError> {
        record.set_wall_time(now());
        record.set_step(i64::try_from(step).unwrap_or(i64::MAX));
        let mut framed = Vec::new();
        let done = record.write_to_bytes().map_err(io::Error::other).and_then(|bytes| {
            RecordWriter::new(&mut framed).write(&bytes)?;
            // One write for the whole record, so that a reader seldom meets half of one.
            self.file.write_all(&framed)
        });
        match done {
            Ok(()) => {
                self.length += framed.len() as u64;
                Ok(())
            }
            Err(source) => {
                // Readers stop at a torn record; if even this fails, resuming cuts it off.
                let _ = self.file.set_len(self.length);
                Err(PublishError::writing(&self.path, "write", source))
            }
        }
    }

    fn sync(&mut self) -> Result<(), PublishError> {
        self.file.sync_data().map_err(|source| PublishError::writing(&self.path, "save", source))
    }

    /// Records numbers at `step`, and brings them to disk.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn numbers(&mut self, step: u64, numbers: &[Scalar]) -> Result<(), ObserveError> {
        let mut summary = Summary::new();
        self.push(numbers, &mut summary);
        let mut record = Record::new();
        record.set_summary(summary);
        self.write(record, step)?;
        Ok(self.sync()?)
    }

    fn push(&mut self, numbers: &[Scalar], summary: &mut Summary) {
        for number in numbers {
            for mut value in scalar(number.tag, number.value as f32).take_value() {
                if self.described.insert(number.tag) {
                    value.mut_metadata().set_summary_description(number.help.to_owned());
                }
                summary.mut_value().push(value);
            }
        }
    }

    /// The values of an event; none for what is no chart.
    fn summary(&mut self, event: &Event) -> Summary {
        let mut summary = Summary::new();
        self.push(&event.scalars(), &mut summary);
        match event {
            Event::Histogram(h) => {
                let counts: Vec<f64> = h.counts.iter().map(|&count| count as f64).collect();
                let number = counts.iter().sum();
                let (low, high) = h.range;
                return histogram_raw(&h.tag, low, high, number, h.sum, h.sum_squares, &h.limits, &counts);
            }
            Event::SampleGame { text: game, .. } => summary.mut_value().push(text("selfplay/game", game)),
            _ => {}
        }
        summary
    }
}

impl Observer for TensorBoard {
    fn observe(&mut self, event: &Event) -> Result<(), ObserveError> {
        let Some(axis) = event.axis() else { return Ok(()) };
        if let Event::RolledBack { step, generation, .. } = event
            && *step >= u64::from(*generation)
        {
            // TensorBoard forgets what came after, as on resuming.
            self.session(SessionLog_SessionStatus::START, step + 1, None)?;
        }
        let summary = self.summary(event);
        if !summary.get_value().is_empty() {
            let mut record = Record::new();
            record.set_summary(summary);
            self.write(record, axis.position())?;
        }
        Ok(())
    }

    fn mark(&mut self, mark: &Mark) -> Result<(), ObserveError> {
        self.session(SessionLog_SessionStatus::CHECKPOINT, mark.step, Some(mark_name(mark)))?;
        self.sync()?;
        Ok(still_there(&self.path)?)
    }
}

/// Text with the layout kept, as a value of TensorBoard's text dashboard (which renders Markdown).
fn text(tag: &str, text: &str) -> Summary_Value {
    let code: Vec<String> = text.lines().map(|line| format!("    {line}")).collect();
    let mut value = Summary_Value::new();
    value.set_tag(tag.to_owned());
    value.mut_metadata().mut_plugin_data().set_plugin_name("text".to_owned());
    let tensor = value.mut_tensor();
    tensor.set_dtype(DataType::DT_STRING);
    // No dimensions: a single text.
    tensor.mut_tensor_shape();
    tensor.mut_string_val().push(code.join("\n").into_bytes());
    value
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

fn mark_name(mark: &Mark) -> String {
    format!("mark-{}", mark.number)
}

/// The event files of a folder, in the order of their beginnings.
fn event_files(folder: &Path) -> Result<Vec<PathBuf>, PublishError> {
    let failed = |source| PublishError::reading(folder, source);
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if begun_at(&path).is_some() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The second at which a file was begun, by its name; `None` for other files.
fn begun_at(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_prefix(PREFIX)?.split('.').next()?.parse().ok()
}

/// How much of a file stays.
#[derive(Debug, PartialEq, Eq)]
struct End {
    length: u64,
    /// Whether the mark was found.
    marked: bool,
}

/// The bytes up to `mark`, or all whole records when the mark is not in the file.
fn scan(path: &Path, mark: &Mark) -> io::Result<End> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut reader = BufReader::new(file);
    let name = mark_name(mark);
    let mut at = 0;
    while let Some((data, length)) = next_record(&mut reader, size - at)? {
        at += length;
        let record = Record::parse_from_bytes(&data).unwrap_or_default();
        let log = record.get_session_log();
        if log.get_status() == SessionLog_SessionStatus::CHECKPOINT && log.get_checkpoint_path() == name {
            return Ok(End { length: at, marked: true });
        }
    }
    Ok(End { length: at, marked: false })
}

/// Bytes of an event file behind its last whole record.
///
/// # Errors
/// When it cannot be read.
pub fn unread_bytes(path: &Path) -> io::Result<u64> {
    // A mark that no run sets.
    let none = Mark { number: u64::MAX, generation: 0, step: 0 };
    Ok(fs::metadata(path)?.len() - scan(path, &none)?.length)
}

/// The next record with its length in the file; `None` at the end or where the file is damaged. A record is its
/// length (u64), the masked CRC-32C of that (u32), the data, and their masked CRC-32C (u32).
fn next_record(reader: &mut impl Read, left: u64) -> io::Result<Option<(Vec<u8>, u64)>> {
    const AROUND: u64 = 16;
    if left < AROUND {
        return Ok(None);
    }
    let (mut length, mut sum) = ([0; 8], [0; 4]);
    reader.read_exact(&mut length)?;
    reader.read_exact(&mut sum)?;
    let size = u64::from_le_bytes(length);
    // No more is allocated than the file holds.
    if masked_crc32c(&length) != u32::from_le_bytes(sum) || size > left - AROUND {
        return Ok(None);
    }
    let mut data = vec![0; size as usize];
    reader.read_exact(&mut data)?;
    reader.read_exact(&mut sum)?;
    Ok((masked_crc32c(&data) == u32::from_le_bytes(sum)).then_some((data, size + AROUND)))
}

#[cfg(test)]
#[path = "tensorboard_tests.rs"]
mod tests;
