//! `hyperscope bench channels`: a short measurement of some channels, on real kernels.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::patience::run;
use crate::recorded::agent;
use crate::tool::{can_run_all, folder};

#[test]
fn channels_are_measured() {
    if !can_run_all() {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let report = measure(out.path());
    check_schema("bench-channels", &report);
    let variants = report["variants"].as_array().unwrap();
    let names: Vec<&str> = variants.iter().map(|row| row["variant"].as_str().unwrap()).collect();
    assert_eq!(names, CHANNELS);
    for row in variants {
        assert!(row["events"].as_u64().unwrap() > 1000, "{row:#}");
        assert!(row["score_ratio"]["mean"].as_f64().unwrap() > 0.0, "{row:#}");
        if row["variant"] == "kernel-buffer" {
            assert!(row["attributed"].is_null() && row["events_lost"].is_null(), "{row:#}");
            continue;
        }
        // The recording has every switch of the load's threads.
        assert!(row["events_lost"] == 0 && row["load_missing"] == 0, "{row:#}");
        let attribution = &row["attributed"];
        let at_device = attribution["memory_exits"].as_u64().unwrap()
            + attribution["port_exits"].as_u64().unwrap();
        if row["variant"] == "shm" {
            assert_eq!(at_device, 0, "{row:#}");
        } else {
            assert!(at_device > attribution["exits_without"].as_u64().unwrap(), "{row:#}");
        }
        assert!(attribution["all_exits"].as_u64().unwrap() > 100, "{row:#}");
        assert!(row["agent_wakeups_per_s"].as_f64().unwrap() > 0.0, "{row:#}");
    }
}

/// The fastest channels.
const CHANNELS: [&str; 3] = ["kernel-buffer", "shm", "virtio-serial"];

fn measure(out: &Path) -> Value {
    let file = out.join("channels.json");
    let mut bench = Command::new(env!("CARGO_BIN_EXE_hyperscope"));
    bench
        .args(["bench", "channels", "--rounds", "1", "--seconds", "1", "--rate", "4000"])
        // Small buffers are sent when half full, so several times in a short run.
        .args(["--buffer", "128", "--seed", "7", "--no-search", "--format", "json", "-o"])
        .arg(&file)
        .args(CHANNELS.iter().flat_map(|channel| ["--channel", channel]))
        .env("HYPERSCOPE_LAB_DIR", folder())
        .env("HYPERSCOPE_AGENT", agent())
        .stdin(Stdio::null());
    run(bench).done();
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

pub(crate) fn check_schema(name: &str, report: &Value) {
    let path = format!("{}/../../docs/formats/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let faults: Vec<String> =
        validator.iter_errors(report).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}
