//! CTF traces as recordings: babeltrace2's numbers, the guest's own, perf.data and its conversion, wrong folders.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::schemas::{check, closed};
use crate::tool::{hyperscope, output_of, repository};

const LTTNG: &str = "fixtures/x86-svm/lttng";
const CONTEXT: &str = "fixtures/x86-svm/lttng-context";
const LOSSY: &str = "fixtures/x86-svm/lttng-lossy";
/// [`CONTEXT`], as babeltrace2 2.1.1 converted it.
const SECOND: &str = "fixtures/x86-svm/lttng-ctf2";
/// LTTng's own CTF 2, given as the session's folder.
const PROGRAM: &str = "fixtures/lttng-program/trace";
const PROGRAM_LOSSY: &str = "fixtures/lttng-program/lossy";
const BARECTF: &str = "fixtures/barectf/trace";
const PERF: &str = "fixtures/arm64/D.perf.data";
const OF_PERF: &str = "fixtures/arm64/D.ctf";

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&output_of(args)).unwrap()
}

fn truth(path: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(repository().join(path)).unwrap()).unwrap()
}

fn count(exits: &Value, reason: &str) -> u64 {
    let rows = exits["rows"].as_array().unwrap().iter();
    rows.filter(|row| row["reason"] == reason).map(|row| row["count"].as_u64().unwrap()).sum()
}

#[test]
fn events_are_those_that_babeltrace2_prints() {
    for (trace, truth_path) in [
        (LTTNG, "fixtures/x86-svm/lttng/truth.json"),
        (CONTEXT, "fixtures/x86-svm/lttng-context/truth.json"),
        (LOSSY, "fixtures/x86-svm/lttng-lossy/truth.json"),
        (SECOND, "fixtures/x86-svm/lttng-ctf2/truth.json"),
        (BARECTF, "fixtures/barectf/truth.json"),
        (OF_PERF, "fixtures/arm64/D.ctf.truth.json"),
    ] {
        let info = json(&["info", "--format", "json", trace]);
        check(&closed("info"), &info, trace);
        let events = info["files"][0]["events"].as_object().unwrap();
        let expected = truth(truth_path)["events"].clone();
        let expected = expected.as_object().unwrap();
        assert_eq!(events.len(), expected.len(), "{trace}: {events:?}");
        for (name, number) in events {
            let plain = name.split_once(':').unwrap().1;
            assert_eq!(Some(number), expected.get(plain), "{trace}: {name}");
        }
    }
}

#[test]
fn exits_are_those_that_the_guest_made() {
    for trace in [LTTNG, CONTEXT] {
        let exits = json(&["exits", "--format", "json", trace]);
        check(&closed("exits"), &exits, trace);
        let made = truth(&format!("{trace}/truth.json"))["guest_made"].clone();
        assert_eq!(count(&exits, "hypercall"), made["hypercall"], "{trace}");
        for (reason, kind) in [("cpuid", "cpuid"), ("msr", "msr"), ("io", "port"), ("npf", "mmio")]
        {
            let min = made[kind].as_u64().unwrap();
            assert!(count(&exits, reason) >= min, "{trace}: {reason} {exits}");
        }
        let vms = exits["vms"].as_array().unwrap();
        assert_eq!(vms.len(), 1, "{trace}: {vms:?}");
    }
    let by_port = json(&["exits", "--by", "port", "--format", "json", LTTNG]);
    let rows = by_port["rows"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["port"] == 0x4859 && row["count"] == 100), "{by_port}");
}

/// All verbs give the same results for another program's conversion of the trace to the other version of the format.
#[test]
fn a_trace_is_the_same_in_both_versions_of_the_format() {
    let info = output_of(&["info", SECOND]);
    assert!(info.contains("CTF 2, little endian"), "{info}");
    for args in [
        &["events", "--format", "jsonl"][..],
        &["exits", "--format", "json"],
        &["cpu", "--format", "json"],
        &["path", "--format", "json"],
    ] {
        let output = |path: &str| output_of(&[args, &[path]].concat());
        let (first, second) = (output(CONTEXT), output(SECOND));
        assert!(first.len() > 100, "{args:?}: {first}");
        assert!(first == second.replace(SECOND, CONTEXT), "{args:?}: {second}");
    }
}

