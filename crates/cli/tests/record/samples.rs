//! Samples show the running code, stock perf reads them, and they survive a killed recorder.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::tool::{Ran, command, file_info, lock_tracing, run, session_json, wait_until};

/// A command that is busy for a while.
pub(crate) const BUSY: &str =
    "end=$(($(date +%s%N) + 700000000)); while [ $(date +%s%N) -lt $end ]; do :; done";
const ARGUMENTS: [&str; 6] =
    ["record", "--sample", "997", "--sample-event", "cpu-clock", "--event=sched_switch"];

/// The recording of a command; `None`: this kernel can't sample.
fn recorded(to: &Path) -> Option<Ran> {
    let to = to.to_str().unwrap();
    let arguments: Vec<&str> =
        ARGUMENTS.into_iter().chain(["-o", to, "--", "sh", "-c", BUSY]).collect();
    let ran = run(&arguments);
    if ran.stderr.contains("cannot sample") {
        testkit::skip!("{}", ran.stderr);
        return None;
    }
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    Some(ran)
}

/// Number of an event's samples, from `info`.
pub(crate) fn counted(file: &Path, event: &str) -> u64 {
    let info = file_info(file);
    let modes = info["samples"][event].as_object().unwrap();
    modes.values().filter_map(Value::as_u64).sum()
}

/// Number of samples that stock perf prints; `None`: it is not installed.
pub(crate) fn perf_counts(file: &Path) -> Option<u64> {
    let mut script = Command::new("perf");
    let Ok(script) =
        script.args(["script", "-G", "-F", "comm,tid,time,ip", "-i"]).arg(file).output()
    else {
        testkit::skip!("perf is missing: its counts are not compared");
        return None;
    };
    Some(String::from_utf8_lossy(&script.stdout).lines().count() as u64)
}

#[test]
fn samples_are_counted_as_perf_counts_them() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let session = folder.path().join("s.hscope");
    let Some(ran) = recorded(&session) else { return };
    let file = session.join("host.data");
    let stored = session_json(&session);
    let samples = stored["recorded"]["sampler"]["samples"].as_u64().unwrap();
    assert_eq!(counted(&file, "cpu-clock"), samples, "{}", ran.stderr);
    assert!(samples > 0);
    if let Some(printed) = perf_counts(&file) {
        assert_eq!(printed, samples);
    }
    // The recording is the same as without samples, and is read together with them.
    let profile = run(&["profile", "--format", "json", session.to_str().unwrap()]);
    assert_eq!(profile.code, Some(0), "{profile:?}");
    let profile: Value = serde_json::from_str(&profile.stdout).unwrap();
    assert_eq!(profile["vcpus"], serde_json::json!([]));
    // Samples of idle CPUs belong to no thread.
    let rows = profile["rows"].as_array().unwrap().iter();
    let in_rows: u64 = rows.map(|row| row["samples"].as_u64().unwrap()).sum();
    assert!(in_rows > 0 && in_rows <= samples, "{in_rows} of {samples}");
}

#[test]
fn a_recorder_that_is_killed_leaves_the_samples() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let session = folder.path().join("s.hscope");
    let file = session.join("host.data");
    let to = session.to_str().unwrap();
    let arguments: Vec<&str> = ARGUMENTS.into_iter().chain(["-o", to]).collect();
    let mut recorder = command(&arguments).stderr(Stdio::piped()).spawn().unwrap();
    let len = || fs::metadata(&file).map_or(0, |about| about.len());
    let has_grown = |from: u64| {
        let deadline = Instant::now() + Duration::from_secs(30);
        while len() <= from && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        len() > from
    };
    // Earlier data, and then samples.
    let is_sampled = has_grown(0) && has_grown(len());
    recorder.kill().unwrap();
    let output = recorder.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("cannot sample") {
        testkit::skip!("{stderr}");
        return;
    }
    assert!(is_sampled, "{stderr}");
    let samples = counted(&file, "cpu-clock");
    assert!(samples > 0);
    if let Some(printed) = perf_counts(&file) {
        assert_eq!(printed, samples);
    }
    // The guard has ended the rest; the folder is read through its pages.
    wait_until("the guard has cleaned up", || crate::tool::left_in_tracefs().is_empty());
    let profile = run(&["profile", to]);
    assert!(profile.code == Some(0), "{profile:?}");
}

#[test]
fn rates_that_nothing_takes_are_usage_or_said() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("s.hscope");
    let to = to.to_str().unwrap();
    for rate in ["0", "1000000", "often"] {
        let ran = run(&["record", "--sample", rate, "-o", to, "--for", "1ms"]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    }
    let ran = run(&["record", "--sample-event", "cycles", "-o", to, "--for", "1ms"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("--sample"), "{}", ran.stderr);
}
