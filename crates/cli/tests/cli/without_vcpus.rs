//! Recordings without VMs: profiles from samples alone, and comparisons of two.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::page_profile::rows_of;
use crate::pages::Page;
use crate::profile::{amount, json, rows};
use crate::schemas::{check, closed};
use crate::tool::{hyperscope, output_of};

/// A shell's work in user space, and the kernel's work for a reader of zeros.
fn spins(times: u32) -> String {
    format!("i=0; while [ $i -lt {times} ]; do i=$((i+1)); done")
}

fn reads(blocks: u32) -> String {
    format!("dd if=/dev/zero of=/dev/null bs=64k count={blocks} 2>/dev/null")
}

/// Lets perf sample a script; `false` if perf can't run here.
fn is_recorded(file: &Path, event: &[&str], script: &str) -> bool {
    let mut perf = Command::new("perf");
    perf.args(["record", "-q"]).args(event).arg("-o").arg(file).args(["--", "sh", "-c", script]);
    perf.output().is_ok_and(|output| output.status.success())
}

/// Samples and periods by name, from `perf script`; a thread has its last name.
fn by_perf(file: &str) -> Option<BTreeMap<String, (u64, u64)>> {
    let perf = Command::new("perf").args(["script", "-i", file, "-F", "comm,tid,period"]).output();
    let text = perf.ok().filter(|output| output.status.success())?.stdout;
    let mut threads: BTreeMap<u32, (String, u64, u64)> = BTreeMap::new();
    for line in String::from_utf8(text).unwrap().lines() {
        let (rest, period) = line.trim().rsplit_once(char::is_whitespace).unwrap();
        let (comm, thread) = rest.trim().rsplit_once(char::is_whitespace).unwrap();
        let entry = threads.entry(thread.parse().unwrap()).or_default();
        *entry = (comm.trim().to_owned(), entry.1 + 1, entry.2 + period.parse::<u64>().unwrap());
    }
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (comm, samples, period) in threads.into_values() {
        let sum = sums.entry(comm).or_default();
        *sum = (sum.0 + samples, sum.1 + period);
    }
    Some(sums)
}

/// Changes two of three samples of a perf.data to samples of guests.
fn move_into_guests(file: &Path) {
    const SAMPLE: u32 = 9;
    let mut bytes = fs::read(file).unwrap();
    let number =
        |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let (mut at, size) = (number(&bytes, 40) as usize, number(&bytes, 48) as usize);
    let (end, mut samples) = (at + size, 0);
    while at < end {
        let kind = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let mode = bytes[at + 4] & 7;
        if kind == SAMPLE && matches!(mode, 1 | 2) {
            samples += 1;
            // 1 and 2 are the host's kernel and user space, 4 and 5 a guest's.
            bytes[at + 4] += if samples % 3 == 0 { 0 } else { 3 };
        }
        at += usize::from(u16::from_le_bytes(bytes[at + 6..at + 8].try_into().unwrap()));
    }
    assert!(samples > 10, "{samples}");
    fs::write(file, bytes).unwrap();
}

/// Samples that the kernel attributes to a guest count as the guest's, in shares, tables and graphs.
#[test]
fn samples_of_guests_are_states_of_guests() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("perf.data");
    let works = format!("{}; {}", spins(50_000), reads(5_000));
    if !is_recorded(&file, &["-e", "cpu-clock", "-F", "997"], &works) {
        return testkit::skip!("perf can't record here");
    }
    move_into_guests(&file);
    let path = file.to_str().unwrap();
    let info: Value =
        serde_json::from_str(&output_of(&["info", "--format", "json", path])).unwrap();
    let counted = &info["files"][0]["samples"]["cpu-clock"];
    let profile = json("profile", &[path]);
    check(&closed("profile"), &profile, path);
    let mut by_state: BTreeMap<&str, u64> = BTreeMap::new();
    for row in rows(&profile) {
        *by_state.entry(row["state"].as_str().unwrap()).or_default() +=
            row["samples"].as_u64().unwrap();
    }
    for state in ["guest_kernel", "guest_user"] {
        assert_eq!(by_state.get(state).copied(), counted[state].as_u64(), "{counted}");
    }
    let table = output_of(&["profile", "--by", "state", path]);
    assert!(table.contains("guest_kernel") && table.contains("guest_user"), "{table}");
    let picture = output_of(&["profile", "--flame", "/dev/stdout", "-o", "/dev/null", path]);
    // The CSS class of guests' colours.
    assert!(picture.contains("class=\"f g"), "no guest is coloured");
    let folded = output_of(&["profile", "--folded", "/dev/stdout", "-o", "/dev/null", path]);
    assert!(folded.lines().any(|line| line.contains("[guest]")), "{folded}");
}

