//! The pointers `best` and `latest` of a run: small text files that name a checkpoint.

use std::fmt;
use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use super::dir::{DirError, RunDir, generation_name, parse_generation};
use crate::util::publish::{self, PublishError};

/// A pointer file of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The strongest checkpoint: self-play uses it, and whoever names the run as a player means it.
    Best,
    /// The newest checkpoint, whether it passed the gate or not.
    Latest,
}

impl Which {
    /// The name of the file.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Best => "best",
            Self::Latest => "latest",
        }
    }
}

/// What a pointer file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// The generation of the checkpoint.
    pub generation: u32,
    /// The checkpoint's digest (of [`file_digest`]), so that an exchanged file is noticed.
    pub digest: String,
}

impl RunDir {
    /// Replaces a pointer, atomically.
    ///
    /// # Errors
    /// When the disk refuses; the old pointer is still there then.
    pub fn write_pointer(&self, which: Which, pointer: &Pointer) -> Result<(), DirError> {
        publish::write_atomic(&self.pointer(which), pointer.to_string().as_bytes()).map_err(DirError::from)
    }

    /// Reads a pointer; `None` when there is none yet.
    ///
    /// # Errors
    /// When the file is damaged or cannot be read.
    pub fn read_pointer(&self, which: Which) -> Result<Option<Pointer>, DirError> {
        let path = self.pointer(which);
        let mut text = String::new();
        let file = match fs::File::open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(PublishError::reading(&path, e).into()),
        };
        let damaged = |what: &str| PublishError::Damaged { file: path.clone(), what: what.to_owned() };
        // No pointer is longer than a kilobyte.
        match file.take(1024).read_to_string(&mut text) {
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::InvalidData => return Err(damaged("it is no text").into()),
            Err(e) => return Err(PublishError::reading(&path, e).into()),
        }
        Pointer::parse(&text).map(Some).map_err(|what| match what {
            PointerFault::Format(found) => {
                PublishError::Format { file: path.clone(), found, expected: POINTER_FORMAT }.into()
            }
            PointerFault::Damaged(what) => damaged(what).into(),
        })
    }
}

/// The format number of pointer files.
const POINTER_FORMAT: u32 = 1;

enum PointerFault {
    Format(u32),
    Damaged(&'static str),
}

impl fmt::Display for Pointer {
    /// The text of a pointer file. The last line is the CRC-32 of the lines before it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = generation_name(self.generation, "safetensors");
        let body = format!("sparring pointer {POINTER_FORMAT}\ncheckpoint {name}\ndigest {}\n", self.digest);
        writeln!(f, "{body}check {:08x}", crc32fast::hash(body.as_bytes()))
    }
}

impl Pointer {
    fn parse(text: &str) -> Result<Self, PointerFault> {
        let damaged = PointerFault::Damaged;
        let first = text.lines().next().and_then(|line| line.strip_prefix("sparring pointer "));
        let format: u32 = first.and_then(|n| n.parse().ok()).ok_or(damaged("it is no pointer file"))?;
        let (body, check) = text.split_once("check ").ok_or(damaged("it ends too early"))?;
        if check != format!("{:08x}\n", crc32fast::hash(body.as_bytes())) {
            return Err(damaged("its checksum is wrong, the contents were altered"));
        }
        if format != POINTER_FORMAT {
            return Err(PointerFault::Format(format));
        }
        let field = |name: &str| body.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let checkpoint = field("checkpoint").and_then(|name| parse_generation(name, "safetensors"));
        let generation = checkpoint.ok_or(damaged("it names no checkpoint"))?;
        let digest = field("digest").ok_or(damaged("it holds no digest"))?.to_owned();
        Ok(Self { generation, digest })
    }
}

/// The digest of a file for pointers: its CRC-32 and its length, `crc32:89abcdef:1048576`. It notices
/// damage and mix-ups, not forgery.
///
/// # Errors
/// When the file cannot be read.
pub fn file_digest(file: &Path) -> Result<String, DirError> {
    let failed = |source| PublishError::reading(file, source);
    let mut reader = fs::File::open(file).map_err(failed)?;
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = vec![0; 1 << 16];
    let mut length = 0u64;
    loop {
        match reader.read(&mut buffer).map_err(failed)? {
            0 => return Ok(format!("crc32:{:08x}:{length}", hasher.finalize())),
            count => {
                hasher.update(&buffer[..count]);
                length += count as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_round_trip_and_damage_is_noticed() {
        let temporary = tempfile::tempdir().unwrap();
        let dir = RunDir::new(temporary.path().join("run"));
        let _lock = dir.create("{}").unwrap();
        assert_eq!(dir.read_pointer(Which::Best).unwrap(), None);
        fs::write(dir.checkpoint(12), "weights").unwrap();
        let digest = file_digest(&dir.checkpoint(12)).unwrap();
        assert_eq!(digest, format!("crc32:{:08x}:7", crc32fast::hash(b"weights")));
        let pointer = Pointer { generation: 12, digest };
        dir.write_pointer(Which::Best, &pointer).unwrap();
        assert_eq!(dir.read_pointer(Which::Best).unwrap(), Some(pointer));
        assert_eq!(dir.read_pointer(Which::Latest).unwrap(), None);
        let path = dir.pointer(Which::Best);
        let whole = fs::read(&path).unwrap();
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            assert!(dir.read_pointer(Which::Best).is_err(), "cut to {length} bytes");
        }
        for bit in 0..whole.len() * 8 {
            let mut altered = whole.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &altered).unwrap();
            assert!(dir.read_pointer(Which::Best).is_err(), "bit {bit} flipped");
        }
        let newer = "sparring pointer 2\n";
        fs::write(&path, format!("{newer}check {:08x}\n", crc32fast::hash(newer.as_bytes()))).unwrap();
        assert!(
            dir.read_pointer(Which::Best)
                .unwrap_err()
                .to_string()
                .contains("has format 2, but this program reads format 1")
        );
    }
}
