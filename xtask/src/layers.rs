//! Which crate may use which: data flows one way, from the recording to the report.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::repository;

/// Each crate with the crates it may use. A crate that stands in no row fails the check, so that
/// whoever adds one says where it belongs. A dependency for tests may be on any crate below.
pub(crate) const LAYERS: &[(&str, &[&str])] = &[
    ("raw-bytes", &[]),
    ("calendar", &[]),
    ("sys", &[]),
    ("printable", &[]),
    ("shmring", &["sys"]),
    ("ringbuf", &["raw-bytes"]),
    ("eventfmt", &["raw-bytes"]),
    ("tracedat", &["raw-bytes", "sys"]),
    ("ctf", &["raw-bytes"]),
    ("perfdata", &["raw-bytes"]),
    ("hypertrace", &[]),
    (
        "sources",
        &["raw-bytes", "hypertrace", "ringbuf", "ctf", "eventfmt", "perfdata", "tracedat", "sys"],
    ),
    ("instructions", &[]),
    ("symbols", &["eventfmt", "perfdata", "sys"]),
    // The only crate that asks a network for anything.
    ("debuginfod", &["symbols", "sys"]),
    ("timeline", &["raw-bytes", "ringbuf", "eventfmt", "sources"]),
    ("stats", &[]),
    (
        "analyses",
        &[
            "raw-bytes",
            "eventfmt",
            "hypertrace",
            "instructions",
            "ringbuf",
            "sources",
            "stats",
            "symbols",
            "timeline",
        ],
    ),
    ("tables", &["printable"]),
    (
        "report",
        &[
            "raw-bytes",
            "analyses",
            "eventfmt",
            "hypertrace",
            "printable",
            "ringbuf",
            "sources",
            "tables",
            "timeline",
            "tracedat",
        ],
    ),
    (
        "export",
        &[
            "raw-bytes",
            "analyses",
            "eventfmt",
            "report",
            "ringbuf",
            "sources",
            "timeline",
            "tracedat",
        ],
    ),
    ("lake-store", &["calendar", "tables"]),
    ("lake", &["analyses", "eventfmt", "lake-store", "report", "sources", "timeline"]),
    ("fleet", &["analyses", "calendar", "lake", "printable", "report", "stats"]),
    ("testkit", &["raw-bytes"]),
    ("labwire", &[]),
    ("exitcost", &["sys"]),
    ("labguest", &["exitcost", "hypertrace", "labwire", "sys"]),
    ("lab", &["labwire"]),
    ("experiment", &["analyses", "stats"]),
    (
        "bench",
        &[
            "analyses",
            "exitcost",
            "hypertrace",
            "lab",
            "labwire",
            "report",
            "sources",
            "stats",
            "timeline",
        ],
    ),
    ("confine", &[]),
    ("folder", &[]),
    ("waits", &[]),
    // Browsers of this machine alone.
    ("httpd", &[]),
    ("tracefs", &["raw-bytes", "folder", "hypertrace", "ringbuf", "sys"]),
    ("wire", &[]),
    ("channel", &["confine", "shmring", "sys", "tracefs", "waits", "wire"]),
    (
        "agent",
        &[
            "raw-bytes",
            "channel",
            "confine",
            "folder",
            "printable",
            "sampler",
            "steal-viewer",
            "sys",
            "tracedat",
            "tracefs",
            "waits",
            "wire",
        ],
    ),
    // What a host publishes to guests about their vCPUs: made by the one, read by the other.
    (
        "steal-publisher",
        &[
            "raw-bytes",
            "analyses",
            "channel",
            "eventfmt",
            "ringbuf",
            "shmring",
            "sources",
            "sys",
            "timeline",
            "tracefs",
            "vms",
            "waits",
        ],
    ),
    ("steal-viewer", &["raw-bytes", "ringbuf", "shmring", "sys", "tracedat"]),
    ("vms", &["channel", "printable", "waits"]),
    ("bpfload", &[]),
    ("collector", &["bpfload", "confine", "folder", "hypertrace", "sys", "tracefs", "waits"]),
    // The accounting of exits inside the kernel.
    ("live", &["analyses", "bpfload", "sys", "timeline", "tracefs", "vms"]),
    // Exits made longer, to see what a workload pays for them.
    ("delayer", &["analyses", "bpfload", "live", "stats"]),
    // What guests' agents say of the same intervals.
    ("guest-views", &["channel", "confine", "vms", "waits", "wire"]),
    (
        "live-viewer",
        &["analyses", "guest-views", "live", "printable", "report", "timeline", "wire"],
    ),
    // The same as metrics.
    ("metrics", &["analyses", "live", "printable", "timeline"]),
    (
        "sampler",
        &["confine", "folder", "hypertrace", "perfdata", "raw-bytes", "sys", "tracefs", "waits"],
    ),
    (
        "recorder",
        &[
            "raw-bytes",
            "calendar",
            "channel",
            "collector",
            "sampler",
            "confine",
            "folder",
            "hypertrace",
            "printable",
            "ringbuf",
            "sys",
            "tracedat",
            "tracefs",
            "vms",
            "waits",
            "wire",
        ],
    ),
];

