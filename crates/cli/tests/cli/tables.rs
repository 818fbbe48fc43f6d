//! Reads the tables of `hyperscope export --to parquet` with other readers: sums equal those of the reports,
//! to the nanosecond.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::Value;

use crate::tool::{hyperscope, output_of, recordings, repository};

mod by_duckdb;
mod file;
mod needed;
mod schema;

use file::TableFile;

/// Exports recordings into a folder; must succeed.
fn export(out: &Path, args: &[&str]) {
    let run =
        hyperscope(&[&["export", "--to", "parquet", "-o", out.to_str().unwrap()], args].concat());
    assert_eq!((run.code, run.out.as_str()), (0, ""), "{args:?}: {}", run.err);
}

/// All bundled recordings, with folders of their tables. Made once for all tests.
fn exported() -> &'static [(String, PathBuf)] {
    static EXPORTED: OnceLock<(tempfile::TempDir, Vec<(String, PathBuf)>)> = OnceLock::new();
    let (_, all) = EXPORTED.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let export = |path: String| {
            let out = folder.path().join(path.replace('/', "_"));
            export(&out, &[&path]);
            (path, out)
        };
        let all = recordings().into_iter().map(export).collect();
        (folder, all)
    });
    all
}

fn document(args: &[&str]) -> Value {
    serde_json::from_str(&output_of(args)).unwrap()
}

/// VM, level, reason.
type Group = (String, u64, String);

/// The values of a group, by column.
type Sums = BTreeMap<&'static str, u64>;

/// Sums that the report, the tables of exits and their rollups have.
const SUMS: [&str; 6] =
    ["time_ns", "off_cpu_ns", "runnable_ns", "blocked_ns", "before_exit_ns", "not_split_ns"];

/// If polling is not known for all exits of a group, the report counts it as the kernel's, and likewise the
/// return from user space; in tables, each exit has its known parts.
const PAIRS: [(&str, [&str; 2]); 2] =
    [("kernel", ["kernel_ns", "halt_poll_ns"]), ("user", ["user_ns", "user_and_return_ns"])];

fn of_report(path: &str) -> BTreeMap<Group, Sums> {
    let report = document(&["exits", "--format", "json", path]);
    let mut groups = BTreeMap::new();
    for row in report["rows"].as_array().unwrap() {
        let text = |key: &str| row[key].as_str().unwrap().to_owned();
        let number = |key: &str| row[key].as_u64().unwrap_or(0);
        let group = (text("vm"), number("level"), text("reason"));
        let sums: &mut Sums = groups.entry(group).or_default();
        let mut add = |key, value| *sums.entry(key).or_default() += value;
        let names = |key: &str| match key {
            "runnable_ns" => "off_cpu_runnable_ns".to_owned(),
            "blocked_ns" => "off_cpu_blocked_ns".to_owned(),
            key => key.to_owned(),
        };
        SUMS.iter().for_each(|key| add(key, number(&names(key))));
        for (key, columns) in PAIRS {
            // Unsplit time is in one of the columns as well.
            add(key, columns.iter().map(|column| number(column)).sum());
        }
        let polled = row["halt_poll_ns"].is_null();
        add("polled_in_kernel", u64::from(polled));
        add("cost_ns", number("cost_ns"));
        ["count", "paired"].iter().for_each(|key| add(key, number(key)));
        for by in ["kernel", "user", "l1"] {
            add(by_name(by), row["handled"][by].as_u64().unwrap_or(0));
        }
    }
    groups
}

fn by_name(by: &str) -> &'static str {
    match by {
        "kernel" => "by_kernel",
        "user" => "by_user",
        _ => "by_l1",
    }
}

/// The same sums from the table `exits` or its rollup.
fn of_table(table: &TableFile) -> BTreeMap<Group, Sums> {
    let is_rollup = table.name == "exit_rollup";
    let (vms, reasons) = (table.texts("vm"), table.texts("reason"));
    let levels = table.numbers("level");
    let mut groups: BTreeMap<Group, Sums> = BTreeMap::new();
    let mut sum = |key: &'static str, column: &[Option<i64>]| {
        for (row, value) in column.iter().enumerate() {
            let group = (
                vms[row].clone().unwrap(),
                levels[row].unwrap() as u64,
                reasons[row].clone().unwrap(),
            );
            *groups.entry(group).or_default().entry(key).or_default() +=
                u64::try_from(value.unwrap_or(0)).unwrap();
        }
    };
    SUMS.iter().for_each(|key| sum(key, &table.numbers(key)));
    for (key, columns) in PAIRS {
        columns.iter().for_each(|column| sum(key, &table.numbers(column)));
    }
    sum("cost_ns", &table.numbers("cost_ns"));
    sum("halt_poll_ns", &table.numbers("halt_poll_ns"));
    if is_rollup {
        sum("count", &table.numbers("exits"));
        sum("paired", &table.numbers("paired"));
        sum("polled_in_kernel", &table.numbers("poll_unknown"));
        for by in ["kernel", "user", "l1"] {
            sum(by_name(by), &table.numbers(&format!("handled_{by}")));
        }
        return groups;
    }
    let ones_where = |is: &dyn Fn(usize) -> bool| -> Vec<Option<i64>> {
        (0..vms.len()).map(|row| Some(i64::from(is(row)))).collect()
    };
    sum("count", &ones_where(&|_| true));
    let (states, handled) = (table.texts("state"), table.texts("handled"));
    sum("paired", &ones_where(&|row| states[row].as_deref() == Some("paired")));
    let unknown = table.flags("poll_unknown");
    sum("polled_in_kernel", &ones_where(&|row| unknown[row] == Some(true)));
    for by in ["kernel", "user", "l1"] {
        sum(by_name(by), &ones_where(&|row| handled[row].as_deref() == Some(by)));
    }
    groups
}

