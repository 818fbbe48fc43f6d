//! Opens a lake in a folder, or in an object store through hyperscope-sql.

use std::path::Path;
use std::process::Command;

use anyhow::Context;
use fleet::lake::store::{Lake, LocalFolder, ObjectLake, ObjectsByProcess, is_in_store};

use command::programs::SQL;

/// Opens an existing lake.
///
/// # Errors
/// When it is not a lake, or can't be read.
pub(crate) fn open(lake: &Path) -> anyhow::Result<Lake> {
    if !is_in_store(lake) {
        return Ok(Lake::Folder(LocalFolder::open(lake)?));
    }
    let found = ObjectLake::open(start_client(lake)?);
    Ok(Lake::Store(found.with_context(|| lake.display().to_string())?))
}

/// Opens a lake to change it, and creates it if it is missing. A store is checked first.
///
/// # Errors
/// When it can't be made or changed.
pub(crate) fn change(lake: &Path) -> anyhow::Result<Lake> {
    if is_in_store(lake) {
        return Ok(Lake::Store(ObjectLake::change(start_client(lake)?)));
    }
    let found = LocalFolder::change(lake);
    Ok(Lake::Folder(found.with_context(|| format!("cannot change {}", lake.display()))?))
}

/// Starts the program with the store's client.
fn start_client(lake: &Path) -> anyhow::Result<ObjectsByProcess> {
    let program = SQL.path()?;
    let mut command = Command::new(&program);
    command.arg("--serve-store").arg(lake);
    ObjectsByProcess::start(command).with_context(|| format!("cannot run {}", program.display()))
}
