//! A guest's boot and shutdown in the lab: all levels in order, without gaps, with all exits.

use serde_json::Value;

use crate::hypertrace::build_module;
use crate::tool::{TestLab, can_run_all};

/// Levels of initcalls, in the kernel's order.
const LEVELS: [&str; 10] =
    ["console", "early", "pure", "core", "postcore", "arch", "subsys", "fs", "device", "late"];

#[test]
fn a_boot_has_all_levels_and_exits_of_each() {
    if !can_run_all() {
        return;
    }
    let lab = TestLab::new("boots");
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("boot");
    let to = to.to_str().unwrap();
    let ran = lab.run(&["run", "boot", "-o", to]).done();
    let known = "CPUID with leaf 0x40004859: 7 made, 7 recorded";
    assert!(ran.stderr.contains(known), "{}", ran.stderr);
    let report = report(&["boot", to]);
    let machine = &report["machines"][0];
    a_boot_is_whole(machine, to);
    assert_eq!(machine["mark"]["text"], "up");
    tracing_was_measured(machine);
    // The command's work after the mark.
    let after = phases(machine).into_iter().find(|phase| phase["kind"] == "running").unwrap();
    let reasons = after["host"]["reasons"].as_array().unwrap();
    let count = |name: &str| {
        let reason = reasons.iter().find(|reason| reason["reason"] == name).unwrap();
        reason["count"].as_u64().unwrap()
    };
    assert!(count("cpuid") >= 7 && count("hypercall") >= 3, "{reasons:?}");
}

/// Only the host of the same guest is recorded.
#[test]
fn a_boot_sent_by_hypercall_ends_with_a_mark() {
    if !can_run_all() {
        return;
    }
    let lab = TestLab::new("boots-by-hypercall");
    lab.run(&["fetch"]).done();
    if !build_module() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("boot");
    let to = to.to_str().unwrap();
    lab.run(&["run", "hypertrace-boot", "-o", to]).done();
    let report = report(&["boot", to]);
    let machine = &report["machines"][0];
    assert_eq!((&machine["mark"]["text"], &machine["guest"]), (&"up".into(), &Value::Null));
    let phases = phases(machine);
    let kinds: Vec<&str> = phases.iter().map(|phase| phase["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds[..3], ["before", "user", "running"], "{kinds:?}");
    // The module sends immediately, the mark comes 200 ms later, and the complete boot precedes both.
    let lasts = |at: usize| phases[at]["duration_ns"].as_u64().unwrap();
    assert!(lasts(1) > 200_000_000 && lasts(0) > lasts(1), "{phases:?}");
    let exits = phases.iter().map(|phase| phase["host"]["exits"].as_u64().unwrap());
    assert_eq!(exits.sum::<u64>(), machine["exits"].as_u64().unwrap());
}

#[test]
fn a_shutdown_is_shown_up_to_the_last_step_of_the_kernel() {
    if !can_run_all() {
        return;
    }
    let lab = TestLab::new("shutdowns");
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("down");
    let to = to.to_str().unwrap();
    lab.run(&["run", "shutdown", "-o", to]).done();
    let report = report(&["boot", to]);
    let machine = &report["machines"][0];
    assert_eq!(machine["vm"], "l2");
    a_boot_is_whole(machine, to);
    let phases = phases(machine);
    let steps: Vec<&str> = phases
        .iter()
        .filter(|phase| phase["kind"] == "shutdown")
        .map(|phase| phase["name"].as_str().unwrap())
        .collect();
    // The kernel may omit a probe from its command line; whether the agent on the other processor
    // sees the machine's last steps depends on scheduling.
    assert!(steps.contains(&"reboot"), "{steps:?}");
    assert!(steps.len() > 1, "{steps:?}");
    assert_eq!(phases.last().unwrap()["kind"], "after");
}

/// The agent measured it after the boot: longer than zero, and shorter than an exit.
#[track_caller]
fn tracing_was_measured(machine: &Value) {
    let cost = &machine["event_cost"];
    let [low, median, high] =
        ["low_ps", "median_ps", "high_ps"].map(|key| cost[key].as_i64().unwrap());
    assert!(0 < low && low <= median && median <= high && high < 100_000_000, "{cost}");
    let phases = phases(machine);
    let guests = phases.iter().map(|phase| &phase["guest"]).filter(|guest| !guest.is_null());
    for guest in guests {
        let events = guest["recorded"]["events"].as_i64().unwrap();
        assert_eq!(guest["tracing"]["time_ns"], (events * median + 500) / 1000);
    }
}

/// Levels in order, no gaps, every initcall with its end, and all exits of the VM.
#[track_caller]
fn a_boot_is_whole(machine: &Value, session: &str) {
    let phases = phases(machine);
    let levels: Vec<&str> = phases
        .iter()
        .filter(|phase| phase["kind"] == "level")
        .map(|phase| phase["name"].as_str().unwrap())
        .collect();
    assert_eq!(levels, LEVELS);
    let ns = |value: &Value| value.as_u64().unwrap();
    let end = |phase: &Value| ns(&phase["from_ns"]) + ns(&phase["duration_ns"]);
    for (phase, next) in phases.iter().zip(&phases[1..]) {
        assert_eq!(end(phase), ns(&next["from_ns"]), "{phase:#}");
    }
    let sum: u64 = phases.iter().map(|phase| ns(&phase["duration_ns"])).sum();
    assert_eq!(sum, ns(&machine["end_ns"]) - ns(&machine["begin_ns"]));
    let initcalls = machine["initcalls"].as_array().unwrap();
    assert!(initcalls.len() > 400, "{}", initcalls.len());
    assert!(initcalls.iter().all(|initcall| initcall["duration_ns"].is_u64()));
    assert_eq!(machine["initcall_ends_without_beginning"], 0);
    let exits: u64 = phases.iter().map(|phase| ns(&phase["host"]["exits"])).sum();
    assert_eq!(exits, ns(&machine["exits"]));
    let all = report(&["exits", session]);
    let rows = all["rows"].as_array().unwrap();
    let of_vm = rows.iter().filter(|row| row["vm"] == machine["vm"]);
    assert_eq!(exits, of_vm.map(|row| ns(&row["count"])).sum::<u64>());
}

fn phases(machine: &Value) -> Vec<Value> {
    machine["phases"].as_array().unwrap().clone()
}

fn report(args: &[&str]) -> Value {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_hyperscope"))
        .args(args)
        .args(["--format", "json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// An emulator's faults can end a guest without a message; here its kernel finds no program to start.
#[test]
fn a_guest_that_ends_while_it_boots_is_begun_again() {
    if !can_run_all() {
        return;
    }
    let lab = TestLab::new("boot-ends");
    let ran = lab.run(&["up", "--levels", "2", "--guest-append", "rdinit=/nothing"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let count = |what: &str| ran.stderr.matches(what).count();
    let gone = "level 2 failed: its QEMU ended during boot";
    assert_eq!(count(&format!("{gone}; once more\n")), 2, "{}", ran.stderr);
    // With the end of its console.
    assert_eq!(count(&format!("{gone}\n")), 1, "{}", ran.stderr);
    assert!(count("panic") >= 1, "{}", ran.stderr);
}
