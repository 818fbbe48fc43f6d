//! trace-cmd, and with it libtraceevent, reads exports of every kind of input.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::{SMP, export, folder, lines};
use crate::inputs::write_raw_pages;
use crate::made_ctf::{self, MadeOrder};
use crate::tool::{recordings, repository};

/// Inputs besides the bundled trace.dat files.
const OTHERS: [&str; 19] = [
    "fixtures/arm64/D.ctf",
    "fixtures/arm64/D.perf.data",
    "fixtures/barectf/trace",
    "fixtures/lttng-program/trace",
    "fixtures/lttng-program/lossy",
    "fixtures/x86-svm/lttng",
    "fixtures/x86-svm/lttng-context",
    "fixtures/x86-svm/lttng-ctf2",
    "fixtures/x86-svm/lttng-lossy",
    "crates/cli/tests/inputs/ctf-clock-beyond",
    "crates/cli/tests/inputs/perf-ctf-cpu-in-events",
    "crates/cli/tests/inputs/perf-ctf-cpu-in-packets",
    "crates/cli/tests/inputs/perf-ctf-wakeups",
    "crates/cli/tests/inputs/perf-ctf-wakeups.same.txt",
    "crates/cli/tests/inputs/raw-exit-flags",
    "crates/cli/tests/inputs/raw-kernel-stack",
    "crates/cli/tests/inputs/renamed-thread-that-moved.dat",
    "crates/cli/tests/inputs/six-cpus-four-idle.dat",
    "crates/cli/tests/inputs/text-riscv.txt",
];

/// The output of trace-cmd for a file; `None` if it is not installed.
fn report(options: &[&str], file: &Path) -> Option<String> {
    let output = Command::new("trace-cmd").arg("report").args(options).arg(file).output();
    let Ok(output) = output else {
        testkit::skip!("trace-cmd is not installed (make tools)");
        return None;
    };
    let (out, errors) = (&output.stdout, String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{options:?} {}: {errors}", file.display());
    assert_eq!(errors, "", "{options:?} {}", file.display());
    Some(String::from_utf8_lossy(out).into_owned())
}

/// Sorted lines. Losses come before the next event in trace-cmd's text, but after the last one in ours, and both learn
/// names of threads that only events have in different ways.
fn events(text: &str) -> Vec<String> {
    let fields = |line: &str| {
        let (_, rest) = line.split_once('[')?;
        Some(rest.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let mut lines: Vec<String> = text
        .lines()
        .filter(|line| !line.starts_with("cpus=") && !line.contains("EVENTS DROPPED"))
        .map(|line| fields(line).unwrap_or_else(|| line.trim().to_owned()))
        .collect();
    lines.sort_unstable();
    lines
}

/// Converts arrays in trace-cmd's form: `{0x1,0x2}` becomes `1 2`.
fn with_plain_arrays(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, array)) = rest.split_once("={") {
        let Some((numbers, behind)) = array.split_once('}') else { break };
        let number =
            |digits: &str| u64::from_str_radix(digits.trim_start_matches("0x"), 16).unwrap();
        let numbers = numbers.split(',').filter(|digits| !digits.is_empty()).map(number);
        let numbers: Vec<String> = numbers.map(|value| value.to_string()).collect();
        out.push_str(&format!("{before}={}", numbers.join(" ")));
        rest = behind;
    }
    out + rest
}

/// Exports an input, and compares trace-cmd's text with ours.
fn check(input: &str, file: &Path) {
    export("tracedat", file, &[input]);
    let Some(plain) = report(&["-N"], file) else { return };
    let raw = report(&["-N", "-R"], file).unwrap();
    let mut all: BTreeMap<&str, String> = BTreeMap::new();
    for (name, options) in [("plugins", &[][..]), ("latency", &["-l"])] {
        all.insert(name, report(options, file).unwrap());
    }
    for (name, text) in all.iter().map(|(name, text)| (*name, text)).chain([("-N", &plain)]) {
        let failed = text.lines().find(|line| line.contains("FAILED TO PARSE"));
        assert_eq!(failed, None, "{input} {name}");
    }
    // trace-cmd reads arrays of ftrace beyond the ends of their records, except with its code for stacks.
    if input.contains("kernel-stack") {
        let stack = &all["plugins"];
        assert!(["=> alpha", "=> beta"].iter().all(|frame| stack.contains(frame)), "{stack}");
    } else {
        let ours = with_plain_arrays(&lines(&[input]));
        assert_eq!(first_difference(&events(&plain), &events(&ours)), None, "{input}");
        let ours = lines(&["--raw", input]);
        assert_eq!(first_difference(&events(&raw), &events(&ours)), None, "{input} --raw");
    }
    assert_eq!(head(&plain), head(&lines(&[input])), "{input}");
}

fn head(text: &str) -> Option<&str> {
    text.lines().next().filter(|line| line.starts_with("cpus="))
}

fn first_difference<'l>(theirs: &'l [String], ours: &'l [String]) -> Option<(&'l str, &'l str)> {
    let longest = theirs.len().max(ours.len());
    let line = |lines: &'l [String], at: usize| lines.get(at).map_or("", String::as_str);
    (0..longest).map(|at| (line(theirs, at), line(ours, at))).find(|(first, other)| first != other)
}

#[test]
fn trace_cmd_reads_exports_of_every_input() {
    let folder = folder();
    let file = folder.path().join("out.dat");
    for input in OTHERS {
        check(repository().join(input).to_str().unwrap(), &file);
    }
    let pages = folder.path().join("pages");
    write_raw_pages(SMP, &pages, |cpu| format!("cpu{cpu}"));
    check(pages.to_str().unwrap(), &file);
    let text = folder.path().join("text.txt");
    std::fs::write(&text, lines(&[SMP])).unwrap();
    check(text.to_str().unwrap(), &file);
}

/// Exports of recordings that are trace.dat files: `files.rs` compares their text with the original's.
#[test]
fn trace_cmd_parses_every_event_of_exported_recordings() {
    let folder = folder();
    let file = folder.path().join("out.dat");
    for recording in recordings() {
        // The largest one takes seconds, and is no special case.
        if recording.contains("nested") {
            continue;
        }
        export("tracedat", &file, &[&recording]);
        for options in [&["-N"][..], &[]] {
            let Some(text) = report(options, &file) else { return };
            let failed = text.lines().find(|line| line.contains("FAILED TO PARSE"));
            assert_eq!(failed, None, "{recording} {options:?}");
        }
    }
}

/// Fields of all kinds, in both byte orders, as other tracers may have them.
#[test]
fn trace_cmd_reads_fields_of_every_kind() {
    for order in [MadeOrder::Little, MadeOrder::Big] {
        let folder = folder();
        let trace = folder.path().join("trace");
        made_ctf::of_every_kind(&trace, order);
        check(trace.to_str().unwrap(), &folder.path().join("out.dat"));
    }
}
