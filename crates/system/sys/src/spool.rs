//! Spools the output of a pipe or a decompressor to an unnamed file, which is mapped like any
//! other.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Maximum spooled bytes.
static LIMIT_BYTES: AtomicU64 = AtomicU64::new(4 << 30);

/// Shorter output stays in memory.
const MIN_BYTES: u64 = 1 << 20;

/// Bytes per copy.
const PIECE_BYTES: u64 = 1 << 20;

/// Sets the maximum of spooled bytes.
pub fn bound_spool(bytes: u64) {
    LIMIT_BYTES.store(bytes, Relaxed);
}

/// The output of a pipe.
pub(crate) enum Spooled {
    /// Short output in memory.
    Bytes(Vec<u8>),
    /// Longer output in an unnamed file, which disappears when it is closed, however this process
    /// ends.
    File(File),
    /// More than this limit.
    TooMuch(u64),
}

/// Reads a pipe to its end.
///
/// # Errors
/// If it cannot be read, or if the temporary file cannot be written.
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

/// An unnamed file in a folder.
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
    // Not every file system supports this: otherwise the file has a random name for a short time.
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
