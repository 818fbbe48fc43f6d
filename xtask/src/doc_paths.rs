//! Checks that every path in backticks in a document exists.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::repository;

/// Folders that contain no documents of this repository.
const SKIPPED: &[&str] = &["target", "node_modules", "corpus", "artifacts", ".git"];

/// Documents with paths of other projects, or of earlier versions.
const EXEMPT_DOCUMENTS: [&str; 2] = ["docs/design/style.md", "CHANGELOG.md"];

/// Texts that look like paths but are not, or that a command creates.
const EXEMPT_PATHS: [&str; 6] = [
    "fuzz/corpus",
    "fuzz/artifacts",
    "sql/tested-inputs.txt",
    "target/demo.hscope",
    "web/nginx",
    "timeline/losses-add-up-past-64-bits",
];

pub(crate) fn check() -> Result<()> {
    let root = repository::root();
    let crates = crate_folders(&root)?;
    let mut faults = Vec::new();
    let mut documents = repository::files(&root, SKIPPED)?;
    documents.retain(|file| file.extension().is_some_and(|extension| extension == "md"));
    for document in &documents {
        let shown = document.strip_prefix(&root).unwrap_or(document);
        if EXEMPT_DOCUMENTS.iter().any(|exempt| shown == Path::new(exempt)) {
            continue;
        }
        let text = fs::read_to_string(document).with_context(|| shown.display().to_string())?;
        for (number, line) in text.lines().enumerate() {
            let missing = quoted(line).filter(|path| is_missing(&root, &crates, document, path));
            faults.extend(missing.map(|path| {
                format!("{}:{}: `{path}` does not exist", shown.display(), number + 1)
            }));
        }
    }
    repository::conclude(&format!("paths in documents ({} files)", documents.len()), &faults)
}

/// Folders of crates by their last name, which documents use.
fn crate_folders(root: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let folders = repository::crates(root)?.into_iter();
    let named =
        folders.filter_map(|folder| Some((folder.file_name()?.to_str()?.to_owned(), folder)));
    Ok(named.collect())
}

/// Texts in backticks that look like paths with several parts.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    let is_path = |text: &&str| {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_.-/{},*".contains(c);
        text.contains('/') && !text.starts_with('/') && text.chars().all(is_name)
    };
    line.split('`').skip(1).step_by(2).filter(is_path)
}

fn is_missing(
    root: &Path,
    crates: &BTreeMap<String, PathBuf>,
    document: &Path,
    path: &str,
) -> bool {
    if EXEMPT_PATHS.contains(&path) || path.split('/').any(is_placeholder) {
        return false;
    }
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    let in_crate = crates.get(first).into_iter();
    let mut below: Vec<PathBuf> =
        in_crate.flat_map(|folder| [folder.join(rest), folder.join("src").join(rest)]).collect();
    if root.join(first).is_dir() {
        below.push(root.join(path));
    }
    if below.is_empty() {
        // Outside this repository: a package, a device, a path on a host.
        return false;
    }
    let adjacent = document.parent().unwrap_or(root).join(path);
    let places = || below.iter().chain([&adjacent]);
    !alternatives(path).iter().all(|alternative| {
        places().any(|place| exists(&with_alternative(place, path, alternative)))
    })
}

/// A name such as NAME, YOUR or XXXX is a placeholder.
fn is_placeholder(name: &str) -> bool {
    let letters: String = name.chars().take_while(char::is_ascii_alphabetic).collect();
    letters.len() > 1 && letters.chars().all(|c| c.is_ascii_uppercase())
}

/// Expands `a{b,c}` to `ab` and `ac`.
fn alternatives(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let Some((inside, after)) = rest.split_once('}') else { return vec![path.to_owned()] };
    inside.split(',').map(|part| format!("{before}{part}{after}")).collect()
}

/// The place, with the alternative instead of the path with braces.
fn with_alternative(place: &Path, path: &str, alternative: &str) -> PathBuf {
    let rest = path.split_once('/').map_or(path, |(_, rest)| rest);
    let chosen = alternative.split_once('/').map_or(alternative, |(_, rest)| rest);
    let text = place.to_string_lossy();
    PathBuf::from(
        text.strip_suffix(rest).map_or(text.to_string(), |start| format!("{start}{chosen}")),
    )
}

/// Whether the path exists; a module can lack its `.rs`, and of `*`, the folder before it must
/// exist.
fn exists(path: &Path) -> bool {
    let text = path.to_string_lossy();
    match text.split_once('*') {
        Some((before, _)) => {
            Path::new(before.rsplit_once('/').map_or(before, |(folder, _)| folder)).exists()
        }
        None => path.exists() || path.with_extension("rs").exists(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn misses(path: &str) -> bool {
        let root = repository::root();
        let crates = crate_folders(&root).unwrap();
        is_missing(&root, &crates, &root.join("README.md"), path)
    }

    #[test]
    fn paths_from_the_root_and_from_a_crate_are_looked_up() {
        assert!(!misses("xtask/src/doc_paths.rs"));
        assert!(!misses("crates/system/sys/src"));
        assert!(!misses("xtask/src/{main,map}.rs"));
        assert!(misses("xtask/src/{main,no_such_file}.rs"));
        assert!(misses("xtask/src/no_such_file.rs"));
        assert!(misses("sys/no_such_module"));
    }

    #[test]
    fn what_is_no_path_of_this_repository_is_left_alone() {
        assert!(!misses("application/json"));
        assert!(!misses("crates/answer/NAME.rs"));
        assert_eq!(quoted("see `a/b` and `c`, `d e/f`").collect::<Vec<_>>(), ["a/b"]);
    }
}
