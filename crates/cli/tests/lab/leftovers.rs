//! What is left of a lab when it is down, or its launcher was killed: nothing.

use std::time::{Duration, Instant};

use crate::tool::{TestLab, can_run};

#[test]
fn down_leaves_nothing() {
    if !can_run() {
        return;
    }
    let lab = TestLab::new("leftovers");
    lab.run(&["up", "--levels", "1", "--no-snapshot"]).done();
    assert_eq!(lab.processes().len(), 1);
    lab.run(&["down"]).done();
    assert_eq!(lab.processes(), Vec::<String>::new());
    assert!(!lab.run_folder().exists());
    assert!(lab.shell(1, "true").stderr.contains("lab up"));
    // Once more is fine.
    lab.run(&["down"]).done();
}

#[test]
fn down_cleans_up_after_a_launcher_that_was_killed() {
    if !can_run() {
        return;
    }
    let lab = TestLab::new("killed");
    let mut launcher = lab.command(&["up", "--levels", "1", "--no-snapshot"]).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    while lab.processes().is_empty() {
        assert!(Instant::now() < deadline, "QEMU was not started");
        std::thread::sleep(Duration::from_millis(10));
    }
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    assert!(!lab.processes().is_empty(), "nothing was left to clean up");
    lab.run(&["down"]).done();
    assert_eq!(lab.processes(), Vec::<String>::new());
    assert!(!lab.run_folder().exists());
}
