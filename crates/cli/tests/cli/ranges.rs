//! `--from` and `--to`: every verb reads exactly the range.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::tool::{Run, hyperscope, output_of, recordings};

/// Ranges from the beginning, in milliseconds: some exceed the recording.
const RANGES_MS: [(u64, u64); 4] = [(0, 300), (137, 451), (700, 2_300), (1_999, 60_000)];

fn in_range(args: &[&str], from: &str, to: &str) -> Run {
    let run = hyperscope(&[args, &["--from", from, "--to", to]].concat());
    assert_eq!(run.code, 0, "{args:?} {from} {to}: {}", run.err);
    run
}

fn document(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn plain(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

fn seconds_from_beginning(ms: u64) -> String {
    format!("+{}.{:03}", ms / 1000, ms % 1000)
}

fn stamp_ns(line: &str) -> u64 {
    document(line)["ts_ns"].as_u64().unwrap()
}

#[test]
fn events_in_a_range_are_those_of_the_whole_recording_with_such_times() {
    let mut cut = 0;
    for path in ["fixtures/arm64/D.dat", "fixtures/x86-vmx/smp.dat", "fixtures/x86-svm/nested.dat"]
    {
        let all = output_of(&["events", "--format", "jsonl", "-e", "kvm_e*", path]);
        let stamps: Vec<u64> = all.lines().map(stamp_ns).collect();
        let begin_ns = stamps[stamps.len() / 3];
        for (from_ns, to_ns) in [
            (begin_ns, begin_ns + 50_000_000),
            (begin_ns + 1, begin_ns + 777_777),
            (0, begin_ns),
            (stamps[stamps.len() - 40], u64::MAX / 1_000_000_000 * 1_000_000_000),
        ] {
            let wanted: Vec<&str> = all
                .lines()
                .zip(&stamps)
                .filter(|(_, stamp)| (from_ns..to_ns).contains(stamp))
                .map(|(line, _)| line)
                .collect();
            let args = ["events", "--format", "jsonl", "-e", "kvm_e*", path];
            let run = in_range(&args, &plain(from_ns), &plain(to_ns));
            assert!(run.out.lines().eq(wanted.iter().copied()), "{path} {from_ns} {to_ns}");
            cut += usize::from(!wanted.is_empty());
        }
    }
    assert!(cut >= 10, "{cut}");
}

/// A file that is cut to the range, event by event, gives the same result.
#[test]
fn a_time_with_a_unit_is_that_time_in_seconds() {
    let path = "fixtures/x86-vmx/smp.dat";
    let exits = |from, to| in_range(&["exits", "--format", "csv", path], from, to).out;
    let expected = exits("+0.2", "+0.5");
    for (from, to) in [("+200ms", "+500ms"), ("+200000us", "+0.5s"), ("+200000000ns", "+.5")] {
        assert_eq!(exits(from, to), expected, "{from} {to}");
    }
    let all = output_of(&["exits", "--format", "csv", path]);
    assert_eq!(exits("+0h", "+2m"), all);
    assert_ne!(expected, all);
}

#[test]
fn exports_end_at_the_given_time_in_all_forms() {
    let path = "fixtures/x86-vmx/smp.dat";
    let export = |args: &[&str]| {
        let run = hyperscope(&[&["export"], args, &[path]].concat());
        assert_eq!(run.code, 0, "{args:?}: {}", run.err);
        run.out
    };
    let expected = export(&["--format", "csv", "--from", "+0.1", "--to", "+0.2"]);
    assert!(expected.lines().count() > 10);
    for before in [
        &["--to", "csv", "--from", "+0.1", "--until", "+0.2"][..],
        &["--to", "csv", "--from", "+100ms", "--to", "+200ms"],
        &["--format", "csv", "--from", "+0.1", "--until", "+200ms"],
    ] {
        assert_eq!(export(before), expected, "{before:?}");
    }
}

#[test]
fn reports_of_a_range_are_those_of_a_file_cut_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut compared = BTreeMap::new();
    for (path, (from_ms, to_ms)) in recordings().iter().zip(RANGES_MS.iter().cycle()) {
        let (from, to) = (seconds_from_beginning(*from_ms), seconds_from_beginning(*to_ms));
        let cut = folder.path().join("cut.dat");
        let cut = cut.to_str().unwrap();
        let _ = std::fs::remove_file(cut);
        let run = hyperscope(&[
            "export", "--to", "tracedat", "--from", &from, "--until", &to, "-o", cut, path,
        ]);
        assert_eq!(run.code, 0, "{path}: {}", run.err);
        for (verb, table) in [
            ("exits", "rows"),
            ("nested", "rows"),
            ("cpu", "vcpus"),
            ("profile", "vcpus"),
            ("path", "paths"),
        ] {
            let cut_run = hyperscope(&[verb, "--format", "json", cut]);
            if cut_run.code != 0 {
                continue;
            }
            let expected = document(&cut_run.out.replace(cut, path))[table].clone();
            let args = [verb, "--format", "json", path, "--from", &from, "--to", &to];
            let run = hyperscope(&args);
            if run.code == 2 {
                assert!(run.err.contains("no events in this range"), "{}", run.err);
                assert_eq!(expected, Value::Array(Vec::new()), "{verb} {path} {from} {to}");
                continue;
            }
            assert_eq!(run.code, 0, "{args:?}: {}", run.err);
            let part = document(&run.out);
            assert_eq!(part[table], expected, "{verb} {path} {from} {to}");
            *compared.entry(verb).or_insert(0) += expected.as_array().unwrap().len();
        }
    }
    assert!(compared["exits"] > 50 && compared["cpu"] > 5, "{compared:?}");
}

/// Ranges of a host and its guests use one clock, whatever clock the verb counts with.
#[test]
fn guests_are_cut_by_the_clock_of_their_host() {
    let both = ["fixtures/x86-svm/host-guest.dat", "fixtures/x86-svm/host-guest.guest.dat"];
    let jsonl = output_events(&both, "+0.5", "+0.9");
    let mut by_file: BTreeMap<bool, Vec<u64>> = BTreeMap::new();
    for line in jsonl.lines() {
        let event = document(line);
        by_file
            .entry(event["machine"] == "host")
            .or_default()
            .push(event["ts_ns"].as_u64().unwrap());
    }
    let info = document(
        &in_range(&[&["info", "--format", "json"][..], &both].concat(), "+0.5", "+0.9").out,
    );
    for (at, is_host) in [(0, true), (1, false)] {
        let events = info["files"][at]["events"].as_object().unwrap();
        let count: u64 = events.values().filter_map(Value::as_u64).sum();
        let stamps = by_file.get(&is_host).map_or(&[][..], Vec::as_slice);
        assert_eq!(count, stamps.len() as u64, "{}", both[at]);
        assert!(count > 100, "{count}");
        assert!(stamps.last().unwrap() - stamps[0] <= 400_000_000, "{}", both[at]);
    }
}

fn output_events(paths: &[&str], from: &str, to: &str) -> String {
    in_range(&[&["events", "--format", "jsonl"][..], paths].concat(), from, to).out
}

#[test]
fn what_is_left_out_is_said() {
    let run = in_range(&["exits", "fixtures/x86-svm/nested.dat"], "+0.5", "+0.8");
    assert!(run.err.contains("left out: 500 ms before it, 59.2 s after it"), "{}", run.err);
    for verb in ["exits", "calls", "events", "cpu", "profile"] {
        let run = hyperscope(&[verb, "--from", "1", "--to", "2", "fixtures/x86-svm/nested.dat"]);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{verb}");
        let wanted = "no events in this range: the recording covers 42.";
        assert!(run.err.contains(wanted), "{verb}: {}", run.err);
    }
}

#[test]
fn all_verbs_that_read_recordings_take_a_range() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let page = page.to_str().unwrap();
    let host = "fixtures/x86-svm/host-guest.dat";
    let guest = "fixtures/x86-svm/host-guest.guest.dat";
    let lines: [&[&str]; 12] = [
        &["info", host],
        &["exits", host],
        &["nested", host],
        &["cpu", host, guest],
        &["path", host, guest],
        &["align", host, guest],
        &["events", host],
        &["calls", "fixtures/x86-svm/calls.dat"],
        &["boot", host],
        &["hypertrace", "fixtures/x86-svm/hypertrace.dat"],
        &["report", "-o", page, host, guest],
        &["diff", host, "fixtures/x86-vmx/smp.dat"],
    ];
    for line in lines {
        let full = hyperscope(line);
        let part = hyperscope(&[line, &["--from", "+0.1", "--to", "+0.6"]].concat());
        assert!(part.code == 0 || full.code != 0, "{line:?}: {}", part.err);
        let unknown = hyperscope(&[line, &["--from", "soon"]].concat());
        assert!(unknown.code == 2 && unknown.err.contains("+1.5"), "{line:?}: {}", unknown.err);
        let empty = hyperscope(&[line, &["--from", "+2", "--to", "+1"]].concat());
        assert!(
            empty.code == 2 && empty.err.contains("--from is later than"),
            "{line:?}: {}",
            empty.err
        );
    }
    let by_clock = hyperscope(&["diff", "--from", "65", host, "fixtures/x86-vmx/smp.dat"]);
    assert!(
        by_clock.code == 2 && by_clock.err.contains("relative to their beginnings"),
        "{}",
        by_clock.err
    );
}

