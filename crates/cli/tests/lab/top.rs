//! `hyperscope top` on a real KVM host equals a recording of the same seconds, exit by exit.
//!
//! Time is a count of instructions: differences come from code between two readings of the clock, however busy this
//! machine is. The guest's VMM is stopped before the first counted interval and in the last one, so that no exit spans
//! an end.

use std::path::Path;

use serde_json::Value;

use crate::architecture::Architecture;
use crate::patience::Patient;
use crate::recorded::hyperscope;
use crate::tool::{TestLab, WORKING, can_run_all};

/// In level 1: records and counts while the guest runs from /tmp/go to /tmp/done.
const AT_ONCE: &str = "
    qemu=$(pidof qemu-system-$(uname -m))
    mkfifo /tmp/end
    hyperscope record --clock mono -o /tmp/r -- cat /tmp/end >/tmp/said 2>&1 & recorder=$!
    until pidof cat >/dev/null; do sleep 0.1; done
    kill -STOP $qemu
    sleep 0.5
    hyperscope top --interval 1s --format jsonl >/tmp/top.jsonl & top=$!
    until [ -s /tmp/top.jsonl ]; do sleep 0.1; kill -0 $top || break; done
    kill -CONT $qemu
    yes >/dev/null & other=$!
    touch /tmp/go
    until [ -e /tmp/done ]; do sleep 0.1; done
    kill $other
    kill -STOP $qemu
    sleep 0.5
    kill -INT $top
    wait $top; code=$?
    echo > /tmp/end
    wait $recorder
    kill -CONT $qemu
    ls /sys/kernel/tracing/instances
    exit $code";

/// Numbers of a row in top, and their names in `exits`.
const SUMS: [(&str, &str); 7] = [
    ("time_ns", "time_ns"),
    ("before_exit_ns", "before_exit_ns"),
    ("kernel_ns", "kernel_ns"),
    ("user_ns", "user_ns"),
    ("runnable_ns", "off_cpu_runnable_ns"),
    ("blocked_ns", "off_cpu_blocked_ns"),
    ("halt_poll_ns", "halt_poll_ns"),
];
/// Max difference of times per exit, in instructions: at an event, one clock is read after the other.
const EACH_NS: u64 = 300;
/// Max additional difference per reason: an interrupt may occur between the two.
const ONCE_NS: u64 = 20_000;

