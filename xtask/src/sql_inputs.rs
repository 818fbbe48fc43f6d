//! Checks whether inputs of the tests of `hyperscope-sql` have changed since they last passed.
//!
//! Its query engine takes longer to build than everything else here, so CI runs those tests only if
//! necessary. `sql/tested-inputs.txt` has a checksum for each folder and file that they depend on;
//! `make test-sql` writes it when they pass.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::repository;

/// Checksums from the last time the tests passed.
const TESTED: &str = "sql/tested-inputs.txt";

/// Inputs besides the folder `sql` and the crates that it is built from.
const SHARED: [&str; 1] = ["rust-toolchain.toml"];

/// The dependencies in a manifest; crates of this repository have a path.
#[derive(Deserialize)]
struct Manifest {
    #[serde(default)]
    dependencies: BTreeMap<String, Dependency>,
    #[serde(default)]
    workspace: Workspace,
}

#[derive(Default, Deserialize)]
struct Workspace {
    #[serde(default)]
    dependencies: BTreeMap<String, Dependency>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Dependency {
    Detailed {
        path: Option<String>,
    },
    #[expect(dead_code, reason = "a version says nothing here, but has to be parsed")]
    Version(String),
}

impl Dependency {
    fn path(&self) -> Option<&str> {
        match self {
            Self::Detailed { path } => path.as_deref(),
            Self::Version(_) => None,
        }
    }
}

/// Fails and names the changed inputs, unless all inputs are as they were when the tests last
/// passed.
pub(crate) fn check() -> Result<()> {
    let root = repository::root();
    let now = sums(&root)?;
    let tested = fs::read_to_string(root.join(TESTED)).unwrap_or_default();
    let changed = changed(&tested, &now);
    if changed.is_empty() {
        let names: Vec<&str> = now.keys().map(String::as_str).collect();
        println!(
            "tests of hyperscope-sql: skipped, because they passed with the same inputs ({TESTED}): {}. `make \
             test-sql` runs them.",
            names.join(", ")
        );
        return Ok(());
    }
    bail!("changed since the tests of hyperscope-sql last passed: {}", changed.join(", "));
}

/// Writes the checksums of all inputs after the tests have passed.
pub(crate) fn write() -> Result<()> {
    let root = repository::root();
    let lines: String = sums(&root)?.iter().map(|(name, sum)| format!("{sum}  {name}\n")).collect();
    fs::write(root.join(TESTED), lines).context(TESTED)
}

/// Inputs whose checksum differs from that in `tested`, or that only one side has.
fn changed(tested: &str, now: &BTreeMap<String, String>) -> Vec<String> {
    let tested: BTreeMap<&str, &str> = tested
        .lines()
        .filter_map(|line| line.split_once("  ").map(|(sum, name)| (name, sum)))
        .collect();
    let differ = now.iter().filter(|(name, sum)| tested.get(name.as_str()) != Some(&sum.as_str()));
    let gone =
        tested.keys().filter(|name| !now.contains_key(**name)).map(|name| (*name).to_owned());
    differ.map(|(name, _)| name.clone()).chain(gone).collect()
}

/// The checksum of every input; a folder's covers the names and contents of its files.
fn sums(root: &Path) -> Result<BTreeMap<String, String>> {
    let mut names: Vec<String> = crates(root)?;
    names.push("sql".to_owned());
    names.extend(SHARED.map(str::to_owned));
    names.into_iter().map(|name| Ok((name.clone(), sum(root, &name)?))).collect()
}

fn sum(root: &Path, name: &str) -> Result<String> {
    let path = root.join(name);
    let mut files = if path.is_dir() {
        repository::files(&path, &["target", "node_modules"])?
    } else {
        vec![path]
    };
    files.retain(|file| !file.ends_with(TESTED));
    let mut sum = Sha256::new();
    for file in files {
        let content = fs::read(&file).with_context(|| file.display().to_string())?;
        let shown = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().into_owned();
        sum.update(format!("{shown} {}\n", content.len()));
        sum.update(content);
    }
    Ok(repository::hex(sum))
}

/// Folders of the crates that `hyperscope-sql` depends on, directly or indirectly.
fn crates(root: &Path) -> Result<Vec<String>> {
    let workspace = manifest(&root.join("Cargo.toml"))?.workspace.dependencies;
    let direct = manifest(&root.join("sql/Cargo.toml"))?.dependencies;
    let mut open: Vec<String> = direct
        .values()
        .filter_map(|dependency| dependency.path()?.strip_prefix("../").map(str::to_owned))
        .collect();
    let mut found: Vec<String> = Vec::new();
    while let Some(folder) = open.pop() {
        if found.contains(&folder) {
            continue;
        }
        let used = manifest(&root.join(&folder).join("Cargo.toml"))?.dependencies;
        let paths = used.keys().filter_map(|name| workspace.get(name)?.path());
        open.extend(paths.map(str::to_owned));
        found.push(folder);
    }
    Ok(found)
}

fn manifest(path: &Path) -> Result<Manifest> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    toml::from_str(&text).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_below_the_direct_ones_are_inputs_too() {
        let names = crates(&repository::root()).unwrap();
        assert!(names.iter().any(|name| name == "crates/system/printable"), "{names:?}");
        assert!(names.iter().all(|name| repository::root().join(name).is_dir()), "{names:?}");
    }

    #[test]
    fn what_changed_came_or_went_is_named() {
        let now = [("a", "1"), ("b", "2"), ("d", "4")].map(|(name, sum)| (name.into(), sum.into()));
        let now = BTreeMap::from(now);
        assert_eq!(changed("1  a\n2  b\n4  d\n", &now), Vec::<String>::new());
        assert_eq!(changed("1  a\n9  b\n3  c\n", &now), ["b", "d", "c"]);
        assert_eq!(changed("", &now), ["a", "b", "d"]);
    }
}
