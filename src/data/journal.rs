//! The games of a generation that is still being played.
//!
//! Games end in any order and on any thread. Each batch of finished ones is appended to a journal beside the final
//! file and synced, so that a killed run loses only the games in flight. When all are there, the final file is
//! written sorted by index, with its bytes independent of the order and of any interruption, and published by rename.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::codec::decode_record;
use super::file::{ChunkWriter, Damage, HEADER_BYTES, RecordFileError, RecordReader};
use super::file::{encode_chunks, header, publish};
use super::record::{GameRecord, Origin};
use crate::util::publish::{PublishError, sync_folder};

/// Adds finished games to the journal of one generation, and turns it into the final file.
#[derive(Debug)]
pub struct RecordWriter {
    path: PathBuf,
    journal: PathBuf,
    origin: Origin,
    file: File,
    /// End of the last batch that was written and synced.
    end: u64,
    indices: BTreeSet<u32>,
}

/// A [`RecordWriter`] with what was found when it was opened.
#[derive(Debug)]
pub struct Opened {
    /// The writer, ready for more games.
    pub writer: RecordWriter,
    /// What had to be cut off a journal that a killed run left, as a warning. Those games are played again.
    pub warning: Option<Damage>,
}

impl RecordWriter {
    /// The journal of the final file `path`: `gen-000012.part` for `gen-000012.games`.
    pub fn journal_of(path: &Path) -> PathBuf {
        path.with_extension("part")
    }

