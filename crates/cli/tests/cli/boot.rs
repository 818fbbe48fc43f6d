//! `hyperscope boot`: tables, documents and pictures of a boot and a shutdown.

use std::fs;

use serde_json::Value;

use crate::schemas::{check, closed};
use crate::tool::{assert_golden, hyperscope, output_of, repository};

const HOST: &str = "fixtures/x86-svm/boot.dat";
const GUEST: &str = "fixtures/x86-svm/boot.guest.dat";

fn document(args: &[&str]) -> Value {
    serde_json::from_str(&output_of(&[&["boot", "--format", "json"], args].concat())).unwrap()
}

#[test]
fn tables_are_as_expected() {
    assert_golden("x86-svm-boot.boot.txt", &output_of(&["boot", HOST, GUEST]));
    assert_golden("x86-svm-boot.guest.boot.txt", &output_of(&["boot", "--top", "3", GUEST]));
    assert_golden("x86-svm-boot.host.boot.txt", &output_of(&["boot", HOST]));
    let csv = output_of(&["boot", "--format", "csv", HOST, GUEST]);
    let first: String = csv.split_inclusive('\n').take(30).collect();
    assert_golden("x86-svm-boot.boot.csv", &first);
    assert_eq!(csv.lines().count(), 1 + 21 + 585);
}

#[test]
fn documents_keep_their_schema_and_what_was_not_recorded_is_null() {
    let validator = closed("boot");
    let both = document(&[HOST, GUEST]);
    let (guest, host) = (document(&[GUEST]), document(&[HOST]));
    let none = document(&["fixtures/x86-vmx/vmm.dat"]);
    for (what, one) in [("both", &both), ("guest", &guest), ("host", &host), ("none", &none)] {
        check(&validator, one, what);
    }
    let phases = |one: &Value| one["machines"][0]["phases"].as_array().unwrap().clone();
    assert!(phases(&guest).iter().all(|one| one["host"].is_null()));
    assert!(phases(&host).iter().all(|one| one["guest"].is_null()));
    assert_eq!(both["machines"][0]["vm"], "l2");
    assert!(guest["machines"][0]["vm"].is_null() && host["machines"][0]["init"].is_null());
    let ns = |value: &Value| value.as_u64().unwrap();
    let machine = &both["machines"][0];
    let sum: u64 = phases(&both).iter().map(|one| ns(&one["duration_ns"])).sum();
    assert_eq!(sum, ns(&machine["end_ns"]) - ns(&machine["begin_ns"]));
}

#[test]
fn marks_may_be_named() {
    let named = document(&["--until", "u", HOST, GUEST]);
    assert_eq!(named["machines"][0]["mark"]["text"], "up");
    let other = document(&["--until", "login", "--down", "up", HOST, GUEST]);
    assert!(other["machines"][0]["mark"].is_null());
    let phases = other["machines"][0]["phases"].as_array().unwrap();
    assert!(phases.iter().any(|one| one["kind"] == "shutdown" && one["name"] == "up"));
}

#[test]
fn recordings_without_a_boot_say_so() {
    let run = hyperscope(&["boot", "fixtures/x86-svm/tsc.guest.dat"]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.contains("trace_event=initcall:*"), "{}", run.out);
}

#[test]
fn boots_are_compared_phase_by_phase() {
    let folder = tempfile::tempdir().unwrap();
    let session = |name: &str| {
        let session = folder.path().join(name);
        fs::create_dir(&session).unwrap();
        for (from, name) in [(HOST, "host.dat"), (GUEST, "guest-l2.dat")] {
            fs::copy(repository().join(from), session.join(name)).unwrap();
        }
        session.to_str().unwrap().to_owned()
    };
    let runs: Vec<String> = ["a1", "a2", "b1", "b2"].map(session).into();
    let sides = [&runs[0], &runs[1], "--", &runs[2], &runs[3]];
    let args = [&["diff", "--all", "--format", "json", "boot"][..], &sides].concat();
    let run = hyperscope(&args);
    assert_eq!(run.code, 0, "{}", run.err);
    let report: Value = serde_json::from_str(&run.out).unwrap();
    check(&closed("diff"), &report, "diff boot");
    let rows = report["rows"].as_array().unwrap();
    let find = |phase: &str, metric: &str| {
        rows.iter().find(|row| row["phase"] == phase && row["metric"] == metric)
    };
    let of = |phase: &str, metric: &str| find(phase, metric).unwrap();
    assert_eq!(of("fs", "exits")["a"], 1119.0);
    assert_eq!(of("fs", "duration_ns")["ratio"], 1.0);
    assert_eq!(find("before tracing", "events"), None);
    // What both sides have: from the first entry to the mark.
    let told = document(&[HOST, GUEST]);
    let until_mark = &told["machines"][0]["mark"]["since_begin_ns"];
    assert_eq!(&of("boot", "duration_ns")["b"], until_mark);
    assert!(rows.iter().all(|row| row["significant"] != true));
}
