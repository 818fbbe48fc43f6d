//! Begin and end of recordings: their folders, their commands, and marks from outside.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::tool::{
    Ran, TRACEFS, command, kernels_own_buffer_is_in_use, left_in_tracefs, lock_tracing, run,
    wait_until,
};

fn record_in(folder: &Path, arguments: &[&str]) -> Ran {
    let arguments = [&["record", "-e", "sched_process_exec"], arguments].concat();
    command(&arguments).current_dir(folder).output().unwrap().into()
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn recordings_that_nobody_names_are_numbered() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("hyperscope-1.hscope")).unwrap();
    for name in ["hyperscope.hscope", "hyperscope-2.hscope", "hyperscope-3.hscope"] {
        let ran = record_in(folder.path(), &["--for", "1ms"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains(&format!("session: {name}")), "{}", ran.stderr);
        assert!(folder.path().join(name).join("host.dat").is_file());
    }
}

/// sudo names its user: the folder is given to that user, and the next one has another name.
#[test]
fn recordings_under_sudo_are_numbered_too() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    for name in ["hyperscope.hscope", "hyperscope-1.hscope"] {
        let mut record = command(&["record", "-e", "sched_process_exec", "--for", "1ms"]);
        record.env("SUDO_UID", "65534").env("SUDO_GID", "65534").current_dir(folder.path());
        let ran = Ran::from(record.output().unwrap());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains(&format!("session: {name}")), "{}", ran.stderr);
    }
}

#[test]
fn a_command_that_cannot_be_run_leaves_nothing() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    for to in [&[][..], &["-o", "named"]] {
        let ran = record_in(folder.path(), &[to, &["--", "no-such-command-anywhere"]].concat());
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains("cannot run no-such-command-anywhere"), "{}", ran.stderr);
        assert_eq!(names_in(folder.path()), Vec::<String>::new());
        assert_eq!(left_in_tracefs(), Vec::<String>::new());
    }
}

#[test]
fn an_address_that_is_taken_leaves_nothing_of_a_flight_recorder() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let ran = record_in(folder.path(), &["--flight", "1s", "--alerts", &address]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert_eq!(names_in(folder.path()), Vec::<String>::new());
    assert_eq!(left_in_tracefs(), Vec::<String>::new());
}

#[test]
fn a_recording_ends_with_the_code_of_its_command() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143)] {
        let ran = record_in(folder.path(), &["--", "sh", "-c", script]);
        assert_eq!(ran.code, Some(code), "{script}: {}", ran.stderr);
    }
    // The command continues when the time is over.
    let ran = record_in(folder.path(), &["--for", "10ms", "--", "sh", "-c", "sleep 1; exit 7"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(names_in(folder.path()).len(), 4);
}

/// Whether no other program records on this machine: a mark would reach its recording.
fn is_unrecorded() -> bool {
    let instances = Path::new(TRACEFS).join("instances");
    !kernels_own_buffer_is_in_use() && fs::read_dir(instances).unwrap().next().is_none()
}

#[test]
fn a_mark_is_in_each_recording_of_this_machine_and_says_so() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let is_alone = is_unrecorded();
    let too_early = run(&["mark", "too early"]);
    assert_eq!(too_early.code, Some(0), "{}", too_early.stderr);
    if is_alone && is_unrecorded() {
        let is_unmarked = too_early.stderr.contains("no recording runs on this machine");
        assert!(is_unmarked, "{}", too_early.stderr);
    }
    let mut recorders = ["a", "b"].map(|name| {
        let mut record =
            command(&["record", "-e", "sched_process_exec", "--for", "20s", "-o", name]);
        record.current_dir(folder.path()).spawn().unwrap()
    });
    wait_until("they did not begin", || {
        recorders.iter().all(|recorder| {
            // A new instance is enabled until the recorder sets it up.
            let instance = format!("{TRACEFS}/instances/hyperscope-{}", recorder.id());
            ["events/sched/sched_process_exec/enable", "tracing_on"].iter().all(|file| {
                fs::read_to_string(format!("{instance}/{file}")).is_ok_and(|on| on.trim() == "1")
            })
        })
    });
    let ran = run(&["mark", "half", "time"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for recorder in &mut recorders {
        let interrupt = Command::new("kill").args(["-INT", &recorder.id().to_string()]).status();
        assert!(interrupt.unwrap().success());
        recorder.wait().unwrap();
    }
    for name in ["a", "b"] {
        let session = folder.path().join(name);
        let is_reported = ran
            .stderr
            .contains(&format!("marked the recording of this machine in {}", session.display()));
        assert!(is_reported, "{}", ran.stderr);
        let events = run(&["events", session.to_str().unwrap()]).stdout;
        assert!(events.contains("half time") && !events.contains("too early"), "{events}");
    }
}
