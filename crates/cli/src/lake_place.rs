//! A lake where it is: in a folder, or in an object store, which hyperscope-sql asks.

use std::path::Path;
use std::process::Command;

use anyhow::Context;
use lake::store::{Lake, LocalFolder, ObjectLake, ObjectsByProcess, Storage};

use crate::sql_program;

/// Whether a lake is named so that it can only be in an object store.
pub(crate) fn is_in_store(lake: &Path) -> bool {
    lake.as_os_str().as_encoded_bytes().starts_with(b"s3://")
}

/// Opens a lake that has to be there.
///
/// # Errors
/// When it is no lake, or can't be read.
pub(crate) fn open(lake: &Path) -> anyhow::Result<Lake> {
    if !is_in_store(lake) {
        return Ok(Lake::Folder(LocalFolder::open(lake)?));
    }
    let found = ObjectLake::open(asked(lake)?);
    Ok(Lake::Store(found.with_context(|| lake.display().to_string())?))
}

/// Opens a lake to change it, which is made where there is none.
///
/// # Errors
/// When it can't be made or changed.
pub(crate) fn change(lake: &Path) -> anyhow::Result<Lake> {
    let why = || format!("cannot change {}", lake.display());
    if !is_in_store(lake) {
        return Ok(Lake::Folder(LocalFolder::change(lake).with_context(why)?));
    }
    let found = ObjectLake::change(asked(lake)?);
    // Whether it can be asked is known before anything is made for it.
    found.list("v1/pseudonyms").with_context(why)?;
    Ok(Lake::Store(found))
}

/// Starts the program that has the store's client.
fn asked(lake: &Path) -> anyhow::Result<ObjectsByProcess> {
    let program = sql_program::path()?;
    let mut command = Command::new(&program);
    command.arg("--serve-store").arg(lake);
    ObjectsByProcess::start(command).with_context(|| format!("cannot run {}", program.display()))
}