#[track_caller]
fn assert_sums(path: &str, what: &str, table: BTreeMap<Group, Sums>) {
    let report = of_report(path);
    assert_eq!(
        report.keys().collect::<Vec<_>>(),
        table.keys().collect::<Vec<_>>(),
        "{path} {what}"
    );
    for (group, expected) in &report {
        let mut actual = table[group].clone();
        let mut expected = expected.clone();
        // The report's cost contains polling that it can't separate for the group.
        let polled = actual.remove("halt_poll_ns").unwrap_or(0);
        if expected.remove("polled_in_kernel") == Some(1) && actual["polled_in_kernel"] > 0 {
            *actual.get_mut("cost_ns").unwrap() += if expected["cost_ns"] > 0 { polled } else { 0 };
        }
        actual.remove("polled_in_kernel");
        assert_eq!(actual, expected, "{path} {what} {group:?}");
    }
}

#[test]
fn sums_over_exits_and_over_their_rollups_are_those_of_the_report() {
    let mut groups = 0;
    for (path, out) in exported() {
        let exits = of_table(&TableFile::open(out, "exits"));
        groups += exits.len();
        assert_sums(path, "exits", exits);
        assert_sums(path, "exit_rollup", of_table(&TableFile::open(out, "exit_rollup")));
    }
    assert!(groups > 50, "{groups}");
}

/// Percentiles from the histograms equal those of the report for groups without single values; for others they
/// equal the upper end of the exact value's bucket.
#[test]
fn percentiles_by_histograms_are_those_of_the_report() {
    let (mut by_bucket, mut by_value) = (0, 0);
    for (path, out) in exported() {
        let upper_ends = TableFile::open(out, "buckets").numbers("hi_ns");
        let hist = TableFile::open(out, "exit_hist");
        let (vms, reasons, metrics) =
            (hist.texts("vm"), hist.texts("reason"), hist.texts("metric"));
        let (levels, buckets, counts) =
            (hist.numbers("level"), hist.numbers("bucket"), hist.numbers("n"));
        let mut groups: BTreeMap<Group, BTreeMap<i64, u64>> = BTreeMap::new();
        for row in (0..vms.len()).filter(|row| metrics[*row].as_deref() == Some("time")) {
            let level = levels[row].unwrap() as u64;
            let group = (vms[row].clone().unwrap(), level, reasons[row].clone().unwrap());
            *groups.entry(group).or_default().entry(buckets[row].unwrap()).or_default() +=
                counts[row].unwrap() as u64;
        }
        let report = document(&["exits", "--format", "json", path]);
        for row in report["rows"].as_array().unwrap().iter().filter(|row| row["paired"] != 0) {
            let text = |key: &str| row[key].as_str().unwrap().to_owned();
            let group = (text("vm"), row["level"].as_u64().unwrap(), text("reason"));
            let paired = row["paired"].as_u64().unwrap();
            assert_eq!(groups[&group].values().sum::<u64>(), paired, "{path} {group:?}");
            for (key, share) in
                [("p50_ns", 500), ("p90_ns", 900), ("p99_ns", 990), ("p999_ns", 999)]
            {
                let rank = (paired * share).div_ceil(1000).max(1);
                let mut seen = 0;
                let bucket = groups[&group].iter().find(|(_, n)| {
                    seen += **n;
                    seen >= rank
                });
                let upper_end = upper_ends[*bucket.unwrap().0 as usize].unwrap() as u64;
                let (reported, max) = (row[key].as_u64().unwrap(), row["max_ns"].as_u64().unwrap());
                if paired > 4096 {
                    assert_eq!(upper_end.min(max), reported, "{path} {group:?} {key}");
                    by_bucket += 1;
                } else {
                    assert!(
                        upper_end >= reported && upper_end - reported <= reported / 256,
                        "{path} {group:?}"
                    );
                    by_value += 1;
                }
            }
        }
    }
    assert!(by_bucket > 20 && by_value > 100, "{by_bucket} {by_value}");
}

