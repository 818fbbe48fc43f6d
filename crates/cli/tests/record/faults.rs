//! A recording that ends in a way that nobody planned: what was recorded can be read, and what was
//! set up is gone.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::tool::{command, info, left, run, start_programs, turn, wait_until};

fn start(session: &Path) -> Child {
    let arguments = ["record", "-e", "sched_process_exec", "-o", session.to_str().unwrap()];
    let child = command(&arguments).stderr(Stdio::null()).spawn().unwrap();
    wait_until("it did not begin", || {
        let on = format!("/sys/kernel/tracing/instances/hyperscope-{}/tracing_on", child.id());
        fs::read_to_string(on).is_ok_and(|text| text.trim() == "1")
    });
    child
}

#[test]
fn a_recorder_that_is_killed_loses_nothing_that_was_in_the_buffers() {
    let Some(_turn) = turn() else { return };
    let folder = tempfile::tempdir().unwrap();
    let session = folder.path().join("s");
    let mut recorder = start(&session);
    start_programs(25);
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    wait_until("its instance stays", || left().is_empty());
    // The instance goes once all of it is written.
    assert!(!session.join("host.dat").exists());
    let events = run(&["events", "--format", "jsonl", session.to_str().unwrap()]);
    let started = events.stdout.lines().filter(|line| line.contains("/true\"")).count();
    assert_eq!(started, 25, "{}", events.stderr);
    assert!(run(&["exits", session.to_str().unwrap()]).stderr.is_empty());
}

#[test]
fn ctrl_c_ends_it_well() {
    let Some(_turn) = turn() else { return };
    let folder = tempfile::tempdir().unwrap();
    let session = folder.path().join("s");
    let mut recorder = start(&session);
    start_programs(3);
    let killed = Command::new("kill").args(["-INT", &recorder.id().to_string()]).status();
    assert!(killed.unwrap().success());
    assert_eq!(recorder.wait().unwrap().code(), Some(0));
    assert!(info(&session)["events"]["sched:sched_process_exec"].as_u64().unwrap() >= 3);
    assert_eq!(left(), Vec::<String>::new());
}

#[test]
fn a_full_disk_leaves_what_was_written_before() {
    let Some(_turn) = turn() else { return };
    let folder = tempfile::tempdir().unwrap();
    let small = folder.path().join("small");
    fs::create_dir(&small).unwrap();
    let mounted =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=8M", "none"]).arg(&small).status();
    if !mounted.unwrap().success() {
        return eprintln!("skipped: no small filesystem can be mounted here");
    }
    let session = small.join("s");
    let script = "dd if=/dev/zero of=/dev/null bs=1 count=200000 2>/dev/null";
    let to = session.to_str().unwrap();
    let ran = run(&["record", "-e", "raw_syscalls", "-o", to, "--", "sh", "-c", script]);
    let events = info(&session)["events"]["raw_syscalls:sys_enter"].as_u64();
    assert!(Command::new("umount").arg(&small).status().unwrap().success());
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("No space left") && ran.stderr.contains(to), "{}", ran.stderr);
    assert!(events > Some(1000), "{events:?}");
    assert_eq!(left(), Vec::<String>::new());
}
