//! trace-cmd's protocol between this program's recorder and its agent, and with trace-cmd itself if
//! it is installed: this machine serves as its own guest.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::agent::{Agent, signal};
use crate::tool::{
    TRACEFS, command, file_info, kept_bytes, left_in_tracefs, lock_tracing, run, start_programs,
    wait_until,
};

/// Max distance of marks in two instances of one kernel, measured by round trips on a busy machine.
const MAX_SHIFT_NS: u64 = 1_000_000;

fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

fn agent(address: &str) -> Agent {
    Agent::start_with(&["--trace-cmd", &format!("tcp:{address}")])
}

/// Arguments that record program starts, on both sides.
fn arguments(address: &str, session: &str) -> Vec<String> {
    let guest = format!("g=trace-cmd:tcp:{address}");
    let words = ["record", "-e", "sched_process_exec", "--guest", &guest, "--guest-event"];
    let more = ["sched:sched_process_exec", "-o", session];
    words.iter().chain(&more).map(|word| (*word).to_owned()).collect()
}

fn strs(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

/// Start times of a program, by process, on the files' common clock.
fn started(files: &[&Path], machine: &str, program: &str) -> BTreeMap<u64, u64> {
    let files = files.iter().map(|file| file.to_str().unwrap());
    let words: Vec<&str> = ["events", "--format", "jsonl"].into_iter().chain(files).collect();
    let ran = run(&words);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let events = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let events = events.filter(|event| {
        event["machine"] == machine && event["fields"].to_string().contains(program)
    });
    events.map(|event| (event["pid"].as_u64().unwrap(), event["ts_ns"].as_u64().unwrap())).collect()
}

#[test]
fn an_agent_of_trace_cmds_protocol_is_recorded_with_its_host() {
    let Some(_lock) = lock_tracing() else { return };
    let (address, folder) = (free_address(), tempfile::tempdir().unwrap());
    let session = folder.path().join("s");
    let _agent = agent(&address);
    // A program of its own: other programs may start at any time.
    let program = folder.path().join("program").to_str().unwrap().to_owned();
    testkit::copy_program("/bin/true", &program);
    // trace-cmd's protocol does not report when tracing is active.
    let script = format!("sleep 1; for i in 1 2 3 4 5 6 7 8 9 10; do {program}; done");
    let mut words = arguments(&address, session.to_str().unwrap());
    words.extend(["--", "sh", "-c", &script].map(str::to_owned));
    let ran = run(&strs(&words));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let (host, guest) = (session.join("host.dat"), session.join("guest-g.dat"));
    let on_host = started(&[&host], "host", &program);
    assert_eq!(on_host.len(), 10);
    // Both sides are one kernel, so each start was recorded twice at the same time; the protocol's
    // clock measurement must agree.
    let both = started(&[&host, &guest], "g", &program);
    let in_guest = if both.is_empty() { started(&[&guest], "guest", &program) } else { both };
    assert_eq!(in_guest.keys().collect::<Vec<_>>(), on_host.keys().collect::<Vec<_>>());
    for (pid, time_ns) in &in_guest {
        assert!(time_ns.abs_diff(on_host[pid]) < MAX_SHIFT_NS, "{in_guest:?} {on_host:?}");
    }
    let text = fs::read_to_string(session.join("session.json")).unwrap();
    let stored: Value = serde_json::from_str(&text).unwrap();
    let stored = &stored["recorded"]["guests"][0];
    assert_eq!(stored["channel"], format!("trace-cmd:tcp:{address}"), "{stored}");
    assert_eq!(stored["faults"], serde_json::json!([]), "{stored}");
    wait_until("instances are left", || left_in_tracefs().is_empty());
}

#[test]
fn what_an_agent_sent_before_it_was_killed_is_kept() {
    let Some(_lock) = lock_tracing() else { return };
    let (address, folder) = (free_address(), tempfile::tempdir().unwrap());
    let session = folder.path().join("s");
    let agent = agent(&address);
    // Each event of this kind wakes the agent when half of its smallest buffer is full.
    let mut words = arguments(&address, session.to_str().unwrap());
    words.extend(["--guest-event", "sched", "--guest-buffer", "8"].map(str::to_owned));
    let child = command(&strs(&words)).stderr(Stdio::piped()).spawn().unwrap();
    let pages = session.join("guest-g.pages");
    wait_until("it did not begin", || pages.join("trace_clock").exists());
    wait_until("no pages came", || {
        start_programs(20);
        kept_bytes(&pages) > 0
    });
    // An agent that is gone in the first moments has not begun.
    std::thread::sleep(Duration::from_millis(500));
    signal(agent.pid(), "KILL");
    std::thread::sleep(Duration::from_millis(300));
    signal(child.id(), "INT");
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("guest g: its recording ended early"), "{stderr}");
    let info = file_info(&session.join("guest-g.dat"));
    assert!(info["events"].as_object().unwrap().keys().any(|name| name.starts_with("sched:")));
    assert!(session.join("host.dat").exists());
    // The next agent or recorder removes a killed agent's leftovers in the kernel.
    drop(agent);
    let again = folder.path().join("again");
    let words = ["record", "-e", "sched_process_exec", "--for", "10ms", "-o"];
    let ran = run(&[&words[..], &[again.to_str().unwrap()]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(left_in_tracefs(), [] as [&str; 0]);
}

#[test]
fn what_is_wrong_is_said_before_anything_is_recorded() {
    let Some(_lock) = lock_tracing() else { return };
    let (address, folder) = (free_address(), tempfile::tempdir().unwrap());
    let session = folder.path().join("s");
    let words = arguments(&address, session.to_str().unwrap());
    let nobody = run(&strs(&words));
    assert_eq!(nobody.code, Some(1), "{}", nobody.stderr);
    assert!(nobody.stderr.contains("start `trace-cmd agent` there"), "{}", nobody.stderr);

    let _agent = agent(&address);
    let mut unknown = words.clone();
    unknown.extend(["--guest-event", "no_such_event"].map(str::to_owned));
    let refused = run(&strs(&unknown));
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("refused the request"), "{}", refused.stderr);
    assert!(!session.exists() && left_in_tracefs().is_empty(), "{:?}", left_in_tracefs());
}

/// trace-cmd as the host. If its own part of the recording fails, it records only the guest
/// meanwhile, which may be too short for a single clock measurement.
#[test]
fn trace_cmd_records_this_agent() {
    let Some(_lock) = lock_tracing() else { return };
    if Command::new("trace-cmd").arg("--version").output().is_err() {
        return testkit::skip!("trace-cmd is not installed");
    }
    let dumps: Vec<String> = (0..5).map_while(|_| recorded_by_trace_cmd().err()).collect();
    assert!(dumps.len() < 5, "never a TimeShift: {dumps:?}");
    wait_until("instances are left", || left_in_tracefs().is_empty());
}

/// Records once; returns the options of the guest's file if they lack those of the synchronisation.
fn recorded_by_trace_cmd() -> Result<(), String> {
    let (address, folder) = (free_address(), tempfile::tempdir().unwrap());
    let _agent = agent(&address);
    let ran = Command::new("trace-cmd")
        .args(["record", "-o", "host.dat", "-A", &address, "-e", "sched", "sleep", "1"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    // trace-cmd itself leaves it, when its children still use it.
    let _ = fs::remove_dir(Path::new(TRACEFS).join("instances/clock_synch-0"));
    let output = String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{output}");
    assert!(output.contains("Negotiated ptp time sync protocol"), "{output}");
    let file: PathBuf = folder.path().join("host-127.0.0.1.dat");
    let report = Command::new("trace-cmd").arg("report").arg("-i").arg(&file).output().unwrap();
    let lines = String::from_utf8_lossy(&report.stdout);
    let lines = lines.lines().filter(|line| line.contains(": sched_")).count();
    let info = file_info(&file);
    let events = info["events"].as_object().unwrap();
    let count: u64 = events.values().map(|count| count.as_u64().unwrap()).sum();
    assert!(lines > 0 && count == lines as u64, "{lines} lines, {count} events");
    let dump = Command::new("trace-cmd").args(["dump", "--options", "-i"]).arg(&file).output();
    let dump = String::from_utf8_lossy(&dump.unwrap().stdout).into_owned();
    assert!(dump.contains("hyperscope-agent"), "{dump}");
    if dump.contains("TimeShift") { Ok(()) } else { Err(dump) }
}
