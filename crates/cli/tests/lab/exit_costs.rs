//! `hyperscope bench exits` against a recording of its machine's KVM: the recording has exactly the exits
//! that it reports.
//!
//! Part of the lab's slow tests: a ladder of steps takes a minute.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::patience::run;
use crate::tool::{TestLab, can_run_all, folder};

#[test]
fn exits_that_are_measured_are_those_that_a_recording_has() {
    if !can_run_all() {
        return;
    }
    let lab = up("exit-costs");
    let script = "hyperscope record -e kvm --buffer 8192 -o /tmp/r -- \
                  hyperscope bench exits --vm --runs 2 --run-ms 4 --format json -o /tmp/bench.json";
    let messages = lab.shell(1, script).done().stderr;
    assert!(messages.contains("0 events lost"), "{messages}");
    let folder = tempfile::tempdir().unwrap();
    for file in ["r/host.dat", "r/session.json", "bench.json"] {
        let to = folder.path().join(Path::new(file).file_name().unwrap());
        lab.run(&["get", "1", &format!("/tmp/{file}"), to.to_str().unwrap()]).done();
    }
    let bench: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.path().join("bench.json")).unwrap())
            .unwrap();
    check_schema(&bench);
    let rows = bench["places"][0]["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["not_measured"].is_null()), "{rows:#?}");
    let made = |kind: &str| {
        let row = rows.iter().find(|row| row["kind"] == kind).unwrap();
        row["made"].as_u64().unwrap()
    };
    let by = |key: &str| exits(folder.path(), key);
    assert_eq!(counted(&by("cpuid_leaf"), 0x4000_4859), made("cpuid"));
    assert_eq!(counted(&by("hypercall"), 0x4859), made("hypercall"));
    assert_eq!(counted(&by("msr"), 0x1b), made("rdmsr") + made("wrmsr"));
    let ports = by("port");
    assert_eq!(counted(&ports, 0x21), made("port-kernel"));
    assert_eq!(counted(&ports, 0x4859), made("port-user"));
    // A waiting machine requests its signal through the same doorbell.
    assert_eq!(counted(&ports, 0x485a), made("kick-port") + made("send") + made("hlt-wake"));
    let addresses = by("gpa");
    assert_eq!(counted(&addresses, 0xfec0_0000), made("mmio-kernel"));
    assert_eq!(counted(&addresses, 0x0100_0000), made("mmio-user"));
    assert_eq!(counted(&addresses, 0x0200_0000), made("kick-mmio"));
    let reasons = by("reason");
    let halts = reasons.1["rows"].as_array().unwrap().iter().find(|row| row["reason"] == "hlt");
    assert_eq!(halts.unwrap()["count"], made("send") + made("hlt-wake"));
    for (kind, by) in [("cr8-read", "hardware"), ("hypercall", "kernel"), ("mmio-user", "user")] {
        let row = rows.iter().find(|row| row["kind"] == kind).unwrap();
        assert_eq!(row["handled_by"], by, "{row:#}");
    }
}

#[test]
fn what_an_ablation_switched_is_as_before() {
    if !can_run_all() {
        return;
    }
    let lab = up("exit-steps");
    let parameter = "/sys/module/kvm/parameters/halt_poll_ns";
    let state = format!(
        "cat {parameter} /sys/kernel/tracing/current_tracer /sys/kernel/tracing/kprobe_events; \
         ls /sys/kernel/tracing/instances /run/*.undo 2>/dev/null; true"
    );
    let before = lab.shell(1, &state).done().stdout;
    let bench = "hyperscope bench exits --vm --kind hypercall --kind hlt-wake --seed 3 --ablate \
                 kvm/halt_poll_ns=0,kprobe,kvm-events,no-ioeventfd";
    let csv = lab.shell(1, &format!("{bench} --runs 3 --operations 50 --format csv")).done().stdout;
    // Two kinds with four steps and one unswitched, and a header; all measured.
    assert_eq!(csv.lines().count(), 11, "{csv}");
    assert!(csv.lines().skip(1).all(|line| line.ends_with(',')), "{csv}");
    assert_eq!(lab.shell(1, &state).done().stdout, before);
    // Steps long enough that a signal arrives within one.
    let long = "hyperscope bench exits --vm --kind hypercall --runs 1000 --operations 20000 \
                --ablate kvm/halt_poll_ns=0";
    for signal in ["INT", "TERM", "KILL"] {
        let ended = lab.shell(
            1,
            &format!(
                "{long} >/dev/null & until grep -qx 0 {parameter}; do \
                 kill -0 $! || exit 99; sleep 0.01; done; kill -{signal} $!; wait $!"
            ),
        );
        assert!(!matches!(ended.code, Some(0 | 99)), "{signal}: {}", ended.stderr);
        if signal == "KILL" {
            assert_ne!(lab.shell(1, &state).stdout, before);
            // The next run finds its note.
            let next = "hyperscope bench exits --vm --runs 1 --kind cpuid --ablate no-ioeventfd";
            lab.shell(1, next).done();
        }
        assert_eq!(lab.shell(1, &state).stdout, before, "{signal}");
    }
}

#[test]
fn machines_are_booted_again_for_what_is_read_then() {
    if !can_run_all() {
        return;
    }
    let report = ablation(
        &["--levels", "1", "--operations", "50", "--kind", "hypercall", "--kind", "send"],
        "vhost,no-ioeventfd,boot:kvm_amd.npt=0,boot:kvm_amd.nothing=1",
    );
    let ladders = report["ablations"][0]["ladders"].as_array().unwrap();
    let cycles = |ladder: &Value, step: usize| ladder["steps"][step]["cycles"]["mean"].as_f64();
    for ladder in ladders {
        assert!((0..4).all(|step| cycles(ladder, step).is_some()), "{report:#}");
        let why = ladder["steps"][4]["not_measured"].as_str().unwrap();
        assert!(cycles(ladder, 4).is_none() && why.contains("parameters/nothing"), "{why}");
    }
    // Who handles a frame does not affect a hypercall, but it affects the frame.
    let ratio = |ladder, step| cycles(ladder, step).unwrap() / cycles(ladder, 0).unwrap();
    let [hypercall, send] = ladders.as_slice() else { panic!("{report:#}") };
    assert!((1..3).all(|step| (ratio(hypercall, step) - 1.0).abs() < 0.01), "{report:#}");
    assert!(ratio(send, 1) < 0.98 && ratio(send, 2) > 1.02, "{report:#}");
}

/// The ten exits that an exit of a nested guest causes, and the two of them that a processor can avoid.
#[test]
fn exits_that_a_processor_spares_are_counted_by_reason() {
    if !can_run_all() {
        return;
    }
    let report = ablation(
        &["--levels", "2", "--operations", "100", "--kind", "hypercall", "--count-exits"],
        "processor:vgif,processor:avic,guest-boot:kvm_amd.nothing=1",
    );
    let steps = |level: usize| report["ablations"][level - 1]["ladders"][0]["steps"].clone();
    let exits = |level: usize, step: usize, reason: &str| {
        let shares = &steps(level)[step]["exits"];
        let shares = shares.as_array().unwrap_or_else(|| panic!("{report:#}")).iter();
        let found = shares.clone().find(|share| share["reason"] == reason);
        found.map_or(0.0, |share| share["per_operation"].as_f64().unwrap())
    };
    let is_about = |found: f64, expected: f64| (found - expected).abs() < 0.05;
    for step in [0, 1] {
        // A guest of level 1 only has the hypercall; one of level 2 also has its hypervisor's exits.
        assert!(is_about(exits(1, step, "hypercall"), 1.0), "{report:#}");
        assert!(is_about(exits(1, step, "vmrun"), 0.0), "{report:#}");
        for (reason, expected) in [("hypercall", 1.0), ("vmrun", 1.0), ("vmload", 2.0)] {
            assert!(is_about(exits(2, step, reason), expected), "{reason}: {report:#}");
        }
        let spared = if step == 0 { 1.0 } else { 0.0 };
        assert!(is_about(exits(2, step, "stgi"), spared), "{report:#}");
        assert!(is_about(exits(2, step, "clgi"), spared), "{report:#}");
    }
    for (step, why) in [(2, "/proc/cpuinfo has no avic"), (3, "parameters/nothing: there is none")]
    {
        let reason = steps(2)[step]["not_measured"].as_str().unwrap_or_default().to_owned();
        assert!(reason.contains(why) && steps(2)[step]["exits"].is_null(), "{reason}");
    }
}

/// Two rounds of steps in a separate lab, in counted instructions.
fn ablation(options: &[&str], steps: &str) -> Value {
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("steps.json");
    let mut bench = Command::new(env!("CARGO_BIN_EXE_hyperscope"));
    bench
        .args(["bench", "exits", "--lab", "--count-instructions", "--runs", "2", "--seed", "5"])
        .args(options)
        .args(["--ablate", steps, "--format", "json", "-o"])
        .arg(&file)
        .env("HYPERSCOPE_LAB_DIR", folder())
        .stdin(Stdio::null());
    run(bench).done();
    let report = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    check_schema(&report);
    report
}

/// A lab of one machine with KVM, and this program.
fn up(name: &'static str) -> TestLab {
    let lab = TestLab::new(name);
    lab.run(&["up", "--levels", "1"]).done();
    // A machine without guests has KVM available, but not loaded.
    lab.shell(1, "hyperscope-labguest host").done();
    lab.put_programs(1);
    lab
}

/// The report of a recording by one key.
fn exits(session: &Path, by: &str) -> (String, Value) {
    let output = Command::new(env!("CARGO_BIN_EXE_hyperscope"))
        .args(["exits", "--format", "json", "--by", by, session.to_str().unwrap()])
        .output()
        .unwrap();
    (by.to_owned(), serde_json::from_slice(&output.stdout).unwrap())
}

fn counted((by, report): &(String, Value), key: u64) -> u64 {
    let rows = report["rows"].as_array().unwrap();
    let wanted = rows.iter().filter(|row| row[by.as_str()] == key);
    wanted.map(|row| row["count"].as_u64().unwrap()).sum()
}

fn check_schema(report: &Value) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/bench-exits.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let faults: Vec<String> =
        validator.iter_errors(report).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}
