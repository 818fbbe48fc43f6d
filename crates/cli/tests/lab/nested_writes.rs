//! A nested hypervisor's changes of its guest's control block before each run equal those in single
//! events.

use std::process::Command;

use serde_json::Value;

use crate::hypertrace::lines;
use crate::tool::{TestLab, can_run_all};

const SCENARIO: &str = "summary = 'writes'\nlevels = 3\n[record]\nevents = ['kvm']\n\
    probes = ['enter_svm_guest_mode clean=+0xc0($arg3):x32']\n[[step]]\ndo = 'run'\nlevel = 3\n\
    argv = ['hyperscope-labguest', 'exits', 'hypercall=200']\ntruth = false\n";

#[test]
fn runs_of_nested_guests_are_shown_with_what_changed() {
    if !can_run_all() {
        return;
    }
    let temporary = tempfile::tempdir().unwrap();
    let (scenario, session) = (temporary.path().join("run.toml"), temporary.path().join("out"));
    std::fs::write(&scenario, SCENARIO).unwrap();
    let session = session.to_str().unwrap();
    let lab = TestLab::new("nested-writes");
    lab.run(&["run", scenario.to_str().unwrap(), "-o", session]).done();
    let events = lines(&["events", "--format", "jsonl", "-e", "enter_svm_guest_mode", session]);
    let is_clean = |event: &Value, bit: u64| event["fields"]["clean"].as_u64().unwrap() >> bit & 1;
    let changed = |bit| events.iter().filter(|event| is_clean(event, bit) == 0).count() as u64;
    let (runs, intercepts, maps) = shown_by_nested(session);
    eprintln!("{runs} runs: intercepts changed before {intercepts}, permission maps before {maps}");
    // Level 2 ran before its first exit in the recording.
    let unseen = events.len() as u64 - runs;
    assert!(runs > 1000 && unseen <= 2, "{runs} of {}", events.len());
    assert!(intercepts > 0 && (intercepts..=intercepts + unseen).contains(&changed(0)));
    assert!((maps..=maps + unseen).contains(&changed(1)));
}

/// Runs, runs with changed intercepts, and runs with changed permission maps, as `nested` reports them.
fn shown_by_nested(session: &str) -> (u64, u64, u64) {
    let mut nested = Command::new(env!("CARGO_BIN_EXE_hyperscope"));
    let output = nested.args(["nested", "--format", "json", session]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["rows"].as_array().unwrap().iter();
    let ancillary: Vec<&Value> =
        rows.flat_map(|row| row["ancillary"].as_array().unwrap()).collect();
    let group = |name: &str| {
        let groups = ancillary.iter().flat_map(|exit| exit["vmcb_changed"].as_array().unwrap());
        groups
            .filter(|entry| entry["group"] == name)
            .map(|entry| entry["count"].as_u64().unwrap())
            .sum()
    };
    let runs = ancillary.iter().map(|exit| exit["vmcb_runs"].as_u64().unwrap()).sum();
    (runs, group("intercepts"), group("permission maps"))
}