fn exits_by_vcpu(more: &[&str], path: &str) -> Vec<Value> {
    let args = [&["exits", "--format", "json", "--by", "vcpu,level,reason"][..], more, &[path]];
    let run = hyperscope(&args.concat());
    assert_eq!(run.code, 0, "{more:?} {path}: {}", run.err);
    document(&run.out)["rows"].as_array().unwrap().clone()
}

/// Rows without shares, whose totals depend on the part that is read.
fn without_shares(rows: Vec<Value>) -> Vec<Value> {
    let without = |mut row: Value| {
        row.as_object_mut().unwrap().retain(|field, _| !field.ends_with("_share"));
        row
    };
    rows.into_iter().map(without).collect()
}

#[test]
fn exits_of_some_vcpus_are_as_among_all() {
    let mut several = 0;
    for path in recordings() {
        let all = exits_by_vcpu(&[], &path);
        let vcpus: BTreeSet<u64> = all.iter().filter_map(|row| row["vcpu"].as_u64()).collect();
        for vcpu in vcpus.iter().filter(|_| vcpus.len() > 1) {
            let wanted = all.iter().filter(|row| row["vcpu"].as_u64() == Some(*vcpu));
            let wanted = without_shares(wanted.cloned().collect());
            let found = without_shares(exits_by_vcpu(&["--vcpu", &vcpu.to_string()], &path));
            assert_eq!(found, wanted, "{path} {vcpu}");
            several += 1;
        }
    }
    assert!(several >= 4, "{several}");
}

#[test]
fn vms_are_chosen_by_name_and_states_of_their_vcpus_are_as_among_all() {
    let path = "fixtures/x86-vmx/smp.dat";
    let all = document(&output_of(&["cpu", "--format", "json", path]));
    let row = all["vcpus"].as_array().unwrap().last().unwrap().clone();
    let (vm, vcpu) = (row["vm"].as_str().unwrap(), row["vcpu"].to_string());
    let run = hyperscope(&["cpu", "--format", "json", "--vm", vm, "--vcpu", &vcpu, path]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.err.contains("left out: exits of 2 of 3 vCPUs"), "{}", run.err);
    assert_eq!(document(&run.out)["vcpus"], Value::from(vec![row.clone()]));
    let run = hyperscope(&["exits", "--vm", "nobody", path]);
    let named = run.err.contains("no VM is called nobody; the VMs are: ") && run.err.contains(vm);
    assert!(run.code == 1 && named, "{}", run.err);
    let run = hyperscope(&["exits", "--vcpu", "77", path]);
    assert!(run.code == 1 && run.err.contains("no vCPU has one of these numbers"), "{}", run.err);
}
