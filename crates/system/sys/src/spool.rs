//! The output of a pipe or an unpacker as a file: it is written to an unnamed file, and mapped like any other.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes that a pipe may deliver.
static LIMIT_BYTES: AtomicU64 = AtomicU64::new(4 << 30);

/// What is shorter stays in memory.
const MIN_BYTES: u64 = 1 << 20;

/// Bytes copied at a time.
const PIECE_BYTES: u64 = 1 << 20;

/// From now on a pipe is read as far as this many bytes.
pub fn bound_spool(bytes: u64) {
    LIMIT_BYTES.store(bytes, Relaxed);
}

/// What a pipe delivered.
pub(crate) enum Spooled {
    /// Little.
    Bytes(Vec<u8>),
    /// Much: a file without a name. It is gone when it is closed, however this process ends.
    File(File),
    /// More than this limit.
    TooMuch(u64),
}

/// Reads a pipe to its end.
///
/// # Errors
/// When it can't be read, or the file for temporary files takes no more.
pub(crate) fn spool(mut pipe: impl Read) -> io::Result<Spooled> {
    let limit = LIMIT_BYTES.load(Relaxed);
    let mut bytes = Vec::new();
    pipe.by_ref().take(MIN_BYTES.min(limit) + 1).read_to_end(&mut bytes)?;
    let mut total = bytes.len() as u64;
    if total > limit {
        return Ok(Spooled::TooMuch(limit));
    }
    if total <= MIN_BYTES {
        return Ok(Spooled::Bytes(bytes));
    }
    let mut file = without_name(&env::temp_dir())?;
    while !bytes.is_empty() {
        file.write_all(&bytes)?;
        bytes.clear();
        pipe.by_ref().take(PIECE_BYTES.min(limit - total + 1)).read_to_end(&mut bytes)?;
        total += bytes.len() as u64;
        if total > limit {
            return Ok(Spooled::TooMuch(limit));
        }
    }
    Ok(Spooled::File(file))
}

/// A file in a folder that no name leads to.
fn without_name(folder: &Path) -> io::Result<File> {
    let options = || {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        options
    };
    let made = options().custom_flags(libc::O_TMPFILE | libc::O_EXCL).open(folder);
    if made.is_ok() {
        return made;
    }
    // Not every file system supports this: there the file has a random name for a short time.
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for number in 0..100 {
        let path = folder.join(format!("hyperscope-spool-{}-{number}", process::id()));
        match options().create_new(true).open(&path) {
            Ok(file) => {
                fs::remove_file(&path)?;
                return Ok(file);
            }
            Err(error) => last = error,
        }
        if last.kind() != io::ErrorKind::AlreadyExists {
            break;
        }
    }
    Err(last)
}