/// Without VMs, samples are weighted by their periods, which equal those that perf prints.
#[test]
fn a_perf_data_without_vcpus_is_profiled_by_its_periods() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("perf.data");
    let file = file.to_str().unwrap();
    let works = format!("{}; {}", spins(150_000), reads(20_000));
    let is_recorded = is_recorded(file.as_ref(), &["-e", "cpu-clock", "-F", "997", "-g"], &works);
    let Some(by_perf) = is_recorded.then(|| by_perf(file)).flatten() else {
        return testkit::skip!("perf can't record here");
    };
    let profile = json("profile", &[file]);
    check(&closed("profile"), &profile, file);
    assert_eq!(profile["machines"][0]["event"], "cpu-clock");
    let mut by_us: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for row in rows(&profile) {
        assert_eq!((&row["state"], &row["vm"]), (&"host".into(), &Value::Null), "{row}");
        let sum = by_us.entry(row["comm"].as_str().unwrap().to_owned()).or_default();
        *sum = (sum.0 + row["samples"].as_u64().unwrap(), sum.1 + amount(row, "time"));
    }
    assert_eq!(by_us, by_perf);
    assert!(by_us["sh"].0 > 10 && by_us["dd"].0 > 10, "{by_us:?}");
    // A reader of zeros runs in its kernel.
    let in_kernel = |row: &&Value| {
        row["comm"] == "dd" && row["stack"].as_array().unwrap().last().unwrap()["module"].is_null()
    };
    let dd_ns: u64 = rows(&profile).iter().filter(in_kernel).map(|row| amount(row, "time")).sum();
    assert!(dd_ns > by_us["dd"].1 / 2, "{dd_ns}");
    // Names come from the running kernel, if it shows its symbols: perf stores none.
    let symbols = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    if symbols.lines().any(|line| !line.starts_with("0000000000000000")) {
        let leaves = rows(&profile).iter().filter(in_kernel);
        let leaf = |row: &Value| row["stack"].as_array().unwrap().last().unwrap()["symbol"].clone();
        assert!(leaves.map(leaf).any(|symbol| symbol.is_string()), "{profile}");
    }
    // Parts of its time add up to the total.
    let ends = |range: &[&str]| -> u64 {
        let arguments = [&["profile", "--format", "json", file][..], range].concat();
        let part: Value = serde_json::from_str(&hyperscope(&arguments).out).unwrap();
        rows(&part).iter().map(|row| amount(row, "time")).sum()
    };
    let (first, rest) = (ends(&["--to", "+0.05"]), ends(&["--from", "+0.05"]));
    let total_ns: u64 = by_us.values().map(|(_, ns)| ns).sum();
    assert!(first > 0 && rest > 0 && first + rest == total_ns, "{first} {rest} {total_ns}");
    // Its other outputs have the same sum.
    let folded = output_of(&["profile", "--folded", "/dev/stdout", "-o", "/dev/null", file]);
    let sum = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
    assert_eq!(folded.lines().map(sum).sum::<u64>(), total_ns);
    assert!(folded.lines().all(|line| line.starts_with("host;")), "{folded}");
    let for_speedscope =
        output_of(&["profile", "--speedscope", "/dev/stdout", "-o", "/dev/null", file]);
    let for_speedscope: Value = serde_json::from_str(&for_speedscope).unwrap();
    let weights = for_speedscope["profiles"][0]["weights"].as_array().unwrap();
    assert_eq!(weights.iter().map(|ns| ns.as_u64().unwrap()).sum::<u64>(), total_ns);
    // So does the page, in each slice of time.
    let page = Page::run(&[file]);
    let slices = &page.report["profile"]["slices"];
    let [slice_ns, count] = ["slice_ns", "count"].map(|name| slices[name].as_u64().unwrap());
    let origin_ns = perf_times(file).into_iter().min().unwrap() / slice_ns * slice_ns;
    let mut by_slice: BTreeMap<u64, u64> = BTreeMap::new();
    for row in rows_of(&page) {
        assert_eq!(row.slices.iter().map(|(_, ns)| ns).sum::<u64>(), row.time_ns);
        row.slices.iter().for_each(|(slice, ns)| *by_slice.entry(*slice).or_default() += ns);
    }
    assert!(count <= 128 && by_slice.len() > 10, "{slices}");
    assert_eq!(by_slice, by_perf_in_slices(file, (origin_ns, slice_ns)));
    let mut drawn: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for row in rows_of(&page) {
        assert_eq!((&row.owner["vm"], &row.owner["part"]), (&"".into(), &Value::Null));
        let sum = drawn.entry(row.owner["comm"].as_str().unwrap().to_owned()).or_default();
        *sum = (sum.0 + row.samples, sum.1 + row.time_ns);
    }
    assert_eq!(drawn, by_perf);
    let table = output_of(&["profile", "--by", "comm", file]);
    assert!(table.contains("samples of cpu-clock; no vCPU exits were recorded"), "{table}");
}

