//! Where hyperscope-sql is, which has what this program is built without: a query engine, and a client of object stores.

use std::path::{Path, PathBuf};

use anyhow::Context;

pub(crate) const NAME: &str = "hyperscope-sql";

/// Next to this program, or where the shell would look.
///
/// # Errors
/// When it is in none of these places.
pub(crate) fn path() -> anyhow::Result<PathBuf> {
    let executable = std::env::current_exe().ok();
    let next_to_it = executable.as_deref().and_then(Path::parent).map(Path::to_owned);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = next_to_it.into_iter().chain(std::env::split_paths(&path));
    let found = folders.map(|folder| folder.join(NAME)).find(|program| program.is_file());
    found.with_context(|| {
        format!(
            "{NAME} is missing: run \"make sql\" in hyperscope's repository, which puts it next to hyperscope, or install it on the PATH"
        )
    })
}
