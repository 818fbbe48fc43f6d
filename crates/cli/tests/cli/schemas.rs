//! JSON outputs match `docs/formats/*.schema.json`.

use std::collections::HashSet;
use std::fs;

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::tool::{hyperscope, output_of, recordings, repository};

/// The published schema, but closed: an undescribed field is an error. Users' schemas are open, so
/// that fields can be added.
pub(crate) fn closed(name: &str) -> Validator {
    let path = repository().join(format!("docs/formats/{name}.schema.json"));
    let mut schema: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert!(jsonschema::meta::is_valid(&schema), "{name}");
    close(&mut schema);
    jsonschema::validator_for(&schema).unwrap()
}

fn close(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.contains_key("properties") && !map.contains_key("additionalProperties") {
                map.insert("additionalProperties".to_owned(), json!(false));
            }
            map.values_mut().for_each(close);
        }
        Value::Array(values) => values.iter_mut().for_each(close),
        _ => {}
    }
}

#[track_caller]
pub(crate) fn check(validator: &Validator, document: &Value, what: &str) {
    let faults: Vec<String> = validator
        .iter_errors(document)
        .take(5)
        .map(|fault| format!("{}: {fault}", fault.instance_path()))
        .collect();
    assert!(faults.is_empty(), "{what}:\n{}", faults.join("\n"));
}

fn document(args: &[&str]) -> Value {
    serde_json::from_str(&output_of(args)).unwrap()
}

#[test]
fn reports_of_every_recording_keep_their_schema() {
    for verb in ["exits", "nested", "advice", "why", "boot", "cpu", "info"] {
        let validator = closed(verb);
        for path in recordings() {
            check(&validator, &document(&[verb, "--format", "json", &path]), &path);
        }
    }
}

/// The expected answers of hyperscope-sql from its own tests; this program does not build the
/// engine.
#[test]
fn answers_of_sql_keep_their_schema() {
    let validator = closed("sql");
    let mut rows = 0;
    for name in ["kinds", "slow-exits"] {
        let path = repository().join(format!("sql/tests/golden/{name}.json"));
        let mut answer: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        check(&validator, &answer, name);
        rows += answer["rows"].as_array().unwrap().len();
        answer["rows"][0]["list"] = json!([]);
        assert!(!validator.is_valid(&answer), "{name}");
    }
    assert!(rows > 5, "{rows}");
}

/// Verbs whose JSON names the selected part, with suitable recordings.
const IN_PART: [&[&str]; 13] = [
    &["info", HOST],
    &["exits", HOST],
    &["nested", HOST],
    &["advice", HOST],
    &["why", HOST],
    &["boot", HOST],
    &["cpu", HOST, GUEST],
    &["path", HOST, GUEST],
    &["align", HOST, GUEST],
    &["profile", HOST, GUEST],
    &["critical", HOST, GUEST, "--task", "host/qemu-system-x86"],
    &["calls", "fixtures/x86-svm/calls.dat"],
    &["diff", HOST, "fixtures/x86-svm/nested.dat"],
];
const HOST: &str = "fixtures/x86-svm/host-guest.dat";
const GUEST: &str = "fixtures/x86-svm/host-guest.guest.dat";

#[test]
fn documents_say_which_part_was_read() {
    for line in IN_PART {
        let validator = closed(line[0]);
        let run = |more: &[&str]| -> Value {
            let run = hyperscope(&[line, &["--format", "json"], more].concat());
            assert_eq!(run.code, 0, "{line:?} {more:?}: {}", run.err);
            serde_json::from_str(&run.out).unwrap()
        };
        let full = run(&[]);
        check(&validator, &full, &format!("{line:?}"));
        assert_eq!(full.get("part"), None, "{line:?}");
        let part = run(&["--from", "+0.1", "--to", "+0.6"]);
        check(&validator, &part, &format!("{line:?} in part"));
        let ranges = part["part"]["ranges"].as_array().unwrap();
        assert_eq!(ranges[0]["left_out_before_ns"], 100_000_000, "{line:?}");
        for range in ranges {
            let ns = |name: &str| range[name].as_u64().unwrap();
            assert!(ns("to_ns") - ns("from_ns") <= 500_000_000, "{line:?}: {range}");
        }
    }
    let path = "fixtures/x86-vmx/smp.dat";
    let part = document(&["exits", "--format", "json", "--vcpu", "0,2", path]);
    check(&closed("exits"), &part, path);
    assert_eq!(part["part"], json!({"vms": [], "vcpus": "0,2", "ranges": []}));
}

