//! All scenarios, including level 3. They take minutes: `make test-lab` runs them and sets `HYPERSCOPE_LAB_ALL`;
//! `HYPERSCOPE_LAB_SCENARIO` selects a single one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use serde_json::Value;

use crate::hypertrace::build_module;
use crate::patience::Patient;
use crate::recorded::json;
use crate::tool::{Ran, TestLab, can_run};

/// Exceeds the duration of any scenario, including the boot of its machines.
const MOST: Duration = Duration::from_secs(400);
/// Max hanging machines per scenario; emulated ones hang now and then (`docs/lab.md`).
const MAX_HUNG: u32 = 2;

#[test]
fn every_scenario_holds_what_it_says() {
    if !can_run() || !asked_for() {
        return;
    }
    let lab = TestLab::new("every");
    lab.run(&["fetch"]).done();
    let module = build_module();
    let list = lab.run(&["run"]).done().stdout;
    let names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() >= 8, "{list}");
    let only = std::env::var("HYPERSCOPE_LAB_SCENARIO").ok();
    let names = names.into_iter().filter(|name| only.as_deref().is_none_or(|only| only == *name));
    let needs_module = |name: &str| name.starts_with("hypertrace") || name == "collected";
    let (can, can_not): (Vec<&str>, Vec<&str>) =
        names.partition(|name| module || !needs_module(name));
    if !can_not.is_empty() {
        eprintln!("skipped, as the module can't be built here: {}", can_not.join(", "));
    }
    // A failing scenario does not stop the others.
    let failed: Vec<&str> = can.into_iter().filter(|name| !holds(&lab, name)).collect();
    assert!(failed.is_empty(), "failed: {}", failed.join(", "));
}

/// Whether a scenario holds; prints its failure.
fn holds(lab: &TestLab, name: &str) -> bool {
    let checked = catch_unwind(AssertUnwindSafe(|| {
        let (ran, folder) = ran(lab, name);
        let to = folder.path().join("out");
        assert!(ran.stderr.contains("as expected"), "{name}: {}", ran.stderr);
        if name == "nested" {
            let flag = [("stgi", 1.0), ("clgi", 1.0)];
            nested_exits_bring_theirs(to.to_str().unwrap(), &flag);
        }
        if name == "nested-vgif" {
            let flag = [("stgi", 0.0), ("clgi", 0.0)];
            nested_exits_bring_theirs(to.to_str().unwrap(), &flag);
        }
        if name == "virtio" {
            queues_carry_what_was_asked(to.to_str().unwrap());
        }
        if name == "net-vhost" {
            handlers_have_their_time(to.to_str().unwrap());
        }
        if name == "samples" {
            samples_have_the_code(to.to_str().unwrap());
        }
    }));
    if checked.is_err() {
        eprintln!("scenario {name} FAILED");
    }
    checked.is_ok()
}

/// The output of a scenario, and the folder of its session.
fn ran(lab: &TestLab, name: &str) -> (Ran, tempfile::TempDir) {
    eprintln!("scenario {name}");
    let mut hung = 0;
    loop {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("out");
        let mut scenario = Patient::start(lab.command(&["run", name, "-o", to.to_str().unwrap()]));
        if scenario.end_within(MOST).is_some() || hung == MAX_HUNG {
            return (scenario.finish(Duration::ZERO).done(), folder);
        }
        hung += 1;
        eprintln!("{name} hangs: {hung} of {MAX_HUNG} that may; once more");
    }
}

/// 500 blocks of 4 KiB to the disk, one at a time, and 2 MiB to the network.
fn queues_carry_what_was_asked(session: &str) {
    let report = json(&["virtio", "--format", "json", session]);
    let queue = |name: &str| {
        let mut queues = report["queues"].as_array().unwrap().iter();
        queues.find(|row| row["queue"] == name).unwrap_or_else(|| panic!("no {name}: {report}"))
    };
    let disk = queue("req.0");
    for name in ["buffers", "taken", "timed", "kicks", "in_bytes"] {
        assert_eq!(disk[name], 500, "{name}: {disk}");
    }
    assert_eq!(
        (&disk["out_bytes"], &disk["cut_buffers"]),
        (&(500 * (4096 + 16)).into(), &0.into())
    );
    let network = queue("output.0");
    let bytes = network["out_bytes"].as_u64().unwrap();
    // Headers of packets, and iperf3's own messages.
    assert!((2 << 20..5 << 19).contains(&bytes), "{network}");
    assert_eq!(network["vm"], "l2");
}

