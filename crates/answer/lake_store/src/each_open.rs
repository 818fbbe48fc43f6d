//! Reads many files in order, and opens several at once, because each request to an object store is slow.

use std::io;

use super::storage::{Entry, Storage};

/// Max number of open files.
const MAX_FILES: usize = 64;
/// Max sum of their sizes, because all may be in memory.
const MAX_BYTES: u64 = 32 << 20;

/// Opens files, and passes each to `read`, in order.
///
/// # Errors
/// When a file can't be opened, or `read` fails.
pub fn each_open<S: Storage>(
    storage: &S,
    files: &[&Entry],
    read: &mut dyn FnMut(&Entry, S::Read) -> io::Result<()>,
) -> io::Result<()> {
    let mut rest = files;
    while !rest.is_empty() {
        let (batch, others) = rest.split_at(fitting(rest));
        for (file, open) in batch.iter().zip(storage.open(batch)?) {
            read(file, open)?;
        }
        rest = others;
    }
    Ok(())
}

/// How many of the first files to open at once.
fn fitting(files: &[&Entry]) -> usize {
    let mut bytes = 0;
    let fits = files.iter().take(MAX_FILES).take_while(|file| {
        bytes += file.bytes;
        bytes <= MAX_BYTES
    });
    fits.count().max(1)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn few_and_small_files_are_opened_at_once() {
        let entry_of = |bytes| Entry {
            name: String::new(),
            bytes,
            written: SystemTime::UNIX_EPOCH,
            version: None,
        };
        let (small, large) = (entry_of(1), entry_of(MAX_BYTES));
        assert_eq!(fitting(&[&small; 100]), MAX_FILES);
        assert_eq!(fitting(&[&small, &large, &small]), 1);
        assert_eq!(fitting(&[&large, &small]), 1);
    }
}
