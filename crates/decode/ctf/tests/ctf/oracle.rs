//! Compares every event of all available traces with babeltrace2: clock, name and fields.

use std::path::{Path, PathBuf};
use std::process::Command;

use ctf::Layout;

use crate::pretty;

/// Finds folders that contain metadata, recursively.
fn traces(folder: &Path, found: &mut Vec<PathBuf>) {
    if folder.join("metadata").is_file() {
        found.push(folder.to_owned());
        return;
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            traces(&entry.path(), found);
        }
    }
}

/// The events that babeltrace2 prints: clock, name, fields.
fn printed(trace: &Path) -> Option<Vec<String>> {
    let program = Command::new("babeltrace2")
        .args(["--clock-cycles", "--no-delta", "--names", "all"])
        .arg(trace)
        .output()
        .ok()?;
    if !program.status.success() {
        return None;
    }
    let text = String::from_utf8_lossy(&program.stdout).into_owned();
    Some(text.lines().filter_map(line).collect())
}

fn line(line: &str) -> Option<String> {
    let clock = line
        .strip_prefix("timestamp = ")
        .map_or("00000000000000000000", |rest| rest.split([',', ' ']).next().unwrap_or(""));
    // A host name may precede it.
    let at = line.find(", name = ").map(|at| at + 9);
    let rest = &line[at.or_else(|| line.strip_prefix("name = ").map(|_| 7))?..];
    let name = rest.split(", ").next()?.split(" = ").next()?;
    let mut scopes = Vec::new();
    for scope in ["stream.event.context = ", "event.context = ", "event.fields = "] {
        let at = rest.match_indices(scope).find(|(at, _)| !rest[..*at].ends_with("stream."));
        if let Some((at, _)) = at {
            let body = &rest[at + scope.len()..];
            let ends = [", event.context = ", ", event.fields = "];
            let end = ends.iter().filter_map(|end| body.find(end)).min().unwrap_or(body.len());
            scopes.push(body[..end].to_owned());
        }
    }
    Some(format!("{clock} {name} {}", scopes.join(" ")))
}

/// The events that this crate reads, or the error.
fn read(trace: &Path) -> Result<Vec<String>, String> {
    let metadata = std::fs::read(trace.join("metadata")).map_err(|error| error.to_string())?;
    let layout = Layout::parse(&metadata).map_err(|error| error.to_string())?;
    let mut all = Vec::new();
    for entry in std::fs::read_dir(trace).into_iter().flatten().flatten() {
        if entry.path().is_file() && entry.file_name() != "metadata" {
            let file = std::fs::read(entry.path()).map_err(|error| error.to_string())?;
            all.extend(pretty::lines(&layout, &file));
        }
    }
    Ok(all)
}

/// Compares a line with babeltrace2's. For an empty string, 2.0.4 prints the string of an earlier
/// event (in real traces, the file has `00` there).
fn is_same(expected: &str, found: &str) -> bool {
    let mut rest = expected;
    for (at, part) in found.split("\"\"").enumerate() {
        if at > 0 {
            let Some(end) = rest.strip_prefix('"').and_then(|rest| rest.find('"')) else {
                return false;
            };
            rest = &rest[end + 2..];
        }
        let Some(behind) = rest.strip_prefix(part) else { return false };
        rest = behind;
    }
    rest.is_empty()
}

/// Covers the traces in this folder and in `HYPERSCOPE_CTF_TRACES`, if set.
#[test]
fn events_are_those_of_babeltrace2() {
    if Command::new("babeltrace2").arg("--version").output().is_err() {
        return testkit::skip!("babeltrace2 is missing: apt-get install babeltrace2");
    }
    let mut all = Vec::new();
    traces(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../fixtures")), &mut all);
    let given = std::env::var_os("HYPERSCOPE_CTF_TRACES");
    if let Some(folder) = &given {
        traces(Path::new(folder), &mut all);
    }
    let (mut same, mut differ) = (0, Vec::new());
    for trace in &all {
        // Skips traces that babeltrace2 cannot read, or cannot read without a plugin.
        let Some(mut expected) = printed(trace) else { continue };
        let mut found = match read(trace) {
            Ok(found) => found,
            Err(error) => {
                differ.push(format!("{}: {error}", trace.display()));
                continue;
            }
        };
        expected.sort();
        found.sort();
        let other = expected.iter().zip(&found).find(|(a, b)| !is_same(a, b));
        if expected.len() == found.len() && other.is_none() {
            same += expected.len();
            continue;
        }
        differ.push(format!(
            "{}: {} of {} events; {other:#?}",
            trace.display(),
            found.len(),
            expected.len()
        ));
    }
    assert!(differ.is_empty(), "{same} events the same, but\n{}", differ.join("\n"));
    assert!(same > 0, "no trace was compared");
}
