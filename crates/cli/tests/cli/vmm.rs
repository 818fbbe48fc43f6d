//! `hyperscope vmm`: what VMMs do with exits, held against what `exits` says of the same recordings.

use serde_json::Value;

use crate::schemas::{check, closed};
use crate::tool::{assert_golden, hyperscope, output_of, recordings};

const SMP: &str = "fixtures/x86-vmx/smp.dat";

fn json(verb: &str, path: &str) -> Value {
    let run = hyperscope(&[verb, "--format", "json", path]);
    assert_eq!(run.code, 0, "{path}: {}", run.err);
    serde_json::from_str(&run.out).unwrap()
}

fn sum(rows: &Value, name: &str) -> u64 {
    rows.as_array().unwrap().iter().filter_map(|row| row[name].as_u64()).sum()
}

#[test]
fn every_recording_keeps_the_schema_and_adds_up_to_exits() {
    let validator = closed("vmm");
    let mut known = 0;
    for path in recordings() {
        let found = json("vmm", &path);
        check(&validator, &found, &path);
        // Without switches, running is not known from waiting.
        if found["exits"].as_array().unwrap().iter().all(|row| row["user_ns"].is_u64()) {
            let exits = json("exits", &path)["rows"].take();
            let user_ns = sum(&exits, "user_ns") + sum(&exits, "user_and_return_ns");
            assert_eq!(sum(&found["exits"], "user_ns"), user_ns, "{path}");
            known += 1;
        }
    }
    assert!(known > 8, "{known}");
}

#[test]
fn recordings_without_system_calls_say_what_it_takes() {
    let run = hyperscope(&["vmm", SMP]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.contains("record with --profile vmm"), "{}", run.out);
    let found = json("vmm", SMP);
    assert_eq!(found["syscalls_recorded"], serde_json::json!([false]));
    for row in found["exits"].as_array().unwrap() {
        assert!(row["device_ns"].is_null() && row["user_ns"].is_u64(), "{row}");
    }
}

#[test]
fn tables_and_csv_are_as_expected() {
    assert_golden("vmm.txt", &output_of(&["vmm", SMP]));
    assert_golden("vmm.csv", &output_of(&["vmm", "--format", "csv", SMP]));
}

#[test]
fn rows_that_are_left_out_are_counted() {
    let run = hyperscope(&["vmm", "--top", "1", SMP]);
    assert!(run.out.contains("more: --top 0 shows them"), "{}", run.out);
    assert!(!hyperscope(&["vmm", "--top", "0", SMP]).out.contains("more:"));
}