/// The program counts what it traces: received events, losses, and fields of each kind.
#[test]
fn a_program_traced_by_barectf_is_what_it_says() {
    // Standard error says that the trace has no CPUs.
    let run = hyperscope(&["events", "--format", "jsonl", BARECTF]);
    assert_eq!(run.code, 0, "{}", run.err);
    let events: Vec<Value> =
        run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count_of = |name: &str| {
        events.iter().filter(|event| event["event"] == format!("unknown:{name}")).count()
    };
    let truth = truth("fixtures/barectf/truth.json");
    let traced = truth["traced"].as_object().unwrap();
    let came: usize = traced.keys().map(|name| count_of(name)).sum();
    let sum: u64 = traced.values().map(|count| count.as_u64().unwrap()).sum();
    let lost = truth["lost"].as_u64().unwrap();
    assert_eq!(came as u64 + lost, sum);
    let info = json(&["info", "--format", "json", BARECTF]);
    let info = &info["files"][0];
    assert_eq!(info["losses"]["events_lost"], lost, "{info}");
    assert_eq!(
        (&info["losses"]["known"], &info["losses"]["pages_damaged"]),
        (&true.into(), &0.into())
    );
    assert_eq!((&info["long_bytes"], info["notes"].as_array().unwrap().len()), (&Value::Null, 1));
    assert!(run.err.contains("each is shown as a separate CPU"), "{}", run.err);
    let (losses, events): (Vec<_>, Vec<_>) =
        events.iter().partition(|event| event["event"].is_null());
    assert!(losses.len() == 1 && losses[0]["lost"] == lost, "{losses:?}");
    for event in events {
        // The trace has no threads, and the idle thread must not be assumed.
        assert!(event["pid"].as_u64().unwrap() >= 1 << 30 && event["comm"].is_null(), "{event}");
        let (fields, task) = (&event["fields"], event["fields"]["context_task"].as_i64().unwrap());
        if event["event"] == "unknown:started" {
            assert_eq!(
                (&fields["delta"], fields["name"] == "odd"),
                (&Value::from(-task), task % 2 == 1)
            );
            assert_eq!(fields["ratio"], format!("{:?}", task as f64 / 8.0), "{event}");
        }
        if event["event"] == "unknown:step" {
            let step = fields["small"].as_i64().unwrap() / 100 + 5;
            let samples = fields["samples"].as_array().unwrap();
            let samples: Vec<u64> = samples.iter().map(|sample| sample.as_u64().unwrap()).collect();
            assert_eq!((samples.len() as i64, samples.is_sorted()), (step % 8, true), "{event}");
            assert_eq!(
                (&fields["mask"], &fields["state"]),
                (&Value::from(1 << (step % 5)), &Value::from(step % 6))
            );
        }
    }
}

/// By task and step, the values that `fixtures/lttng-program/program.c` sorts: each of its threads has half of the
/// tasks.
fn sorted_samples() -> Vec<Vec<Vec<u64>>> {
    let (mut all, mut state) = (Vec::new(), 1_u32);
    for task in 0..80 {
        if task == 40 {
            state = 1;
        }
        let mut draw = || {
            state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            u64::from(state >> 16)
        };
        let mut steps: Vec<Vec<u64>> =
            (0..10).map(|step| (0..step).map(|_| draw()).collect()).collect();
        steps.iter_mut().for_each(|samples| samples.sort_unstable());
        all.push(steps);
    }
    all
}

/// LTTng's own CTF 2 of a program with known events: all of them, and those that too small buffers kept.
#[test]
fn a_program_traced_by_lttng_is_what_it_says() {
    let expected = sorted_samples();
    for trace in [PROGRAM, PROGRAM_LOSSY] {
        let truth = truth(&format!("{trace}.truth.json"));
        let lost = truth["lost"].as_u64().unwrap();
        let info = &json(&["info", "--format", "json", trace])["files"][0];
        assert_eq!((&info["format"], &info["long_bytes"]), (&"CTF 2".into(), &Value::Null));
        assert_eq!(info["losses"]["events_lost"], lost, "{info}");
        assert_eq!(info["losses"]["known"], true, "{info}");
        let run = hyperscope(&["events", "--format", "jsonl", trace]);
        assert_eq!(run.code, 0, "{}", run.err);
        assert_eq!(
            run.err.contains(&format!("LTTng dropped {lost} events")),
            lost > 0,
            "{}",
            run.err
        );
        let lines = run.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let (losses, events): (Vec<_>, Vec<_>) = lines.partition(|event| event["event"].is_null());
        let of_losses: u64 = losses.iter().map(|loss| loss["lost"].as_u64().unwrap()).sum();
        assert_eq!((of_losses, events.len() as u64 + lost), (lost, 960), "{losses:?}");
        for (name, count) in truth["events"].as_object().unwrap() {
            assert_eq!(&info["events"][format!("sorter:{name}")], count);
        }
        for event in &events {
            let fields = &event["fields"];
            assert_eq!(
                (&event["pid"], &event["comm"]),
                (&fields["context_vtid"], &"program".into())
            );
            let task = fields["task"].as_i64().unwrap();
            if event["event"] == "sorter:started" {
                let name = if task % 2 == 1 { "odd" } else { "even: \"q\"" };
                let ratio = format!("{:?}", task as f64 / 8.0);
                assert_eq!(
                    [&fields["delta"], &fields["ratio"], &fields["name"]],
                    [&(-task).into(), &ratio.into(), &Value::from(name)]
                );
            }
            if event["event"] == "sorter:step" {
                let step = fields["small"].as_i64().unwrap() + 5;
                assert_eq!(
                    [&fields["mask"], &fields["state"], &fields["address"]],
                    [&(1 << step).into(), &(step % 6).into(), &Value::from(0x0100_007f)]
                );
                assert_eq!(fields["mac"], serde_json::json!([0x52, 0x54, 0, 0x12, 0x34, 0x56]));
                assert_eq!(
                    fields["samples"],
                    serde_json::json!(expected[task as usize][step as usize])
                );
            }
        }
    }
}