/// States of vCPUs, and sums of them by VM.
#[test]
fn sums_over_states_are_those_of_cpu() {
    let mut states = 0;
    for (path, out) in exported() {
        let cpu = document(&["cpu", "--format", "json", path]);
        let rows = TableFile::open(out, "vcpu_states");
        let by_vcpu = sums(&rows, &["vm", "vcpu", "state"], "dur_ns");
        states += rows.len();
        let mut expected = BTreeMap::new();
        for vcpu in cpu["vcpus"].as_array().unwrap() {
            for (state, ns) in vcpu["states"].as_object().unwrap() {
                let state = state.trim_end_matches("_ns").to_owned();
                let key =
                    vec![vcpu["vm"].as_str().unwrap().to_owned(), vcpu["vcpu"].to_string(), state];
                if ns.as_u64().unwrap_or(0) > 0 {
                    expected.insert(key, ns.as_u64().unwrap());
                }
            }
        }
        assert_eq!(by_vcpu, expected, "{path}");
        let by_vm = sums(&rows, &["vm", "level", "state", "reason"], "dur_ns");
        let rollup = TableFile::open(out, "state_rollup");
        assert_eq!(sums(&rollup, &["vm", "level", "state", "reason"], "time_ns"), by_vm, "{path}");
        let starts: u64 = sums(&rollup, &["vm"], "begun").values().sum();
        assert!(starts <= rows.len() as u64, "{path}");
    }
    assert!(states > 100_000, "{states}");
}

/// Sums of a column, except zeros.
fn sums(table: &TableFile, by: &[&str], column: &str) -> BTreeMap<Vec<String>, u64> {
    let keys: Vec<Vec<Option<String>>> = by.iter().map(|key| table.shown(key)).collect();
    let mut sums = BTreeMap::new();
    for (row, value) in table.numbers(column).into_iter().enumerate() {
        let key = keys.iter().map(|key| key[row].clone().unwrap_or_default()).collect();
        *sums.entry(key).or_insert(0) += u64::try_from(value.unwrap_or(0)).unwrap();
    }
    sums.retain(|_, sum| *sum > 0);
    sums
}

#[test]
fn sums_of_nested_exits_are_those_of_nested() {
    let mut compared = 0;
    for (path, out) in exported() {
        let report = document(&["nested", "--format", "json", path]);
        let table = TableFile::open(out, "nested_rollup");
        let by = ["vm", "reason", "ancillary_reason"];
        let [exits, reflected] = ["exits", "reflected"].map(|column| sums(&table, &by, column));
        let mut counts = BTreeMap::new();
        let mut own_reflected = BTreeMap::new();
        for row in report["rows"].as_array().unwrap() {
            let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
            let key = |more: String| vec![text(row, "vm"), text(row, "reason"), more];
            *counts.entry(key(String::new())).or_insert(0) += row["count"].as_u64().unwrap();
            *own_reflected.entry(key(String::new())).or_insert(0) +=
                row["reflected"].as_u64().unwrap();
            for ancillary in row["ancillary"].as_array().unwrap() {
                let count = ancillary["count"].as_u64().unwrap();
                *counts.entry(key(text(ancillary, "reason"))).or_insert(0) += count;
            }
        }
        own_reflected.retain(|_, sum| *sum > 0);
        assert_eq!((exits, reflected), (counts, own_reflected), "{path}");
        let times = sums(&table, &["vm"], "time_ns");
        let all: u64 = report["rows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["time_ns"].as_u64().unwrap())
            .sum();
        assert_eq!(times.values().sum::<u64>(), all, "{path}");
        compared += table.len();
    }
    assert!(compared > 50, "{compared}");
}

/// Requests equal those of `path`, and their hops add up to them.
#[test]
fn requests_are_those_of_path_and_hops_add_up_to_them() {
    let mut requests = 0;
    for (path, out) in exported() {
        // For a guest alone, it prints a note.
        let run = hyperscope(&["path", "--format", "json", path]);
        assert_eq!(run.code, 0, "{path}: {}", run.err);
        let report: Value = serde_json::from_str(&run.out).unwrap();
        let table = TableFile::open(out, "requests");
        assert_eq!(report["requests"].as_u64().unwrap(), table.len() as u64, "{path}");
        let by_number = |table: &TableFile| sums(table, &["request"], "dur_ns");
        assert_eq!(by_number(&TableFile::open(out, "hops")), by_number(&table), "{path}");
        let steps: i64 = table.numbers("steps").into_iter().flatten().sum();
        let hops = TableFile::open(out, "hops").len() as i64;
        assert_eq!(steps - table.len() as i64, hops, "{path}");
        requests += table.len();
    }
    assert!(requests > 1000, "{requests}");
}

#[test]
fn the_same_recording_makes_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let pair = ["fixtures/x86-svm/host-guest.dat", "fixtures/x86-svm/host-guest.guest.dat"];
    let more = ["--details", "-e", "kvm:kvm_exit", "--host", "web7", "--begun", "1795305600.5"];
    export(&at("one"), &[&pair[..], &more].concat());
    export(&at("two"), &[&pair[..], &more].concat());
    let mut names = Vec::new();
    for entry in fs::read_dir(at("one")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let [first, two] = ["one", "two"].map(|side| fs::read(at(side).join(&name)).unwrap());
        assert!(first == two, "{name}");
        names.push(name);
    }
    assert_eq!(names.len(), 18, "{names:?}");
    let sessions = TableFile::open(&at("one"), "sessions");
    assert_eq!(sessions.texts("host_id"), [Some("web7".to_owned())]);
    assert_eq!(sessions.numbers("begun_unix_ns"), [Some(1_795_305_600_500_000_000)]);
    let times = TableFile::open(&at("one"), "exits").numbers("ts_ns");
    let first = times.iter().flatten().min().unwrap();
    assert!((1_795_305_600_500_000_000..1_795_305_700_000_000_000).contains(first), "{first}");
    let machines = TableFile::open(&at("one"), "machines");
    assert_eq!(machines.texts("role"), ["host", "guest"].map(|role| Some(role.to_owned())));
    assert_eq!(machines.texts("align_method")[0], None);
    let details = TableFile::open(&at("one"), "exit_details");
    assert_eq!(details.len(), TableFile::open(&at("one"), "exits").len());
    assert!(details.numbers("msr").iter().flatten().count() > 0);
    let events = TableFile::open(&at("one"), "events");
    let exits = output_of(&["events", "--format", "jsonl", "-e", "kvm:kvm_exit", pair[0]]);
    assert_eq!(events.len(), exits.lines().count());
    let fields: Value =
        serde_json::from_str(events.texts("fields")[0].as_deref().unwrap()).unwrap();
    assert!(fields["exit_reason"].is_u64(), "{fields}");
}

