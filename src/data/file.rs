//! Files of game records: a header, compressed chunks with checksums, a closing mark.
//!
//! ```text
//! header  8 bytes "SPARGAME"   u32 format   u32 crc of the twelve bytes before
//! chunk   u32 S stored bytes   u32 R raw bytes   u32 N records   u32 crc of the twelve bytes before and the S after
//!         S bytes: zstd of R bytes: N times u32 length and a record (see `codec`); at least R / 16, filled up with a skippable frame
//! close   a chunk with S = R = 0 and N = the number of records in the file
//! ```
//!
//! All numbers little-endian, crc is CRC-32 (IEEE). What follows the first damaged chunk is cut off, what stands
//! before it is kept. A file without its closing mark was cut off at a chunk's end. Sizes are checked against the
//! file's length and the limits below before anything is allocated.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use super::codec::{SHORTEST_RECORD, decode_record, encode_record};
use super::record::GameRecord;
use crate::util::publish::{PublishError, write_atomic};

/// The format that is written; this and all before it are read.
const FORMAT: u32 = 1;
const MAGIC: &[u8; 8] = b"SPARGAME";
pub(super) const HEADER_BYTES: usize = 16;
const CHUNK_HEAD: usize = 16;
/// A chunk is closed when its records reach this many raw bytes.
const CHUNK_TARGET: usize = 1 << 20;
/// No chunk unpacks to more than this.
const MAX_RAW: usize = 16 << 20;
/// No file unpacks to more than this and [`MAX_RATIO`] times its size: what a small, hostile file can grow to is bounded.
const MAX_FILE_RAW: u64 = 32 << 20;
/// Raw bytes for each stored one. Games take 2 to 5; of those that are nearly all alike the writer stores more bytes than needed.
const MAX_RATIO: u64 = 16;
const COMPRESSION_LEVEL: i32 = 3;

/// A record file could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordFileError {
    /// The system refused.
    #[error(transparent)]
    System(#[from] PublishError),
    /// Empty, or of another kind.
    #[error("{} is not a file of game records: {found}", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        found: &'static str,
    },
    /// The first sixteen bytes are damaged, so nothing can be said about the rest.
    #[error("{}: the header is damaged, no game can be read from it", .path.display())]
    Header {
        /// The file.
        path: PathBuf,
    },
    /// Written by a newer program.
    #[error("{} has record format {found}, this program reads up to {FORMAT}: upgrade sparring to read it", .path.display())]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// A record that cannot be stored.
    #[error("{}: nothing was written: {what}", .path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// Which record and why.
        what: String,
    },
    /// Two records of one number.
    #[error("{}: game {index} is there already; each game of a generation has its own number", .path.display())]
    Duplicate {
        /// The file.
        path: PathBuf,
        /// The number.
        index: u32,
    },
    /// Records of another game, run or generation.
    #[error("{} holds games of {found}, expected {expected}", .path.display())]
    Origin {
        /// The file.
        path: PathBuf,
        /// Of what its records are.
        found: String,
        /// Of what they should be.
        expected: String,
    },
    /// The generation is complete.
    #[error("{} is complete, no game can be added", .path.display())]
    Complete {
        /// The file.
        path: PathBuf,
    },
}

impl RecordFileError {
    /// Whether the contents of the file are at fault, not the system or the version of the program.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::System(error) => matches!(error, PublishError::Damaged { .. }),
            Self::TooNew { .. } | Self::Record { .. } => false,
            Self::Foreign { .. }
            | Self::Header { .. }
            | Self::Duplicate { .. }
            | Self::Origin { .. }
            | Self::Complete { .. } => true,
        }
    }
}

/// What was lost of a file that could be read in part. A warning, to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Where the damage begins, in bytes from the start.
    pub offset: u64,
    /// Records before it, all kept.
    pub kept: usize,
    /// Bytes from there to the end.
    pub lost_bytes: u64,
    /// What is wrong there.
    pub what: String,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, offset, kept, lost_bytes, what } = self;
        let path = path.display();
        write!(f, "{path}: {what} at byte {offset}: kept the {kept} games before, lost the {lost_bytes} bytes after")
    }
}

