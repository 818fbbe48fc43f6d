//! Guests' clocks against their hosts', on real recordings: the results of windows, their independence of other
//! methods, and the order of merged events.

use std::fs;

use serde_json::Value;

use crate::schemas::{check, closed};
use crate::tool::{assert_golden, hyperscope, output_of, repository};

const PAIRS: [(&str, &str, u64); 2] = [
    ("fixtures/x86-svm/host-guest.dat", "fixtures/x86-svm/host-guest.guest.dat", 119),
    ("fixtures/arm64/A.dat", "fixtures/arm64/A.guest.dat", 148),
];

fn align(args: &[&str]) -> Value {
    let text = output_of(&[&["align", "--format", "json"], args].concat());
    serde_json::from_str(&text).unwrap()
}

fn method<'r>(report: &'r Value, name: &str) -> &'r Value {
    let methods = report["guests"][0]["methods"].as_array().unwrap();
    methods.iter().find(|method| method["method"] == name).unwrap()
}

/// Both sides on `x86-tsc`, with the guest's TSC offset in the file.
const TSC: (&str, &str) = ("fixtures/x86-svm/tsc.dat", "fixtures/x86-svm/tsc.guest.dat");

/// Guest events in a merged recording at positions where the vCPU's thread was between an exit and an entry, judged
/// only by the order of lines, as readers do.
fn out_of_order(host: &str, guest: &str, thread: u64, method: &str) -> (usize, usize) {
    let run = hyperscope(&["events", "--method", method, "--format", "jsonl", host, guest]);
    assert_eq!(run.code, 0, "{}", run.err);
    let (mut away, mut outside, mut events) = (false, 0, 0);
    for line in run.out.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        match event["event"].as_str().unwrap() {
            "kvm:kvm_exit" if event["pid"] == thread => away = true,
            "kvm:kvm_entry" if event["pid"] == thread => away = false,
            _ if event["level"] == 1 => {
                events += 1;
                outside += usize::from(away);
            }
            _ => {}
        }
    }
    (outside, events)
}

