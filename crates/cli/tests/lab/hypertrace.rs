//! A guest's module sends events to a stock host by hypercall, or in shared memory; they equal those of the
//! guest's own ftrace.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::recorded::hyperscope;
use crate::tool::{TestLab, can_run, can_run_all, folder, other_kernel};

/// The unit that the module's documentation states.
const UNIT_NS: i64 = 32;

/// Builds the module for the lab's kernel; reports missing headers or a missing compiler.
pub(crate) fn build_module() -> bool {
    build_module_for(&[])
}

/// Builds it for the kernel of another architecture, or for another release, whose modules are in a folder.
pub(crate) fn build_module_for(kernel: &[&str]) -> bool {
    let built = Command::new(repository().join("kmod/build"))
        .args(kernel)
        .env("HYPERSCOPE_LAB_DIR", folder())
        .env(
            "CARGO_TARGET_DIR",
            Path::new(env!("CARGO_BIN_EXE_hyperscope")).ancestors().nth(2).unwrap(),
        )
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&built.stderr).into_owned();
    // A module with a build error is a fault; a missing compiler is not.
    assert!(!stderr.contains("the module "), "{stderr}");
    if !built.status.success() {
        testkit::skip!("{stderr}");
    }
    built.status.success()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Events, one object per line.
pub(crate) fn lines(arguments: &[&str]) -> Vec<Value> {
    let printed = hyperscope(arguments).stdout;
    printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_stock_host_records_what_the_guest_records_itself() {
    if !can_run() {
        return;
    }
    let lab = TestLab::new("hypertrace");
    lab.run(&["up", "--levels", "2"]).done();
    if !build_module() {
        return;
    }
    let temporary = tempfile::tempdir().unwrap();
    let session = temporary.path().join("out");
    let session = session.to_str().unwrap();
    lab.run(&["run", "hypertrace", "-o", session]).done();
    let sent = lines(&["hypertrace", "--format", "jsonl", session]);
    let originals = lines(&["events", "--format", "jsonl", "-e", "sched:sched_switch", session]);
    let begin = assert_within(&sent, &originals);
    let hypercalls = lines(&["events", "--format", "jsonl", "-e", "kvm:kvm_hypercall", session]);
    let hypercalls = hypercalls.iter().filter(|event| event["fields"]["nr"] == 0x4853_0000).count();
    assert!(sent.len() > 1000, "{}", sent.len());
    assert!(sent.len() >= 4 * hypercalls, "{} events, {hypercalls} hypercalls", sent.len());
    let stamps =
        sent.iter().zip(&originals[begin..]).map(|(sent, original)| stamp(sent) - stamp(original));
    assert_late(stamps.collect());
    let each = sent.len() as f64 / hypercalls as f64;
    eprintln!("{} switches as the guest recorded them, {each:.1} a hypercall", sent.len());
}

/// Threads on the first CPU that switch to each other, and programs on the second that exchange bytes through
/// a pipe; meanwhile that CPU goes offline and online again.
const ON_TWO_CPUS: &str = "
    busy() {
        hyperscope-labguest measure ms=2000 switches=1000 > /dev/null &
        dd if=/dev/zero bs=64 count=4000 2>/dev/null | dd of=/dev/null bs=64 2>/dev/null
        wait
    }
    one=/sys/devices/system/cpu/cpu1/online
    insmod /lab/hyperscope_guest.ko channel=$channel probes=sched_switch || exit 1
    busy
    echo 0 > $one && busy && echo 1 > $one || exit 2
    busy
    rmmod hyperscope_guest";

#[test]
fn each_cpu_sends_its_own_also_one_that_was_off() {
    if !can_run_all() {
        return;
    }
    for (channel, shm, record) in
        [("hypercall", "", ""), ("shm", "shm_mib = 16\n", "guest_module = true\n")]
    {
        let temporary = tempfile::tempdir().unwrap();
        let (scenario, session) = (temporary.path().join("two.toml"), temporary.path().join("out"));
        let text = format!(
            "summary = 'two'\nlevels = 2\n[guest]\nmodule = true\ncpus = 2\n{shm}[record]\n{record}\
             events = ['kvm:kvm_entry', 'kvm:kvm_exit', 'kvm:kvm_hypercall']\n\
             guest_events = ['sched:sched_switch']\n[[step]]\ndo = 'run'\nlevel = 2\n\
             argv = ['sh', '-c', '''channel={channel}{ON_TWO_CPUS}''']\n"
        );
        std::fs::write(&scenario, text).unwrap();
        let session = session.to_str().unwrap();
        let lab = TestLab::new("hypertrace-cpus");
        lab.run(&["fetch"]).done();
        if !build_module() {
            return;
        }
        lab.run(&["run", scenario.to_str().unwrap(), "-o", session]).done();
        let sent = lines(&["hypertrace", "--format", "jsonl", session]);
        let originals =
            lines(&["events", "--format", "jsonl", "-e", "sched:sched_switch", session]);
        for cpu in 0..2 {
            let of_cpu = |all: &[Value]| {
                all.iter().filter(|event| event["cpu"] == cpu).cloned().collect::<Vec<_>>()
            };
            let (sent, originals) = (of_cpu(&sent), of_cpu(&originals));
            assert!(sent.len() > 200, "{channel}, CPU {cpu}: {}", sent.len());
            assert_within(&sent, &originals);
            eprintln!("{channel}: {} switches of CPU {cpu}, as it recorded them", sent.len());
        }
        let read = hyperscope(&["hypertrace", session]);
        for lost in ["no sense", "are missing", "missing events is unknown"] {
            assert!(!read.stderr.contains(lost), "{}", read.stderr);
        }
    }
}

/// The same in memory: with the guest's own times, and without a hypercall.
#[test]
fn what_is_stored_in_memory_is_what_the_guest_records_itself() {
    if !can_run_all() {
        return;
    }
    let lab = TestLab::new("hypertrace-shm");
    lab.run(&["up", "--levels", "2", "--guest-shm", "16"]).done();
    if !build_module() {
        return;
    }
    let temporary = tempfile::tempdir().unwrap();
    let session = temporary.path().join("out");
    let session = session.to_str().unwrap();
    lab.run(&["run", "hypertrace-shm", "-o", session]).done();
    let sent = lines(&["hypertrace", "--format", "jsonl", session]);
    let originals = lines(&["events", "--format", "jsonl", "-e", "sched:sched_switch", session]);
    let begin = assert_within(&sent, &originals);
    assert!(sent.len() > 1000, "{}", sent.len());
    assert!(lines(&["events", "--format", "jsonl", "-e", "kvm:kvm_hypercall", session]).is_empty());
    let read = hyperscope(&["hypertrace", session]);
    for lost in ["no sense", "are missing", "missing events is unknown", "own TSC", "out of order"]
    {
        assert!(!read.stderr.contains(lost), "{}", read.stderr);
    }
    // Both read the same counter, one after the other.
    let late =
        sent.iter().zip(&originals[begin..]).map(|(sent, original)| stamp(sent) - stamp(original));
    let mut late_ns: Vec<i64> = late.collect();
    late_ns.sort_unstable();
    let (min, median) = (late_ns[0], late_ns[late_ns.len() / 2]);
    assert!(min >= -UNIT_NS && median < 20_000, "{min} {median}");
    eprintln!("{} switches, {min} ns late at least, {median} in the median", sent.len());
    eprintln!("{}", read.stderr);
}

/// The sent events are a contiguous part of the guest's recording; returns where it begins.
pub(crate) fn assert_within(sent: &[Value], originals: &[Value]) -> usize {
    let first = |(_, original): &(usize, &Value)| sent[0]["fields"] == original["fields"];
    let begins = originals.iter().enumerate().filter(first).map(|(at, _)| at);
    let same = |begin: usize| {
        let pairs = sent.iter().zip(&originals[begin..]);
        pairs.take_while(|(a, b)| a["fields"] == b["fields"] && a["cpu"] == b["cpu"]).count()
    };
    let (length, begin) = begins.map(|begin| (same(begin), begin)).max().unwrap();
    assert_eq!(length, sent.len(), "{} is not {}", sent[length], originals[begin + length]);
    begin
}

pub(crate) fn stamp(event: &Value) -> i64 {
    event["ts_ns"].as_i64().unwrap()
}

/// No event is early, by more than a unit and the alignment's error; most are late by the time of an emulated
/// exit, all about equally.
pub(crate) fn assert_late(late_ns: Vec<i64>) {
    assert_late_by(late_ns, -2 * UNIT_NS);
}

/// The same with a larger error of the alignment.
pub(crate) fn assert_late_by(mut late_ns: Vec<i64>, at_least_ns: i64) {
    let mut steps_ns: Vec<i64> = late_ns.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    late_ns.sort_unstable();
    steps_ns.sort_unstable();
    let (min, median) = (late_ns[0], late_ns[late_ns.len() / 2]);
    let step = steps_ns[steps_ns.len() / 2];
    assert!(min >= at_least_ns, "{min}");
    assert!(median < 1_000_000, "{median}");
    assert!(step < 10_000, "{step}");
    eprintln!("late by {min} ns at least, {median} in the median; steps differ by {step} ns");
}

/// The load for an otherwise idle kernel; a kernel that checks all its locks, or one with a slow emulator,
/// gets a lighter one: if each function is another exit, walking through a folder takes minutes.
const BRISK: &str = "switches=2000 age=5 walk='ls -R /sys/bus'";
pub(crate) const EASY: &str = "switches=100 age=50 walk='ls /sys/bus /proc'";

/// Loads and unloads the module under load, with all its probes, by the channel in `$channel`.
const SOAK: &str = "
    dmesg -c > /dev/null
    hyperscope-labguest measure ms=600000 switches=$switches > /dev/null 2>&1 & load=$!
    at=/sys/module/hyperscope_guest/parameters/probes
    all=sched_switch,sched_waking,sched_wakeup,irq,syscalls,functions
    for turn in $(seq 100); do
        insmod /lab/hyperscope_guest.ko channel=$channel functions='vfs_*' probes=$all max_age_ms=$age || exit 1
        echo turn $turn > /dev/console
        $walk > /dev/null
        case $((turn % 4)) in
        1) echo sched_switch > $at && echo syscalls,irq > $at || exit 2;;
        2) echo > $at && echo functions > $at && echo $all > $at || exit 3;;
        3) ! echo nonsense > $at 2> /dev/null || exit 4;;
        esac
        rmmod hyperscope_guest || exit 5
    done
    kill $load
    # Modules from elsewhere and without a signature, which some kernels ask for: nothing else has happened.
    [ $(($(cat /proc/sys/kernel/tainted) | 8192)) = 12288 ] || exit 6
    ! dmesg | grep -iE 'warning|bug|oops|stall|call trace' || exit 7
    # Where the kernel watches its locks, it did so until now.
    [ ! -e /proc/lockdep_stats ] || { echo lockdep watches > /dev/console; grep 'debug_locks: *1$' /proc/lockdep_stats; } || exit 8";

