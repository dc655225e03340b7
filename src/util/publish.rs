//! Files that appear whole or not at all, and say what is wrong when they do not.
//!
//! [`AtomicFile`] writes to a temporary file in the target's folder and renames it when everything is on
//! disk, so a reader, a crash or a power cut meets either the old file or the new one, never a half.
//! [`write_checked`] and [`read_checked`] put a small container with a checksum around state files.
//! [`RunLock`] keeps two processes from writing into the same folder.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read as _, Seek as _, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Why a file could not be published or read back. Each message names the place, the cause and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The file system or the user's quota is full.
    #[error("no space left in {}: free some and start again", .folder.display())]
    NoSpace {
        /// The folder that was written to.
        folder: PathBuf,
    },
    /// The file system is mounted read-only.
    #[error("{} is on a read-only file system: make it writable or choose another folder", .folder.display())]
    ReadOnly {
        /// The folder that was written to.
        folder: PathBuf,
    },
    /// The folder does not exist, or does no more.
    #[error("the folder {} is not there: make it, bring it back, or choose another one", .folder.display())]
    Vanished {
        /// The folder that was written to.
        folder: PathBuf,
    },
    /// The user may not do that.
    #[error("no permission for {}: change its owner or mode, or choose another folder", .path.display())]
    Denied {
        /// The file or folder.
        path: PathBuf,
    },
    /// A file that is being written has been removed meanwhile.
    #[error("{} was removed while it was being written: bring it back, or go on without what it held", .file.display())]
    Removed {
        /// The file.
        file: PathBuf,
    },
    /// The file to read is not there.
    #[error("there is no file {}", .file.display())]
    Missing {
        /// The file.
        file: PathBuf,
    },
    /// The file is not what was written: cut short, altered, or of another kind.
    #[error("{} is damaged: {what}; restore it from a copy", .file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The file is whole, but of another version of its format.
    #[error(
        "{} has format {found}, but this program reads format {expected}: {}",
        .file.display(), remedy(*.found, *.expected)
    )]
    Format {
        /// The file.
        file: PathBuf,
        /// The format number in the file.
        found: u32,
        /// The format number that this program reads.
        expected: u32,
    },
    /// Another process holds the lock.
    #[error(
        "{} is in use by {}: wait until it is done or stop it", .folder.display(), owner(*.pid)
    )]
    Locked {
        /// The folder.
        folder: PathBuf,
        /// The process that holds it, if it could be read.
        pid: Option<u32>,
    },
    /// Anything else that the system reports.
    #[error("cannot {action} {}: {source}", .path.display())]
    Other {
        /// What was tried, as a verb: "write", "read", "rename to".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl PublishError {
    /// The error for a failed write at or below `path`, put in words by its cause.
    pub fn writing(path: &Path, action: &'static str, source: io::Error) -> Self {
        let folder = folder_of(path);
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace { folder },
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { folder },
            // Behind a dangling link, or where the system itself allows no such name, the folder is there.
            io::ErrorKind::NotFound if !folder.is_dir() => Self::Vanished { folder },
            io::ErrorKind::PermissionDenied => Self::Denied { path: folder },
            _ => Self::Other { action, path: path.to_owned(), source },
        }
    }

    /// The error for a failed operation on `folder` itself.
    fn writing_folder(folder: &Path, action: &'static str, source: io::Error) -> Self {
        match Self::writing(&folder.join("."), action, source) {
            Self::Other { action, source, .. } => Self::Other { action, path: folder.to_owned(), source },
            other => other,
        }
    }

    /// The error for a failed read of `file`, put in words by its cause.
    pub fn reading(file: &Path, source: io::Error) -> Self {
        let file = file.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound if !folder_of(&file).is_dir() => Self::Vanished { folder: folder_of(&file) },
            io::ErrorKind::NotFound => Self::Missing { file },
            io::ErrorKind::PermissionDenied => Self::Denied { path: file },
            io::ErrorKind::UnexpectedEof => Self::Damaged { file, what: "it ends too early".to_owned() },
            _ => Self::Other { action: "read", path: file, source },
        }
    }
}

