//! Self-play games on their way to the disk, in small batches.

use std::sync::Mutex;
use std::time::Instant;

use super::cycle::RunError;
use crate::data::{GameRecord, RecordFileError, RecordWriter};

/// Finished games on their way to the disk.
pub(super) struct Journal {
    writer: RecordWriter,
    waiting: Vec<GameRecord>,
    synced: Instant,
    failure: Option<RunError>,
}

/// Games are synced to the disk at least this often; a kill loses no more than what came since.
const SYNC_SECONDS: u64 = 2;

impl Journal {
    pub(super) fn new(writer: RecordWriter) -> Self {
        Self { writer, waiting: Vec::new(), synced: Instant::now(), failure: None }
    }

    pub(super) fn count(&self) -> usize {
        self.writer.indices().len() + self.waiting.len()
    }

    pub(super) fn add(&mut self, record: GameRecord) {
        self.waiting.push(record);
        if self.synced.elapsed().as_secs() >= SYNC_SECONDS && self.failure.is_none() {
            let written = self.flush();
            self.note_failure(written);
        }
    }

    fn flush(&mut self) -> Result<(), RecordFileError> {
        self.writer.append(&self.waiting)?;
        self.waiting.clear();
        self.synced = Instant::now();
        Ok(())
    }

    pub(super) fn note_failure<E: Into<RunError>>(&mut self, result: Result<(), E>) {
        if let Err(error) = result {
            self.failure.get_or_insert(error.into());
        }
    }

    pub(super) fn close(mut self) -> Result<RecordWriter, RunError> {
        let written = self.flush();
        match self.failure.take() {
            Some(error) => Err(error),
            None => {
                written?;
                Ok(self.writer)
            }
        }
    }
}

/// Whether a write has failed, so that playing on is of no use.
pub(super) fn failed(journal: &Mutex<Journal>) -> bool {
    // Busy means that somebody is writing; the question comes again in a moment.
    journal.try_lock().is_ok_and(|journal| journal.failure.is_some())
}
