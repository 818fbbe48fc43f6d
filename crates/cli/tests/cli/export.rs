//! Reads the files of `hyperscope export` with other readers: one in Python that follows each
//! format's rules, Perfetto's own messages, and trace-cmd; and with this program.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::tool::{hyperscope, output_of, repository};

mod calls;
mod events;
mod files;
mod kernelshark;
mod readers;
mod tracks;

pub(crate) const HOST: &str = "fixtures/x86-svm/host-guest.dat";
pub(crate) const GUEST: &str = "fixtures/x86-svm/host-guest.guest.dat";
pub(crate) const SMP: &str = "fixtures/x86-vmx/smp.dat";

/// Recordings of hosts and their guests.
const INPUTS: [&[&str]; 4] = [
    &[HOST, GUEST],
    &["fixtures/arm64/A.dat", "fixtures/arm64/A.guest.dat"],
    &["fixtures/x86-svm/tsc.dat", "fixtures/x86-svm/tsc.guest.dat"],
    &[SMP],
];

/// Runs an export that must succeed.
fn export(to: &str, out: &Path, args: &[&str]) {
    let out = out.to_str().unwrap();
    let run = hyperscope(&[&["export", "--to", to, "-o", out], args].concat());
    assert_eq!((run.code, run.out.as_str()), (0, ""), "{to} {args:?}: {}", run.err);
}

/// The result of the reader in Python; `None` if it can't run.
fn read(format: &str, file: &Path) -> Option<Value> {
    let reader = repository().join("crates/cli/tests/cli/export/read.py");
    let python = if format == "perfetto" { perfetto_python()? } else { "python3".to_owned() };
    let output = Command::new(&python).arg(reader).arg(format).arg(file).output();
    let Ok(output) = output else {
        testkit::skip!("{python} is not installed");
        return None;
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{format} {}: {errors}", file.display());
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// A Python with Perfetto's messages, cached in the build folder; `None` if it can't be made.
fn perfetto_python() -> Option<String> {
    const PACKAGE: &str = "perfetto==0.59.1";
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("perfetto-0.59.1");
    let python = folder.join("bin/python");
    let run = |program: &str, args: &[&str]| {
        Command::new(program).args(args).output().is_ok_and(|output| output.status.success())
    };
    let folder = folder.to_str().unwrap();
    let has = |python: &str| run(python, &["-c", "import perfetto.protos"]);
    let path = python.to_str().unwrap();
    let install = ["-m", "pip", "install", "--quiet", PACKAGE];
    if has(path) || (run("python3", &["-m", "venv", folder]) && run(path, &install) && has(path)) {
        return Some(path.to_owned());
    }
    testkit::skip!("pip can't install {PACKAGE}, whose messages decode Perfetto's format");
    None
}

/// By VM and reason: exits with a time, and the parts of their time, from the exits report.
type ByReason = BTreeMap<(String, String), [u64; 5]>;

/// The exits report's numbers for a reason.
struct ReasonParts {
    sums: [u64; 5],
    shortest_ns: u64,
    /// Whether the time of each halt polling is known; otherwise all of it counts as the kernel's.
    polls: bool,
}

fn parts_by_exits(host: &str) -> BTreeMap<(String, String), ReasonParts> {
    let report: Value =
        serde_json::from_str(&output_of(&["exits", "--format", "json", host])).unwrap();
    let mut all = BTreeMap::new();
    for row in report["rows"].as_array().unwrap() {
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        let number = |name: &str| row[name].as_u64();
        let keys = ["paired", "kernel_ns", "user_ns", "off_cpu_ns", "halt_poll_ns"];
        let new = || ReasonParts { sums: [0; 5], shortest_ns: u64::MAX, polls: true };
        let parts = all.entry((text("vm"), text("reason"))).or_insert_with(new);
        parts.shortest_ns = parts.shortest_ns.min(number("min_ns").unwrap_or(u64::MAX));
        parts.polls &= number("halt_poll_ns").is_some() || number("kernel_ns").is_none();
        for (sum, key) in parts.sums.iter_mut().zip(keys) {
            *sum += number(key).unwrap_or(0);
        }
    }
    all
}

/// The same from the tracks of vCPUs; without the count if the format drops times of exits.
fn parts_by_tracks(summary: &Value) -> ByReason {
    let mut all = ByReason::new();
    for (track, what) in summary["tracks"].as_object().unwrap() {
        let Some((vm, _)) = track.split_once(" vCPUs") else { continue };
        for (reason, exits) in what["exits"].as_object().unwrap() {
            let ns = |states: &[&str]| {
                states.iter().map(|state| exits["ns"][state].as_u64().unwrap_or(0)).sum()
            };
            let found: [u64; 5] = [
                exits["count"].as_u64().unwrap(),
                ns(&["exit_kernel"]),
                ns(&["exit_user"]),
                ns(&["waiting", "preempted", "halted", "blocked"]),
                ns(&["halt_poll"]),
            ];
            let sums = all.entry((vm.to_owned(), reason.clone())).or_default();
            sums.iter_mut().zip(found).for_each(|(sum, more)| *sum += more);
        }
    }
    all
}

/// Events of a recording by name.
fn counts(file: &str) -> BTreeMap<String, u64> {
    let info: Value =
        serde_json::from_str(&output_of(&["info", "--format", "json", file])).unwrap();
    let events = info["files"][0]["events"].as_object().unwrap();
    events.iter().map(|(name, count)| (name.clone(), count.as_u64().unwrap())).collect()
}

/// The lines that `events` prints, without its messages.
fn lines(args: &[&str]) -> String {
    let style: &[&str] = if args.contains(&"--raw") { &[] } else { &["--numeric"] };
    let run = hyperscope(&[&["events"], style, args].concat());
    assert_eq!(run.code, 0, "{}", run.err);
    run.out
}

/// A temporary folder.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

#[test]
fn text_goes_to_standard_output_too() {
    for to in ["chrome", "firefox", "csv", "jsonl", "perfetto"] {
        let folder = folder();
        let file = folder.path().join("out");
        export(to, &file, &[SMP]);
        let piped = crate::tool::command().args(["export", "--to", to, SMP]).output().unwrap();
        assert!(piped.status.success() && piped.stderr.is_empty());
        assert!(piped.stdout == fs::read(&file).unwrap(), "{to}");
    }
}