    /// Opens the journal of the final file `path`, or begins one. Games that are in it already are known by
    /// [`indices`](Self::indices); a torn end is cut off.
    ///
    /// # Errors
    /// When the final file exists ([`RecordFileError::Complete`]); when the journal holds games of something
    /// other than `origin`, or is no journal; when the system refuses.
    pub fn open(path: &Path, origin: Origin) -> Result<Opened, RecordFileError> {
        let journal = Self::journal_of(path);
        let failed = |source| PublishError::writing(&journal, "write", source);
        if path.try_exists().map_err(|source| PublishError::reading(path, source))? {
            return Err(RecordFileError::Complete { path: path.to_path_buf() });
        }
        if journal.is_dir() {
            return Err(RecordFileError::Foreign { path: journal, found: "it is a folder" });
        }
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&journal);
        let mut file = file.map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let mut found = (HEADER_BYTES as u64, BTreeSet::new(), None);
        if length < HEADER_BYTES as u64 && is_torn_header(&journal, length).map_err(failed)? {
            // New, or the run was killed before the header was on the disk.
            begin(&mut file).map_err(failed)?;
            sync_folder(folder_of(&journal))?;
        } else {
            found = scan(&journal, &origin)?;
            if found.0 < length {
                file.set_len(found.0).and_then(|()| file.sync_all()).map_err(failed)?;
            }
        }
        let (end, indices, warning) = found;
        let writer = Self { path: path.to_path_buf(), journal, origin, file, end, indices };
        Ok(Opened { writer, warning })
    }

    /// Numbers of the games that are safely on the disk.
    pub fn indices(&self) -> &BTreeSet<u32> {
        &self.indices
    }

    /// The games that are safely on the disk, in order of their numbers.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn records(&self) -> Result<Vec<GameRecord>, RecordFileError> {
        let mut records = Vec::with_capacity(self.indices.len());
        let mut reader = RecordReader::open(&self.journal)?;
        while let Some(chunk) = reader.next_chunk()? {
            records.extend(chunk);
        }
        records.sort_by_key(|record| record.index);
        Ok(records)
    }

    /// Appends finished games and waits until they are on the disk. After an error none of them counts as written,
    /// and the same call may be tried again (when there is space again, for instance).
    ///
    /// # Errors
    /// When a number exists already, a game is of another origin or cannot be stored, or the system refuses.
    pub fn append(&mut self, records: &[GameRecord]) -> Result<(), RecordFileError> {
        let mut new = BTreeSet::new();
        for record in records {
            if self.indices.contains(&record.index) || !new.insert(record.index) {
                return Err(RecordFileError::Duplicate { path: self.journal.clone(), index: record.index });
            }
            if record.origin() != self.origin {
                return Err(RecordFileError::Origin {
                    path: self.journal.clone(),
                    found: record.origin().to_string(),
                    expected: self.origin.to_string(),
                });
            }
        }
        if records.is_empty() {
            return Ok(());
        }
        let bytes = encode_chunks(&self.journal, records)?;
        if let Err(error) = self.write(&bytes) {
            // Best effort: what a failed write left is no chunk, and would be cut off on the next opening anyway.
            let _ = self.file.set_len(self.end);
            return Err(PublishError::writing(&self.journal, "append to", error).into());
        }
        self.end += bytes.len() as u64;
        self.indices.append(&mut new);
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(bytes)?;
        self.file.sync_data()
    }

    /// Publishes the final file, sorted by number, and removes the journal. Returns the number of games.
    ///
    /// The journal goes only after the final file is safe; one that a crash in between leaves behind is removed by
    /// [`discard_journal`](Self::discard_journal).
    ///
    /// # Errors
    /// When the journal was damaged meanwhile or the system refuses; then it is still there, and opening it again
    /// goes on.
    pub fn finish(self) -> Result<usize, RecordFileError> {
        let mut games: Vec<(u32, Vec<u8>)> = Vec::with_capacity(self.indices.len());
        let mut reader = RecordReader::open(&self.journal)?;
        let numbered = |bytes: &[u8]| match decode_record(bytes) {
            Ok(record) => Ok((record.index, bytes.to_vec())),
            Err(error) => Err(error.0),
        };
        while let Some(chunk) = reader.next_with(|chunk| chunk.records()?.into_iter().map(numbered).collect())? {
            games.extend(chunk);
        }
        let wrap = |what| RecordFileError::Record { path: self.path.clone(), what };
        if games.len() != self.indices.len() {
            let (written, read) = (self.indices.len(), games.len());
            let cause = reader.found_damage().map_or(String::new(), |damage| format!(" ({damage})"));
            return Err(wrap(format!("{written} games were written, only {read} can be read back{cause}")));
        }
        games.sort_unstable_by_key(|game| game.0);
        let mut writer = ChunkWriter::default();
        for (index, bytes) in &games {
            writer.add(bytes).map_err(|what| wrap(format!("game {index}: {what}")))?;
        }
        publish(&self.path, &writer.finish().map_err(wrap)?, games.len())?;
        Self::discard_journal(&self.path)?;
        Ok(games.len())
    }

    /// Removes the journal that belongs to the final file `path`, if there is one.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn discard_journal(path: &Path) -> Result<(), RecordFileError> {
        let journal = Self::journal_of(path);
        match std::fs::remove_file(&journal) {
            // Or it would be back after a power cut, when nobody looks for it any more.
            Ok(()) => Ok(sync_folder(folder_of(&journal))?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(PublishError::writing(&journal, "remove", error).into()),
        }
    }
}

/// The folder of `path`.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes `file` an empty journal.
fn begin(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&header())?;
    file.sync_all()
}

/// Whether a short file is the beginning of a header (or empty).
fn is_torn_header(journal: &Path, length: u64) -> io::Result<bool> {
    Ok(header()[..length as usize] == std::fs::read(journal)?[..])
}

/// End of the good part of a journal, the numbers of its games, and what is wrong behind them.
type Scan = (u64, BTreeSet<u32>, Option<Damage>);

fn scan(journal: &Path, origin: &Origin) -> Result<Scan, RecordFileError> {
    let mut reader = RecordReader::open(journal)?;
    let mut indices = BTreeSet::new();
    while let Some(records) = reader.next_chunk()? {
        for record in records {
            let found = record.origin();
            if found != *origin {
                let (found, expected) = (found.to_string(), origin.to_string());
                return Err(RecordFileError::Origin { path: journal.to_path_buf(), found, expected });
            }
            if !indices.insert(record.index) {
                return Err(RecordFileError::Duplicate { path: journal.to_path_buf(), index: record.index });
            }
        }
    }
    if reader.is_closed() {
        return Err(RecordFileError::Complete { path: journal.to_path_buf() });
    }
    Ok((reader.offset(), indices, reader.found_damage()))
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
