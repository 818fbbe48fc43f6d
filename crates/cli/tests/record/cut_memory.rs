//! The owner of shared memory truncates its file while a host records a guest over it.

use std::cell::Cell;
use std::fs::File;
use std::process::Stdio;
use std::time::Duration;

use crate::agent::{Agent, signal};
use crate::tool::{command, left_in_tracefs, lock_tracing, run, start_programs, wait_until};

#[test]
fn memory_that_is_cut_ends_the_recording_of_its_guest_and_nothing_else() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let memory = path("memory");
    let resize = |bytes| {
        let file = File::options().write(true).create(true).truncate(false).open(&memory).unwrap();
        file.set_len(bytes).unwrap();
    };
    resize(4 << 20);
    let mut agent = Agent::start(&format!("shm:{memory}"));
    let guest = format!("g=shm:{memory}");
    let begin = |session: &str, time: &str| {
        let to = path(session);
        let mut recorder = command(&["record", "-e", "sched_switch", "-o", &to, "--for", time]);
        recorder.args(["--guest", &guest, "--guest-event", "sched_switch"]);
        recorder.stderr(Stdio::piped()).spawn().unwrap()
    };
    let child = begin("s", "60s");
    let clock_file = folder.path().join("s").join("guest-g.pages/trace_clock");
    wait_until("it did not begin", || clock_file.exists());
    start_programs(20);
    // The header stays, most rings are gone.
    resize(64 << 10);
    // Its host checks every few milliseconds, and at the latest at its end.
    std::thread::sleep(Duration::from_secs(1));
    signal(child.id(), "INT");
    let ended = child.wait_with_output().unwrap();
    let err = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{err}");
    let reported = format!("the shared memory {memory} was truncated");
    assert!(err.contains("guest g: ") && err.contains(&reported), "{err}");
    // The host's own recording is complete.
    let host = path("s/host.dat");
    assert_eq!(run(&["info", &host]).code, Some(0));
    wait_until("tracing is left on", || left_in_tracefs().is_empty());
    assert!(agent.0.try_wait().unwrap().is_none(), "the agent has died");
    // It uses the memory again once there is some.
    resize(0);
    resize(4 << 20);
    let again = Cell::new(0);
    wait_until("the agent does not come back", || {
        again.set(again.get() + 1);
        let child = begin(&format!("s{}", again.get()), "500ms");
        let ended = child.wait_with_output().unwrap();
        ended.status.success()
    });
    assert_eq!(left_in_tracefs(), Vec::<String>::new());
}