/// Exits of the innermost guest, and the min number expected.
struct Work {
    level: u8,
    made: &'static str,
    least: [(&'static str, u64); 2],
    /// All exits together.
    in_all: u64,
}

const ON_X86: Work = Work {
    level: 2,
    in_all: 5000,
    made: "cpuid=3000 hypercall=2000 nap=300",
    least: [("cpuid", 3000), ("hypercall", 2000)],
};
const ON_ARM: Work = Work {
    level: 2,
    in_all: 5000,
    made: "mmio=5000 nap=300",
    least: [("DABT_LOW", 5000), ("WFx", 300)],
};
/// Each one causes about ten exits of its hypervisor.
const NESTED: Work = Work {
    level: 3,
    in_all: 2000,
    made: "cpuid=200 hypercall=100 nap=20",
    least: [("cpuid", 200), ("vmrun", 300)],
};

#[test]
fn top_counts_what_a_recording_of_the_same_seconds_has() {
    compare_both(Architecture::X86, "top", &ON_X86);
}

#[test]
fn top_counts_what_a_recording_has_on_aarch64() {
    compare_both(Architecture::Arm, "aarch64-top", &ON_ARM);
}

#[test]
fn top_counts_nested_exits_as_a_recording_has_them() {
    compare_both(Architecture::X86, "top-nested", &NESTED);
}

fn compare_both(architecture: Architecture, name: &'static str, work: &Work) {
    if !architecture.can_run_all() {
        return;
    }
    let lab = TestLab::for_architecture(architecture, name);
    let levels = work.level.to_string();
    lab.up(&["--levels", &levels, "--cpus", "1", "--instruction-ns", "1"]);
    lab.put_program(1);
    let both = Patient::start(lab.command(&["exec", "1", "--", "sh", "-c", AT_ONCE]));
    lab.shell(1, "until [ -e /tmp/go ]; do sleep 0.1; done").done();
    lab.shell(work.level, &format!("hyperscope-labguest exits {}", work.made)).done();
    lab.shell(1, "touch /tmp/done").done();
    assert_eq!(both.finish(WORKING).done().stdout, "", "an instance is left");

    let folder = tempfile::tempdir().unwrap();
    for (from, to) in [("/tmp/top.jsonl", "top.jsonl"), ("/tmp/r/host.dat", "host.dat")] {
        let to = folder.path().join(to);
        lab.run(&["get", "1", from, to.to_str().unwrap()]).done();
    }
    let text = std::fs::read_to_string(folder.path().join("top.jsonl")).unwrap();
    let intervals: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    check_schema(&intervals);
    for pair in intervals.windows(2) {
        let begin = number(&pair[1], "ts_ns") - number(&pair[1], "interval_ns");
        assert_eq!(begin, number(&pair[0], "ts_ns"));
    }
    let (first, rest) = intervals.split_first().unwrap();
    check_states(rest);
    let host = folder.path().join("host.dat");
    let recorded = recorded("exits", &host, first, rest.last().unwrap());
    assert_eq!(recorded["losses"]["events_lost"], 0);
    let rows = recorded["rows"].as_array().unwrap();
    let made: u64 = rows.iter().map(|row| compare(row, rest)).sum();
    let counted = rest.iter().flat_map(|interval| interval["rows"].as_array().unwrap());
    assert_eq!(counted.map(|row| number(row, "paired")).sum::<u64>(), made);
    let count_of = |reason: &str| {
        let rows = rest.iter().flat_map(|interval| interval["rows"].as_array().unwrap());
        rows.filter(|row| row["reason"] == reason).map(|row| number(row, "count")).sum::<u64>()
    };
    let levels = rest.iter().flat_map(|interval| interval["rows"].as_array().unwrap());
    let innermost = levels.map(|row| number(row, "level")).max();
    assert_eq!(innermost, Some(u64::from(work.level) - 1), "nested guests have rows of their own");
    assert!(
        made > work.in_all && work.least.iter().all(|&(name, min)| count_of(name) >= min),
        "{made}"
    );
    let cpu = self::recorded("cpu", &host, first, rest.last().unwrap());
    check_who_ran(&cpu, rest);
    if work.level > 2 {
        check_nested(&cpu, rest, made);
    }
    eprintln!("{made} exits in {} intervals", rest.len());
}

pub(crate) fn number(object: &Value, name: &str) -> u64 {
    object[name].as_u64().unwrap_or_else(|| panic!("{name} of {object}"))
}

pub(crate) fn check_schema(intervals: &[Value]) {
    let formats = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats");
    let schema = std::fs::read_to_string(formats.join("top.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for interval in intervals {
        let faults: Vec<String> =
            validator.iter_errors(interval).map(|fault| fault.to_string()).collect();
        assert!(faults.is_empty(), "{faults:?}");
    }
}

/// The states of each vCPU add up to the interval once the vCPU exists from its begin.
fn check_states(intervals: &[Value]) {
    for interval in &intervals[1..] {
        let vcpu = &interval["vcpus"][0];
        assert_eq!((&vcpu["vm"], &vcpu["vcpu"]), (&"l2".into(), &0.into()));
        let states = vcpu["states"].as_object().unwrap().values();
        let sum: u64 = states.map(|state| state.as_u64().unwrap()).sum();
        assert_eq!((sum, sum), (number(interval, "interval_ns"), number(vcpu, "time_ns")));
    }
}

/// Nested guests ran as long as in the recording.
fn check_nested(cpu: &Value, intervals: &[Value], exits: u64) {
    let by_top: u64 =
        intervals.iter().map(|interval| number(&interval["vcpus"][0], "nested_guest_ns")).sum();
    let recorded = number(&cpu["vcpus"][0], "level2_ns");
    eprintln!("guests of the guest: {recorded} ns recorded, {by_top} ns by top");
    assert!(
        recorded > 0 && by_top.abs_diff(recorded) <= exits * EACH_NS + ONCE_NS,
        "{recorded} {by_top}"
    );
}

/// The threads that ran while the vCPU waited equal those of the recording, with their times.
fn check_who_ran(cpu: &Value, intervals: &[Value]) {
    let by_top = |thread: u64| {
        let vcpus = intervals.iter().map(|interval| &interval["vcpus"][0]["run_queue"]);
        let all = vcpus.flat_map(|waits| waits["ran_instead"].as_array().unwrap());
        let of_thread = all.filter(|entry| entry["thread"] == thread);
        of_thread.map(|entry| (number(entry, "time_ns"), entry["name"].clone())).collect::<Vec<_>>()
    };
    let takers = cpu["taken"].as_array().unwrap();
    assert!(takers.iter().any(|taker| taker["name"] == "yes"), "{takers:?}");
    for taker in takers.iter().filter(|taker| number(taker, "time_ns") > 1_000_000) {
        let by_top = by_top(number(taker, "tid"));
        let sum: u64 = by_top.iter().map(|(ns, _)| ns).sum();
        let recorded = number(taker, "time_ns");
        eprintln!("{}: {recorded} ns recorded, {sum} ns by top", taker["name"]);
        assert!(sum.abs_diff(recorded) <= recorded / 50, "{taker}: {sum}");
    }
}

/// A verb's result for the recording, from the end of one interval to the end of another.
fn recorded(verb: &str, file: &Path, from: &Value, to: &Value) -> Value {
    let seconds = |interval: &Value| {
        let ns = number(interval, "ts_ns");
        format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
    };
    let (from, to) = (seconds(from), seconds(to));
    let file = file.to_str().unwrap();
    let ran = hyperscope(&[verb, "--format", "json", "--from", &from, "--to", &to, file]);
    serde_json::from_str(&ran.stdout).unwrap()
}

/// Compares a reason in both: equal counts, and times that differ only by readings of clocks. Returns the count.
fn compare(row: &Value, intervals: &[Value]) -> u64 {
    let is_same = |other: &&Value| other["level"] == row["level"] && other["code"] == row["code"];
    let same: Vec<&Value> = intervals
        .iter()
        .flat_map(|interval| interval["rows"].as_array().unwrap())
        .filter(is_same)
        .collect();
    let sum = |name: &str| same.iter().map(|same_row| number(same_row, name)).sum::<u64>();
    let paired = number(row, "paired");
    assert_eq!(sum("paired"), paired, "{row}");
    for name in ["kernel", "user", "l1"] {
        let counted: u64 = same.iter().map(|same_row| number(&same_row["handled"], name)).sum();
        assert_eq!(counted, number(&row["handled"], name), "{name} of {row}");
    }
    for (live, recorded) in SUMS {
        // Null: the recording has no events for it.
        let Some(in_recording) = row[recorded].as_u64() else { continue };
        let apart = sum(live).abs_diff(in_recording);
        assert!(apart <= paired * EACH_NS + ONCE_NS, "{live}: {} by top, {row}", sum(live));
    }
    let both = ["time_ns", "kernel_ns"].map(|name| format!("{} | {}", row[name], sum(name)));
    eprintln!("| {} | {paired} | {} |", row["reason"], both.join(" | "));
    paired
}

/// In level 1: the screen, in a terminal of telnetd; keys come through a fifo.
const SCREEN: &str = "
    mkfifo /tmp/keys
    printf '#!/bin/sh\ncd /tmp\nstty cols 110 rows 30\nexec hyperscope top\n' > /tmp/terminal
    chmod +x /tmp/terminal
    telnetd -F -b 127.0.0.1:2323 -l /tmp/terminal & server=$!
    sleep 1
    nc 127.0.0.1 2323 < /tmp/keys > /tmp/screen 2>/dev/null & terminal=$!
    exec 3>/tmp/keys
    until grep -q l2 /tmp/screen 2>/dev/null; do sleep 0.2; kill -0 $terminal || exit 1; done
    printf r >&3
    until grep -q report.html /tmp/screen; do sleep 0.5; kill -0 $terminal || exit 2; done
    until ls /tmp/*.hscope/report.html >/dev/null 2>&1; do sleep 0.5; kill -0 $terminal || exit 3; done
    sleep 2
    printf q >&3
    exec 3>&-
    wait $terminal
    kill $server
    mv /tmp/*.hscope /tmp/pressed
    ls /sys/kernel/tracing/instances";

#[test]
fn a_key_records_the_vm_under_the_cursor_and_makes_its_page() {
    if !can_run_all() {
        return;
    }
    let lab = TestLab::new("top-records");
    lab.up(&["--levels", "2"]);
    lab.put_program(1);
    let screen = Patient::start(lab.command(&["exec", "1", "--", "sh", "-c", SCREEN]));
    // Longer than the screen runs: some of it is in the 10 s.
    let work = "for turn in $(seq 400); do hyperscope-labguest exits hypercall=20 nap=5; done";
    let working = Patient::start(lab.command(&["exec", "2", "--", "sh", "-c", work]));
    let seen = screen.finish(WORKING);
    let screen = lab.shell(1, "tail -c 2000 /tmp/screen | cat -v").stdout;
    assert_eq!((seen.code, seen.stdout.as_str()), (Some(0), ""), "{}\n{screen}", seen.stderr);
    drop(working);
    let folder = tempfile::tempdir().unwrap();
    for file in ["host.dat", "session.json", "report.html"] {
        let (from, to) = (format!("/tmp/pressed/{file}"), folder.path().join(file));
        lab.run(&["get", "1", &from, to.to_str().unwrap()]).done();
    }
    let ran = hyperscope(&["exits", "--format", "json", folder.path().to_str().unwrap()]);
    let exits: Value = serde_json::from_str(&ran.stdout).unwrap();
    let rows = exits["rows"].as_array().unwrap();
    let hypercalls = rows.iter().find(|row| row["reason"] == "hypercall").unwrap();
    assert!(number(hypercalls, "count") > 20, "{hypercalls}");
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("hyperscope.report/1"));
}
