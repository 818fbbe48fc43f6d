//! `hyperscope lab corpus`: planted causes are in the recordings, and what is known of them is apart.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::patience::run;
use crate::tool::{Ran, can_run_all, folder};

#[test]
fn planted_causes_are_recorded_with_labels_apart() {
    if !can_run_all() {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let to = out.path().join("corpus");
    let ran = corpus(&["--only", "exit_storm,none", "--variants", "1", "--kinds", "host"], &to);
    // A machine that is too slow for a healthy recording leaves others.
    assert!(ran.stdout.contains("exit_storm"), "{}{}", ran.stdout, ran.stderr);
    let labels = read(&to.join("labels.json"));
    assert_eq!(labels["schema"], "hyperscope.lab.corpus/1");
    let recordings = labels["recordings"].as_array().unwrap();
    let storm = recordings.iter().find(|label| label["source"] == "exit_storm").unwrap();
    assert_eq!(storm["causes"][0]["cause"], "exit_storm");
    assert!(storm["effects"].as_array().unwrap().iter().all(|effect| effect["holds"] == true));
    let session = to.join(storm["path"].as_str().unwrap());
    let made = storm["measured"]["work.count"].as_u64().unwrap();
    assert!(exits_between(&session, &storm["window"]) >= made, "{made} by the program alone");
    let text = std::fs::read_to_string(session.join("session.json")).unwrap();
    assert!(!text.contains("storm"), "{text}");
}

/// Exits in a window on the recording's clock.
fn exits_between(session: &Path, window: &Value) -> u64 {
    let second = |word: &str| {
        let ns = window[word].as_u64().unwrap();
        format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
    };
    let output = Command::new(env!("CARGO_BIN_EXE_hyperscope"))
        .args(["exits", "--format", "json", "--from", &second("from_ns"), "--to"])
        .arg(second("to_ns"))
        .arg(session)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    report["rows"].as_array().unwrap().iter().map(|row| row["count"].as_u64().unwrap()).sum()
}

fn corpus(arguments: &[&str], to: &Path) -> Ran {
    let mut lab = Command::new(env!("CARGO_BIN_EXE_hyperscope"));
    lab.args(["lab", "corpus", "--seed", "3", "-o"])
        .arg(to)
        .args(arguments)
        .env("HYPERSCOPE_LAB_DIR", folder())
        .stdin(Stdio::null());
    run(lab)
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}
