//! The outputs of a command line: streams and files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::cases::Case;
use crate::repository::{files, hex};

/// All outputs by name. Text is stored to show differences; files are stored as checksums.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outputs {
    pub(crate) succeeded: bool,
    by_name: BTreeMap<String, String>,
}

impl Outputs {
    /// The first difference, if there is one.
    pub(crate) fn difference(&self, other: &Self) -> Option<String> {
        let names = self.by_name.keys().chain(other.by_name.keys());
        let name =
            names.into_iter().find(|name| self.by_name.get(*name) != other.by_name.get(*name))?;
        let text = |outputs: &Self| {
            outputs.by_name.get(name).cloned().unwrap_or_else(|| "(missing)".to_owned())
        };
        let (before, after) = (text(self), text(other));
        let mut lines = before.lines().zip(after.lines());
        let (old, new) = lines.find(|(old, new)| old != new).unwrap_or((&before, &after));
        let short = |line: &str| line.chars().take(200).collect::<String>();
        Some(format!("{name} differs:\n  old: {}\n  new: {}", short(old), short(new)))
    }
}

/// Runs a program in a new folder, which is removed afterwards.
pub(crate) fn outputs(program: &Path, case: &Case) -> Result<Outputs> {
    let folder = TempDir::new()?;
    let ran = Command::new(program)
        .args(&case.words)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .with_context(|| program.display().to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut by_name = BTreeMap::from([
        ("exit code".to_owned(), format!("{:?}", ran.status.code())),
        ("standard output".to_owned(), text(&ran.stdout)),
        ("standard error".to_owned(), text(&ran.stderr)),
    ]);
    for file in files(folder.path(), &[])? {
        let name = file.strip_prefix(folder.path())?.display().to_string();
        by_name.insert(name, hex(Sha256::new_with_prefix(fs::read(&file)?)));
    }
    Ok(Outputs { succeeded: ran.status.success(), by_name })
}