#[test]
fn a_part_of_a_recording_has_the_sums_of_that_part() {
    let folder = tempfile::tempdir().unwrap();
    let path = "fixtures/arm64/D.dat";
    export(folder.path(), &["--from", "+0.3", "--until", "+0.9", path]);
    let run = hyperscope(&["exits", "--format", "json", "--from", "+0.3", "--to", "+0.9", path]);
    let report: Value = serde_json::from_str(&run.out).unwrap();
    let sum = |key: &str| -> u64 {
        report["rows"].as_array().unwrap().iter().map(|row| row[key].as_u64().unwrap()).sum()
    };
    let exits = TableFile::open(folder.path(), "exits");
    assert_eq!((exits.len() as u64, exits.sum("time_ns")), (sum("count"), sum("time_ns")));
    let rollup = TableFile::open(folder.path(), "exit_rollup");
    assert_eq!(rollup.sum("exits"), sum("count"));
    let covered: Vec<i64> = rollup.numbers("covered_ns").into_iter().flatten().collect();
    assert!(covered.iter().all(|ns| (0..=600_000_000).contains(ns)), "{covered:?}");
    assert_eq!(TableFile::open(folder.path(), "sessions").numbers("span_ns"), [Some(600_000_000)]);
}

#[test]
fn options_of_tables_go_with_parquet_alone_and_name_tables_that_there_are() {
    let path = "fixtures/arm64/D.dat";
    let run = hyperscope(&["export", "--to", "chrome", "--tables", "exits", path]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("work only with --format parquet"), "{}", run.err);
    let run = hyperscope(&["export", "--to", "parquet", path]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("needs -o"), "{}", run.err);
    let run = hyperscope(&["export", "--to", "parquet", "--tables", "exit", "-o", "x", path]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("unknown table exit; use one of: sessions, labels"), "{}", run.err);
    let folder = tempfile::tempdir().unwrap();
    export(folder.path(), &["--tables", "sessions,exits", path]);
    let count = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(count, 2);
    let hosts = ["fixtures/arm64/D.dat", "fixtures/arm64/B-vhost-on.dat"];
    let out = folder.path().to_str().unwrap();
    let run = hyperscope(&[&["export", "--to", "parquet", "-o", out], &hosts[..]].concat());
    assert_eq!(run.code, 2);
    assert!(run.err.contains("recordings come from several hosts"), "{}", run.err);
    assert!(repository().join(path).exists());
}
