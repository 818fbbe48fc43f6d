//! `hyperscope bench advice`: switches one setting, on real kernels.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::bench::check_schema;
use crate::patience::run;
use crate::tool::{can_run_all, folder};

/// Predictions go to a file, with which later runs are compared.
#[test]
fn a_saving_is_predicted_and_then_measured() {
    if !can_run_all() {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let file = |name: &str| out.path().join(name).display().to_string();
    let (predicted, measured) = (file("predicted.json"), file("measured.json"));
    bench(&["--predict", "-o", &predicted]);
    let before = read(&predicted);
    assert_eq!(before["rows"].as_array().unwrap().len(), 4);
    bench(&["--against", &predicted, "-o", &measured]);
    let after = read(&measured);
    for (before, row) in
        before["rows"].as_array().unwrap().iter().zip(after["rows"].as_array().unwrap())
    {
        assert!(before["measured"].is_null(), "{before:#}");
        for name in ["workload", "speaks", "least", "most"] {
            assert_eq!(before[name], row[name], "{name}");
        }
        // An unused serial port is visible, whatever else happens.
        let is_silent = row["workload"] == "compute";
        assert_eq!(row["speaks"], !is_silent, "{row:#}");
        assert_eq!(row["measured"]["holds"], true, "{row:#}");
    }
}

fn bench(arguments: &[&str]) {
    let mut bench = Command::new(env!("CARGO_BIN_EXE_hyperscope"));
    bench
        .args(["bench", "advice", "--switch", "console", "--runs", "1", "--seed", "7"])
        .args(["--format", "json"])
        .args(arguments)
        .env("HYPERSCOPE_LAB_DIR", folder())
        .stdin(Stdio::null());
    run(bench).done();
}

fn read(path: &str) -> Value {
    let report = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    check_schema("bench-advice", &report);
    report
}
