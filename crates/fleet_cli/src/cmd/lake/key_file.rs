//! The key by which names of a lake are hashed: a file of its own, outside of the lake.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use anyhow::{Context, bail};
use fleet::lake::Pseudonyms;

use command::notice::say;
use session::Misuse;

/// Bytes of a key that is made.
const KEY_BYTES: usize = 32;

/// Bytes of a key file that are read.
const MAX_BYTES: u64 = 4096;

/// Permissions of other users, who could test names with the key.
const OTHERS: u32 = 0o007;

/// Hashes by the key of a file, which is made where it isn't there.
///
/// # Errors
/// When it can't be read or made, is too short, is for others to read, or lies within the lake.
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
