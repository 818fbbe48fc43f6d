//! `hyperscope virtio`: the load of queues, compared with a count in the printed text of the same
//! recording.

use serde_json::Value;

use crate::schemas::{check, closed};
use crate::tool::{assert_golden, hyperscope, output_of, recordings, repository};

const GUEST: &str = "fixtures/x86-svm/virtio.guest.dat";

fn json(args: &[&str]) -> Value {
    let run = hyperscope(&[&["virtio", "--format", "json"], args].concat());
    assert_eq!(run.code, 0, "{args:?}: {}", run.err);
    serde_json::from_str(&run.out).unwrap()
}

fn queues(report: &Value) -> &Vec<Value> {
    report["queues"].as_array().unwrap()
}

/// A separate program counted the truth in the text of `trace-cmd report`.
#[test]
fn queues_are_as_counted_in_the_printed_text() {
    let path = repository().join("fixtures/x86-svm/virtio.guest.truth.json");
    let truth: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let report = json(&[GUEST]);
    let expected = queues(&truth);
    assert_eq!((queues(&report).len(), expected.len()), (8, 8));
    for queue in expected {
        let found =
            queues(&report).iter().find(|candidate| candidate["vq"] == queue["vq"]).unwrap();
        for name in ["device", "queue", "buffers", "out_buffers", "in_buffers", "taken", "timed"] {
            assert_eq!(found[name], queue[name], "{name} of {queue}");
        }
        for name in ["kicks", "kicks_avoided", "interrupts"] {
            assert_eq!(found[name], queue[name], "{name} of {queue}");
        }
        if queue["buffers"] != 0 {
            for name in ["out_bytes", "in_bytes"] {
                assert_eq!(found[name], queue[name], "{name} of {queue}");
            }
        }
        assert_eq!(found["latency_max_ns"], queue["latency_max_ns"], "{queue}");
        if let Some(mean) = found["latency_mean_ns"].as_f64() {
            let timed = queue["timed"].as_f64().unwrap();
            let expected = queue["latency_sum_ns"].as_f64().unwrap() / timed;
            assert!((mean - expected).abs() < 1.0, "{mean} {expected}");
        }
    }
    // The program's work: 500 blocks of 4 KiB, each with a header of 16 bytes and a status byte.
    let disk = queues(&report).iter().find(|queue| queue["queue"] == "req.0").unwrap();
    assert_eq!((&disk["buffers"], &disk["kicks"]), (&500.into(), &500.into()));
    assert_eq!(disk["out_bytes"], 500 * (4096 + 16));
    assert_eq!((&disk["in_bytes"], &disk["depth_max"]), (&500.into(), &1.into()));
}

#[test]
fn parts_of_a_recording_add_up() {
    let span = json(&[GUEST])["span_ns"].as_u64().unwrap() as f64 / 1e9;
    let middle = format!("+{:.9}", span / 2.0);
    let count = |args: &[&str], name: &str| -> u64 {
        let report = json(&[args, &[GUEST]].concat());
        queues(&report).iter().map(|queue| queue[name].as_u64().unwrap()).sum()
    };
    for name in ["buffers", "taken", "interrupts"] {
        let (first, second) = (count(&["--to", &middle], name), count(&["--from", &middle], name));
        let total = count(&[], name);
        // A call may be in one part, and its return in the other.
        assert!(
            first > 0 && second > 0 && (total - first - second) <= 1,
            "{first} {second} {total}"
        );
    }
}

#[test]
fn every_recording_keeps_the_schema() {
    let validator = closed("virtio");
    for path in recordings() {
        check(&validator, &json(&[&path]), &path);
    }
}

#[test]
fn tables_and_csv_are_as_expected() {
    assert_golden("virtio.txt", &output_of(&["virtio", GUEST]));
    assert_golden("virtio.csv", &output_of(&["virtio", "--format", "csv", GUEST]));
}

#[test]
fn recordings_without_its_events_say_what_it_takes() {
    let run = hyperscope(&["virtio", "fixtures/x86-svm/nested.dat"]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.contains("--guest-kprobe @virtio"), "{}", run.out);
}
