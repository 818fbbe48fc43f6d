//! Agents that are killed: what they had set up is gone soon, whoever is left.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::agent::{Agent, signal};
use crate::tool::{TRACEFS, command, left, turn, wait_until};

/// An instance of tracefs that a process has, or had.
fn instance(pid: u32) -> PathBuf {
    Path::new(TRACEFS).join(format!("instances/hyperscope-{pid}"))
}

/// Begins to record this machine and, as its guest, the agent on a channel.
fn begin(channel: &str, session: &Path) -> Child {
    let guest = format!("g={channel}");
    let words = ["record", "-e", "sched_process_exec", "--guest", &guest, "--guest-event"];
    let more = ["sched_process_exec", "-o", session.to_str().unwrap()];
    let child = command(&[&words[..], &more].concat()).stderr(Stdio::null()).spawn().unwrap();
    // What pages are read with is written once the guest says that it records.
    let told = session.join("guest-g.pages/trace_clock");
    wait_until("it did not begin", || told.exists());
    child
}

#[test]
fn an_agent_that_is_killed_leaves_no_tracing_on() {
    let Some(_turn) = turn() else { return };
    let folder = tempfile::tempdir().unwrap();
    let channel = format!("unix:{}", folder.path().join("agent").display());
    let agent = Agent::start(&channel);
    let mut recorder = begin(&channel, &folder.path().join("s"));
    let instance = instance(agent.pid());
    assert!(instance.exists());
    // As a service manager does it that gives all processes of a service a chance to end.
    let guards = children(agent.pid());
    assert_eq!(guards.len(), 1);
    signal(guards[0], "TERM");
    agent.signal("KILL");
    wait_until("its instance stays", || !instance.exists());
    assert!(left().iter().all(|name| *name == format!("hyperscope-{}", recorder.id())));
    wait_until("its guard stays", || !Path::new(&format!("/proc/{}", guards[0])).exists());
    signal(recorder.id(), "INT");
    recorder.wait().unwrap();
    assert_eq!(left(), Vec::<String>::new());
}

fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    text.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

#[test]
fn an_agent_removes_at_its_start_what_another_left() {
    let Some(_turn) = turn() else { return };
    let mut dead = Command::new("true").spawn().unwrap();
    dead.wait().unwrap();
    let name = format!("hyperscope-{}-1", dead.id());
    let instances = [instance(dead.id()), instance(dead.id()).with_file_name(name)];
    instances.iter().for_each(|instance| fs::create_dir(instance).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let _agent = Agent::start(&format!("unix:{}", folder.path().join("agent").display()));
    wait_until("they stay", || instances.iter().all(|instance| !instance.exists()));
}
