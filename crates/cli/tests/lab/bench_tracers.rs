//! `hyperscope bench tracers`: a short measurement of some tracers, on real kernels.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::hypertrace::build_module;
use crate::patience::run;
use crate::tool::{TestLab, can_run_all, folder};

/// Tracers that need no further packages.
const TRACERS: [&str; 4] = ["ftrace", "hypercall-1", "hypercall-8", "shm"];

fn measure() -> Value {
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("tracers.json");
    let mut bench = Command::new(env!("CARGO_BIN_EXE_hyperscope"));
    bench
        .args(["bench", "tracers", "--count-instructions", "--rounds", "1", "--iterations", "4000"])
        .args(["--seed", "7", "--format", "json", "-o"])
        .arg(&file)
        .args(TRACERS.iter().flat_map(|tracer| ["--tracer", tracer]))
        .env("HYPERSCOPE_LAB_DIR", folder())
        .stdin(Stdio::null());
    run(bench).done();
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

fn mean(estimate: &Value) -> f64 {
    estimate["mean"].as_f64().unwrap()
}

#[test]
fn tracers_are_measured() {
    if !can_run_all() {
        return;
    }
    // The module is built for the lab's kernel, which is part of its packages.
    let lab = TestLab::new("tracers");
    lab.run(&["fetch"]).done();
    if !build_module() {
        return;
    }
    let report = measure();
    crate::bench::check_schema("bench-tracers", &report);
    let rows = report["tracers"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * TRACERS.len());
    rows.iter().for_each(check_row);
    let row_of = |subject: &str, tracer: &str| {
        let is = |row: &&Value| row["subject"] == subject && row["tracer"] == tracer;
        rows.iter().find(is).unwrap()
    };
    for subject in ["syscalls", "switches"] {
        let exits = |tracer| row_of(subject, tracer)["exits_per_event"].as_f64().unwrap();
        assert!(exits("hypercall-8") < 0.5 * exits("hypercall-1"), "{rows:#?}");
        assert!((exits("hypercall-1") - 1.0).abs() < 0.3, "{rows:#?}");
        assert!(exits("shm") < 0.3, "{rows:#?}");
    }
    let volumes = report["volumes"].as_array().unwrap();
    for volume in volumes {
        assert_eq!(volume["host_events_lost"], 0, "{volume:#}");
        assert!(volume["events_seen"].as_u64() >= volume["events_made"].as_u64(), "{volume:#}");
    }
    // Exit, hypercall and entry for each event, against one hypercall for many events.
    let events = |at: usize| volumes[at]["host_events"].as_u64().unwrap();
    assert!(events(1) * 3 <= events(0) && events(3) * 3 < events(1), "{volumes:#?}");
}

fn check_row(row: &Value) {
    let parts = row["parts"].as_array().unwrap();
    let sum: f64 = parts.iter().map(|part| mean(&part["event_ns"])).sum();
    let mean_ns = mean(&row["event_ns"]);
    assert!((sum - mean_ns).abs() < 1e-6 * mean_ns.abs().max(1.0), "{sum} of {mean_ns}: {row:#}");
    assert!(mean_ns > 0.0 && mean(&row["ratio"]) > 1.0, "{row:#}");
    let (seen, made) = (row["events_seen"].as_u64(), row["events_made"].as_u64());
    // Threads are switched away from once more, after their count.
    assert!(seen >= made && made > Some(4000), "{row:#}");
    if row["subject"] == "syscalls" {
        assert_eq!(seen, made, "{row:#}");
    }
    let hypercalls = row["hypercalls_per_event"].as_f64().unwrap();
    if row["tracer"] == "ftrace" || row["tracer"] == "shm" {
        assert!(hypercalls.abs() < 1e-9, "{row:#}");
    }
}
