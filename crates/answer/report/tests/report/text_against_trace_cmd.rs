//! Compares the text of every event of the bundled recordings with `trace-cmd report`.
//!
//! trace-cmd prints an event from its print fmt (`-N`) or through a plugin. Both are compared line by
//! line; where the two differ, a table says which is wrong and why.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use report::events::{Machine, Style, write_events};
use timeline::event_filter::Filter;

/// Events whose text differs from that of `trace-cmd report -N`, with the reason.
const TRACE_CMD_IS_WRONG: &[(&str, &str)] = &[
    ("kvm_pvclock_update", "prints the signed field tsc_shift without its sign"),
    ("timer_start", "takes a & (b | c) for (a & b) | c"),
    ("kvm_inj_exception", "cannot parse the empty table { }: [FAILED TO PARSE]"),
    ("kvm_sys_access", "cannot parse ?: between strings: [FAILED TO PARSE]"),
    ("kvm_wfx_arm64", "has no %c and shifts the arguments after it"),
];

/// Events that a plugin of trace-cmd prints differently.
const PLUGINS: &[(&str, &str)] = &[
    (
        "kvm_nested_vmexit",
        "plugin_kvm: old field names, <CANT FIND FIELD rip> before the same text",
    ),
    ("hrtimer_expire_entry", "plugin_hrtimer: other order"),
    ("hrtimer_start", "plugin_hrtimer: other order"),
];

/// Such events in recordings of arm64, where events have other fields than the plugin expects.
const PLUGINS_ON_ARM64: &[(&str, &str)] = &[
    ("kvm_exit", "plugin_kvm: <CANT FIND FIELD exit_reason> before the same text"),
    ("kvm_entry", "plugin_kvm: <CANT FIND FIELD rip> before the same text"),
];

/// Such events in recordings of nested guests on VMX.
const PLUGINS_ON_NESTED_VMX: &[(&str, &str)] =
    &[("kvm_exit", "plugin_kvm: UNKNOWN for the reasons 46, 47 and 53, which the kernel names")];

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures")
}

fn our_text(path: &Path, style: Style<'_>) -> String {
    let recording = sources::open(path).unwrap();
    let machine = Machine { name: "host".to_owned(), level: 0, threads: None };
    let mut out = Vec::new();
    let filter = Filter::default();
    write_events(&[recording], &[machine], &filter, style, &mut out, &|_| ()).unwrap();
    String::from_utf8_lossy(&out).into_owned()
}