#[test]
fn windows_leave_no_event_outside_and_show_that_time_shift_is_off() {
    for (host, guest, _) in PAIRS {
        let report = align(&[host, guest]);
        check(&closed("align"), &report, guest);
        assert_eq!(report["guests"][0]["method"], "windows", "{guest}");
        let rows = report["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 1, "{guest}: one vCPU, one steady clock");
        assert_eq!(rows[0]["violations"], 0, "{guest}");
        assert!(rows[0]["events"].as_u64().unwrap() > 8000, "{guest}");
        assert!(rows[0]["bound_ns"].as_u64().unwrap() < 100_000, "{guest}");
        let shift = method(&report, "time_shift");
        assert!(shift["violations"].as_u64().unwrap() > 2000, "{guest}: {shift}");
        assert_eq!(shift["agrees_with_windows"], false, "{guest}: {shift}");
        assert!(shift["from_windows_ns"].as_u64().unwrap() > 1_000_000, "{guest}: {shift}");
        assert_eq!(method(&report, "tsc_offset")["usable"], false, "{guest}");
    }
}

#[test]
fn windows_agree_with_recorded_tsc_offsets_within_their_bound() {
    let report = align(&[TSC.0, TSC.1]);
    check(&closed("align"), &report, TSC.1);
    assert_eq!(report["guests"][0]["method"], "tsc_offset");
    for name in ["tsc_offset", "time_shift", "windows"] {
        assert_eq!(method(&report, name)["violations"], 0, "{name}");
    }
    let windows = align(&["--method", "windows", TSC.0, TSC.1]);
    let rows = |report: &Value| report["rows"].as_array().unwrap().clone();
    assert_eq!((rows(&report).len(), rows(&windows).len()), (2, 2), "two vCPUs");
    for (exact, bounded) in rows(&report).iter().zip(rows(&windows)) {
        assert_eq!(
            (&exact["vcpu"], &exact["guest_cpu"]),
            (&bounded["vcpu"], &bounded["guest_cpu"])
        );
        let off = exact["offset_ns"].as_i64().unwrap() - bounded["offset_ns"].as_i64().unwrap();
        let bound = bounded["bound_ns"].as_u64().unwrap();
        assert!(off.unsigned_abs() <= bound && bound < 20_000, "{off} {bound}");
    }
    assert_eq!(method(&report, "tsc_offset")["agrees_with_windows"], true);
}

#[test]
fn windows_need_nothing_but_the_trace() {
    let folder = tempfile::tempdir().unwrap();
    for (host, guest, _) in PAIRS {
        let report = align(&[host, guest]);
        // The same guest, with a TIME_SHIFT that is off by a second, or refers to another recording.
        let mut bytes = fs::read(repository().join(guest)).unwrap();
        let shift = if guest.contains("arm64") { 12_870_553_760_u64 } else { 13_202_474_444 };
        let at = bytes.windows(8).position(|eight| eight == shift.to_le_bytes()).unwrap();
        bytes[at..at + 8].copy_from_slice(&(shift + 1_000_000_000).to_le_bytes());
        let path = folder.path().join("guest.dat");
        fs::write(&path, &bytes).unwrap();
        let wrong = align(&[host, path.to_str().unwrap()]);
        assert_ne!(method(&wrong, "time_shift"), method(&report, "time_shift"), "{guest}");
        let row = |report: &Value| {
            let mut row = report["rows"][0].clone();
            row["source"] = Value::Null;
            row
        };
        assert_eq!(row(&wrong), row(&report), "{guest}");
    }
}

#[test]
fn the_method_asked_for_is_taken() {
    let (host, guest, _) = PAIRS[1];
    let report = align(&["--method", "time_shift", host, guest]);
    check(&closed("align"), &report, guest);
    let row = &report["rows"][0];
    assert_eq!(row["method"], "time_shift");
    assert_eq!(row["bound_ns"], Value::Null, "TIME_SHIFT states no bound");
    assert!(row["violations"].as_u64().unwrap() > 2000, "{row}");
    let report = align(&["--method", "tsc_offset", host, guest]);
    check(&closed("align"), &report, guest);
    assert_eq!(report["rows"].as_array().unwrap().len(), 0);
    let run = hyperscope(&["events", "--method", "tsc_offset", host, guest]);
    assert_eq!((run.code, run.out.as_str()), (1, ""));
    assert!(run.err.contains("the host was recorded with the clock local"), "{}", run.err);
    let run = hyperscope(&["events", "--method", "windows", guest]);
    assert_eq!((run.code, run.out.as_str()), (1, ""));
    assert!(run.err.contains("and of its host"), "{}", run.err);
}

#[test]
fn merged_events_are_in_causal_order() {
    for (host, guest, thread) in PAIRS {
        let (outside, events) = out_of_order(host, guest, thread, "windows");
        // The remaining events share a stamp with another event of their CPU: a clock stood still, on either side.
        assert!(outside * 100 < events, "{guest}: {outside} of {events}");
        let (outside, events) = out_of_order(host, guest, thread, "time_shift");
        assert!(outside * 100 > events * 14, "{guest}: {outside} of {events}");
    }
}

#[test]
fn the_line_about_alignment_comes_with_merged_events() {
    let (host, guest, _) = PAIRS[1];
    let run = hyperscope(&["events", host, guest]);
    assert!(
        run.err.starts_with("hyperscope: vm-148: aligned by windows, within ")
            && run.err.contains("; 0 of 17,117 events outside the windows of their vCPU\n"),
        "{}",
        run.err
    );
    assert_eq!(run.err.lines().count(), 1, "{}", run.err);
}

#[test]
fn reports_are_as_expected() {
    let names = ["x86-svm-host-guest", "arm64-A", "x86-svm-tsc"];
    let pairs = [(PAIRS[0].0, PAIRS[0].1, 3), (PAIRS[1].0, PAIRS[1].1, 3), (TSC.0, TSC.1, 7)];
    for (name, (host, guest, lines)) in names.into_iter().zip(pairs) {
        assert_golden(&format!("{name}.align.txt"), &output_of(&["align", host, guest]));
        // In either order.
        let swapped = output_of(&["align", guest, host]);
        assert_eq!(swapped, output_of(&["align", host, guest]));
        let csv = output_of(&["align", "--format", "csv", host, guest]);
        assert_eq!(csv.lines().count(), lines, "{csv}");
    }
}

#[test]
fn without_a_guest_there_is_nothing_to_align() {
    let text = output_of(&["align", "fixtures/arm64/D.dat"]);
    let expected = "No pair of a guest's recording and its host's recording.\n\
                    78 events that the kernel counted but the recording does not contain\n";
    assert_eq!(text, expected);
    let report = align(&["fixtures/arm64/D.dat"]);
    check(&closed("align"), &report, "one recording");
    // A guest that never ran on this host is refused.
    let run =
        hyperscope(&["align", "fixtures/arm64/D.dat", "fixtures/x86-svm/host-guest.guest.dat"]);
    assert!(run.code == 2 && run.err.contains("a guest of another host"), "{}", run.err);
}

/// A recording that the alignment does not read is read for its losses.
#[test]
fn losses_of_recordings_that_no_guest_runs_on_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("host.txt");
    let lines = "CPU 0/KVM-10 [000] 100.000001: kvm_exit: vcpu 0 reason HLT rip 0x1000\n\
                 CPU:0 [LOST 5 EVENTS]\n\
                 CPU 0/KVM-10 [000] 100.000004: kvm_entry: vcpu 0, rip 0x1000\n";
    std::fs::write(&text, lines).unwrap();
    let run = hyperscope(&["align", text.to_str().unwrap()]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.contains("dropped 5 events"), "{}", run.out);
}

/// Damage in records of a guest and its host is reported, whether or not the alignment reads them.
#[test]
fn damage_is_reported_as_exits_reports_it() {
    const GUEST: &str = "fixtures/x86-svm/host-guest.guest.dat";
    let folder = tempfile::tempdir().unwrap();
    let damaged = folder.path().join("guest.dat");
    let mut bytes = fs::read(repository().join(GUEST)).unwrap();
    let at = bytes.len() / 20 * 19;
    bytes[at..at + 200].fill(0xff);
    fs::write(&damaged, bytes).unwrap();
    let damaged = damaged.to_str().unwrap();
    let exits = output_of(&["exits", "--format", "json", damaged]);
    let exits: Value = serde_json::from_str(&exits).unwrap();
    assert!(exits["losses"]["pages_damaged"].as_u64() > Some(0), "{exits}");
    // Its host, a host that it never ran on, and none.
    for host in [&["fixtures/x86-svm/host-guest.dat"][..], &["fixtures/x86-svm/functions.dat"], &[]]
    {
        let files = [host, &[damaged]].concat();
        let report = align(&files);
        assert_eq!(report["losses"]["pages_damaged"], exits["losses"]["pages_damaged"], "{host:?}");
        let text = output_of(&[&["align"], &files[..]].concat());
        assert!(text.contains("could not be read"), "{host:?}: {text}");
    }
}
