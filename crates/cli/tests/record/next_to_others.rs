//! Runs these tests next to an unrelated recorder and other work, as on a developer's machine.

use std::process::{Child, Command, Stdio};

use crate::tool::{TRACEFS, lock_tracing, wait_until};

/// Tests that check leftovers in tracefs, or how soon an end comes.
const TESTS: [&str; 3] = [
    "cut_memory::memory_that_is_cut_ends_the_recording_of_its_guest_and_nothing_else",
    "faults::a_full_disk_leaves_what_was_written_before",
    "guests::an_agent_that_is_killed_leaves_what_it_sent",
];

/// Processes that end with the test.
struct Others(Vec<Child>);

impl Drop for Others {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn recorders_of_others_and_load_fail_none_of_these_tests() {
    // Whether this machine can be recorded: the tests themselves take turns.
    if lock_tracing().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_hyperscope");
    let mut recorder = Command::new(program);
    recorder.args(["record", "-e", "sched_process_exec", "-o", "other.hscope"]);
    let recorder = recorder.current_dir(folder.path()).stderr(Stdio::null()).spawn().unwrap();
    let instance = format!("{TRACEFS}/instances/hyperscope-{}", recorder.id());
    let mut others = Others(vec![recorder]);
    wait_until("the other recorder does not begin", || {
        let on = std::fs::read_to_string(format!("{instance}/tracing_on"));
        let pages = folder.path().join("other.hscope/host.pages/cpu0");
        pages.exists() && on.is_ok_and(|on| on.trim() == "1")
    });
    for _ in 0..2 {
        let load = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        others.0.push(load);
    }
    let this = std::env::current_exe().unwrap();
    let ran = Command::new(this).arg("--exact").args(TESTS).output().unwrap();
    let stdout = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{stdout}{}", String::from_utf8_lossy(&ran.stderr));
    assert!(stdout.contains("3 passed"), "{stdout}");
    // The other recorder still records.
    assert!(others.0[0].try_wait().unwrap().is_none());
    assert!(std::path::Path::new(&instance).exists());
    std::process::Command::new("kill")
        .args(["-INT", &others.0[0].id().to_string()])
        .status()
        .unwrap();
    assert!(others.0[0].wait().unwrap().success());
}
