//! An emulated Arm host and its guest: `make test-lab-aarch64` runs these, which sets
//! `HYPERSCOPE_LAB_AARCH64` and builds the program inside the machines.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::architecture::{Architecture, arm_is_asked_for};
use crate::hypertrace::{
    EASY, Soak, assert_late_by, assert_within, build_module_for, comes_and_goes, lines, stamp,
};
use crate::recorded::hyperscope;
use crate::tool::{TestLab, can_run};

/// Booting a lab takes longer; loading a snapshot takes a second or two.
const LOADING: Duration = Duration::from_secs(30);

#[test]
fn an_arm_host_and_its_guest_start_load_and_are_recorded() {
    if !can_run() || !arm_is_asked_for() {
        return;
    }
    let lab = TestLab::new("aarch64");
    lab.run(&["up", "--arch", "aarch64", "--levels", "2"]).done();
    both_levels_work(&lab);
    lab.run(&["down"]).done();
    assert_eq!(lab.processes(), [] as [&str; 0]);

    let start = Instant::now();
    let again = lab.run(&["up", "--arch", "aarch64", "--levels", "2"]).done();
    assert!(!again.stderr.contains("booting"), "{}", again.stderr);
    assert!(start.elapsed() < LOADING, "{:?}", start.elapsed());
    both_levels_work(&lab);

    let folder = tempfile::tempdir().unwrap();
    a_recording_has_exits(&lab, folder.path());
    a_scenario_holds_what_it_says(&lab, folder.path());
    lab.run(&["down"]).done();
    assert_eq!(lab.processes(), [] as [&str; 0]);
}

#[test]
fn an_arm_host_alone_keeps_time_on_all_processors_after_loading() {
    if !can_run() || !arm_is_asked_for() {
        return;
    }
    let lab = TestLab::new("aarch64-host");
    for _ in 0..2 {
        lab.run(&["up", "--arch", "aarch64", "--levels", "1", "--cpus", "3"]).done();
        let naps = "for cpu in 0 1 2; do timeout 20 taskset -c $cpu sleep 0.2 || exit 1; done";
        lab.shell(1, naps).done();
        lab.run(&["down"]).done();
    }
}

/// A host and a guest for which this program, its agent and the module were built.
fn lab_with_module(name: &'static str) -> Option<TestLab> {
    let programs = ["hyperscope", "hyperscope-agent"];
    if !can_run()
        || !arm_is_asked_for()
        || !programs.into_iter().all(|program| Architecture::Arm.is_built(program))
    {
        return None;
    }
    let lab = TestLab::new(name);
    lab.run(&["up", "--arch", "aarch64", "--levels", "2"]).done();
    build_module_for(&["arm64"]).then_some(lab)
}

#[test]
fn the_module_comes_and_goes_under_load_in_a_guest_of_an_arm_host() {
    let how = Soak {
        name: "aarch64-soak",
        arch: "aarch64",
        channel: "hypercall",
        up: &[],
        record: "hypercalls = true\n",
    };
    let Some(lab) = lab_with_module(how.name) else { return };
    comes_and_goes(&lab, &how, EASY);
}

/// This program and its agent record the machines, the guest's module sends events by HVC, and BPF
/// programs on the host collect them: the same events that the guest recorded itself.
#[test]
fn a_guest_of_an_arm_host_sends_what_it_records_itself() {
    let Some(lab) = lab_with_module("aarch64-hypercalls") else { return };
    let temporary = tempfile::tempdir().unwrap();
    let session = temporary.path().join("out");
    let session = session.to_str().unwrap();
    lab.run(&["run", "collected", "--arch", "aarch64", "-o", session]).done();
    let sent = lines(&["hypertrace", "--format", "jsonl", session]);
    let originals = lines(&["events", "--format", "jsonl", "-e", "sched:sched_switch", session]);
    let begin = assert_within(&sent, &originals);
    let stamps =
        sent.iter().zip(&originals[begin..]).map(|(sent, original)| stamp(sent) - stamp(original));
    // With few exits, windows are wide, and clocks are known no better than this.
    assert_late_by(stamps.collect(), -1_000_000);
    let stderr = hyperscope(&["hypertrace", session, "-o", "/dev/null"]).stderr;
    let hypercalls = hyperscope(&["events", "-e", "kvm:kvm_hvc_arm64", session]).stdout;
    let hypercalls = hypercalls.lines().filter(|line| line.contains("48530000")).count();
    assert!(
        stderr.contains(&format!("{hypercalls} of {hypercalls} hypercalls collected")),
        "{stderr}"
    );
    assert!(sent.len() > 1000 && sent.len() >= 16 * hypercalls, "{} in {hypercalls}", sent.len());
    // The instruction is always the same one, in the guest's kernel.
    let rips: Vec<_> = sent.iter().filter_map(|event| event["hypercall_rip"].as_u64()).collect();
    assert!(
        rips.len() == sent.len() && rips.iter().all(|rip| *rip == rips[0] && rip >> 48 == 0xffff)
    );
    eprintln!("{} switches as the guest recorded them\n{stderr}", sent.len());
}

fn both_levels_work(lab: &TestLab) {
    for level in [1, 2] {
        let output = lab.shell(level, "uname -nm; sleep 0.1").done().stdout;
        assert_eq!(output, format!("l{level} aarch64\n"));
    }
    assert_eq!(lab.shell(1, "ls /dev/kvm").done().stdout, "/dev/kvm\n");
    let console = lab.run(&["console", "2"]).done().stdout;
    assert!(console.contains("hyperscope-lab: ready"), "{console}");
    let status = lab.run(&["status"]).done().stdout;
    assert!(status.contains("aarch64"), "{status}");
}

fn a_recording_has_exits(lab: &TestLab, folder: &Path) {
    let there = "/tmp/host.dat";
    let record = ["trace-cmd", "record", "-e", "kvm", "-e", "sched", "-o", there, "sleep", "3"];
    lab.run(&[&["exec", "1", "--"], record.as_slice()].concat()).done();
    let here = folder.join("host.dat");
    lab.run(&["get", "1", there, here.to_str().unwrap()]).done();
    let report = exits(&here, &[]);
    let rows = report["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["isa"] == "arm64"), "{report}");
    assert!(count(&report, "reason", &"WFx".into()) > 0, "{report}");
}

fn a_scenario_holds_what_it_says(lab: &TestLab, folder: &Path) {
    let to = folder.join("out");
    let ran = lab.run(&["run", "exits", "--arch", "aarch64", "-o", to.to_str().unwrap()]).done();
    let reads = "reads of device memory at 0xd000000: 1000 made, 1000 recorded";
    assert!(ran.stderr.contains(reads), "{}", ran.stderr);
    // The command's own check, repeated from outside.
    let truth = fs::read_to_string(to.join("truth.json")).unwrap();
    assert!(truth.contains(&0x0d00_0000.to_string()), "{truth}");
    assert_eq!(count(&exits(&to, &["--by", "gpa"]), "gpa", &0x0d00_0000.into()), 1000);
}

fn exits(recording: &Path, arguments: &[&str]) -> Value {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_hyperscope"))
        .args(["exits", "--format", "json"])
        .args(arguments)
        .arg(recording)
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

fn count(report: &Value, by: &str, key: &Value) -> u64 {
    let rows = report["rows"].as_array().unwrap();
    rows.iter().filter(|row| row[by] == *key).map(|row| row["count"].as_u64().unwrap()).sum()
}