#[test]
fn the_module_comes_and_goes_under_load() {
    let (name, channel) = ("hypertrace-soak", "hypercall");
    soak(&Soak { name, arch: "x86_64", channel, up: &[], record: "" });
}

#[test]
fn the_module_comes_and_goes_under_load_in_memory() {
    let up = &["--guest-shm", "16"];
    let record = "guest_module = true\n";
    soak(&Soak { name: "hypertrace-soak-shm", arch: "x86_64", channel: "shm", up, record });
}

/// How the module is loaded and unloaded.
pub(crate) struct Soak {
    /// The lab's name.
    pub(crate) name: &'static str,
    pub(crate) arch: &'static str,
    pub(crate) channel: &'static str,
    /// Further options of the machines.
    pub(crate) up: &'static [&'static str],
    /// Further events that the scenario records besides the host's hypercalls.
    pub(crate) record: &'static str,
}

fn soak(how: &Soak) {
    if !can_run_all() {
        return;
    }
    let lab = TestLab::new(how.name);
    let machines = ["up", "--levels", "2", "--arch", how.arch];
    let up_with = |kernel: &[&str]| lab.run(&[&machines, how.up, kernel].concat()).done();
    let other_kernel = other_kernel();
    let load = if other_kernel.is_some() { EASY } else { BRISK };
    let built = if let Some((kernel, modules)) = other_kernel {
        let (_, release) = modules.rsplit_once('/').unwrap();
        up_with(&["--guest-kernel", &kernel, "--guest-modules", &modules]);
        build_module_for(&[release, &modules])
    } else {
        up_with(&[]);
        build_module()
    };
    if !built {
        return;
    }
    comes_and_goes(&lab, how, load);
}