#[test]
fn every_grouping_keeps_the_schema() {
    let validator = closed("exits");
    let all = "vm,vcpu,level,reason,code,msr,port,gpa,hypercall,cpuid_leaf,task";
    for by in ["vm", "vcpu", "msr", "level,gpa", "hypercall,port", all] {
        for path in ["fixtures/x86-vmx/vmm.dat", "fixtures/x86-vmx/smp.dat", "fixtures/arm64/D.dat"]
        {
            let report = document(&["exits", "--by", by, "--format", "json", path]);
            check(&validator, &report, &format!("{path} by {by}"));
            for key in by.split(',') {
                let has = |row: &Value| row.get(key).is_some();
                assert!(
                    report["rows"].as_array().unwrap().iter().all(has),
                    "{path} by {by}: {key}"
                );
            }
        }
    }
}

#[test]
fn events_keep_their_schema() {
    let validator = closed("event");
    for path in recordings() {
        let run = hyperscope(&["events", "--format", "jsonl", &path]);
        assert_eq!(run.code, 0, "{path}");
        // The first event of each kind, and some others.
        let mut kinds = HashSet::new();
        for (at, line) in run.out.lines().enumerate() {
            let kind = line.split_once("\"event\":").and_then(|(_, rest)| rest.split(',').next());
            if kinds.insert(kind) || at % 500 == 0 {
                check(&validator, &serde_json::from_str(line).unwrap(), line);
            }
        }
    }
}

#[test]
fn parts_add_up_to_the_time_of_each_row() {
    for path in recordings() {
        let report = document(&["exits", "--format", "json", &path]);
        for row in report["rows"].as_array().unwrap() {
            let parts =
                ["user_ns", "user_and_return_ns", "off_cpu_ns", "halt_poll_ns", "not_split_ns"];
            let rest: u64 = parts.iter().filter_map(|part| row[part].as_u64()).sum();
            let kernel = row["kernel_ns"].as_u64();
            let sum = rest + kernel.unwrap_or(0);
            assert_eq!(Some(sum), row["time_ns"].as_u64(), "{path}: {row:#}");
            assert!(kernel.is_none() || row["not_split_ns"] == 0, "{path}: {row:#}");
            let handled = &row["handled"];
            if let (Some(kernel), Some(user)) =
                (handled["kernel"].as_u64(), handled["user"].as_u64())
            {
                let all = kernel + user + handled["l1"].as_u64().unwrap();
                assert_eq!(Some(all), row["paired"].as_u64(), "{path}: {row:#}");
            }
        }
    }
}

#[test]
fn several_recordings_make_one_document() {
    let paths = ["fixtures/x86-vmx/smp.dat", "fixtures/x86-vmx/vmm.dat", "fixtures/arm64/D.dat"];
    let together = document(&[&["exits", "--format", "json"][..], &paths].concat());
    check(&closed("exits"), &together, "three recordings");
    let mut rows = Vec::new();
    for path in paths {
        let alone = document(&["exits", "--format", "json", path]);
        rows.extend(alone["rows"].as_array().unwrap().clone());
    }
    assert_eq!(together["rows"], json!(rows));
    assert_eq!(together["sources"], json!(paths));
}

#[test]
fn measured_tracers_keep_their_schema() {
    let path = repository().join("docs/formats/bench-tracers.json");
    let report: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    check(&closed("bench-tracers"), &report, "docs/formats/bench-tracers.json");
    for row in report["tracers"].as_array().unwrap() {
        let parts = row["parts"].as_array().unwrap().iter();
        let sum: f64 = parts.map(|part| part["event_ns"]["mean"].as_f64().unwrap()).sum();
        let mean = row["event_ns"]["mean"].as_f64().unwrap();
        assert!((sum - mean).abs() < 1e-6 * mean.abs(), "{row:#}");
    }
}

#[test]
fn measured_channels_keep_their_schema() {
    let path = repository().join("docs/formats/bench-channels.json");
    let report: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    check(&closed("bench-channels"), &report, "docs/formats/bench-channels.json");
    let names: Vec<&Value> =
        report["variants"].as_array().unwrap().iter().map(|row| &row["variant"]).collect();
    for name in ["kernel-buffer", "shm", "virtio-serial", "vsock", "trace-cmd-vsock"] {
        assert!(names.contains(&&json!(name)), "{name}: {names:?}");
    }
}

#[test]
fn measured_exits_keep_their_schema() {
    for name in ["levels", "ladders"] {
        let path = format!("docs/formats/bench-exits-{name}.json");
        let text = fs::read_to_string(repository().join(&path)).unwrap();
        check(&closed("bench-exits"), &serde_json::from_str(&text).unwrap(), &path);
    }
}

/// The second session comes from an earlier version, which reported less.
#[test]
fn sessions_keep_their_schema() {
    for path in ["docs/formats/demo-session.json", "fixtures/arm64/hypercalls/session.json"] {
        let text = fs::read_to_string(repository().join(path)).unwrap();
        check(&closed("session"), &serde_json::from_str(&text).unwrap(), path);
    }
}
