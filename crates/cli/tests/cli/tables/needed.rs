//! Parts of tables for queries have the same rows and values as the complete tables.

use std::collections::BTreeSet;
use std::path::Path;

use super::{TableFile, export};

/// Rows of the table of events, with these columns.
fn rows(folder: &Path, columns: &[&str]) -> Vec<Vec<Option<String>>> {
    let table = TableFile::open(folder, "events");
    let columns: Vec<_> = columns.iter().map(|column| table.shown(column)).collect();
    (0..table.len()).map(|row| columns.iter().map(|column| column[row].clone()).collect()).collect()
}

/// Columns without names of threads, which require all earlier events.
const PLAIN: [&str; 9] =
    ["ts_ns", "event", "session_id", "ingest_id", "machine", "level", "cpu", "pid", "fields"];

#[test]
fn parts_of_events_have_the_rows_of_the_whole_table() {
    let with_comm = [&PLAIN[..], &["comm"]].concat();
    for (recordings, event) in [
        (&["fixtures/x86-vmx/smp.dat"][..], "kvm:kvm_exit"),
        (
            &["fixtures/x86-svm/host-guest.dat", "fixtures/x86-svm/host-guest.guest.dat"],
            "sched:sched_switch",
        ),
        (&["fixtures/arm64/D.dat"], "kvm:kvm_entry"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let only = |name: &str, options: &[&str]| {
            let out = folder.path().join(name);
            export(&out, &[&["--only", "events"], options, recordings].concat());
            out
        };
        let all_rows = rows(&only("whole", &[]), &with_comm);
        let ns = |row: &Vec<Option<String>>| row[0].as_ref().unwrap().parse::<i64>().unwrap();
        let (first, last) = (ns(&all_rows[0]), ns(all_rows.last().unwrap()));
        let (from, to) = (first + (last - first) / 3, first + (last - first) * 2 / 3);
        let options = [
            format!("--needed-from={from}"),
            format!("--needed-to={to}"),
            format!("--needed-event={event}"),
        ];
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let is_asked = |row: &&Vec<Option<String>>| {
            (from..to).contains(&ns(row)) && row[1].as_deref() == Some(event)
        };
        for columns in [&PLAIN[..], &with_comm] {
            let cut = |row: &Vec<Option<String>>| row[..columns.len()].to_vec();
            let expected: Vec<_> = all_rows.iter().filter(is_asked).map(cut).collect();
            let name = format!("part-{}", columns.len());
            let listed = format!("--needed-columns={}", columns.join(","));
            let part = only(&name, &[&options[..], &[&listed]].concat());
            let part = rows(&part, columns);
            let actual: Vec<_> = part.iter().filter(|row| is_asked(row)).cloned().collect();
            assert!(
                actual == expected && expected.len() > 20,
                "{recordings:?}: {} {}",
                actual.len(),
                expected.len()
            );
            assert!(part.len() * 2 < all_rows.len(), "{} of {}", part.len(), all_rows.len());
        }
        // Columns that are not requested need not be made.
        let few = rows(&only("few", &["--needed-columns=ts_ns,event"]), &PLAIN[..2]);
        let all: Vec<_> = all_rows.iter().map(|row| row[..2].to_vec()).collect();
        assert!(few == all, "{recordings:?}");
    }
}

/// Names of threads without a list come from events outside the selection: without these, 5 of the 18 rows would have
/// other names.
#[test]
fn names_of_threads_are_those_of_the_whole_table() {
    let folder = tempfile::tempdir().unwrap();
    let only = |name: &str, options: &[&str]| {
        let out = folder.path().join(name);
        let recording = ["fixtures/x86-svm/boot.guest.dat"];
        export(&out, &[&["--only", "events"], options, &recording].concat());
        rows(&out, &["ts_ns", "event", "comm"])
    };
    let event = "sched:sched_process_exec";
    let options = [format!("--needed-event={event}"), "--needed-columns=ts_ns,event,comm".into()];
    let part = only("part", &options.each_ref().map(String::as_str));
    let mut expected = only("whole", &[]);
    expected.retain(|row| row[1].as_deref() == Some(event));
    assert!(expected.len() > 10 && part == expected, "{part:?} {expected:?}");
}

/// Three VMs on two CPUs that wait for each other.
#[test]
fn exits_of_a_vm_are_those_of_the_whole_table() {
    let folder = tempfile::tempdir().unwrap();
    let mut compared = 0;
    let recordings = [
        &["fixtures/x86-vmx/smp.dat"][..],
        &["fixtures/x86-svm/host-guest.dat", "fixtures/x86-svm/host-guest.guest.dat"],
        &["fixtures/x86-svm/nested.dat"],
    ];
    let tables = ["exits", "exit_rollup", "exit_hist", "nested_rollup"];
    let pairs = tables.iter().flat_map(|table| recordings.map(|inputs| (*table, inputs)));
    for (table, recordings) in testkit::sampled(pairs, 2) {
        let made = |name: &str, options: &[&str]| {
            let out = folder.path().join(name);
            export(&out, &[&["--only", table], options, recordings].concat());
            let table = TableFile::open(&out, table);
            let names = table.columns_of_schema().into_iter();
            let columns: Vec<_> = names.map(|column| table.shown(&column.0)).collect();
            let vms = table.shown("vm");
            let row = |at: usize| columns.iter().map(|cells| cells[at].clone()).collect::<Vec<_>>();
            (0..table.len()).map(|at| (vms[at].clone().unwrap(), row(at))).collect::<Vec<_>>()
        };
        let all_rows = made("whole", &[]);
        let vms: BTreeSet<&String> = all_rows.iter().map(|(vm, _)| vm).collect();
        for vm in vms.iter().copied().chain([&"none".to_owned()]) {
            let part = made("part", &[&format!("--needed-vm={vm}")]);
            assert!(part.iter().all(|row| row.0 == *vm) || vms.len() < 2, "{table} {vm}");
            let of_vm = |rows: &[(String, Vec<Option<String>>)]| {
                rows.iter().filter(|row| row.0 == *vm).cloned().collect::<Vec<_>>()
            };
            let (actual, expected) = (of_vm(&part), of_vm(&all_rows));
            assert!(
                actual == expected,
                "{table} {recordings:?} {vm}: {} {}",
                actual.len(),
                expected.len()
            );
            compared += expected.len();
        }
        assert!(!recordings[0].ends_with("smp.dat") || table == "nested_rollup" || vms.len() == 3);
    }
    assert!(compared > 10_000, "{compared}");
}