/// Runs this in a running lab, and reads the host's recording.
pub(crate) fn comes_and_goes(lab: &TestLab, how: &Soak, load: &str) {
    let Soak { arch, channel, up, record, .. } = how;
    let temporary = tempfile::tempdir().unwrap();
    let (scenario, session) = (temporary.path().join("soak.toml"), temporary.path().join("out"));
    let text = format!(
        "summary = 'soak'\nlevels = 2\n[guest]\nmodule = true\n{shm}[record]\n{record}\
         events = ['kvm:kvm_h*']\nbuffer_kib = 60000\n[[step]]\ndo = 'run'\nlevel = 2\n\
         argv = ['sh', '-c', '''channel={channel} {load}{SOAK}''']\n",
        shm = if up.contains(&"--guest-shm") { "shm_mib = 16\n" } else { "" },
    );
    std::fs::write(&scenario, text).unwrap();
    let (scenario, session) = (scenario.to_str().unwrap(), session.to_str().unwrap());
    lab.run(&["run", scenario, "--arch", arch, "-o", session]).done();
    let read = hyperscope(&["hypertrace", session]);
    for event in
        ["sched_switch:", "sched_waking:", "irq_handler_exit:", "sys_exit:", "function_entry:"]
    {
        assert!(read.stdout.contains(event), "no {event}");
    }
    for lost in ["no sense", "are missing", "missing events is unknown"] {
        assert!(!read.stderr.contains(lost), "{}", read.stderr);
    }
    eprintln!("{}", read.stderr);
}

