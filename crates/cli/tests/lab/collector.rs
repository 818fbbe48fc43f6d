//! Hypercalls that BPF programs collect on a real host: the same events as from the host's own trace,
//! with all registers; what a killed collector leaves, and hosts without a collector.

use serde_json::Value;

use crate::hypertrace::{assert_late, assert_within, build_module, lines, stamp};
use crate::patience::Patient;
use crate::recorded::hyperscope;
use crate::tool::{TestLab, WORKING, can_run_all};

/// One run, recorded both by events and by the collector, with this number of words per hypercall.
fn collected(words: u8) -> (tempfile::TempDir, String) {
    let temporary = tempfile::tempdir().unwrap();
    let (scenario, session) = (temporary.path().join("run.toml"), temporary.path().join("out"));
    let load = format!(
        "insmod /lab/hyperscope_guest.ko words={words} probes=sched_switch && \
         hyperscope-labguest measure ms=2000 switches=2000 && rmmod hyperscope_guest"
    );
    let text = format!(
        "summary = 'collected'\nlevels = 2\n[guest]\nmodule = true\n[record]\n\
         events = ['kvm:kvm_hypercall', 'kvm:kvm_exit', 'kvm:kvm_entry']\n\
         guest_events = ['sched:sched_switch']\nhypercalls = true\n[[step]]\ndo = 'run'\n\
         level = 2\nargv = ['sh', '-c', '{load}']\n"
    );
    std::fs::write(&scenario, text).unwrap();
    let lab = TestLab::new("collected");
    lab.run(&["up", "--levels", "2"]).done();
    lab.run(&["run", scenario.to_str().unwrap(), "-o", session.to_str().unwrap()]).done();
    let session = session.to_str().unwrap().to_owned();
    (temporary, session)
}

/// Fields, machines and CPUs are equal, and times nearly.
#[test]
fn the_collector_has_what_events_have() {
    if !can_run_all() || !build_module() {
        return;
    }
    let (_temporary, session) = collected(4);
    let by = |source| lines(&["hypertrace", "--format", "jsonl", "--source", source, &session]);
    let (by_collector, by_events) = (by("collector"), by("events"));
    assert!(by_events.len() > 1000, "{}", by_events.len());
    let plain = |event: &Value| {
        let mut event = event.clone();
        let object = event.as_object_mut().unwrap();
        for key in ["ts_ns", "hypercall_ns", "hypercall_rip"] {
            object.remove(key);
        }
        event
    };
    assert!(by_collector.iter().map(plain).eq(by_events.iter().map(plain)));
    let pairs = by_collector.iter().zip(&by_events);
    let mut apart_ns: Vec<i64> = pairs.map(|(event, other)| stamp(event) - stamp(other)).collect();
    apart_ns.sort_unstable();
    let (min, median) = (apart_ns[0], apart_ns[apart_ns.len() / 2]);
    // Two programs at the same tracepoint run one after the other, both emulated.
    assert!(min > -1000 && median < 100_000, "{min} {median}");
    eprintln!("the collector's stamps are later by {min} ns at least, {median} in the median");
    assert_overheads(&by_collector, &session);
}

/// The time from exit to entry equals that between the events `kvm_exit` and `kvm_entry`, and the
/// instruction equals that of `kvm_exit`.
fn assert_overheads(sent: &[Value], session: &str) {
    let all = ["-e", "kvm:kvm_exit", "-e", "kvm:kvm_hypercall", "-e", "kvm:kvm_entry"];
    let all = lines(&[&["events", "--format", "jsonl"], &all[..], &[session]].concat());
    let (mut exit, mut is_ours, mut known) = (None, false, Vec::new());
    for event in all.iter().filter(|event| event["machine"] == "host") {
        match event["event"].as_str().unwrap() {
            "kvm:kvm_exit" => (exit, is_ours) = (Some(event), false),
            "kvm:kvm_hypercall" => is_ours = event["fields"]["nr"] == 0x4853_0000,
            _ if is_ours => {
                let exit: &Value = exit.unwrap();
                known.push((stamp(event) - stamp(exit), exit["fields"]["guest_rip"].as_u64()));
                is_ours = false;
            }
            _ => {}
        }
    }
    let rip = sent[0]["hypercall_rip"].as_u64();
    assert!(known.iter().all(|(_, exit)| *exit == rip), "{rip:x?} {known:x?}");
    assert!(sent.iter().all(|event| event["hypercall_rip"].as_u64() == rip));
    let median = |mut all: Vec<i64>| {
        all.sort_unstable();
        all[all.len() / 2]
    };
    let by_events = median(known.iter().map(|(took, _)| *took).collect());
    let by_collector = sent.iter().filter_map(|event| event["hypercall_ns"].as_i64());
    let by_collector = median(by_collector.collect());
    eprintln!("exit to entry: {by_collector} ns by the collector, {by_events} ns by events");
    assert!(by_collector > by_events / 3 && by_collector < by_events * 3);
}

