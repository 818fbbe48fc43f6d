//! The agent under the restrictions of its systemd unit: emulated without systemd, by `setpriv` and
//! `strace`.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use perfdata::{Body, PerfData};
use serde_json::Value;

use crate::agent::{Agent, program, signal};
use crate::killed_agents::children;
use crate::tool::{left_in_tracefs, lock_tracing, run, wait_until};

const UNIT: &str = include_str!("../../../record/agent/hyperscope-agent.service");

/// Words of a setting in the unit.
fn setting(name: &str) -> Vec<&'static str> {
    let mut lines = UNIT.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    lines.next().unwrap().split_whitespace().collect()
}

fn is_there(tool: &str) -> bool {
    let is_there = Command::new(tool).arg("--version").output().is_ok();
    if !is_there {
        testkit::skip!("{tool} is not installed");
    }
    is_there
}

/// The units' capabilities in `setpriv`'s form.
fn bounding_set() -> String {
    let capabilities = setting("CapabilityBoundingSet");
    let capabilities =
        capabilities.iter().map(|name| name.strip_prefix("CAP_").unwrap().to_lowercase());
    capabilities.fold("--bounding-set=-all".into(), |set, name| format!("{set},+{name}"))
}

/// Records an agent that this command starts on a channel; returns whether the recording has the programs
/// started meanwhile.
fn records(command: &mut Command, channel: &str, session: &Path) -> bool {
    let agent = Agent::spawn(command.arg(program()).arg(channel));
    let guest = format!("g={channel}");
    let words = ["record", "-e", "sched_process_exec", "--guest", &guest, "--guest-event"];
    let to = session.to_str().unwrap();
    let more = ["sched_process_exec", "--guest-sample", "397", "-o", to];
    // On a busy machine, the agent needs longer than 5 s to send the rest.
    let ran = run(&[&words[..], &more, &["--guest-wait", "60s", "--", "true"]].concat());
    end(&agent);
    if ran.stderr.contains("its samples: ") {
        testkit::skip!("{}", ran.stderr);
    } else {
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(knows_this_program(&session.join("guest-g.data")), "{}", ran.stderr);
        // The kernel's code, if this machine's kernel shows it.
        let shows_code = fs::File::open("/proc/kcore").is_ok();
        assert_eq!(session.join("guest-g.kcore").is_file(), shows_code, "{}", ran.stderr);
    }
    let stored = fs::read_to_string(session.join("session.json")).unwrap();
    let stored: Value = serde_json::from_str(&stored).unwrap();
    stored["recorded"]["guests"][0]["cpus"]
        .as_array()
        .unwrap()
        .iter()
        .any(|cpu| cpu["bytes"].as_u64() > Some(0))
}

/// Whether samples have the build id of this program, which ran before them.
fn knows_this_program(samples: &Path) -> bool {
    let bytes = fs::read(samples).unwrap();
    let perf = PerfData::parse(&bytes).unwrap();
    let program = std::env::current_exe().unwrap();
    perf.records(&bytes).flatten().any(|record| match perf.events.body(&record) {
        Ok(Body::Mapping(mapping)) if mapping.path == program.as_os_str().as_bytes() => {
            mapping.pid == std::process::id() && mapping.build_id.is_some()
        }
        _ => false,
    })
}

/// Ends an agent, or strace and its child agent: a killed strace would leave the agent behind.
fn end(agent: &Agent) {
    let is_agent =
        |pid: &u32| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program());
    let mut pids = std::iter::once(agent.pid()).chain(children(agent.pid()));
    signal(pids.find(is_agent).unwrap(), "TERM");
    let status = format!("/proc/{}/stat", agent.pid());
    // It has not been waited for: then it is a zombie.
    wait_until("it does not end", || fs::read_to_string(&status).unwrap().contains(") Z "));
}

#[test]
fn the_agent_records_with_the_capabilities_of_its_unit() {
    let Some(_lock) = lock_tracing() else { return };
    if !is_there("setpriv") {
        return;
    }
    assert_eq!(setting("NoNewPrivileges"), ["yes"]);
    let folder = tempfile::tempdir().unwrap();
    let channel = format!("unix:{}", folder.path().join("agent").display());
    let mut command = Command::new("setpriv");
    command.args([&bounding_set(), "--inh-caps=-all", "--no-new-privs"]);
    assert!(records(&mut command, &channel, &folder.path().join("s")));
    wait_until("its instance stays", || left_in_tracefs().is_empty());
}

#[test]
fn the_agent_calls_nothing_that_its_unit_forbids() {
    let Some(_lock) = lock_tracing() else { return };
    if !is_there("strace") || !is_there("systemd-analyze") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let channel = format!("unix:{}", folder.path().join("agent").display());
    let trace = folder.path().join("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", trace.to_str().unwrap()]);
    assert!(records(&mut command, &channel, &folder.path().join("s")));
    wait_until("its instance stays", || left_in_tracefs().is_empty());
    let allowed: BTreeSet<String> =
        setting("SystemCallFilter").into_iter().flat_map(system_calls).collect();
    let trace = fs::read_to_string(trace).unwrap();
    // PID CALL(...
    let calls = trace.lines().filter_map(|line| {
        let (name, _) = line.split_whitespace().nth(1)?.split_once('(')?;
        name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_').then_some(name)
    });
    let calls: BTreeSet<&str> = calls.collect();
    let forbidden: Vec<_> = calls.iter().filter(|&&call| !allowed.contains(call)).collect();
    assert!(calls.contains("splice") && forbidden.is_empty(), "{forbidden:?}");
}

/// System calls of a group (`@system-service`), or a single one by name.
fn system_calls(name: &str) -> Vec<String> {
    if !name.starts_with('@') {
        return vec![name.into()];
    }
    let output = Command::new("systemd-analyze").args(["syscall-filter", name]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let names = text.lines().skip(1).map(str::trim).filter(|line| !line.starts_with('#'));
    names.filter(|name| !name.is_empty()).flat_map(system_calls).collect()
}