/// The thread in a switch equals the one in the context.
#[test]
fn threads_of_switches_are_those_of_contexts() {
    let text = output_of(&["events", "--format", "jsonl", CONTEXT]);
    let mut seen = 0;
    for line in text.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        assert_eq!(event["pid"], event["fields"]["context_tid"], "{line}");
        if event["event"] == "sched:sched_switch" {
            assert_eq!(event["pid"], event["fields"]["prev_pid"], "{line}");
            seen += 1;
        }
    }
    assert!(seen > 100);
}

#[test]
fn a_conversion_says_what_the_perf_data_says() {
    for args in [&["exits"][..], &["cpu"], &["nested"]] {
        let output = |path: &str| output_of(&[args, &["--format", "json", path]].concat());
        // babeltrace2 converts names of threads only with --all.
        let expected = output(PERF).replace("\"qemu-system-aar\"", "null");
        assert_eq!(output(OF_PERF).replace(OF_PERF, PERF), expected, "{args:?}");
    }
}

#[test]
fn losses_are_those_of_the_kernels_log() {
    let exits = json(&["exits", "--format", "json", LOSSY]);
    let lost = truth("fixtures/x86-svm/lttng-lossy/truth.json")["lost_by_cpu"].clone();
    let all: u64 = lost.as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(exits["losses"]["events_lost"], all);
    let counted: u64 =
        exits["rows"].as_array().unwrap().iter().map(|row| row["count"].as_u64().unwrap()).sum();
    assert_eq!(counted, 244);
}

#[test]
fn every_verb_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let to = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for args in [
        &["path"][..],
        &["cpu"],
        &["profile"],
        &["report", "-o", &to("page.html")],
        &["export", "--to", "perfetto", "-o", &to("trace.pftrace")],
        &["export", "--to", "tracedat", "-o", &to("trace.dat")],
    ] {
        let run = hyperscope(&[args, &[LTTNG]].concat());
        assert_eq!(run.code, 0, "{args:?}: {}", run.err);
    }
    let exits =
        |path: &str| json(&["exits", "--format", "json", path])["rows"].as_array().unwrap().len();
    assert_eq!(exits(&to("trace.dat")), exits(LTTNG));
}

fn copy(from: &str, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(repository().join(from)).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[test]
fn what_can_not_be_read_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let info = |path: &Path, code: i32| {
        let run = hyperscope(&["info", path.to_str().unwrap()]);
        assert_eq!(run.code, code, "{}{}", run.out, run.err);
        run.out + &run.err
    };
    let stream = repository().join(LTTNG).join("kernel/chan_0");
    assert!(info(&stream, 1).contains("is part of a CTF trace; name the folder"));
    // A session of programs: with several traces, the requested one is ambiguous.
    copy("fixtures/x86-svm/lttng/kernel", &at("session/ust/uid/0/64-bit"));
    assert!(info(&at("session"), 0).contains("6,927"));
    copy("fixtures/x86-svm/lttng/kernel", &at("session/ust/uid/0/32-bit"));
    let text = info(&at("session"), 1);
    let names = ["none of them in a kernel folder", "32-bit", "64-bit"];
    assert!(names.iter().all(|name| text.contains(name)), "{text}");
    assert!(info(&at("session/ust/uid/0/64-bit"), 0).contains("6,927"));
    // Metadata without a stream, and streams without metadata.
    copy("fixtures/x86-svm/lttng/kernel", &at("bare"));
    for name in ["chan_0", "chan_1"] {
        fs::remove_file(at("bare").join(name)).unwrap();
    }
    assert!(info(&at("bare"), 1).contains("without streams"));
    fs::write(at("bare/chan_0"), b"").unwrap();
    assert!(info(&at("bare"), 1).contains("streams are empty"));
    fs::write(at("bare/metadata"), b"/* CTF 1.8 */ trace {").unwrap();
    assert!(info(&at("bare"), 1).contains("line 1 of its metadata"));
    fs::write(at("bare/metadata"), b"nothing").unwrap();
    assert!(info(&at("bare"), 1).contains("is not CTF"));
    // The file ends within a packet.
    copy("fixtures/x86-svm/lttng/kernel", &at("cut"));
    let bytes = fs::read(at("cut/chan_0")).unwrap();
    fs::write(at("cut/chan_0"), &bytes[..20_000]).unwrap();
    assert!(info(&at("cut"), 0).contains("the file ends within a packet"));
    assert_eq!(hyperscope(&["exits", at("cut").to_str().unwrap()]).code, 0);
}
