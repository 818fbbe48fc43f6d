//! Level 2, snapshots, and a scenario whose recording must contain the guest program's exits.

use serde_json::Value;

use crate::tool::{TestLab, can_run};

#[test]
fn what_a_guest_program_made_is_what_exits_reports() {
    if !can_run() {
        return;
    }
    let lab = TestLab::new("scenarios");
    lab.run(&["up", "--levels", "2"]).done();
    assert_eq!(lab.shell(2, "uname -n").done().stdout, "l2\n");
    lab.run(&["down"]).done();
    let again = lab.run(&["up", "--levels", "2"]).done();
    assert!(again.stderr.contains("loading a snapshot"), "{}", again.stderr);
    assert!(!again.stderr.contains("booting"), "{}", again.stderr);

    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("out");
    let to = to.to_str().unwrap();
    let ran = lab.run(&["run", "exits", "-o", to]).done();
    assert!(
        ran.stderr.contains("hypercalls with number 0x4859: 500 made, 500 recorded"),
        "{}",
        ran.stderr
    );
    // The command's own check, repeated from outside.
    let truth = std::fs::read_to_string(format!("{to}/truth.json")).unwrap();
    let truth: Value = serde_json::from_str(&truth).unwrap();
    let truths = truth["truth"].as_array().unwrap();
    assert_eq!(truths.len(), 6);
    for expected in truths.iter().filter(|expected| expected["key"].is_u64()) {
        assert_eq!(
            counted(to, &expected["by"], &expected["key"]),
            expected["count"].as_u64().unwrap(),
            "{expected}"
        );
    }
    let second = lab.run(&["run", "exits", "-o", to]);
    assert!(second.code == Some(1) && second.stderr.contains("-o"), "{}", second.stderr);
}

/// Exits with a property, as `hyperscope exits` counts them.
fn counted(session: &str, by: &Value, key: &Value) -> u64 {
    let by = by.as_str().unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_hyperscope"))
        .args(["exits", "--format", "json", "--by", by, session])
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let wanted = rows.iter().filter(|row| row[by] == *key);
    wanted.map(|row| row["count"].as_u64().unwrap()).sum()
}
