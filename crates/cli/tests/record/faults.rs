//! Recordings that end irregularly: recorded events are readable, and everything that was set up is
//! removed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::agent::Agent;
use crate::tool::{
    OWN, Ran, command, count_started, file_info, info, left_in_tracefs, lock_tracing, run,
    start_programs, wait_until,
};

fn start(session: &Path) -> Child {
    let arguments = ["record", "-e", "sched_process_exec", "-o", session.to_str().unwrap()];
    let child = command(&arguments).stderr(Stdio::null()).spawn().unwrap();
    wait_until("it did not begin", || {
        // The kernel creates enabled instances, before there is an event to record.
        let instance = format!("/sys/kernel/tracing/instances/hyperscope-{}", child.id());
        let reads = |file| fs::read_to_string(format!("{instance}/{file}")).unwrap_or_default();
        reads("set_event").contains("sched_process_exec") && reads("tracing_on").trim() == "1"
    });
    child
}

#[test]
fn a_recorder_that_is_killed_loses_nothing_that_was_in_the_buffers() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let session = folder.path().join("s");
    let mut recorder = start(&session);
    start_programs(25);
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    wait_until("its instance stays", || left_in_tracefs().is_empty());
    // The instance is removed once everything is written.
    assert!(!session.join("host.dat").exists());
    let events = run(&["events", "--format", "jsonl", session.to_str().unwrap()]);
    let started = count_started(&events.stdout, OWN);
    assert_eq!(started, 25, "{}", events.stderr);
    // The kernel's counts are there as well: nothing else was lost.
    assert_eq!(info(&session)["losses"]["known"], true);
    assert!(run(&["exits", session.to_str().unwrap()]).stderr.is_empty());
}

#[test]
fn ctrl_c_ends_it_well() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let session = folder.path().join("s");
    let mut recorder = start(&session);
    start_programs(3);
    let killed = Command::new("kill").args(["-INT", &recorder.id().to_string()]).status();
    assert!(killed.unwrap().success());
    assert_eq!(recorder.wait().unwrap().code(), Some(0));
    assert!(info(&session)["events"]["sched:sched_process_exec"].as_u64().unwrap() >= 3);
    assert_eq!(left_in_tracefs(), Vec::<String>::new());
}

/// A filesystem in memory, 24 MiB by default; unmounted when dropped.
pub(crate) struct SmallDisk {
    pub(crate) folder: tempfile::TempDir,
}

impl SmallDisk {
    /// `None` if it can't be mounted.
    fn mount() -> Option<Self> {
        Self::mount_of(24)
    }

    /// One of another size.
    pub(crate) fn mount_of(mib: u32) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={mib}M"), "none"]).arg(folder.path());
        if !mount.status().unwrap().success() {
            testkit::skip!("no small filesystem can be mounted here");
            return None;
        }
        Some(Self { folder })
    }

    /// Records into it a program that makes hundreds of thousands of system calls.
    fn fill(&self, more: &[&str]) -> (PathBuf, Ran) {
        let session = self.folder.path().join("s");
        let mut arguments = vec!["record", "-o", session.to_str().unwrap()];
        arguments.extend(more);
        let script = "dd if=/dev/zero of=/dev/null bs=1 count=400000 2>/dev/null";
        arguments.extend(["--", "sh", "-c", script]);
        let ran = run(&arguments);
        (session, ran)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(self.folder.path()).status();
        assert!(unmounted.unwrap().success() || std::thread::panicking());
    }
}

#[test]
fn a_full_disk_leaves_what_was_written_before() {
    let Some(_lock) = lock_tracing() else { return };
    let Some(small) = SmallDisk::mount() else { return };
    let (session, ran) = small.fill(&["-e", "raw_syscalls"]);
    let events = info(&session)["events"]["raw_syscalls:sys_enter"].as_u64();
    assert_eq!(ran.code, Some(1));
    let to = session.to_str().unwrap();
    assert!(ran.stderr.contains("No space left") && ran.stderr.contains(to), "{}", ran.stderr);
    assert!(events > Some(1000), "{events:?}");
    let stored = &info(&session)["faults"];
    assert!(stored[0].as_str().is_some_and(|fault| fault.contains("No space left")), "{stored}");
    let losses = &info(&session)["losses"];
    assert_eq!(losses["known"], false, "{losses}");
    assert!(losses["events_missing"].as_u64() > Some(0), "{losses}");
    assert_eq!(left_in_tracefs(), Vec::<String>::new());
}

#[test]
fn a_disk_that_a_guest_fills_keeps_its_host_and_what_the_guest_sent_before() {
    let Some(_lock) = lock_tracing() else { return };
    let Some(small) = SmallDisk::mount() else { return };
    let folder = tempfile::tempdir().unwrap();
    let channel = format!("unix:{}", folder.path().join("agent").display());
    let agent = Agent::start(&channel);
    let guest = format!("g={channel}");
    let (session, ran) = small.fill(&[
        "-e",
        "sched_process_exec",
        "--guest",
        &guest,
        "--guest-event",
        "raw_syscalls",
    ]);
    drop(agent);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("No space left"), "{}", ran.stderr);
    // Missing events are reported in reserved space.
    let stored = fs::read_to_string(session.join("session.json")).unwrap();
    let stored: Value = serde_json::from_str(&stored).unwrap();
    let guest = &stored["recorded"]["guests"][0];
    assert!(guest["faults"][0].as_str().unwrap().contains("No space left"), "{guest}");
    let cpus = guest["cpus"].as_array().unwrap();
    let sum = |key: &str| cpus.iter().map(|cpu| cpu[key].as_u64().unwrap()).sum::<u64>();
    assert!(sum("bytes") > 1 << 20 && sum("lost_bytes") > 1 << 20, "{guest}");
    // The existing pages are complete, and mark missing ones.
    let pages = session.join("guest-g.pages");
    let info = file_info(&pages);
    assert!(info["events"]["raw_syscalls:sys_enter"].as_u64() > Some(10_000), "{info}");
    assert_eq!(info["losses"]["pages_damaged"], 0, "{info}");
    assert_eq!(info["faults"], guest["faults"]);
    let on_disk = |cpu: &Value| {
        let file = pages.join(format!("cpu{}", cpu["cpu"]));
        fs::metadata(file).map_or(0, |file| file.len())
    };
    assert_eq!(cpus.iter().map(on_disk).sum::<u64>(), sum("bytes"));
    assert_eq!(run(&["exits", session.to_str().unwrap()]).code, Some(0));
    assert_eq!(left_in_tracefs(), Vec::<String>::new());
}