/// Crates at the top: they may use any, but `testkit` only in tests.
const TOP: &[&str] = &["cli", "surfaces", "xtask"];

/// Crates that are nothing but test material: they may use `testkit` anywhere, and only tests of crates
/// at the top use them.
const FOR_TESTS: &[&str] = &["surfaces"];

/// For tests only, wherever it is used.
const TEST_ONLY: &str = "testkit";

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
    /// Set for dependencies inside the repository only.
    path: Option<String>,
}

/// Checks every edge between the workspace's crates.
pub(crate) fn check() -> Result<()> {
    let metadata = metadata()?;
    let edges: usize = metadata.packages.iter().map(|package| internal(package).count()).sum();
    let faults: Vec<String> = metadata.packages.iter().flat_map(faults).collect();
    repository::conclude(&format!("layers ({edges} edges)"), &faults)
}

fn metadata() -> Result<Metadata> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--offline", "--no-deps", "--format-version", "1"])
        .current_dir(repository::root())
        .output()
        .context("cargo metadata does not start")?;
    ensure!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).context("cargo metadata printed something else")
}

fn internal(package: &Package) -> impl Iterator<Item = &Dependency> {
    package.dependencies.iter().filter(|dependency| dependency.path.is_some())
}

/// The crate's folder: its name without the product's.
fn short(package: &str) -> &str {
    match package {
        "hyperscope" => "cli",
        other => other.strip_prefix("hyperscope-").unwrap_or(other),
    }
}

fn faults(package: &Package) -> Vec<String> {
    let user = short(&package.name);
    let table: BTreeMap<_, _> = LAYERS.iter().copied().collect();
    if !table.contains_key(user) && !TOP.contains(&user) {
        return vec![format!("crate `{user}` is in no layer: add it to xtask/src/layers.rs")];
    }
    internal(package)
        .filter_map(|dependency| {
            let used = short(&dependency.name);
            let in_tests = dependency.kind.as_deref() == Some("dev");
            (!allowed(&table, user, used, in_tests)).then(|| {
                let kind = if in_tests { " in tests" } else { "" };
                format!("crate `{user}` must not use `{used}`{kind}")
            })
        })
        .collect()
}

fn allowed(table: &BTreeMap<&str, &[&str]>, user: &str, used: &str, in_tests: bool) -> bool {
    if FOR_TESTS.contains(&used) {
        return in_tests && TOP.contains(&user);
    }
    match (used == TEST_ONLY, in_tests) {
        (true, in_tests) => in_tests || FOR_TESTS.contains(&user),
        (false, true) => TOP.contains(&user) || below(table, user).contains(used),
        (false, false) => {
            TOP.contains(&user) || table.get(user).is_some_and(|row| row.contains(&used))
        }
    }
}

/// Every crate that `user` reaches through the table.
pub(crate) fn below<'a>(table: &BTreeMap<&'a str, &'a [&'a str]>, user: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![user];
    while let Some(next) = open.pop() {
        for &used in table.get(next).copied().unwrap_or_default() {
            if reached.insert(used) {
                open.push(used);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> BTreeMap<&'static str, &'static [&'static str]> {
        LAYERS.iter().copied().collect()
    }

    #[test]
    fn data_flows_one_way() {
        let table = table();
        for (user, _) in LAYERS {
            assert!(!below(&table, user).contains(user), "`{user}` reaches itself");
        }
    }

    #[test]
    fn edges_outside_the_table_are_faults() {
        let table = table();
        assert!(allowed(&table, "sources", "ringbuf", false));
        assert!(!allowed(&table, "ringbuf", "sources", false));
        assert!(!allowed(&table, "timeline", "tracedat", false));
        assert!(allowed(&table, "timeline", "tracedat", true));
        assert!(!allowed(&table, "cli", "testkit", false));
        assert!(allowed(&table, "cli", "testkit", true));
        assert!(allowed(&table, "surfaces", "testkit", false));
        assert!(allowed(&table, "cli", "surfaces", true));
        assert!(!allowed(&table, "cli", "surfaces", false));
        assert!(!allowed(&table, "analyses", "surfaces", true));
    }
}
