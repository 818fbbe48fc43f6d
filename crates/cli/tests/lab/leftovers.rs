//! After a lab is down, or its launcher was killed, nothing of it remains.

use crate::patience::Patient;
use crate::tool::{TestLab, WORKING, can_run};

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
    // A second `down` succeeds.
    lab.run(&["down"]).done();
}

#[test]
fn down_cleans_up_after_a_launcher_that_was_killed() {
    if !can_run() {
        return;
    }
    let lab = TestLab::new("killed");
    let mut launcher = lab.command(&["up", "--levels", "1", "--no-snapshot"]).spawn().unwrap();
    lab.wait_for_a_process();
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    assert!(!lab.processes().is_empty(), "nothing was left to clean up");
    lab.run(&["down"]).done();
    assert_eq!(lab.processes(), Vec::<String>::new());
    assert!(!lab.run_folder().exists());
}

#[test]
fn an_interrupted_launcher_cleans_up_itself() {
    if !can_run() {
        return;
    }
    let lab = TestLab::new("interrupted");
    let launcher = lab.command(&["up", "--levels", "1", "--no-snapshot"]).spawn().unwrap();
    lab.wait_for_a_process();
    let pid = launcher.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let ran = Patient::new(launcher, "lab up, interrupted".into()).finish(WORKING);
    assert_eq!(ran.code, Some(130));
    assert_eq!(lab.processes(), Vec::<String>::new());
    assert!(!lab.run_folder().exists());
}
