//! trace-cmd as the peer: its agent in a guest that this program records, and its recorder on a host
//! whose guest has this program's agent. trace-cmd reads both results.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::patience::Patient;
use crate::recorded::agent;
use crate::tool::{Ran, TestLab, WORKING, can_run_all};

/// The guest's work: exits that its host counts, and programs that it counts itself.
const WORK: &str = "hyperscope-labguest exits cpuid=300 hypercall=200; \
                    i=0; while [ $i -lt 20 ]; do /bin/true; i=$((i+1)); done";
const CPUID_LEAF: u64 = 0x4000_4859;

#[test]
fn trace_cmd_is_on_the_other_side() {
    if !can_run_all() {
        return;
    }
    let lab = TestLab::new("trace-cmd");
    lab.run(&["up", "--levels", "2", "--guest-cpus", "2"]).done();
    lab.put_program(1);
    lab.put_stripped(2, &agent(), "/bin/hyperscope-agent");
    lab.shell(1, "mkfifo /tmp/began /tmp/end").done();

    start(&lab, "trace-cmd agent");
    its_agent_is_recorded(&lab);
    its_agent_records_calls(&lab);
    its_agent_is_recorded_over_tcp(&lab);
    its_agent_vanishes(&lab);
    start(&lab, "hyperscope-agent --trace-cmd");
    it_records_our_agent(&lab);
    it_records_calls_by_our_agent(&lab);
    lab.run(&["down"]).done();
}

/// Starts an agent in the guest, and ends the previous one.
fn start(lab: &TestLab, agent: &str) {
    let script = format!(
        "killall trace-cmd hyperscope-agent 2>/dev/null; sleep 0.5; \
         {agent} >/tmp/agent.log 2>&1 </dev/null & sleep 1"
    );
    lab.shell(2, &script).done();
}

/// Begins a recording on the host that lasts until [`end`]; it is active when this returns.
fn begin(lab: &TestLab, recorder: &str) -> Child {
    let script = format!("{recorder} sh -c 'echo > /tmp/began; cat /tmp/end'");
    let mut recorder = lab.command(&["exec", "1", "--", "sh", "-c", &script]);
    let recorder = recorder.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = lab.run(&["exec", "1", "--timeout", "90", "--", "cat", "/tmp/began"]);
    if began.code != Some(0) {
        let ran = Patient::new(recorder, script).finish(WORKING);
        panic!("it did not begin: {}", ran.stderr);
    }
    recorder
}

fn end(lab: &TestLab, recorder: Child) -> Ran {
    lab.shell(1, "echo > /tmp/end").done();
    Patient::new(recorder, "the recorder".into()).finish(WORKING)
}

fn its_agent_is_recorded(lab: &TestLab) {
    let recorder =
        "hyperscope record --guest trace-cmd:l2 --guest-event sched --guest-wait 180s -o /tmp/s --";
    let recording = begin(lab, recorder);
    lab.shell(2, WORK).done();
    let messages = end(lab, recording).done().stderr;
    assert!(messages.contains("guest l2:") && messages.contains("0 events lost"), "{messages}");

    let folder = tempfile::tempdir().unwrap();
    for file in ["host.dat", "guest-l2.dat", "session.json"] {
        let to = folder.path().join(file);
        lab.run(&["get", "1", &format!("/tmp/s/{file}"), to.to_str().unwrap()]).done();
    }
    let leaves = json(&["exits", "--by", "cpuid_leaf"], &[folder.path()]);
    let rows = leaves["rows"].as_array().unwrap().iter();
    let counted = rows.filter(|row| row["cpuid_leaf"] == CPUID_LEAF);
    assert_eq!(counted.map(|row| row["count"].as_u64().unwrap()).sum::<u64>(), 300);
    same_counts(lab, "/tmp/s/guest-l2.dat", &folder.path().join("guest-l2.dat"));

    let session = std::fs::read_to_string(folder.path().join("session.json")).unwrap();
    let session: Value = serde_json::from_str(&session).unwrap();
    let vcpus = session["recorded"]["vms"][0]["vcpus"].as_array().unwrap().iter();
    let threads: Vec<u64> = vcpus.map(|vcpu| vcpu["tid"].as_u64().unwrap()).collect();
    assert_eq!(session["recorded"]["guests"][0]["channel"], "trace-cmd:vsock:3:823");
    merged_in_order(lab, "/tmp/s/host.dat", "/tmp/s/guest-l2.dat", &threads);
}

/// Reads and writes of a program, from the function tracers: trace-cmd counts the same in our files.
const COPY: &str = "dd if=/dev/zero of=/dev/null bs=64 count=2000";
const CALLS_OF_EACH: std::ops::Range<u64> = 2000..2500;

