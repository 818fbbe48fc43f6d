//! The repository's folders, and how a check reports its result.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

/// The repository's root: the parent folder of this crate.
pub(crate) fn root() -> PathBuf {
    let manifest_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest_folder.parent().unwrap_or(manifest_folder).to_path_buf()
}

/// Folders of the workspace's crates below `crates/`, by path: `crates/cli`, or `crates/GROUP/NAME`.
pub(crate) fn crates(root: &Path) -> Result<Vec<PathBuf>> {
    let manifests = files(&root.join("crates"), &["src", "tests", "benches", "target"])?;
    let manifests = manifests.iter().filter(|file| file.ends_with("Cargo.toml"));
    Ok(manifests.filter_map(|file| Some(file.parent()?.to_owned())).collect())
}

/// All files below a folder, sorted by path, except in folders with these names. Symbolic links are
/// skipped.
pub(crate) fn files(folder: &Path, skipped: &[&str]) -> Result<Vec<PathBuf>> {
    let (mut files, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = open.pop() {
        let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_symlink() || skipped.contains(&name) {
                continue;
            }
            if path.is_dir() { open.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    Ok(files)
}

/// A checksum in hexadecimal.
pub(crate) fn hex(sum: Sha256) -> String {
    sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Prints what was checked, or prints all faults and fails.
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
