//! Opens the recordings named on the command line.

use std::path::PathBuf;

use sources::Recording;

/// Opens all files, in their order.
///
/// # Errors
/// At the first that can't be read as a recording.
pub(crate) fn open_all(paths: &[PathBuf]) -> anyhow::Result<Vec<Recording>> {
    paths.iter().map(|path| Ok(sources::open(path)?)).collect()
}