fn its_agent_records_calls(lab: &TestLab) {
    let recorder = "hyperscope record --guest trace-cmd:l2 --guest-wait 180s --guest-tracer function_graph \
                    --guest-function vfs_read --guest-function vfs_write \
                    --guest-event sched_switch -o /tmp/c --";
    let recording = begin(lab, recorder);
    lab.shell(2, COPY).done();
    let messages = end(lab, recording).done().stderr;
    assert!(messages.contains("guest l2: function_graph recorded "), "{messages}");
    copied(lab, "/tmp/c/guest-l2.dat");
}

fn it_records_calls_by_our_agent(lab: &TestLab) {
    // A killed agent left tracing enabled: other programs' buffers are not used.
    lab.shell(2, "echo 0 > /sys/kernel/tracing/events/enable").done();
    let recorder = "trace-cmd record -e kvm:kvm_exit -o /tmp/t/calls.dat -A @3:823 --name l2 \
                    -p function_graph -l vfs_read -l vfs_write -e sched:sched_switch";
    let recording = begin(lab, recorder);
    lab.shell(2, COPY).done();
    end(lab, recording).done();
    copied(lab, "/tmp/t/calls-l2.dat");
}

/// The calls of the program, as counted by trace-cmd and by this program.
fn copied(lab: &TestLab, there: &str) {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().join("guest.dat");
    lab.run(&["get", "1", there, here.to_str().unwrap()]).done();
    let report = json(&["calls"], &[&here]);
    let functions = report["sources"][0]["functions"].as_array().unwrap();
    for name in ["vfs_read", "vfs_write"] {
        let found = functions.iter().find(|function| function["name"] == name);
        let ours = found.and_then(|function| function["count"].as_u64()).unwrap_or(0);
        assert!(CALLS_OF_EACH.contains(&ours), "{name}: {ours}");
        let count = format!("trace-cmd report -i {there} | grep -c 'funcgraph_entry.*{name}'");
        let theirs = lab.shell(1, &count).done().stdout;
        let theirs: u64 = theirs.trim().parse().unwrap();
        // The last ones of other programs have not returned.
        assert!((ours..ours + 5).contains(&theirs), "{name}: {theirs} by trace-cmd, {ours} by us");
    }
}

/// The host is its own guest here, so both recordings have each program, on one clock.
fn its_agent_is_recorded_over_tcp(lab: &TestLab) {
    let agent = "ip link set lo up; \
                 trace-cmd agent -N 127.0.0.1 -p 8233 >/tmp/agent.log 2>&1 </dev/null & sleep 1";
    lab.shell(1, agent).done();
    let record = "hyperscope record -e sched --guest-wait 180s --guest self=trace-cmd:tcp:127.0.0.1:8233 \
                  --guest-event sched -o /tmp/o -- \
                  sh -c 'sleep 2; for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; done'; \
                  code=$?; killall trace-cmd; exit $code";
    lab.shell(1, record).done();
    for file in ["host", "guest-self"] {
        let count = format!("trace-cmd report -i /tmp/o/{file}.dat | grep -c 'exec.*/bin/true'");
        assert_eq!(lab.shell(1, &count).done().stdout.trim(), "10", "{file}");
    }
    let shift = "trace-cmd dump --options -i /tmp/o/guest-self.dat | grep -c 'samples count'";
    assert_eq!(lab.shell(1, shift).done().stdout.trim(), "2");
}

/// Its pages are kept, and the host's recording continues.
fn its_agent_vanishes(lab: &TestLab) {
    let recorder = "hyperscope record --guest trace-cmd:l2 --guest-event sched --guest-buffer 64 --guest-wait 180s \
         -o /tmp/v --";
    let recording = begin(lab, recorder);
    // As much as its buffer holds, so that a part was sent before.
    lab.shell(2, "i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done").done();
    lab.shell(2, "killall -KILL trace-cmd").done();
    lab.shell(2, "hyperscope-labguest exits cpuid=50").done();
    let ended = end(lab, recording);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("its recording ended early"), "{}", ended.stderr);
    let report = lab.shell(1, "trace-cmd report -i /tmp/v/guest-l2.dat | grep -c sched_").done();
    assert!(report.stdout.trim().parse::<u64>().unwrap() > 100, "{}", report.stdout);
    let host = lab.shell(1, "trace-cmd report -i /tmp/v/host.dat | grep -c kvm_cpuid").done();
    assert!(host.stdout.trim().parse::<u64>().unwrap() >= 50, "{}", host.stdout);
}

