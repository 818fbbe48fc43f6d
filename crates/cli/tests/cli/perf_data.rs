//! A perf.data as a recording: perf's own numbers, damage, other samples.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::schemas::{check, closed};
use crate::tool::{assert_golden, hyperscope, output_of, repository};

const PERF: &str = "fixtures/arm64/D.perf.data";

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&output_of(args)).unwrap()
}

/// The output of `perf kvm stat report` for the same file.
fn truth() -> Value {
    let path = repository().join("fixtures/arm64/D.perf.truth.json");
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn exits_are_those_of_perf_kvm_stat() {
    let truth = truth();
    let exits = json(&["exits", "--format", "json", PERF]);
    let rows = exits["rows"].as_array().unwrap();
    let of_perf = truth["perf_kvm_stat"]["samples"].as_object().unwrap();
    assert_eq!(rows.len(), of_perf.len());
    for row in rows {
        assert_eq!(row["count"], of_perf[row["reason"].as_str().unwrap()], "{row}");
    }
    // On arm64, perf measures the time from the entry to the exit: that in the guest.
    let cpu = json(&["cpu", "--format", "json", PERF]);
    let guest_ns = cpu["vcpus"][0]["states"]["guest_ns"].as_f64().unwrap();
    let total_us = truth["perf_kvm_stat"]["total_us"].as_f64().unwrap();
    assert!((guest_ns / 1000.0 - total_us).abs() < 0.01, "{guest_ns} {total_us}");
}

#[test]
fn info_says_what_it_holds() {
    assert_golden("arm64-D.perf.info.txt", &output_of(&["info", PERF]));
    let info = json(&["info", "--format", "json", PERF]);
    check(&closed("info"), &info, PERF);
    let events = truth()["events"].clone();
    for (name, number) in events.as_object().unwrap() {
        assert_eq!(info["files"][0]["events"][format!("kvm:{name}")], *number);
    }
}

#[test]
fn every_verb_reads_it_also_from_a_pipe_and_compressed() {
    let folder = tempfile::tempdir().unwrap();
    let to = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for args in [
        &["nested"][..],
        &["path"],
        &["profile"],
        &["events", "--format", "jsonl"],
        &["report", "-o", &to("page.html")],
        &["export", "--to", "perfetto", "-o", &to("trace.pftrace")],
        &["diff", "fixtures/arm64/D.dat"],
    ] {
        let run = hyperscope(&[args, &[PERF]].concat());
        assert_eq!(run.code, 0, "{args:?}: {}", run.err);
    }
    let expected = output_of(&["exits", PERF]);
    let gzip = Command::new("gzip")
        .args(["-c", repository().join(PERF).to_str().unwrap()])
        .output()
        .unwrap();
    fs::write(to("perf.data.gz"), gzip.stdout).unwrap();
    assert_eq!(
        output_of(&["exits", &to("perf.data.gz")]).replace(&to("perf.data.gz"), PERF),
        expected
    );
    let file = fs::File::open(repository().join(PERF)).unwrap();
    let piped = Command::new(env!("CARGO_BIN_EXE_hyperscope"))
        .args(["exits", "-"])
        .stdin(Stdio::from(file))
        .output()
        .unwrap();
    let piped = String::from_utf8(piped.stdout).unwrap();
    assert_eq!(
        piped.lines().skip(1).collect::<Vec<_>>(),
        expected.lines().skip(1).collect::<Vec<_>>()
    );
}

/// Thread, CPU, time and name of every event equal those that perf prints.
#[test]
fn events_are_those_of_perf_script() {
    let perf = Command::new("perf")
        .args(["script", "--ns", "-F", "tid,cpu,time,event", "--guestkallsyms", "/dev/null", "-i"])
        .arg(repository().join(PERF))
        .output();
    let Ok(printed) = perf else {
        return testkit::skip!("perf is not installed (apt install linux-perf)");
    };
    let printed = String::from_utf8(printed.stdout).unwrap();
    let event = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [thread, cpu, time, name] = words[..] else { panic!("{line}") };
        let cpu = cpu.trim_matches(['[', ']']).parse::<u64>().unwrap();
        let time = time.trim_end_matches(':').replace('.', "").parse::<u64>().unwrap();
        (time, cpu, thread.parse::<u64>().unwrap(), name.trim_end_matches(':').to_owned())
    };
    let of_perf: Vec<_> = printed.lines().map(event).collect();
    let event = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap();
        let number = |name: &str| event[name].as_u64().unwrap();
        (number("ts_ns"), number("cpu"), number("pid"), event["event"].as_str().unwrap().to_owned())
    };
    let events = output_of(&["events", "--format", "jsonl", PERF]);
    let found: Vec<_> = events.lines().map(event).collect();
    assert_eq!((found.len(), found), (2_464, of_perf));
}

/// A trace.dat made from it has the same events and exits.
#[test]
fn a_trace_dat_made_of_it_says_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.dat");
    let path = path.to_str().unwrap();
    output_of(&["export", "--to", "tracedat", "-o", path, PERF]);
    let rows = |path: &str| json(&["exits", "--format", "json", path])["rows"].clone();
    let without_source = |mut rows: Value| {
        for row in rows.as_array_mut().unwrap() {
            row.as_object_mut().unwrap().remove("source");
        }
        rows
    };
    assert_eq!(without_source(rows(path)), without_source(rows(PERF)));
}

#[test]
fn what_is_missing_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("perf.data");
    let bytes = fs::read(repository().join(PERF)).unwrap();
    let info = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        output_of(&["info", path.to_str().unwrap()])
    };
    // As a killed recorder leaves it: without the size of the data, and nothing after the data.
    let (data_at, data_len) = (584, 237_096);
    let mut killed = bytes[..data_at + data_len].to_vec();
    killed[48..56].fill(0);
    let text = info(&killed);
    assert!(text.contains("2,464") && text.contains("killed before it wrote"), "{text}");
    assert!(text.contains("formats of its tracepoints are missing"), "{text}");
    let text = info(&bytes[..100_000]);
    assert!(text.contains("is shorter than its header says"), "{text}");
    let run = hyperscope(&["info", path.to_str().unwrap()]);
    assert_eq!(run.code, 0);
    fs::write(&path, &bytes[..50]).unwrap();
    let run = hyperscope(&["info", path.to_str().unwrap()]);
    assert!(run.code == 1 && run.err.contains("ends inside its header"), "{}", run.err);
}

/// The output of `perf record --threads`: the header of the file in it says so.
#[test]
fn folders_of_perf_say_how_to_make_a_file_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = fs::read(repository().join(PERF)).unwrap();
    // HEADER_DIR_FORMAT (24) among the features, which are a bitmap at byte 72.
    file[72 + 24 / 8] |= 1 << (24 % 8);
    fs::write(folder.path().join("data"), file).unwrap();
    fs::write(folder.path().join("data.0"), b"").unwrap();
    let run = hyperscope(&["info", folder.path().to_str().unwrap()]);
    assert_eq!(run.code, 1, "{}", run.out);
    assert!(run.err.contains("perf record --threads"), "{}", run.err);
    assert!(run.err.contains("perf inject -i"), "{}", run.err);
}