pub(super) fn header() -> [u8; HEADER_BYTES] {
    let mut out = [0; HEADER_BYTES];
    out[..8].copy_from_slice(MAGIC);
    out[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    let crc = crc32fast::hash(&out[..12]);
    out[12..].copy_from_slice(&crc.to_le_bytes());
    out
}

fn chunk_head(stored: u32, raw: u32, records: u32, payload: &[u8]) -> [u8; CHUNK_HEAD] {
    let mut out = [0; CHUNK_HEAD];
    for (slot, number) in out.chunks_exact_mut(4).zip([stored, raw, records]) {
        slot.copy_from_slice(&number.to_le_bytes());
    }
    let mut crc = crc32fast::Hasher::new();
    crc.update(&out[..12]);
    crc.update(payload);
    out[12..].copy_from_slice(&crc.finalize().to_le_bytes());
    out
}

/// Lengthens a zstd frame that is shorter than `least` by a frame that readers skip (RFC 8878, section 3.1.2).
fn fill(payload: &mut Vec<u8>, least: usize) {
    const HEAD: usize = 8;
    if payload.len() < least {
        let filling = (least - payload.len()).saturating_sub(HEAD);
        payload.extend(0x184D_2A50_u32.to_le_bytes());
        payload.extend((filling as u32).to_le_bytes());
        payload.resize(payload.len() + filling, 0);
    }
}

/// The closing mark of a file of `records` records.
pub(super) fn closing_mark(records: u32) -> [u8; CHUNK_HEAD] {
    chunk_head(0, 0, records, &[])
}

/// Gathers encoded records into chunks.
#[derive(Debug, Default)]
pub(super) struct ChunkWriter {
    out: Vec<u8>,
    raw: Vec<u8>,
    records: u32,
}

impl ChunkWriter {
    /// Adds one encoded record.
    ///
    /// # Errors
    /// When the record is larger than a chunk may be, or compression fails for want of memory.
    pub(super) fn add(&mut self, record: &[u8]) -> Result<(), String> {
        if record.len() + 4 > MAX_RAW {
            return Err(format!("a game takes {} bytes, at most {MAX_RAW} can be stored", record.len()));
        }
        if !self.raw.is_empty() && self.raw.len() + 4 + record.len() > CHUNK_TARGET {
            self.close_chunk()?;
        }
        self.raw.extend((record.len() as u32).to_le_bytes());
        self.raw.extend(record);
        self.records += 1;
        Ok(())
    }

    fn close_chunk(&mut self) -> Result<(), String> {
        if self.records == 0 {
            return Ok(());
        }
        let mut payload = zstd::bulk::compress(&self.raw, COMPRESSION_LEVEL).map_err(|error| error.to_string())?;
        fill(&mut payload, self.raw.len().div_ceil(MAX_RATIO as usize));
        self.out.extend(chunk_head(payload.len() as u32, self.raw.len() as u32, self.records, &payload));
        self.out.extend(payload);
        self.raw.clear();
        self.records = 0;
        Ok(())
    }

    /// The bytes of all chunks.
    pub(super) fn finish(mut self) -> Result<Vec<u8>, String> {
        self.close_chunk()?;
        Ok(self.out)
    }
}

/// Encodes `records` in the order given as chunks.
pub(super) fn encode_chunks(path: &Path, records: &[GameRecord]) -> Result<Vec<u8>, RecordFileError> {
    let mut writer = ChunkWriter::default();
    let mut bytes = Vec::new();
    let wrap = |what: String| RecordFileError::Record { path: path.to_path_buf(), what };
    for record in records {
        bytes.clear();
        encode_record(record, &mut bytes).map_err(|error| wrap(error.0))?;
        writer.add(&bytes).map_err(|what| wrap(format!("game {}: {what}", record.index)))?;
    }
    writer.finish().map_err(wrap)
}

/// Publishes a complete file of `count` records whose chunks are `chunks`.
pub(super) fn publish(path: &Path, chunks: &[u8], count: usize) -> Result<(), RecordFileError> {
    let Ok(count) = u32::try_from(count) else {
        return Err(RecordFileError::Record { path: path.to_path_buf(), what: format!("{count} games are too many") });
    };
    let mut bytes = Vec::with_capacity(HEADER_BYTES + chunks.len() + CHUNK_HEAD);
    bytes.extend(header());
    bytes.extend(chunks);
    bytes.extend(closing_mark(count));
    Ok(write_atomic(path, &bytes)?)
}

/// Writes the records in the order given as one complete file, which appears whole or not at all.
///
/// # Errors
/// When a record cannot be stored (nothing is written), or the system refuses.
pub fn write(path: &Path, records: &[GameRecord]) -> Result<(), RecordFileError> {
    publish(path, &encode_chunks(path, records)?, records.len())
}

/// All records of a file.
#[derive(Clone, Debug)]
pub struct ReadRecords {
    /// The records in the order of the file.
    pub records: Vec<GameRecord>,
    /// What was lost, if anything.
    pub warning: Option<Damage>,
}

/// Reads a file that [`write()`] or [`RecordWriter::finish`](super::RecordWriter::finish) made.
///
/// # Errors
/// When nothing at all can be read. Damage further on is a warning of the answer, not an error.
pub fn read(path: &Path) -> Result<ReadRecords, RecordFileError> {
    let mut reader = RecordReader::open(path)?;
    let mut records = Vec::new();
    while let Some(chunk) = reader.next_chunk()? {
        records.extend(chunk);
    }
    Ok(ReadRecords { records, warning: reader.into_warning() })
}

/// Reads a file chunk by chunk, so that the whole of it need not be in memory.
#[derive(Debug)]
pub struct RecordReader {
    path: PathBuf,
    file: BufReader<File>,
    length: u64,
    /// End of what was read and found good.
    offset: u64,
    kept: usize,
    raw_total: u64,
    closed: bool,
    warning: Option<Damage>,
}

/// A chunk that was read whole and whose checksum is right.
pub(super) struct RawChunk {
    raw: Vec<u8>,
    records: u32,
}

impl RawChunk {
    /// The encoded records.
    pub(super) fn records(&self) -> Result<Vec<&[u8]>, String> {
        let announced = self.records as usize;
        if announced > self.raw.len() / (4 + SHORTEST_RECORD) {
            return Err(format!("a chunk of {} bytes announces {announced} records", self.raw.len()));
        }
        let mut rest = &self.raw[..];
        let mut out = Vec::with_capacity(announced);
        while let Some((length, tail)) = rest.split_first_chunk::<4>() {
            let length = u32::from_le_bytes(*length) as usize;
            let Some((record, tail)) = tail.split_at_checked(length) else {
                return Err("a record reaches beyond its chunk".into());
            };
            if out.len() == announced {
                return Err(format!("a chunk holds more records than the {announced} that are announced"));
            }
            out.push(record);
            rest = tail;
        }
        if !rest.is_empty() || out.len() != announced {
            return Err(format!("a chunk holds {} records where {announced} are announced", out.len()));
        }
        Ok(out)
    }
}

impl RecordReader {
    /// Opens a complete file.
    ///
    /// # Errors
    /// When it cannot be read, is not a file of records, or is too new.
    pub fn open(path: &Path) -> Result<Self, RecordFileError> {
        let failed = |source| PublishError::reading(path, source);
        if path.is_dir() {
            return Err(RecordFileError::Foreign { path: path.to_path_buf(), found: "it is a folder" });
        }
        let file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let mut file = BufReader::with_capacity(1 << 16, file);
        let mut head = Vec::with_capacity(HEADER_BYTES);
        (&mut file).take(HEADER_BYTES as u64).read_to_end(&mut head).map_err(failed)?;
        check_header(path, &head)?;
        let path = path.to_path_buf();
        let offset = HEADER_BYTES as u64;
        Ok(Self { path, file, length, offset, kept: 0, raw_total: 0, closed: false, warning: None })
    }

    /// The records of the next chunk; `None` at the end or at the first damage, see
    /// [`into_warning`](Self::into_warning).
    ///
    /// # Errors
    /// Only when the system fails to read.
    pub fn next_chunk(&mut self) -> Result<Option<Vec<GameRecord>>, RecordFileError> {
        self.next_with(|chunk| {
            let decode = |(place, bytes)| decode_record(bytes).map_err(|e| format!("record {place} of a chunk: {e}"));
            chunk.records()?.into_iter().enumerate().map(decode).collect()
        })
    }

    /// The next chunk's encoded records, `decode`d; damage it reports ends the reading as other damage does.
    pub(super) fn next_with<T>(
        &mut self,
        decode: impl FnOnce(&RawChunk) -> Result<Vec<T>, String>,
    ) -> Result<Option<Vec<T>>, RecordFileError> {
        if self.closed || self.warning.is_some() {
            return Ok(None);
        }
        let start = self.offset;
        let decoded = match self.raw_chunk() {
            Err(error) => return Err(PublishError::reading(&self.path, error).into()),
            Ok(Err(what)) => Err(what),
            Ok(Ok(None)) => return Ok(None),
            Ok(Ok(Some(chunk))) => decode(&chunk),
        };
        match decoded {
            Ok(records) => {
                self.kept += records.len();
                Ok(Some(records))
            }
            Err(what) => {
                self.offset = start;
                self.damage(what);
                Ok(None)
            }
        }
    }

    fn damage(&mut self, what: String) {
        let (path, offset) = (self.path.clone(), self.offset);
        let lost_bytes = self.length.saturating_sub(offset);
        self.warning = Some(Damage { path, offset, kept: self.kept, lost_bytes, what });
    }

    /// The next chunk, `None` at the closing mark or the end of the file; the inner error is damage.
    fn raw_chunk(&mut self) -> io::Result<Result<Option<RawChunk>, String>> {
        let left = self.length - self.offset;
        if left == 0 {
            // Right for a journal; `into_warning` knows what it means for a complete file.
            return Ok(Ok(None));
        }
        if left < CHUNK_HEAD as u64 {
            return Ok(Err("the file breaks off within the head of a chunk".into()));
        }
        let mut head = [0; CHUNK_HEAD];
        self.file.read_exact(&mut head)?;
        let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let [stored, raw, records] = [number(0), number(4), number(8)];
        if u64::from(stored) > left - CHUNK_HEAD as u64 {
            return Ok(Err("the file breaks off within a chunk, or its length is damaged".into()));
        }
        // A chunk that cannot shrink is stored with a little overhead.
        if raw as usize > MAX_RAW || stored as usize > zstd::zstd_safe::compress_bound(MAX_RAW) {
            return Ok(Err(format!("a chunk announces {raw} bytes, more than {MAX_RAW}, or its length is damaged")));
        }
        let mut payload = vec![0; stored as usize];
        self.file.read_exact(&mut payload)?;
        if chunk_head(stored, raw, records, &payload) != head {
            return Ok(Err("a chunk fails its checksum".into()));
        }
        if stored == 0 {
            return Ok(self.close(raw, records, left));
        }
        self.raw_total += u64::from(raw);
        let read = self.offset + CHUNK_HEAD as u64 + u64::from(stored);
        if self.raw_total > MAX_FILE_RAW + MAX_RATIO * read {
            return Ok(Err(format!(
                "the first {read} bytes unpack to {}, more than any games of ours",
                self.raw_total
            )));
        }
        let unpacked = match zstd::bulk::decompress(&payload, raw as usize) {
            Ok(unpacked) if unpacked.len() == raw as usize => unpacked,
            Ok(unpacked) => return Ok(Err(format!("a chunk unpacks to {} bytes instead of {raw}", unpacked.len()))),
            Err(error) => return Ok(Err(format!("a chunk cannot be unpacked: {error}"))),
        };
        self.offset = read;
        Ok(Ok(Some(RawChunk { raw: unpacked, records })))
    }

    fn close(&mut self, raw: u32, records: u32, left: u64) -> Result<Option<RawChunk>, String> {
        if raw != 0 || records as usize != self.kept {
            return Err(format!("the closing mark counts {records} games, {} were read", self.kept));
        }
        if left > CHUNK_HEAD as u64 {
            return Err("bytes follow the closing mark".into());
        }
        self.offset += CHUNK_HEAD as u64;
        self.closed = true;
        Ok(None)
    }

    /// End of what was read and found good, in bytes.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether the closing mark was read.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// The damage found so far, without asking for a closing mark.
    pub(super) fn found_damage(&mut self) -> Option<Damage> {
        self.warning.take()
    }

    /// What was lost, once everything was read: damage, or the missing end of a file that was cut off between two
    /// chunks.
    pub fn into_warning(mut self) -> Option<Damage> {
        if self.warning.is_none() && !self.closed {
            self.damage("the file ends without its closing mark, games may be missing".into());
        }
        self.warning
    }
}

/// Whether the first bytes of a file are a header of a known format.
fn check_header(path: &Path, head: &[u8]) -> Result<(), RecordFileError> {
    let path = path.to_path_buf();
    if head.is_empty() {
        return Err(RecordFileError::Foreign { path, found: "it is empty" });
    }
    if *head == header() {
        return Ok(());
    }
    // A foreign file differs in nearly all of the magic, a damaged one of ours in little.
    let wrong = head.iter().zip(MAGIC).filter(|(a, b)| a != b).count();
    if wrong > 2 {
        return Err(RecordFileError::Foreign { path, found: "it begins otherwise" });
    }
    if head.len() == HEADER_BYTES && wrong == 0 {
        let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        if crc32fast::hash(&head[..12]) == number(12) && number(8) > FORMAT {
            return Err(RecordFileError::TooNew { path, found: number(8) });
        }
    }
    Err(RecordFileError::Header { path })
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