fn it_records_our_agent(lab: &TestLab) {
    lab.shell(1, "rm -rf /tmp/t; mkdir /tmp/t").done();
    let recorder = "trace-cmd record -b 8000 -e kvm:kvm_entry -e kvm:kvm_exit -o /tmp/t/host.dat \
                    -A @3:823 --name l2 -b 4000 -e sched";
    let recording = begin(lab, recorder);
    lab.shell(2, WORK).done();
    let ended = end(lab, recording).done();
    assert!(ended.stdout.contains("Negotiated kvm time sync protocol"), "{}", ended.stdout);
    let folder = tempfile::tempdir().unwrap();
    let guest = folder.path().join("guest.dat");
    lab.run(&["get", "1", "/tmp/t/host-l2.dat", guest.to_str().unwrap()]).done();
    same_counts(lab, "/tmp/t/host-l2.dat", &guest);
    let find = "for cpu in 0 1; do for t in /proc/$(pidof qemu-system-x86_64)/task/*; do \
                grep -q \"CPU $cpu/KVM\" $t/comm && basename $t; done; done; true";
    let found = lab.shell(1, find).done().stdout;
    let threads: Vec<u64> = found.lines().map(|line| line.parse().unwrap()).collect();
    merged_in_order(lab, "/tmp/t/host.dat", "/tmp/t/host-l2.dat", &threads);
    let log = lab.shell(2, "cat /tmp/agent.log").done().stdout;
    assert!(
        log.contains("-C x86-tsc -b 4000 -e sched") && log.contains("recording ended"),
        "{log}"
    );
    // trace-cmd's killed agent left an instance; this one did not.
    let listing = "ls /sys/kernel/tracing/instances | grep hyperscope; true";
    assert_eq!(lab.shell(2, listing).done().stdout, "");
}

/// The programs that the guest started, and all events, as counted by trace-cmd and by this program.
fn same_counts(lab: &TestLab, there: &str, here: &Path) {
    let started = format!("trace-cmd report -i {there} | grep -c 'sched_process_exec.*/true'");
    assert_eq!(lab.shell(1, &started).done().stdout.trim(), "20");
    let all = format!("trace-cmd report -i {there} | grep -c ': sched_'");
    let all: u64 = lab.shell(1, &all).done().stdout.trim().parse().unwrap();
    let info = json(&["info"], &[here]);
    let events = info["files"][0]["events"].as_object().unwrap();
    let ours: u64 = events.values().map(|count| count.as_u64().unwrap()).sum();
    assert!(all > 100 && ours == all, "{all} by trace-cmd, {ours} by us");
}

/// A guest CPU's events happen between an entry of its vCPU and the next exit, so they must be there
/// in trace-cmd's merged output, if the clocks were aligned correctly. `threads` are those of vCPUs.
fn merged_in_order(lab: &TestLab, host: &str, guest: &str, threads: &[u64]) {
    assert_eq!(threads.len(), 2, "{threads:?}");
    let report = format!(
        "trace-cmd report -t -i {host} -i {guest} | grep -E 'kvm_entry:|kvm_exit:|: sched_' | \
         sed 's/^ *//'"
    );
    let report = lab.shell(1, &report).done().stdout;
    let (host, guest) = (name(host), name(guest));
    let of_threads: Vec<String> = threads.iter().map(|thread| format!("-{thread} ")).collect();
    let mut is_inside = [None; 2];
    let (mut inside, mut outside) = ([0; 2], Vec::new());
    for line in report.lines() {
        if line.starts_with(&host) {
            let vcpu = of_threads.iter().position(|thread| line.contains(thread));
            if let Some(vcpu) = vcpu.filter(|_| line.contains(" kvm_e")) {
                is_inside[vcpu] = Some(line.contains(" kvm_entry:"));
            }
        } else if line.starts_with(&guest) {
            let cpu = usize::from(line.contains(" [001] "));
            match is_inside[cpu] {
                Some(true) => inside[cpu] += 1,
                Some(false) => outside.push(line),
                None => {}
            }
        }
    }
    assert!(inside.iter().sum::<u32>() > 100, "{inside:?} events of the guest");
    assert!(outside.is_empty(), "{inside:?} inside, {}: {:?}", outside.len(), outside.first());
}

/// A file's name in trace-cmd's merged output.
fn name(path: &str) -> String {
    format!("{}:", Path::new(path).file_name().unwrap().to_str().unwrap())
}

fn json(words: &[&str], files: &[&Path]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_hyperscope"))
        .args(words)
        .args(["--format", "json"])
        .args(files)
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}
