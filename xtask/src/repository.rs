//! Where the repository is, and how a check reports what it found.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use sha2::{Digest, Sha256};

/// The repository's root: the folder above this crate.
pub(crate) fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_path_buf()
}

/// A sum as it is written.
pub(crate) fn hex(sum: Sha256) -> String {
    sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Prints what was checked, or all that is wrong and fails.
pub(crate) fn conclude(checked: &str, faults: &[String]) -> Result<()> {
    if faults.is_empty() {
        println!("{checked}: ok");
        return Ok(());
    }
    for fault in faults {
        eprintln!("{fault}");
    }
    bail!("{checked}: {} fault(s)", faults.len())
}
