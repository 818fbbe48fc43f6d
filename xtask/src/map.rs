//! The list of crates in `docs/crates.md`, made from their descriptions, and the files that
//! `docs/howto/README.md` names for each kind of change. Paths into crates in any document must
//! exist, too.
//!
//! `cargo xtask map --write` rewrites the list; without it, the check compares the page with the
//! crates.

mod names;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::layers::{self, FOLDERS, Package};
use crate::repository;

/// The list is between these two lines of the page.
const BEGIN: &str = "<!-- crates: cargo xtask map --write writes this -->\n";
const END: &str = "<!-- end of crates -->\n";

/// The page with the list.
const CRATES: &str = "docs/crates.md";

/// The page with the table of changes.
const HOWTO: &str = "docs/howto/README.md";

/// Header of that table.
const CHANGES: &str = "| To change | Files | How |\n|---|---|---|\n";

/// In the table of changes, stands for a name that the author chooses.
const PLACEHOLDER: &str = "NAME";

/// Checks the pages against the crates and existing files, or rewrites the list.
pub(crate) fn check(write: bool) -> Result<()> {
    let root = repository::root();
    let packages = layers::packages()?;
    let mut faults = Vec::new();
    let text = fs::read_to_string(root.join(CRATES)).context(CRATES)?;
    let with_list = with_list(&text, &list(&packages))
        .with_context(|| format!("{CRATES} has no marker for the list"))?;
    if write {
        fs::write(root.join(CRATES), with_list).context(CRATES)?;
    } else if with_list != text {
        faults.push(format!("{CRATES} differs from the crates: run cargo xtask map --write"));
    }
    let text = fs::read_to_string(root.join(HOWTO)).context(HOWTO)?;
    let changes =
        text.split_once(CHANGES).with_context(|| format!("{HOWTO} has no table of changes"))?.1;
    let (rows, missing) = missing(&root, changes);
    faults.extend(missing);
    faults.extend(names::check(&root)?);
    repository::conclude(
        &format!("map ({} crates, {rows} kinds of change)", packages.len()),
        &faults,
    )
}

/// The page with this list.
fn with_list(page: &str, list: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{list}{END}{after}"))
}

/// A table for each folder of crates, with their descriptions.
fn list(packages: &[Package]) -> String {
    let mut text = String::new();
    for (folder, below) in FOLDERS {
        let uses = if below.is_empty() { "no other folder".to_owned() } else { below.join(", ") };
        text += &format!("\n## {folder}\n\nUses {uses}.\n\n| Crate | What it does |\n|---|---|\n");
        let crates =
            packages.iter().filter(|package| layers::group(package.folder()) == Some(folder));
        let mut rows: Vec<String> = crates.map(row).collect();
        rows.sort();
        text += &rows.concat();
    }
    text + "\n"
}

fn row(package: &Package) -> String {
    let folder = package.folder();
    let name = folder.rsplit_once('/').map_or(folder, |(_, name)| name);
    let description = package.description.as_deref().unwrap_or_default();
    format!("| [`{name}`](../{folder}) | {description} |\n")
}

/// The number of rows in the table of changes, and their faults.
fn missing(root: &Path, changes: &str) -> (usize, Vec<String>) {
    let rows: Vec<&str> = changes.lines().take_while(|line| line.starts_with('|')).collect();
    let mut faults = Vec::new();
    for row in &rows {
        let change = row.split('|').nth(1).unwrap_or_default().trim();
        let files: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
        if files.is_empty() {
            faults.push(format!("{HOWTO}: {change}: names no file"));
        }
        let missing = files.into_iter().filter(|file| !is_there(root, file));
        faults.extend(missing.map(|file| format!("{HOWTO}: {change}: there is no {file}")));
        for link in row.split("](").skip(1).filter_map(|link| link.split(')').next()) {
            if !root.join(HOWTO).with_file_name(link).exists() {
                faults.push(format!("{HOWTO}: {change}: there is no {link}"));
            }
        }
    }
    (rows.len(), faults)
}

/// Whether a file exists; with a placeholder, whether its folder exists.
fn is_there(root: &Path, file: &str) -> bool {
    let path = Path::new(file);
    match path.iter().position(|part| part.to_string_lossy().contains(PLACEHOLDER)) {
        Some(at) => root.join(path.iter().take(at).collect::<std::path::PathBuf>()).is_dir(),
        None => root.join(path).exists(),
    }
}
