//! Whether names in a lake are hashed, and by which key: by one in all of its sessions, or in none.

use std::io::{self, Write};

use super::places;
use super::storage::Storage;
use crate::pseudonyms::Pseudonyms;

/// Why a session can't be added with or without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFault {
    /// Names in the lake are hashed, and no key was given.
    Missing,
    /// They are hashed by another key.
    Other,
    /// They are not hashed.
    Named,
}

/// Checks that names are to be hashed as those that are there, and notes how in a lake without sessions.
///
/// # Errors
/// When the lake can't be read or written.
pub fn check_key<S: Storage>(
    storage: &S,
    pseudonyms: Option<&Pseudonyms>,
) -> io::Result<Result<(), KeyFault>> {
    let known = storage.list(&places::pseudonyms())?;
    let Some(pseudonyms) = pseudonyms else {
        return Ok(if known.is_empty() { Ok(()) } else { Err(KeyFault::Missing) });
    };
    let name = places::key_check(&pseudonyms.check());
    if !known.is_empty() {
        let is_known = known.iter().all(|file| file.name == name);
        return Ok(if is_known { Ok(()) } else { Err(KeyFault::Other) });
    }
    let has_names = !storage.list(&places::sessions())?.is_empty()
        || !storage.list(&places::rejected())?.is_empty();
    if has_names {
        return Ok(Err(KeyFault::Named));
    }
    let mut file = storage.begin()?;
    file.write_all(
        b"Names in this lake are hashes by the key that this file's name is a check of.\n",
    )?;
    storage.replace(file, &name, None)?;
    Ok(Ok(()))
}
