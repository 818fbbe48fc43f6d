//! Ids of sessions and of sets of rows: hashes, so that the same bytes always get the same ids.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Version of the converter. It increases when the rows of the same recording change.
pub const CONVERTER: i32 = 1;

/// A hash of the bytes of a recording's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceHash {
    /// The hash, as hexadecimal digits.
    pub sha256: String,
    /// The number of bytes.
    pub bytes: u64,
}

/// Bytes read at a time.
const BLOCK_BYTES: usize = 1 << 18;

/// Max files of a folder.
const MAX_FILES: usize = 1 << 16;

/// Hashes files, and all files of folders, in order. Different lists never have the same hash input: names
/// within folders and lengths are part of it.
///
/// # Errors
/// When a file can't be read, or is no file.
pub fn hash_sources(paths: &[&Path]) -> io::Result<SourceHash> {
    let mut hash = Hash { all: Sha256::new(), bytes: 0 };
    for path in paths {
        if path.is_dir() {
            let files = files_of(path)?;
            for file in files {
                let name = file.strip_prefix(path).unwrap_or(&file).to_string_lossy().into_owned();
                hash.part(name.as_bytes());
                hash.file(&file)?;
            }
        } else {
            hash.part(b"");
            hash.file(path)?;
        }
    }
    Ok(SourceHash { sha256: hex(&hash.all.finalize()), bytes: hash.bytes })
}

struct Hash {
    all: Sha256,
    bytes: u64,
}

impl Hash {
    /// Adds a part with its length, so that different lists of parts have different input.
    fn part(&mut self, part: &[u8]) {
        self.all.update((part.len() as u64).to_le_bytes());
        self.all.update(part);
    }

    fn file(&mut self, path: &Path) -> io::Result<()> {
        let mut file = File::open(path)?;
        if !file.metadata()?.is_file() {
            let why =
                format!("{}: a pipe or a device cannot be read twice; pass a file", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let mut hasher = Sha256::new();
        let mut block = vec![0; BLOCK_BYTES];
        let mut bytes = 0_u64;
        loop {
            let read = file.read(&mut block)?;
            let Some(read) = block.get(..read).filter(|read| !read.is_empty()) else { break };
            hasher.update(read);
            bytes += read.len() as u64;
        }
        self.part(&hasher.finalize());
        self.bytes = self.bytes.saturating_add(bytes);
        Ok(())
    }
}

/// All files below a folder, by name.
fn files_of(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            }
            if found.len() + folders.len() > MAX_FILES {
                return Err(io::Error::other("the recording has more files than allowed"));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// A 128-bit id of these parts.
#[must_use]
pub fn name_of(parts: &[&[u8]]) -> String {
    let mut hash = Hash { all: Sha256::new(), bytes: 0 };
    parts.iter().for_each(|part| hash.part(part));
    hex(hash.all.finalize().get(..16).unwrap_or_default())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert_ne!(name_of(&[b"ab", b"c"]), name_of(&[b"a", b"bc"]));
        assert_ne!(name_of(&[b"ab"]), name_of(&[b"ab", b""]));
        assert_eq!(name_of(&[b"ab"]).len(), 32);
    }

    #[test]
    fn the_same_bytes_have_the_same_hash_wherever_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("a"), "one").unwrap();
        std::fs::write(at("b"), "one").unwrap();
        std::fs::write(at("c"), "two").unwrap();
        let hash = |names: &[&str]| {
            let paths: Vec<_> = names.iter().map(|name| at(name)).collect();
            hash_sources(&paths.iter().map(PathBuf::as_path).collect::<Vec<_>>()).unwrap()
        };
        assert_eq!(hash(&["a"]), hash(&["b"]));
        assert_ne!(hash(&["a"]), hash(&["c"]));
        assert_ne!(hash(&["a", "c"]), hash(&["c", "a"]));
        assert_eq!(hash(&["a", "c"]).bytes, 6);
        assert!(hash_sources(&[Path::new("/dev/null")]).is_err());
    }
}