/// The output of trace-cmd; `None` if it is not installed.
fn their_text(path: &Path, options: &[&str]) -> Option<String> {
    let output = Command::new("trace-cmd").arg("report").args(options).arg(path).output();
    let Ok(output) = output else {
        testkit::skip!("trace-cmd is not installed (make tools)");
        return None;
    };
    assert!(output.status.success(), "trace-cmd failed on {}", path.display());
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Thread and comm, CPU and time; the event's name; its text.
fn split(line: &str) -> (&str, &str, &str) {
    let at = line.find("] ").expect("a line has its CPU in brackets");
    let colon = at + line[at..].find(": ").expect("a line has its time");
    let (before, event) = (&line[..colon], &line[colon + 2..]);
    let (name, text) = event.split_once(':').expect("an event has its name");
    (before, name, text)
}

/// Name and id of the thread of a line, and the rest of the line.
fn thread(line: &str) -> (&str, &str, &str) {
    let at = line.find(" [").expect("a line has its CPU in brackets");
    let (name, pid) = line[..at].trim().rsplit_once('-').expect("a line has its thread");
    (name, pid, &line[at..])
}

/// The threads that have no name in trace-cmd's output from print fmts alone.
fn nameless(theirs: &str) -> BTreeSet<&str> {
    let threads = theirs.lines().skip(1).map(thread);
    threads.filter(|(name, ..)| *name == "<...>").map(|(_, pid, _)| pid).collect()
}

/// Compares line by line; returns the number of lines of each event whose text differs. Everything else
/// must be equal, except the names of threads that are `nameless`.
fn differing(ours: &str, theirs: &str, nameless: &BTreeSet<&str>) -> BTreeMap<String, u64> {
    assert_eq!(ours.lines().count(), theirs.lines().count(), "as many lines");
    assert_eq!(ours.lines().next(), theirs.lines().next(), "the number of CPUs comes first");
    let mut counts = BTreeMap::new();
    for (ours, theirs) in ours.lines().zip(theirs.lines()).filter(|(ours, theirs)| ours != theirs) {
        let (our_head, our_name, our_text) = split(ours);
        let (their_head, their_name, their_text) = split(theirs);
        assert_eq!(our_name, their_name);
        if nameless.contains(thread(theirs).1) {
            let unnamed = |head: &str| thread(head).2.to_owned();
            assert_eq!(thread(ours).1, thread(theirs).1);
            assert_eq!(
                (our_head.len(), unnamed(our_head)),
                (their_head.len(), unnamed(their_head))
            );
        } else {
            assert_eq!(our_head, their_head);
        }
        if our_text != their_text {
            *counts.entry(our_name.to_owned()).or_default() += 1;
        }
    }
    counts
}

/// Names in a line of trace-cmd, with the ids of their threads.
fn names_on(line: &str) -> Vec<(&str, &str)> {
    let (_, event, text) = split(line);
    // In sched_process_wait, name and id belong to different threads. A thread that runs another program
    // is named after its file from that event on.
    if event == "sched_process_exec" {
        let file = text.split_once(" filename=").and_then(|(_, rest)| rest.split(' ').next());
        let pid = text.split_once(" pid=").and_then(|(_, rest)| rest.split(' ').next());
        let base = file.map(|file| file.rsplit('/').next().unwrap_or(file));
        return pid.zip(base.map(|base| &base[..base.len().min(15)])).into_iter().collect();
    }
    if !event.starts_with("sched_") || event == "sched_process_wait" {
        return Vec::new();
    }
    let pair = |prefix: &str| {
        let rest = text.split_once(&format!(" {prefix}comm="))?.1;
        let (comm, rest) = rest.split_once(&format!(" {prefix}pid="))?;
        Some((rest.split(' ').next()?, comm))
    };
    ["", "prev_", "next_", "child_"].into_iter().filter_map(pair).collect()
}

/// A thread without a name in trace-cmd's output has the last name from its lines or, without an earlier
/// one, the first. Names change when a thread runs another program.
fn nameless_threads_are_named_alike(ours: &str, theirs: &str, nameless: &BTreeSet<&str>) {
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    for line in theirs.lines().skip(1) {
        for (pid, comm) in names_on(line) {
            names.entry(pid).or_insert(comm);
        }
    }
    for (ours, theirs) in ours.lines().zip(theirs.lines()).skip(1) {
        names.extend(names_on(theirs));
        let (name, pid, _) = thread(ours);
        if nameless.contains(pid) {
            assert_eq!(Some(&name), names.get(pid), "{ours}");
        }
    }
}

fn only_known(name: &str, counts: &BTreeMap<String, u64>, known: &[&[(&str, &str)]]) {
    for (event, count) in counts {
        let known = known.iter().copied().flatten().any(|(known, _)| known == event);
        assert!(known, "{name}: {count} lines of {event} differ and no table says why");
    }
}

/// Only the events of the first table differ from the print fmts, and these are wrong in the recording.
/// The number of lines is that from when the table was made.
fn check(name: &str, wrong: &[(&str, u64)]) {
    let path = fixtures().join(name);
    let Some(theirs) = their_text(&path, &["-N"]) else { return };
    let ours = our_text(&path, Style::Text);
    let nameless = nameless(&theirs);
    nameless_threads_are_named_alike(&ours, &theirs, &nameless);
    let counts = differing(&ours, &theirs, &nameless);
    let expected: BTreeMap<String, u64> =
        wrong.iter().map(|(event, count)| ((*event).to_owned(), *count)).collect();
    assert_eq!(counts, expected, "{name}");
    only_known(name, &counts, &[TRACE_CMD_IS_WRONG]);
    // Plugins learn names too, but keep the first: a thread keeps its parent's name.
    let Some(by_plugins) = their_text(&path, &[]) else { return };
    let counts = differing(&our_text(&path, Style::TraceCmd), &by_plugins, &nameless);
    let more = match name {
        "x86-vmx/nested.dat" => PLUGINS_ON_NESTED_VMX,
        _ if name.starts_with("arm64") => PLUGINS_ON_ARM64,
        _ => &[],
    };
    only_known(name, &counts, &[TRACE_CMD_IS_WRONG, PLUGINS, more]);
}

#[test]
fn amd_host() {
    check("x86-svm/host-guest.dat", &[("kvm_pvclock_update", 2576)]);
}

#[test]
fn amd_guest() {
    check("x86-svm/host-guest.guest.dat", &[("timer_start", 343)]);
}

#[test]
fn amd_nested() {
    check("x86-svm/nested.dat", &[]);
}

#[test]
fn intel_one_vm() {
    check("x86-vmx/vmm.dat", &[("kvm_inj_exception", 150)]);
}

#[test]
fn intel_three_vms() {
    check("x86-vmx/smp.dat", &[("kvm_inj_exception", 182)]);
}

#[test]
fn intel_nested() {
    check("x86-vmx/nested.dat", &[("kvm_inj_exception", 53)]);
}

#[test]
fn arm64_host() {
    check("arm64/A.dat", &[("kvm_sys_access", 6), ("kvm_wfx_arm64", 153)]);
}

#[test]
fn arm64_guest() {
    check("arm64/A.guest.dat", &[("timer_start", 503)]);
}

#[test]
fn arm64_network() {
    check("arm64/B-vhost-off.dat", &[("kvm_wfx_arm64", 333)]);
    check("arm64/B-vhost-on.dat", &[("kvm_wfx_arm64", 65)]);
}

#[test]
fn arm64_seen_by_perf_too() {
    check("arm64/D.dat", &[("kvm_wfx_arm64", 219)]);
}

/// The same recording as a version 6 file gives the same lines.
#[test]
fn version_6_reads_the_same() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["x86-svm/host-guest.dat", "x86-vmx/smp.dat", "arm64/A.dat", "arm64/A.guest.dat"] {
        let (from, to) = (fixtures().join(name), folder.path().join("v6.dat"));
        let mut convert = Command::new("trace-cmd");
        convert.args(["convert", "--file-version", "6", "--compression", "none", "-i"]);
        let Ok(output) = convert.arg(&from).arg("-o").arg(&to).output() else {
            testkit::skip!("trace-cmd is not installed (make tools)");
            return;
        };
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(our_text(&to, Style::Text), our_text(&from, Style::Text), "{name}");
    }
}

/// Raw fields are printed as trace-cmd prints them.
#[test]
fn raw_fields_are_those_of_trace_cmd() {
    for (name, wrong) in [
        ("x86-vmx/nested.dat", None),
        ("x86-svm/host-guest.dat", Some("kvm_pvclock_update")),
        ("arm64/A.dat", Some("kvm_sys_access")),
    ] {
        let path = fixtures().join(name);
        let Some(theirs) = their_text(&path, &["-N", "-R"]) else { return };
        let counts = differing(&our_text(&path, Style::Raw), &theirs, &nameless(&theirs));
        assert!(counts.keys().all(|event| Some(event.as_str()) == wrong), "{name}: {counts:?}");
    }
}
