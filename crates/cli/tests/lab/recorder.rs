//! `hyperscope record` on a real KVM host: the VM by its name, probes, exact counts, nothing left.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::patience::Patient;
use crate::tool::{TestLab, WORKING, can_run};

#[test]
fn one_vm_is_recorded_by_its_name() {
    if !can_run() {
        return;
    }
    let lab = TestLab::new("recorder");
    lab.run(&["up", "--levels", "2"]).done();
    lab.put_program(1);
    let script = "hyperscope record --vm l2 --kprobe kvm_vcpu_halt -o /tmp/r -- cat /tmp/end";
    lab.shell(1, "mkfifo /tmp/end").done();
    let mut recorder = lab.command(&["exec", "1", "--", "sh", "-c", script]);
    let recorder = recorder.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The recording's command has started.
    lab.shell(1, "until pidof cat >/dev/null; do sleep 0.1; done").done();
    lab.shell(2, "hyperscope-labguest exits cpuid=300 hypercall=200 nap=10").done();
    lab.shell(1, "echo > /tmp/end").done();
    let recorder = Patient::new(recorder, script.into()).finish(WORKING);
    let messages = recorder.stderr;
    assert_eq!(recorder.code, Some(0), "{messages}");
    assert!(messages.contains("VM l2") && messages.contains("0 events lost"), "{messages}");

    let folder = tempfile::tempdir().unwrap();
    for file in ["host.dat", "session.json"] {
        let to = folder.path().join(file);
        lab.run(&["get", "1", &format!("/tmp/r/{file}"), to.to_str().unwrap()]).done();
    }
    let leaves = exits(folder.path(), "cpuid_leaf");
    assert_eq!(counted(&leaves, "cpuid_leaf", 0x4000_4859), 300);
    assert_eq!(counted(&exits(folder.path(), "hypercall"), "hypercall", 0x4859), 200);
    assert_eq!(leaves["vms"].as_array().unwrap().len(), 1);
    assert_eq!(leaves["vms"][0]["vm"], "l2");
    assert!(leaves["vms"][0]["pid"].is_u64());
    assert!(leaves["recorder_cost"]["cpu_ns"].is_u64());
    let listing = "ls /sys/kernel/tracing/instances; cat /sys/kernel/tracing/kprobe_events";
    assert_eq!(lab.shell(1, listing).done().stdout, "");
    let wrong = lab.shell(1, "hyperscope record --kprobe tun_get_usr -o /tmp/never");
    assert!(wrong.code == Some(1) && wrong.stderr.contains("tun_get_user"), "{}", wrong.stderr);
}

fn exits(session: &Path, by: &str) -> Value {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_hyperscope"))
        .args(["exits", "--format", "json", "--by", by, session.to_str().unwrap()])
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

fn counted(report: &Value, by: &str, key: u64) -> u64 {
    let rows = report["rows"].as_array().unwrap();
    let wanted = rows.iter().filter(|row| row[by] == key);
    wanted.map(|row| row["count"].as_u64().unwrap()).sum()
}
