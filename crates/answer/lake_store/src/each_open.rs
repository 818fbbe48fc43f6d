//! Reads many files one after the other, some of which are opened at once: each way to an object store takes its time.

use std::io;

use super::storage::{Entry, Storage};

/// Files that are open at a time.
const MAX_FILES: usize = 64;
/// Bytes of them together, as all may be in memory.
const MAX_BYTES: u64 = 32 << 20;

/// Opens files, and gives each to `read`, in their order.
///
/// # Errors
/// When one can't be opened, or `read` fails.
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

/// How many of the first files are opened at once.
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
