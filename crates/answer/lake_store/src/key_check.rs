//! Checks that all sessions of a lake hash their names with the same key, or that none does.

use std::io::{self, Write};

use super::places;
use super::storage::Storage;
use crate::pseudonyms::Pseudonyms;

/// Why a session can't be added with this key, or without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFault {
    /// Names in the lake are hashed, but no key was given.
    Missing,
    /// Names in the lake are hashed with another key.
    Other,
    /// Names in the lake are not hashed.
    Named,
}

/// Checks that the key is that of the lake; in a lake without sessions, stores the check value.
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