#[test]
fn hypercalls_with_all_registers_carry_more_of_the_same() {
    if !can_run_all() || !build_module() {
        return;
    }
    for (words, min) in [(9, 8.0), (13, 16.0)] {
        let (_temporary, session) = collected(words);
        let sent = lines(&["hypertrace", "--format", "jsonl", &session]);
        let originals =
            lines(&["events", "--format", "jsonl", "-e", "sched:sched_switch", &session]);
        let begin = assert_within(&sent, &originals);
        let stamps = sent
            .iter()
            .zip(&originals[begin..])
            .map(|(sent, original)| stamp(sent) - stamp(original));
        assert_late(stamps.collect());
        let stderr = hyperscope(&["hypertrace", &session, "-o", "/dev/null"]).stderr;
        let recorded = std::fs::read_to_string(format!("{session}/session.json")).unwrap();
        let recorded: Value = serde_json::from_str(&recorded).unwrap();
        let collector = &recorded["recorded"]["collector"];
        assert_eq!((&collector["ring_full"], &collector["unreadable"]), (&0.into(), &0.into()));
        let each = sent.len() as f64 / collector["hypercalls"].as_u64().unwrap() as f64;
        eprintln!("{words} words: {} switches, {each:.1} a hypercall\n{stderr}", sent.len());
        assert!(sent.len() > 1000 && each >= min, "{each}");
    }
}

/// In level 1: kills a recorder that has collected something, and shows what remains.
const KILLED: &str = "
    hyperscope record --hypercalls -o /tmp/killed 2> /tmp/said & recorder=$!
    until [ -s /tmp/killed/host.collected ]; do sleep 0.1; done
    touch /tmp/ready
    until [ -e /tmp/marked ]; do sleep 0.1; done
    # What is in the ring goes to the file every second.
    sleep 3
    cat /proc/$recorder/fdinfo/* | grep -c prog_type
    kill -9 $recorder
    while ls -d /sys/kernel/tracing/instances/hyperscope-$recorder-*; do sleep 0.1; done
    sleep 1
    cat /proc/[0-9]*/fdinfo/* 2>/dev/null | grep -c prog_type
    hyperscope hypertrace --format jsonl /tmp/killed 2> /tmp/messages";

#[test]
fn a_collector_that_is_killed_leaves_its_file_and_nothing_in_the_kernel() {
    if !can_run_all() {
        return;
    }
    let lab = TestLab::new("collector-killed");
    lab.run(&["up", "--levels", "2"]).done();
    lab.put_program(1);
    lab.put_program(2);
    let killer = lab.command(&["exec", "1", "--", "sh", "-c", KILLED]);
    let killer = Patient::start(killer);
    lab.shell(1, "until [ -e /tmp/ready ]; do sleep 0.1; done; sleep 1").done();
    lab.shell(2, "hyperscope mark before-the-end").done();
    lab.shell(1, "touch /tmp/marked").done();
    let output = killer.finish(WORKING).done().stdout;
    let lines: Vec<&str> = output.lines().collect();
    let [before, after, mark] = lines[..] else { panic!("{output}") };
    // Three programs, each with its link; none of them remains.
    assert!(before.parse::<u32>().unwrap() >= 3 && after == "0", "{output}");
    let mark: Value = serde_json::from_str(mark).unwrap();
    assert_eq!(mark["fields"]["text"], "before-the-end");
    assert!(mark["hypercall_ns"].is_u64(), "{mark}");
}

#[test]
fn who_can_not_collect_learns_why() {
    if !can_run_all() {
        return;
    }
    let lab = TestLab::new("collector-refused");
    lab.run(&["up", "--levels", "2"]).done();
    lab.put_program(1);
    lab.put_program(2);
    let record = "hyperscope record --hypercalls --for 1s -o /tmp/refused";
    let hidden = format!("mount -t tmpfs none /sys/kernel/btf && {record}");
    let refused =
        [(1, hidden, "CONFIG_DEBUG_INFO_BTF"), (2, record.to_owned(), "KVM is not loaded")];
    for (level, command, why) in refused {
        let ran = lab.shell(level, &command);
        assert!(ran.code == Some(1) && ran.stderr.contains(why), "{}", ran.stderr);
        let listing = "ls -d /tmp/refused /sys/kernel/tracing/instances/* 2>/dev/null; true";
        assert_eq!(lab.shell(level, listing).done().stdout, "", "{}", ran.stderr);
    }
}
