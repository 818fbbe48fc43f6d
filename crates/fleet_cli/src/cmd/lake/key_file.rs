//! The key file for hashing the names of a lake, outside of the lake.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use anyhow::{Context, bail};
use fleet::lake::Pseudonyms;

use command::notice::say;
use session::Misuse;

/// Size of a new key.
const KEY_BYTES: usize = 32;

/// Max size of a key file.
const MAX_BYTES: u64 = 4096;

/// Permissions of other users, who could test names with the key.
const OTHERS: u32 = 0o007;

/// Loads the hash key from a file, which is made if it does not exist.
///
/// # Errors
/// When it can't be read or made, is too short, other users can read it, or it is inside the lake.
pub(super) fn pseudonyms(path: &Path, lake: &Path) -> anyhow::Result<Pseudonyms> {
    let shown = path.display();
    if is_within(path, lake) {
        bail!(Misuse(format!(
            "{shown}: this key is inside the lake, next to the hashes: move it elsewhere"
        )));
    }
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            make(path).with_context(|| format!("cannot create {shown}"))?;
            say(&format!(
                "{shown}: created; keep this key, because adding to this lake requires it"
            ));
            File::open(path)
        }
        opened => opened,
    };
    let file = file.with_context(|| format!("cannot read {shown}"))?;
    if file.metadata().with_context(|| format!("cannot read {shown}"))?.mode() & OTHERS != 0 {
        bail!("{shown}: other users can read this key: run chmod o= {shown}");
    }
    let mut key = Vec::new();
    let read = file.take(MAX_BYTES).read_to_end(&mut key);
    read.with_context(|| format!("cannot read {shown}"))?;
    Pseudonyms::from_key(key.trim_ascii())
        .with_context(|| format!("{shown}: too short for a key: at least 16 bytes are needed"))
}

fn is_within(path: &Path, lake: &Path) -> bool {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).canonicalize();
    folder.is_ok_and(|folder| lake.canonicalize().is_ok_and(|lake| folder.starts_with(lake)))
}

/// Creates a random key that only its owner can read.
fn make(path: &Path) -> anyhow::Result<()> {
    let mut key = [0; KEY_BYTES];
    let drawn = rustix::rand::getrandom(&mut key, rustix::rand::GetRandomFlags::empty())?;
    anyhow::ensure!(drawn == key.len(), "the kernel returned too few random bytes");
    let mut text: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    text.push('\n');
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    Ok(())
}