/// The comparison uses each side's profile, over the time from perf's first sample to its last.
#[test]
fn two_of_them_are_compared_by_what_ran() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b, counted] = ["a.data", "b.data", "counted.data"].map(|name| folder.path().join(name));
    let clock = ["-e", "cpu-clock", "-F", "997", "-g"];
    // Short cycles make slices of a run similar; the shell itself opens files.
    let cycles = |spun: u32, opened: u32| {
        let opens = format!("i=0; while [ $i -lt {opened} ]; do i=$((i+1)); : </dev/null; done");
        format!("n=0; while [ $n -lt 150 ]; do n=$((n+1)); {}; {opens}; done", spins(spun))
    };
    let are_recorded = is_recorded(&a, &clock, &cycles(4_000, 20))
        && is_recorded(&b, &clock, &cycles(400, 1_500))
        && is_recorded(&counted, &["-e", "page-faults", "-c", "1"], &spins(1000));
    if !are_recorded {
        return testkit::skip!("perf can't record here");
    }
    let [a, b, counted] = [&a, &b, &counted].map(|path| path.to_str().unwrap());
    let run = hyperscope(&["diff", "profile", "--format", "json", "--all", a, b]);
    assert_eq!(run.code, 0, "{}", run.err);
    let diff: Value = serde_json::from_str(&run.out).unwrap();
    check(&closed("diff"), &diff, "diff profile");
    let user = |profile: &Value| -> u64 {
        let is_shell = |row: &&Value| {
            row["comm"] == "sh"
                && row["stack"]
                    .as_array()
                    .unwrap()
                    .last()
                    .is_some_and(|leaf| leaf["module"] == "dash")
        };
        rows(profile).iter().filter(is_shell).map(|row| amount(row, "time")).sum()
    };
    let self_times = diff["rows"].as_array().unwrap().iter();
    let mut self_times =
        self_times.filter(|row| row["function"] == "dash" && row["metric"] == "self_ns_per_s");
    let shell = self_times.next().unwrap_or_else(|| panic!("{diff}"));
    for (side, file) in [("a", a), ("b", b)] {
        let profile = json("profile", &[file]);
        let samples: Vec<u64> = perf_times(file);
        let span_ns = (samples.iter().max().unwrap() - samples.iter().min().unwrap()) as f64;
        let expected = user(&profile) as f64 / span_ns * 1e9;
        let found = shell[side].as_f64().unwrap();
        assert!((found / expected - 1.0).abs() < 0.01, "{side}: {found} {expected}");
    }
    let words = output_of(&["diff", "profile", a, b]);
    assert!(words.contains("of a CPU's time"), "{words}");
    let refused = hyperscope(&["diff", "profile", counted, b]);
    assert!(refused.code == 1 && refused.err.contains("count events, not time"), "{}", refused.err);
}

/// Periods by slice of time, from `perf script`; without those of idle CPUs.
fn by_perf_in_slices(file: &str, (origin_ns, slice_ns): (u64, u64)) -> BTreeMap<u64, u64> {
    let arguments = ["script", "--ns", "-i", file, "-F", "tid,time,period"];
    let perf = Command::new("perf").args(arguments).output();
    let mut sums = BTreeMap::new();
    for line in String::from_utf8(perf.unwrap().stdout).unwrap().lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [thread, time, period] = words[..] else { panic!("{line}") };
        let at_ns: u64 = time.trim_end_matches(':').replace('.', "").parse().unwrap();
        if thread != "0" {
            let sum: &mut u64 = sums.entry((at_ns - origin_ns) / slice_ns).or_default();
            *sum += period.parse::<u64>().unwrap();
        }
    }
    sums
}

/// The times of samples, from `perf script`.
fn perf_times(file: &str) -> Vec<u64> {
    let perf = Command::new("perf").args(["script", "--ns", "-i", file, "-F", "time"]).output();
    let text = String::from_utf8(perf.unwrap().stdout).unwrap();
    let ns = |line: &str| line.trim().trim_end_matches(':').replace('.', "").parse().ok();
    text.lines().filter_map(ns).collect()
}