fn remedy(found: u32, expected: u32) -> &'static str {
    if found > expected {
        "use the newer program that wrote it"
    } else {
        "use the older program that wrote it, or remove it"
    }
}

fn owner(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

/// The folder a file lies in; "." for a bare name.
fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Makes sure that the entries of `folder` (a new file, a rename) survive a power cut.
///
/// # Errors
/// When the folder cannot be opened or the disk reports a failure.
pub fn sync_folder(folder: &Path) -> Result<(), PublishError> {
    if cfg!(unix) {
        File::open(folder)
            .and_then(|handle| handle.sync_all())
            .map_err(|source| PublishError::writing_folder(folder, "save", source))?;
    }
    Ok(())
}

/// Moves `file` to `target` on the same disk, or, where that is taken, to `target.2`, `target.3` and so on; returns its new place.
///
/// # Errors
/// When it cannot be moved.
pub fn set_aside(file: &Path, target: &Path) -> Result<PathBuf, PublishError> {
    let failed = |source| PublishError::writing(file, "set aside", source);
    let mut place = target.to_owned();
    let mut number = 1;
    while place.try_exists().map_err(failed)? {
        number += 1;
        place = target.to_owned();
        place.as_mut_os_string().push(format!(".{number}"));
    }
    std::fs::rename(file, &place).map_err(failed)?;
    sync_folder(place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")))?;
    Ok(place)
}

/// Whether an open file is still where it was opened: writes to a removed one succeed and are lost.
///
/// # Errors
/// When it, or its folder, is gone.
pub fn still_there(file: &Path) -> Result<(), PublishError> {
    std::fs::metadata(file).map(drop).map_err(|source| match PublishError::reading(file, source) {
        PublishError::Missing { file } => PublishError::Removed { file },
        other => other,
    })
}

/// A file that comes into being when [`publish`](AtomicFile::publish) is called; dropped before that, it leaves
/// nothing behind and an older file of that name stays. It writes through a buffer.
#[derive(Debug)]
pub struct AtomicFile {
    target: PathBuf,
    temporary: PathBuf,
    /// `None` once published.
    out: Option<BufWriter<File>>,
}

/// Distinguishes the temporary files of one process.
static SERIAL: AtomicU64 = AtomicU64::new(0);

/// Characters of a file's name that the name of its temporary file begins with, at most.
const LONGEST_NAME: usize = 50;

impl AtomicFile {
    /// Begins the file that will be `target`. Its folder must exist.
    ///
    /// # Errors
    /// When the temporary file beside it cannot be created.
    pub fn create(target: &Path) -> Result<Self, PublishError> {
        let name = target.file_name().ok_or_else(|| PublishError::Other {
            action: "write",
            path: target.to_owned(),
            source: io::Error::new(io::ErrorKind::InvalidInput, "this names no file"),
        })?;
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        // Room for the rest is left, as systems allow names of 255 bytes; the numbers alone make it unique.
        let name: String = name.to_string_lossy().chars().take(LONGEST_NAME).collect();
        let temporary = folder_of(target).join(format!(".{name}.{}-{serial}.tmp", std::process::id()));
        let failed = |source| PublishError::writing(target, "write", source);
        // Names that the system does not allow are told now, not when everything has been written.
        if let Err(error) = target.symlink_metadata()
            && error.kind() == io::ErrorKind::InvalidFilename
        {
            return Err(failed(error));
        }
        let create = || OpenOptions::new().write(true).create_new(true).open(&temporary);
        let file = match create() {
            // The name is this process's own: what has it is left from an earlier process with the same number.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                std::fs::remove_file(&temporary).and_then(|()| create())
            }
            created => created,
        };
        let file = file.map_err(failed)?;
        Ok(Self { target: target.to_owned(), temporary, out: Some(BufWriter::with_capacity(1 << 16, file)) })
    }

    /// Writes all of `bytes`.
    ///
    /// # Errors
    /// As [`PublishError::writing`] puts it.
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), PublishError> {
        self.write_all(bytes).map_err(|source| PublishError::writing(&self.target, "write", source))
    }

    /// Where everything written so far can be read, until the file is published or given up.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn written(&mut self) -> Result<PathBuf, PublishError> {
        self.flush().map_err(|source| PublishError::writing(&self.target, "write", source))?;
        Ok(self.temporary.clone())
    }

    /// Brings everything to disk and gives the file its name, replacing an older one.
    ///
    /// # Errors
    /// When a write, the sync or the rename fails; then the older file is still there.
    pub fn publish(mut self) -> Result<(), PublishError> {
        let failed = |source| PublishError::writing(&self.target, "write", source);
        let out = self.out.take().expect("publish consumes the file, so it is still open");
        let file = out.into_inner().map_err(|error| failed(error.into_error()));
        let done = file.and_then(|file| file.sync_all().map_err(failed)).and_then(|()| {
            std::fs::rename(&self.temporary, &self.target)
                .map_err(|source| PublishError::writing(&self.target, "rename to", source))
        });
        if done.is_err() {
            // Nothing better can be done when even that fails; `sweep` removes it later.
            let _ = std::fs::remove_file(&self.temporary);
        }
        done?;
        sync_folder(&folder_of(&self.target))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.as_mut().expect("open until published").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.as_mut().expect("open until published").flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(out) = self.out.take() {
            // The contents are given up: what is buffered need not be written.
            drop(out.into_parts());
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

/// Publishes `bytes` as the file `path`: whole or not at all.
///
/// # Errors
/// As [`AtomicFile::publish`].
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), PublishError> {
    let mut file = AtomicFile::create(path)?;
    file.put(bytes)?;
    file.publish()
}

/// Whether a file name is that of an [`AtomicFile`] not yet published: `.NAME.PID-SERIAL.tmp`.
pub fn is_temporary(name: &str) -> bool {
    let Some(middle) = name.strip_prefix('.').and_then(|rest| rest.strip_suffix(".tmp")) else { return false };
    let Some((file, key)) = middle.rsplit_once('.') else { return false };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    !file.is_empty() && key.split_once('-').is_some_and(|(pid, serial)| digits(pid) && digits(serial))
}

/// Removes the temporary files that killed processes left in `folder`; the number removed. Only whoever holds
/// the folder's [`RunLock`] may call it, and before beginning files of its own.
///
/// # Errors
/// When the folder cannot be read or a file not removed.
pub fn sweep(folder: &Path) -> Result<usize, PublishError> {
    let failed = |source| PublishError::writing_folder(folder, "clean up", source);
    let mut removed = 0;
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_name().to_str().is_some_and(is_temporary) {
            std::fs::remove_file(entry.path()).map_err(failed)?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// Bytes that this user can still write in the file system of `folder`.
///
/// # Errors
/// When the folder is not there or the system does not say.
pub fn free_space(folder: &Path) -> Result<u64, PublishError> {
    fs4::available_space(folder).map_err(|source| PublishError::writing_folder(folder, "measure", source))
}

/// The first bytes of a checked file.
const MAGIC: &[u8; 8] = b"sparring";
/// Bytes around the payload: magic 8, kind 4, format 4, length 8 before it; checksum 4 behind it.
const OVERHEAD: u64 = 28;

/// Publishes `payload` in a container that [`read_checked`] verifies: `sparring`, `kind`, then little-endian the
/// `format` number (u32) and the payload's length (u64), the payload, and the CRC-32 of all before it.
///
/// # Errors
/// As [`AtomicFile::publish`].
pub fn write_checked(path: &Path, kind: [u8; 4], format: u32, payload: &[u8]) -> Result<(), PublishError> {
    let mut head = [0; 24];
    head[..8].copy_from_slice(MAGIC);
    head[8..12].copy_from_slice(&kind);
    head[12..16].copy_from_slice(&format.to_le_bytes());
    head[16..].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    let mut sum = crc32fast::Hasher::new();
    sum.update(&head);
    sum.update(payload);
    let mut file = AtomicFile::create(path)?;
    file.put(&head)?;
    file.put(payload)?;
    file.put(&sum.finalize().to_le_bytes())?;
    file.publish()
}

/// The payload of a file by [`write_checked`], of this kind and format. Nothing is returned unless all of it is
/// as it was written.
///
/// # Errors
/// [`PublishError::Missing`], [`PublishError::Damaged`] with what is wrong, [`PublishError::Format`].
pub fn read_checked(path: &Path, kind: [u8; 4], format: u32) -> Result<Vec<u8>, PublishError> {
    let failed = |source| PublishError::reading(path, source);
    let damaged = |what: String| Err(PublishError::Damaged { file: path.to_owned(), what });
    let mut file = File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    if size < OVERHEAD {
        return damaged(if size == 0 { "it is empty".to_owned() } else { format!("it ends after {size} bytes") });
    }
    let mut head = [0; 24];
    file.read_exact(&mut head).map_err(failed)?;
    if head[..8] != *MAGIC {
        return damaged("it is no state file of this program".to_owned());
    }
    if head[8..12] != kind {
        let shown = |kind: &[u8]| String::from_utf8_lossy(kind).escape_debug().to_string();
        return damaged(format!("it holds `{}` where `{}` belongs", shown(&head[8..12]), shown(&kind)));
    }
    let found = u32::from_le_bytes([head[12], head[13], head[14], head[15]]);
    if found != format {
        return Err(PublishError::Format { file: path.to_owned(), found, expected: format });
    }
    let mut length = [0; 8];
    length.copy_from_slice(&head[16..]);
    let (length, there) = (u64::from_le_bytes(length), size - OVERHEAD);
    if length != there {
        return damaged(format!("it holds {there} bytes of contents where {length} belong"));
    }
    // The length is that of the file on disk, so that an altered number cannot ask for all memory.
    let mut payload = Vec::with_capacity(length as usize);
    (&file).take(length).read_to_end(&mut payload).map_err(failed)?;
    let mut stored = [0; 4];
    file.read_exact(&mut stored).map_err(failed)?;
    let mut sum = crc32fast::Hasher::new();
    sum.update(&head);
    sum.update(&payload);
    if sum.finalize() != u32::from_le_bytes(stored) {
        return damaged("its checksum is wrong, the contents were altered".to_owned());
    }
    Ok(payload)
}

/// The right to write into a folder, held until dropped or until the process ends in whatever way.
#[derive(Debug)]
pub struct RunLock {
    /// Open as long as the lock is held: the system releases it with the handle.
    file: File,
}

impl RunLock {
    /// Takes the lock of `folder`, a file `lock` in it with the owner's process number.
    ///
    /// # Errors
    /// [`PublishError::Locked`] when another process holds it, or when the file cannot be written.
    pub fn take(folder: &Path) -> Result<Self, PublishError> {
        let path = folder.join("lock");
        let failed = |source| PublishError::writing(&path, "lock", source);
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        match fs4::FileExt::try_lock(&file) {
            Ok(()) => {}
            Err(fs4::TryLockError::WouldBlock) => {
                let mut text = String::new();
                let pid = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
                return Err(PublishError::Locked { folder: folder.to_owned(), pid });
            }
            Err(fs4::TryLockError::Error(source)) => return Err(failed(source)),
        }
        file.set_len(0).and_then(|()| file.rewind()).map_err(failed)?;
        writeln!(file, "{}", std::process::id()).map_err(failed)?;
        Ok(Self { file })
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // The file stays (removing it could pull it from under the next owner), its number goes.
        let _ = self.file.set_len(0);
        let _ = fs4::FileExt::unlock(&self.file);
    }
}

#[cfg(test)]
#[path = "publish_tests.rs"]
mod tests;
