//! Machines that are recorded without a host: their agents write folders, to be fetched later.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::agent::signal;
use crate::guests::Setup;
use crate::samples::{BUSY, counted, perf_counts};
use crate::tool::{left_in_tracefs, lock_tracing, run, start_programs, wait_until};

#[test]
fn a_machine_without_a_host_is_recorded_into_a_folder() {
    let Some(_lock) = lock_tracing() else { return };
    let setup = Setup::new();
    let mut agent = Command::new(crate::agent::program())
        .args(["--to", &setup.session(), "-e", "sched_process_exec"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let cpu = Path::new(&setup.session()).join("cpu0");
    wait_until("it does not begin", || cpu.exists());
    thread::sleep(Duration::from_millis(300));
    start_programs(8);
    signal(agent.id(), "INT");
    assert!(agent.wait().unwrap().success());
    let messages = std::io::read_to_string(agent.stderr.take().unwrap()).unwrap();
    assert!(messages.contains("0 events lost"), "{messages}");
    assert_eq!(setup.started(""), 8);
    assert_eq!(left_in_tracefs(), Vec::<String>::new());
}

/// The machine's folder has samples with the events; those of an earlier recording are removed.
#[test]
fn a_machine_without_a_host_samples_itself_into_its_folder() {
    let Some(_lock) = lock_tracing() else { return };
    let setup = Setup::new();
    let agent = |more: &[&str]| {
        let to = ["--to", &setup.session(), "-e", "sched_switch"];
        Command::new(crate::agent::program()).args(to).args(more).output().unwrap()
    };
    let mut busy = Command::new("sh").args(["-c", BUSY]).spawn().unwrap();
    let ran = agent(&["--sample", "997", "--for", "0.7"]);
    busy.wait().unwrap();
    let stderr = String::from_utf8(ran.stderr).unwrap();
    if stderr.contains("cannot sample") {
        return testkit::skip!("{stderr}");
    }
    let samples = stderr.split("; ").nth(1).and_then(|words| words.split(' ').next());
    let samples: u64 =
        samples.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("{stderr}"));
    let file = Path::new(&setup.session()).join("samples.data");
    let event = if stderr.contains("by cycles") { "cycles" } else { "cpu-clock" };
    assert_eq!(counted(&file, event), samples);
    assert!(perf_counts(&file).is_none_or(|printed| printed == samples), "{stderr}");
    let read = |verb: &[&str]| {
        let ran = run(&[verb, &["--format", "json", &setup.session()]].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        serde_json::from_str::<Value>(&ran.stdout).unwrap()
    };
    let profile = read(&["profile", "--top", "0"]);
    let machine = &profile["machines"][0];
    let shown: u64 =
        profile["rows"].as_array().unwrap().iter().filter_map(|row| row["samples"].as_u64()).sum();
    let idle = machine["idle_samples"].as_u64().unwrap();
    assert_eq!(shown + idle, samples, "{machine}");
    assert!(shown >= 100, "{machine}");
    // The next recording keeps none of them.
    assert!(agent(&["--for", "0.1"]).status.success());
    assert!(!file.exists());
}
