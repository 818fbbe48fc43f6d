//! Killed agents: the remaining processes soon remove everything that they had set up.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::agent::{Agent, signal};
use crate::ports::Ports;
use crate::tool::{TRACEFS, command, left_in_tracefs, lock_tracing, run, wait_until};

/// The tracefs instance of a process.
fn instance(pid: u32) -> PathBuf {
    Path::new(TRACEFS).join(format!("instances/hyperscope-{pid}"))
}

/// Begins to record this machine and, as its guest, the agent on a channel.
fn begin(channel: &str, session: &Path) -> Child {
    let guest = format!("g={channel}");
    let words = ["record", "-e", "sched_process_exec", "--guest", &guest, "--guest-event"];
    let more = ["sched_process_exec", "-o", session.to_str().unwrap()];
    let child = command(&[&words[..], &more].concat()).stderr(Stdio::null()).spawn().unwrap();
    // The files for reading pages are written once the guest reports that it records.
    let clock_file = session.join("guest-g.pages/trace_clock");
    wait_until("it did not begin", || clock_file.exists());
    child
}

#[test]
fn an_agent_that_is_killed_leaves_no_tracing_on() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let channel = format!("unix:{}", folder.path().join("agent").display());
    let agent = Agent::start(&channel);
    let recorder = begin(&channel, &folder.path().join("s"));
    let instance = instance(agent.pid());
    assert!(instance.exists());
    // A service manager does so to let all processes of a service end.
    let guards = children(agent.pid());
    assert_eq!(guards.len(), 1);
    signal(guards[0], "TERM");
    agent.signal("KILL");
    wait_until("its instance stays", || !instance.exists());
    assert!(left_in_tracefs().iter().all(|name| *name == format!("hyperscope-{}", recorder.id())));
    wait_until("its guard stays", || !Path::new(&format!("/proc/{}", guards[0])).exists());
    end(recorder);
    assert_eq!(left_in_tracefs(), Vec::<String>::new());
}

/// The live children of a process.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    text.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

#[test]
fn an_agent_removes_at_its_start_what_another_left() {
    let Some(_lock) = lock_tracing() else { return };
    let mut dead = Command::new("true").spawn().unwrap();
    dead.wait().unwrap();
    let name = format!("hyperscope-{}-1", dead.id());
    let instances = [instance(dead.id()), instance(dead.id()).with_file_name(name)];
    instances.iter().for_each(|instance| fs::create_dir(instance).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let _agent = Agent::start(&format!("unix:{}", folder.path().join("agent").display()));
    wait_until("they stay", || instances.iter().all(|instance| !instance.exists()));
}

#[test]
fn what_is_older_than_a_flush_survives_an_agent_that_is_killed() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let channel = format!("unix:{}", folder.path().join("agent").display());
    let (agent, session) = (Agent::start(&channel), folder.path().join("s"));
    let recorder = begin(&channel, &session);
    // Few events: they don't fill a page.
    let start = Instant::now();
    let mut marks = Vec::new();
    while start.elapsed() < Duration::from_secs(5) {
        let mut mark = Command::new("true").spawn().unwrap();
        marks.push((mark.id(), Instant::now()));
        mark.wait().unwrap();
        std::thread::sleep(Duration::from_millis(50));
    }
    agent.signal("KILL");
    let killed = Instant::now();
    end(recorder);
    let events =
        run(&["events", "--format", "jsonl", session.join("guest-g.dat").to_str().unwrap()]);
    let pids: Vec<u64> = events
        .stdout
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).unwrap()["pid"].as_u64())
        .collect();
    // The flush of a second, and one more for a busy machine.
    let old = |mark: &&(u32, Instant)| killed - mark.1 > Duration::from_secs(2);
    let missing: Vec<_> =
        marks.iter().filter(old).filter(|(pid, _)| !pids.contains(&u64::from(*pid))).collect();
    assert!(marks.iter().filter(old).count() > 10 && missing.is_empty(), "{missing:?} {pids:?}");
}

#[test]
fn a_host_behind_memory_or_ports_hears_at_once_that_the_agent_was_killed() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let memory = folder.path().join("memory");
    fs::File::create(&memory).unwrap().set_len(4 << 20).unwrap();
    let channel = format!("shm:{}", memory.display());
    hears_of_killed(&channel, &Agent::start(&channel), &folder.path().join("by-memory"));
    let Some((ports, agent)) = Ports::with_agent() else { return };
    hears_of_killed(&ports.channel(), &agent, &folder.path().join("by-ports"));
}

/// Kills an agent during a recording, which must end on time, long before a silent agent counts as
/// dead.
fn hears_of_killed(channel: &str, agent: &Agent, session: &Path) {
    let recorder = begin(channel, session);
    agent.signal("KILL");
    std::thread::sleep(Duration::from_secs(2));
    let ended = Instant::now();
    end(recorder);
    let took = ended.elapsed();
    let stored = fs::read_to_string(session.join("session.json")).unwrap();
    assert!(stored.contains("the agent was killed"), "{channel}: {stored}");
    assert!(took < Duration::from_secs(15), "{channel}: {took:?}");
}

fn end(mut recorder: Child) {
    signal(recorder.id(), "INT");
    recorder.wait().unwrap();
}