/// The guest's part of its handlers' time equals that of `cpu`; the counts of handlers on both machines equal their
/// events.
fn handlers_have_their_time(session: &str) {
    let report = json(&["irqs", "--format", "json", session]);
    let cpu = json(&["cpu", "--format", "json", session]);
    let info = json(&["info", "--format", "json", session]);
    let handlers = report["handlers"].as_array().unwrap();
    let sum = |machine: &str, name: &str| -> u64 {
        let of_it = handlers.iter().filter(|row| (row["machine"] == "host") == (machine == "host"));
        of_it.filter_map(|row| row[name].as_u64()).sum()
    };
    let in_guest = |vcpu: &Value| vcpu["states"]["guest_irq_ns"].as_u64().unwrap();
    let of_vcpus: u64 = cpu["vcpus"].as_array().unwrap().iter().map(in_guest).sum();
    assert_eq!(sum("guest", "own_ns") - sum("guest", "own_away_ns"), of_vcpus);
    assert_eq!(sum("guest", "placed"), sum("guest", "timed"));
    assert!(sum("guest", "own_away_ns") > 0 && sum("host", "placed") == 0, "{report}");
    let entries = |file: &Value| -> u64 {
        let count = |name: &str| file["events"][name].as_u64().unwrap_or(0);
        count("irq:irq_handler_entry") + count("irq:softirq_entry")
    };
    let files = info["files"].as_array().unwrap();
    let all: u64 = files.iter().map(entries).sum();
    assert_eq!(sum("host", "count") + sum("guest", "count"), all);
    let receives = |row: &Value| row["name"] == "NET_RX" && row["machine"] != "host";
    assert!(handlers.iter().any(receives), "{report}");
}

fn asked_for() -> bool {
    let is_set = std::env::var_os("HYPERSCOPE_LAB_ALL").is_some();
    if !is_set {
        testkit::skip!("`make test-lab` runs it");
    }
    is_set
}

/// Samples divide the time of `cpu`, and name the guest's code, even with interrupts off, and the host's for each
/// exit.
fn samples_have_the_code(session: &str) {
    let profile = json(&["profile", "--format", "json", session]);
    let cpu = json(&["cpu", "--format", "json", session]);
    let sum = |vcpus: &Value, name: &str| -> u64 {
        let vcpus = vcpus["vcpus"].as_array().unwrap().iter();
        vcpus.map(|vcpu| vcpu[name].as_u64().unwrap()).sum()
    };
    assert_eq!(sum(&profile, "time_ns"), sum(&cpu, "time_ns"));
    let rows: Vec<&Value> = profile["rows"].as_array().unwrap().iter().collect();
    let time = |is_counted: &dyn Fn(&Value) -> bool| -> u64 {
        let those = rows.iter().filter(|row| is_counted(row));
        those.map(|row| row["time_ns"].as_u64().unwrap()).sum()
    };
    assert_eq!(time(&|_| true), sum(&profile, "time_ns"));
    let is_guest = |row: &Value| row["state"].as_str().unwrap().starts_with("guest");
    let in_guest = time(&|row| is_guest(row));
    let unseen = time(&|row| is_guest(row) && row["evidence"] == "none");
    assert!(unseen * 20 < in_guest, "{unseen} of {in_guest} ns");
    let leaf = |row: &Value, name: &str| {
        row["stack"].as_array().unwrap().last().is_some_and(|frame| frame["symbol"] == name)
    };
    // Interrupts are off in it: a timer in the guest would never see it.
    let entering = time(&|row| is_guest(row) && leaf(row, "entry_SYSCALL_64"));
    assert!(entering * 100 > in_guest && entering * 6 < in_guest, "{entering} of {in_guest} ns");
    // The stack around it comes from the guest itself.
    let by_agent = |row: &Value| is_guest(row) && row["evidence"] == "agent";
    let stacked = time(&|row| by_agent(row) && row["stack"].as_array().unwrap().len() > 3);
    assert!(stacked * 3 > in_guest, "{stacked} of {in_guest} ns");
    let raw = json(&["profile", "--raw", "--format", "json", session]);
    let rows_of_raw = raw["rows"].as_array().unwrap().iter();
    let unseen_inside = rows_of_raw.filter(|row| is_guest(row) && leaf(row, "entry_SYSCALL_64"));
    let inside: u64 = unseen_inside.map(|row| row["time_ns"].as_u64().unwrap()).sum();
    assert!(inside * 10 < entering, "{inside} of {entering} ns");
    let difference = &profile["differences"][0];
    assert!(difference["moved_ns"].as_u64() > Some(0) && difference["vm"] == "l2", "{difference}");
    let of_host = |row: &&&Value| row["evidence"] == "host" && row["reason"] == "npf";
    let deepest = rows.iter().filter(of_host).map(|row| row["stack"].as_array().unwrap().len());
    assert!(deepest.max() >= Some(8));
    assert!(time(&|row| row["reason"] == "npf" && leaf(row, "clear_page_rep")) > 0);
}

/// SVM needs each of these once per exit that is reflected to the guest's hypervisor. A hypercall of the nested guest
/// causes a VMRUN and two VMLOAD; the number of STGI and CLGI depends on which of its hypervisor's exits the
/// processor makes.
fn nested_exits_bring_theirs(session: &str, flag: &[(&str, f64)]) {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_hyperscope"))
        .args(["nested", "--format", "json", session])
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let hypercalls = rows.iter().find(|row| row["reason"] == "hypercall").unwrap();
    assert_eq!(hypercalls["count"], 200);
    assert_eq!(hypercalls["reflected"], 200);
    let always = [("vmrun", 1.0), ("vmload", 2.0)];
    for &(reason, per_exit) in always.iter().chain(flag) {
        let ancillary = hypercalls["ancillary"].as_array().unwrap();
        let exit = ancillary.iter().find(|exit| exit["reason"] == reason);
        let counted = exit.map_or(0.0, |exit| exit["per_exit"].as_f64().unwrap());
        assert!((counted - per_exit).abs() < 0.02, "{reason}: {counted}");
    }
}
