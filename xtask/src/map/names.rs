//! Names of code in documents (`crate::module`, `file.rs`) must exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::PLACEHOLDER;
use crate::repository;

/// Folders with documents that are not about the project's own code.
const SKIPPED: &[&str] = &["target", "node_modules", "dist", ".git", "fixtures", "web", "design"];

/// Keywords that precede the name in an item's definition.
const DEFINES: [&str; 8] = ["mod", "fn", "struct", "enum", "trait", "type", "const", "static"];

/// The names that each crate defines.
#[derive(Debug)]
pub(super) struct CrateNames {
    /// By crate: names of its modules and items.
    defined: BTreeMap<String, BTreeSet<String>>,
}

impl CrateNames {
    /// Reads all crates of the repository.
    pub(super) fn read(root: &Path) -> Result<Self> {
        let mut defined: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for folder in repository::crates(root)? {
            let Some(name) = folder.file_name() else { continue };
            let names = defined.entry(name.to_string_lossy().into_owned()).or_default();
            for file in repository::files(&folder, SKIPPED)? {
                if file.extension().is_some_and(|kind| kind == "rs") {
                    let text =
                        fs::read_to_string(&file).with_context(|| file.display().to_string())?;
                    names.extend(definitions(&text));
                }
            }
        }
        Ok(Self { defined })
    }

    /// Paths like `timeline::rounds` in a document that do not exist.
    pub(super) fn stale<'p>(&self, page: &'p str) -> Vec<&'p str> {
        let quoted = page.split('`').skip(1).step_by(2);
        let is_stale = |path: &&str| {
            let mut parts = path.trim_end_matches("()").split("::");
            let Some(names) = parts.next().and_then(|name| self.defined.get(name)) else {
                return false;
            };
            parts.any(|part| is_name(part) && !names.contains(part))
        };
        quoted.filter(|quoted| quoted.contains("::")).filter(is_stale).collect()
    }
}

/// Names that a source text defines.
fn definitions(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|char: char| !char.is_alphanumeric() && char != '_');
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let pairs: Vec<String> = words
        .windows(2)
        .filter_map(|pair| match pair {
            [before, name] if DEFINES.contains(before) => Some((*name).to_owned()),
            _ => None,
        })
        .collect();
    pairs.into_iter()
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|char| char.is_alphanumeric() || char == '_')
}

/// Every path in a document that does not exist, with the document.
pub(super) fn check(root: &Path) -> Result<Vec<String>> {
    let names = CrateNames::read(root)?;
    let mut faults = Vec::new();
    for page in repository::files(root, SKIPPED)? {
        let inside = page.strip_prefix(root).unwrap_or(&page);
        let is_page = inside.extension().is_some_and(|kind| kind == "md");
        if !is_page || inside == Path::new("CHANGELOG.md") {
            continue;
        }
        let text = fs::read_to_string(&page).with_context(|| inside.display().to_string())?;
        let stale = names.stale(&text).into_iter().filter(|path| !path.contains(PLACEHOLDER));
        faults.extend(stale.map(|path| format!("{}: there is no {path}", inside.display())));
    }
    Ok(faults)
}