/// KVM refuses a program's hypercalls, but traces them first.
#[test]
fn marks_of_programs_reach_the_host() {
    if !can_run_all() {
        return;
    }
    let lab = TestLab::new("marks");
    lab.run(&["up", "--levels", "2"]).done();
    let temporary = tempfile::tempdir().unwrap();
    lab.put_program(2);
    let long = "a text of more bytes than one hypercall has room for, with ä in it";
    let (scenario, session) = (temporary.path().join("marks.toml"), temporary.path().join("out"));
    let text = format!(
        "summary = 'marks'\nlevels = 2\n[record]\nevents = ['kvm:kvm_hypercall']\n[[step]]\n\
         do = 'run'\nlevel = 2\n\
         argv = ['sh', '-c', 'hyperscope mark begin && hyperscope mark {long} && hyperscope mark --here own']\n"
    );
    std::fs::write(&scenario, text).unwrap();
    let (scenario, session) = (scenario.to_str().unwrap(), session.to_str().unwrap());
    lab.run(&["run", scenario, "-o", session]).done();
    let marks = lines(&["hypertrace", "--format", "jsonl", session]);
    let texts: Vec<&Value> = marks.iter().map(|mark| &mark["fields"]["text"]).collect();
    assert_eq!(texts, ["begin", long]);
    let trace = lab.shell(2, "cat /sys/kernel/tracing/trace").done().stdout;
    assert!(trace.contains("tracing_mark_write: own"), "{trace}");
}
