//! Recordings contain exactly the events that happened, and other programs can read them.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::tool::{TRACEFS, info, left_in_tracefs, lock_tracing, run, session_json};

/// Programs that the recorded command starts.
const STARTED: u64 = 30;

#[test]
fn every_program_that_was_started_is_there_once() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let session = folder.path().join("s.hscope");
    let to = session.to_str().unwrap();
    let tracing_on = || fs::read_to_string(Path::new(TRACEFS).join("tracing_on")).unwrap();
    let before = tracing_on();
    let script = format!("for i in $(seq {STARTED}); do /usr/bin/env true; done");
    let ran = run(&["record", "-e", "sched_process_exec", "-o", to, "--", "sh", "-c", &script]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("0 events lost"), "{}", ran.stderr);

    let events = run(&["events", "--format", "jsonl", to]);
    let started = events.stdout.lines().filter(|line| line.contains("/usr/bin/env\"")).count();
    assert_eq!(started as u64, STARTED);
    let info = info(&session);
    assert_eq!(info["losses"]["events_lost"], 0);
    assert_eq!(info["damage"], Value::Array(Vec::new()), "{info}");
    trace_cmd_counts_the_same(
        &session,
        info["events"]["sched:sched_process_exec"].as_u64().unwrap(),
    );

    assert_eq!(left_in_tracefs(), Vec::<String>::new());
    assert_eq!(tracing_on(), before);
    assert!(!session.join("host.pages").exists());
    session_says_how(&session);
    let again = run(&["record", "-o", to, "--for", "1ms"]);
    assert!(again.code == Some(1) && again.stderr.contains("-o"), "{}", again.stderr);
}

/// The first line of trace-cmd's report is the number of CPUs.
fn trace_cmd_counts_the_same(session: &Path, events: u64) {
    let Ok(report) = Command::new("trace-cmd").arg("report").arg(session.join("host.dat")).output()
    else {
        return eprintln!("trace-cmd is missing: not compared");
    };
    let lines = String::from_utf8_lossy(&report.stdout).lines().count() as u64;
    assert_eq!(lines, events + 1);
}

fn session_says_how(session: &Path) {
    let stored = session_json(session);
    let recorded = &stored["recorded"];
    assert_eq!(recorded["events"], Value::from(vec!["sched:sched_process_exec"]));
    assert!(recorded["duration_ns"].as_u64().unwrap() > 0);
    assert!(recorded["recorder_cpu_ns"].as_u64().unwrap() > 0);
    assert!(recorded["cpus"].as_array().unwrap().iter().any(|cpu| cpu["bytes"].as_u64() > Some(0)));
    session_says_where_and_when(session, recorded);
}

/// All events are between the two times at which both clocks were read, on the trace clock and in Unix time.
fn session_says_where_and_when(session: &Path, recorded: &Value) {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(recorded["host"]["kernel_release"], release.trim());
    let machine_id = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    assert!(machine_id.trim().is_empty() || recorded["host"]["id"] != machine_id.trim());
    let pairs = recorded["clock_pairs"].as_array().unwrap();
    let at = |pair: usize, key: &str| pairs[pair][key].as_u64().unwrap();
    assert_eq!(pairs.len(), 2, "{recorded}");
    let info = info(session);
    let [first_ns, last_ns] = ["first_ns", "last_ns"].map(|key| info[key].as_u64().unwrap());
    assert!(at(0, "trace_ns") <= first_ns && last_ns <= at(1, "trace_ns"), "{pairs:?} {info}");
    let began = fs::metadata(session.join("session.json")).unwrap().modified().unwrap();
    let written_ns = began.duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    assert!(at(0, "unix_ns") < at(1, "unix_ns") && at(1, "unix_ns") <= written_ns, "{pairs:?}");
}

#[test]
fn a_buffer_that_is_too_small_loses_events_that_are_counted() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let session = folder.path().join("s");
    let to = session.to_str().unwrap();
    let script = "dd if=/dev/zero of=/dev/null bs=1 count=300000 2>/dev/null";
    let arguments =
        ["record", "--buffer", "4", "-e", "raw_syscalls", "-o", to, "--", "sh", "-c", script];
    let ran = run(&arguments);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let text = fs::read_to_string(session.join("session.json")).unwrap();
    let stored: Value = serde_json::from_str(&text).unwrap();
    let of_cpu = |cpu: &Value| {
        ["overrun", "commit_overrun", "dropped"]
            .map(|key| cpu[key].as_u64().unwrap())
            .iter()
            .sum::<u64>()
    };
    let lost: u64 = stored["recorded"]["cpus"].as_array().unwrap().iter().map(of_cpu).sum::<u64>();
    let recorded = info(&session);
    assert_eq!(recorded["losses"]["events_lost"].as_u64(), Some(lost), "{recorded}");
    assert!(ran.stderr.contains(&format!("{lost} events lost")), "{}", ran.stderr);
    // 300,000 reads and as many writes, with an event at the begin and the end of each.
    let event_count: u64 =
        recorded["events"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    assert!(event_count + lost >= 1_200_000, "{event_count} kept, {lost} lost");
}

#[test]
fn a_recording_ends_when_its_pages_reach_their_quota() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let session = folder.path().join("s");
    let to = session.to_str().unwrap();
    let arguments = ["record", "--buffer", "256", "-e", "raw_syscalls", "--quota", "3M", "-o", to];
    // Runs much longer than filling the quota takes.
    let endless =
        ["--for", "5m", "--", "sh", "-c", "exec dd if=/dev/zero of=/dev/null bs=1 count=3000000"];
    let ran = run(&[&arguments[..], &endless[..]].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("3072 KiB (--quota)"), "{}", ran.stderr);
    let stored = fs::read_to_string(session.join("session.json")).unwrap();
    let stored: serde_json::Value = serde_json::from_str(&stored).unwrap();
    let cpus = stored["recorded"]["cpus"].as_array().unwrap();
    let bytes: u64 = cpus.iter().map(|cpu| cpu["bytes"].as_u64().unwrap()).sum();
    assert!((1 << 20..=3 << 20).contains(&bytes), "{bytes}");
    assert!(info(&session)["events"]["raw_syscalls:sys_enter"].as_u64() > Some(10_000));
    assert_eq!(left_in_tracefs(), Vec::<String>::new());
}
