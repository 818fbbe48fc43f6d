//! The table of limits in docs/limits.md: every `MAX_…` constant of the crates.
//!
//! The test below fails until `cargo xtask limits --write` has updated the table after a limit was
//! added, changed or removed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::repository;

/// Where the table goes, after this line.
const PAGE: &str = "docs/limits.md";
const HEAD: &str = "| Limit | Value | What it bounds |\n|---|---|---|\n";

/// Rows of the table, in the order of files and lines.
fn rows(root: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for folder in repository::crates(root)? {
        sources(&folder.join("src"), &mut files)?;
    }
    files.sort();
    let mut rows = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        let name = file.strip_prefix(root.join("crates")).unwrap_or(&file);
        let name = name.display().to_string().replace("src/", "");
        rows.extend(limits(text).map(|(limit, value, meaning)| {
            format!("| {name}: `{limit}` | `{value}` | {meaning} |\n")
        }));
    }
    Ok(rows)
}

/// Rust files below a folder, except test modules.
fn sources(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            sources(&path, files)?;
        } else if path.extension().is_some_and(|kind| kind == "rs") && !path.ends_with("tests.rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// Name, value and the first sentence of each limit's documentation.
fn limits(text: &str) -> impl Iterator<Item = (&str, &str, String)> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    (0..lines.len()).filter_map(move |at| {
        let line = lines.get(at)?;
        let (_, constant) = line
            .split_once("const ")
            .filter(|(before, _)| before.is_empty() || before.starts_with("pub"))?;
        let (name, rest) = constant.split_once(':')?;
        if !name.starts_with("MAX_") {
            return None;
        }
        let value = rest.split_once('=')?.1.trim().trim_end_matches(';');
        let before = lines.get(..at)?;
        let first = before.iter().rposition(|line| !line.starts_with("///")).map_or(0, |at| at + 1);
        let meaning: Vec<&str> =
            before.get(first..)?.iter().map(|line| line.trim_start_matches('/').trim()).collect();
        let meaning = meaning.join(" ").replace('|', "\\|");
        let meaning = meaning.split_inclusive(". ").next().unwrap_or_default().trim().to_owned();
        Some((name, value, meaning))
    })
}

/// Compares the table with the code, or rewrites it.
///
/// # Errors
/// If they differ, or if a file cannot be read.
pub(crate) fn check(write: bool) -> Result<()> {
    let root = repository::root();
    let page = root.join(PAGE);
    let text = fs::read_to_string(&page).context(PAGE)?;
    let (before, table) = text.split_once(HEAD).with_context(|| format!("{PAGE} has no table"))?;
    let rows = rows(&root)?.concat();
    if write {
        return fs::write(&page, format!("{before}{HEAD}{rows}")).context(PAGE);
    }
    let stale = format!("{PAGE} differs from the code: run cargo xtask limits --write");
    repository::conclude("limits", if table == rows { &[] } else { std::slice::from_ref(&stale) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_limits_is_that_of_the_code() {
        check(false).unwrap();
    }

    #[test]
    fn a_limit_has_its_value_and_first_sentence() {
        let text = "/// Bytes of a chunk. More is not\n/// plausible.\npub(crate) const MAX_X: u32 = 8 << 20;";
        let found: Vec<_> = limits(text).collect();
        assert_eq!(found, [("MAX_X", "8 << 20", "Bytes of a chunk.".to_owned())]);
    }
}
