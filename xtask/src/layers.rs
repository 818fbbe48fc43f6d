//! Which crates may use which: data flows in one direction through the folders of `crates/`.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::repository;

/// Each folder of `crates/`, and the folders that its crates may use besides their own; within a
/// folder, cargo refuses cycles.
pub(crate) const FOLDERS: &[(&str, &[&str])] = &[
    ("system", &[]),
    ("decode", &["system"]),
    ("model", &["system", "decode"]),
    ("record", &["system", "decode", "model"]),
    ("answer", &["system", "decode", "model"]),
    ("lab", &["system", "decode", "model", "answer"]),
];

/// Crates that may use any other.
const TOP: &[&str] = &[
    "crates/cli",
    "crates/command",
    "crates/fleet_cli",
    "crates/lab_cli",
    "crates/session_tables",
    "fuzz/surfaces",
    "xtask",
];

/// Crates for tests: only the crates in the second list, and tests, use them.
const FOR_TESTS: &[(&str, &[&str])] =
    &[("crates/testkit", &["fuzz/surfaces"]), ("fuzz/surfaces", &[])];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// A crate of the workspace.
#[derive(Deserialize)]
pub(crate) struct Package {
    /// Its description in Cargo.toml.
    pub(crate) description: Option<String>,
    manifest_path: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    kind: Option<String>,
    /// Only dependencies inside the repository have a path.
    path: Option<String>,
}

impl Package {
    /// Its folder, relative to the repository's root: `crates/decode/ftrace`.
    pub(crate) fn folder(&self) -> &str {
        inside(self.manifest_path.trim_end_matches("/Cargo.toml"))
    }

    /// The folders of the crates that it uses, and whether only tests use them.
    fn uses(&self) -> impl Iterator<Item = (&str, bool)> {
        let dependencies = self.dependencies.iter();
        dependencies.filter_map(|dependency| {
            Some((inside(dependency.path.as_deref()?), dependency.kind.as_deref() == Some("dev")))
        })
    }
}

/// A path relative to the repository's root.
fn inside(path: &str) -> &str {
    let root = repository::root();
    let rest = root.to_str().and_then(|root| path.strip_prefix(root));
    rest.map_or(path, |rest| rest.trim_start_matches('/'))
}

/// Checks every dependency between the workspace's crates.
pub(crate) fn check() -> Result<()> {
    let packages = packages()?;
    let edges: usize = packages.iter().map(|package| package.uses().count()).sum();
    let faults: Vec<String> = packages.iter().flat_map(faults).collect();
    repository::conclude(&format!("layers ({edges} edges)"), &faults)
}

/// The crates of the workspace.
pub(crate) fn packages() -> Result<Vec<Package>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--offline", "--no-deps", "--format-version", "1"])
        .current_dir(repository::root())
        .output()
        .context("cargo metadata cannot be started")?;
    ensure!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Metadata = serde_json::from_slice(&output.stdout)
        .context("cargo metadata printed unexpected output")?;
    Ok(metadata.packages)
}

fn faults(package: &Package) -> Vec<String> {
    let user = package.folder();
    if group(user).is_none() && !TOP.contains(&user) && !is_for_tests(user) {
        return vec![format!(
            "{user} is in a folder that xtask/src/layers.rs does not know: move it into one below crates/, or \
             add its folder there"
        )];
    }
    let refused = package.uses().filter(|(used, in_tests)| !is_allowed(user, used, *in_tests));
    let fault = |(used, in_tests): (&str, bool)| {
        let kind = if in_tests { " in tests" } else { "" };
        format!("{user} must not use {used}{kind}")
    };
    refused.map(fault).collect()
}

/// The group of a crate: `decode` for `crates/decode/ftrace`.
pub(crate) fn group(folder: &str) -> Option<&str> {
    let (group, _) = folder.strip_prefix("crates/")?.split_once('/')?;
    FOLDERS.iter().any(|(known, _)| *known == group).then_some(group)
}

fn is_for_tests(folder: &str) -> bool {
    FOR_TESTS.iter().any(|(known, _)| *known == folder)
}

fn is_allowed(user: &str, used: &str, in_tests: bool) -> bool {
    if let Some((_, users)) = FOR_TESTS.iter().find(|(known, _)| *known == used) {
        return in_tests || users.contains(&user);
    }
    if TOP.contains(&user) {
        return true;
    }
    let (Some(user), Some(used)) = (group(user), group(used)) else { return is_for_tests(user) };
    let below =
        FOLDERS.iter().find(|(known, _)| *known == user).map_or(&[][..], |(_, below)| below);
    user == used || below.contains(&used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_use_those_that_stand_before_them() {
        for (place, (folder, below)) in FOLDERS.iter().enumerate() {
            for used in *below {
                let is_before = FOLDERS.iter().take(place).any(|(before, _)| before == used);
                assert!(is_before, "{folder} uses {used}");
            }
        }
    }

    #[test]
    fn edges_against_the_flow_are_faults() {
        let (sources, ringbuf) = ("crates/decode/sources", "crates/decode/ftrace");
        let (analyses, live) = ("crates/answer/analyses", "crates/record/live");
        let (testkit, surfaces, cli) = ("crates/testkit", "fuzz/surfaces", "crates/cli");
        assert!(is_allowed(sources, ringbuf, false));
        assert!(is_allowed(analyses, sources, false) && !is_allowed(sources, analyses, true));
        assert!(!is_allowed(live, analyses, false) && !is_allowed(analyses, live, false));
        assert!(is_allowed(cli, live, false) && !is_allowed(live, cli, false));
        assert!(!is_allowed(cli, testkit, false) && is_allowed(cli, testkit, true));
        assert!(is_allowed(surfaces, testkit, false) && is_allowed(testkit, ringbuf, false));
        assert!(is_allowed(cli, surfaces, true) && !is_allowed(cli, surfaces, false));
    }

    #[test]
    fn folders_of_crates_are_known_by_their_paths() {
        assert_eq!(group("crates/decode/ftrace"), Some("decode"));
        assert_eq!((group("crates/cli"), group("crates/other/one")), (None, None));
    }
}
