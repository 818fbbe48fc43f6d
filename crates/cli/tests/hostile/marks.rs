//! Numbered marks in recordings: the remaining ones show which ones are missing.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::Value;

use crate::tool::{TRACEFS, run};

/// The tracefs instance of a recorder or an agent.
pub(crate) fn instance(pid: u32) -> PathBuf {
    Path::new(TRACEFS).join(format!("instances/hyperscope-{pid}"))
}

/// Writes marks into instances in turn, each as long as it accepts them; returns the number for each.
/// All on one CPU, so that missing marks are in the order of that CPU's pages.
pub(crate) fn write_marks<const N: usize>(instances: [&Path; N], count: u64) -> [u64; N] {
    let mut cpus = CpuSet::new();
    cpus.set(0);
    sched_setaffinity(None, &cpus).unwrap();
    let open =
        |instance: &Path| OpenOptions::new().write(true).open(instance.join("trace_marker")).ok();
    let mut markers: [Option<File>; N] = instances.map(open);
    let mut last_marks = [0; N];
    for number in 1..=count {
        let mark = format!("mark {number}\n");
        for (marker, last_mark) in markers.iter_mut().zip(&mut last_marks) {
            match marker.as_mut().map(|file| file.write_all(mark.as_bytes())) {
                Some(Ok(())) => *last_mark = number,
                // The instance is off, or gone.
                _ => *marker = None,
            }
        }
    }
    last_marks
}

/// Numbers of the marks in a recording.
pub(crate) fn marks(recording: &Path) -> BTreeSet<u64> {
    marks_if_readable(recording).unwrap()
}

/// The same; `None` if it can't be read.
pub(crate) fn marks_if_readable(recording: &Path) -> Option<BTreeSet<u64>> {
    let ran = run(&["events", "--format", "jsonl", recording.to_str().unwrap()]);
    if ran.code != Some(0) {
        println!("{}: {}", recording.display(), ran.stderr);
        return None;
    }
    let number = |line: &str| {
        let (_, rest) = line.split_once("mark ")?;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    Some(ran.stdout.lines().filter_map(number).collect())
}

/// The recording of a machine in a session, finished or not.
pub(crate) fn recording(session: &Path, machine: &str) -> Option<PathBuf> {
    let file = session.join(format!("{machine}.dat"));
    let pages = session.join(format!("{machine}.pages"));
    if file.is_file() { Some(file) } else { pages.join("events").is_dir().then_some(pages) }
}

/// The remains of a machine's recording are readable, and missing events are reported: by number, or
/// as unknown after the last event.
pub(crate) fn assert_losses_reported(session: &Path, machine: &str, written: u64, what: &str) {
    let Some(recording) = recording(session, machine) else {
        let list =
            |path: &Path| fs::read_dir(path).map(|all| all.flatten().map(|entry| entry.path()));
        let leftovers: Vec<_> = list(session).into_iter().flatten().collect();
        assert_eq!(written, 0, "{what}: nothing is left of {machine}, only {leftovers:?}");
        return;
    };
    let ran = run(&["info", "--format", "json", recording.to_str().unwrap()]);
    if written == 0 {
        // It was killed before it recorded anything.
        return assert!(matches!(ran.code, Some(0 | 1)), "{what}: {}", ran.stderr);
    }
    assert_eq!(ran.code, Some(0), "{what}: {}", ran.stderr);
    let info: Value = serde_json::from_str(&ran.stdout).unwrap();
    let losses = &info["files"][0]["losses"];
    let marks = marks(&recording);
    let number = |key: &str| losses[key].as_u64().unwrap();
    let (read, lost) = (marks.len() as u64, number("events_lost") + number("events_missing"));
    let what = format!("{what}: {machine}: {read} of {written} read, {losses}");
    assert!(read <= written, "{what}");
    if losses["known"] == true {
        // Lost events may include other events than marks.
        assert!(read + lost >= written && (lost > 0 || read == written), "{what}");
    } else if number("uncounted_losses") == 0 && lost == 0 {
        assert_eq!(marks.last().copied().unwrap_or(0), read, "{what}");
    }
}
