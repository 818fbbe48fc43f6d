//! The cost of sampling a host or a guest for the guest's program, in counted instructions, and the cost of perf's own
//! recorders with the same load: the table of `docs/performance.md`.
//!
//! Level 1 has one processor, which runs guest, host and recorders, and its time is the number of instructions. So the
//! additional time of the guest's program is the complete cost of sampling, on both sides.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::recorded::agent;
use crate::tool::{TestLab, can_run_all};

/// System calls of the guest's program: 2 s of its time.
const LOAD: &str = "hyperscope-labguest subject syscalls=3000000";
/// Samples per second.
const HOST_HZ: u32 = 499;
const GUEST_HZ: u32 = 397;
/// An event that never happens here: recorders require at least one.
const NOTHING: &str = "kvm:kvm_hv_hypercall";
const ROUNDS: usize = 3;
/// The place of perf and its libraries in a machine, and its command line.
const PERF: &str = "/perf/lib/ld-linux-x86-64.so.2 --library-path /perf/lib /perf/perf";
const PERF_ARCHIVE: &str = "/tmp/perf.tgz";

/// A recorder that runs during the program.
struct Recorder {
    name: &'static str,
    level: u8,
    command: String,
    /// The sign that it records.
    is_ready: &'static str,
    /// Samples per second, and the row without sampling.
    samples: Option<(u32, &'static str)>,
}

/// The program's cost.
#[derive(Clone, Copy)]
struct Took {
    ns: f64,
    exits: f64,
}

/// Programs to measure: optimised ones, if they are named.
fn program(name: &str, otherwise: PathBuf) -> PathBuf {
    let named = std::env::var_os("HYPERSCOPE_UNDER_TEST").map(PathBuf::from);
    named.map_or(otherwise, |path| path.with_file_name(name))
}

/// Stock perf and its libraries, in an archive; `None`: it isn't installed here.
fn perf(folder: &Path) -> Option<PathBuf> {
    let perf = Path::new("/usr/bin/perf");
    if !perf.exists() {
        testkit::skip!("perf is not installed (apt install linux-perf)");
        return None;
    }
    let (tree, archive) = (folder.join("perf"), folder.join("perf.tgz"));
    fs::create_dir_all(tree.join("lib")).unwrap();
    fs::copy(perf, tree.join("perf")).unwrap();
    let needed = Command::new("ldd").arg(perf).output().unwrap().stdout;
    let needed = String::from_utf8(needed).unwrap();
    for library in needed.split_whitespace().filter(|word| word.starts_with('/')) {
        let name = Path::new(library).file_name().unwrap();
        fs::copy(library, tree.join("lib").join(name)).unwrap();
    }
    let packed =
        Command::new("tar").arg("-C").arg(&tree).arg("-czf").arg(&archive).arg(".").status();
    assert!(packed.unwrap().success());
    Some(archive)
}

fn recorders(with_perf: bool) -> Vec<Recorder> {
    let record = format!("hyperscope record -e {NOTHING} -o /tmp/r");
    let guest =
        "--guest l2=virtio-serial:/run/lab/l2 --guest-wait 180s --guest-event sched_process_exit";
    let (of_host, of_guest) =
        ("[ -e /tmp/r/host.pages/trace_clock ]", "[ -e /tmp/r/guest-l2.pages/trace_clock ]");
    let ours = |name, more: String, is_ready, samples| {
        let command = format!("{record} {more}");
        Recorder { name, level: 1, command, is_ready, samples }
    };
    let perf = |name, level, verb: &str, hz| Recorder {
        name,
        level,
        command: format!("{PERF} {verb} -a -g -e cpu-clock -F {hz} -o /tmp/r.data"),
        is_ready: "[ -s /tmp/r.data ]",
        samples: Some((hz, NONE)),
    };
    let sampled = format!("--sample {HOST_HZ} --sample-event cpu-clock");
    let mut all = vec![
        ours("record", String::new(), of_host, None),
        ours("record --sample", sampled, of_host, Some((HOST_HZ, "record"))),
        ours("record --guest", guest.into(), of_guest, None),
        ours(
            "record --guest-sample",
            format!("{guest} --guest-sample {GUEST_HZ}"),
            of_guest,
            Some((GUEST_HZ, "record --guest")),
        ),
    ];
    if with_perf {
        all.extend([
            perf("perf record -a, host", 1, "record", HOST_HZ),
            perf("perf kvm record -a, host", 1, "kvm --host --guest record", HOST_HZ),
            perf("perf record -a, guest", 2, "record", GUEST_HZ),
        ]);
    }
    all
}

/// The row without a recorder.
const NONE: &str = "nothing";

fn exits(lab: &TestLab) -> f64 {
    let output = lab.shell(1, "cat /sys/kernel/debug/kvm/exits").done().stdout;
    output.trim().parse().unwrap()
}

fn load(lab: &TestLab) -> Took {
    let before = exits(lab);
    let output = lab.shell(2, LOAD).done().stdout;
    let exits = exits(lab) - before;
    let looped: Value = serde_json::from_str(&output).unwrap();
    Took { ns: looped["duration_ns"].as_f64().unwrap(), exits }
}

fn measure(lab: &TestLab, recorder: &Recorder) -> Took {
    let Recorder { level, command, is_ready, .. } = recorder;
    // It has settled once it has read the earlier data.
    let begin = format!(
        "rm -rf /tmp/r /tmp/r.data; {command} >/tmp/log 2>&1 & echo $! >/tmp/pid; \
         until {is_ready}; do kill -0 $(cat /tmp/pid) || {{ cat /tmp/log; exit 1; }}; sleep 0.1; done; \
         sleep 4"
    );
    lab.shell(*level, &begin).done();
    let took = load(lab);
    let end = "kill -INT $(cat /tmp/pid); \
               while kill -0 $(cat /tmp/pid) 2>/dev/null; do sleep 0.1; done; cat /tmp/log";
    eprintln!("{}", lab.shell(*level, end).done().stdout);
    took
}

/// Mean, minimum and maximum of rounds.
fn spread(rounds: &[f64]) -> String {
    let (low, high) = rounds
        .iter()
        .fold((f64::MAX, f64::MIN), |(low, high), round| (low.min(*round), high.max(*round)));
    let mean = rounds.iter().sum::<f64>() / rounds.len() as f64;
    format!("{mean:.2} [{low:.2}, {high:.2}]")
}

/// Puts perf into both machines, if it is installed here; returns whether it is.
fn put_perf(lab: &TestLab) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let Some(archive) = perf(folder.path()) else { return false };
    for level in [1, 2] {
        let to = level.to_string();
        lab.run(&["put", &to, archive.to_str().unwrap(), PERF_ARCHIVE]).done();
        let unpack =
            format!("mkdir /perf && tar -C /perf -xzf {PERF_ARCHIVE} && rm {PERF_ARCHIVE}");
        lab.shell(level, &unpack).done();
    }
    true
}

/// A lab with all programs, and a waiting agent.
fn up() -> TestLab {
    let lab = TestLab::new("samplecosts");
    let up = ["up", "--levels", "2", "--cpus", "1", "--instruction-ns", "1", "--no-snapshot"];
    lab.run(&up).done();
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_hyperscope"));
    lab.put_stripped(1, &program("hyperscope", binary), "/bin/hyperscope");
    lab.put_stripped(2, &program("hyperscope-agent", agent()), "/bin/hyperscope-agent");
    let agent = "(hyperscope-agent virtio-serial >/tmp/agent.log 2>&1 &); \
                 until grep -q waiting /tmp/agent.log; do sleep 0.1; done";
    lab.shell(2, agent).done();
    lab
}

/// The cost of a sample in each round: instructions, and exits.
fn check_row(name: &str, hz: u32, with: &[Took], without: &[Took]) {
    let of_sample = |what: fn(&Took) -> f64| -> Vec<f64> {
        let pairs = with.iter().zip(without);
        pairs
            .map(|(with, without)| (what(with) - what(without)) / (with.ns / 1e9 * f64::from(hz)))
            .collect()
    };
    let (instructions, exits) = (of_sample(|took| took.ns), of_sample(|took| took.exits));
    eprintln!("| {name} | {} | {} |", spread(&instructions), spread(&exits));
    // Each sample of the host interrupts the guest once, and its own timer must be set again.
    assert!(instructions.iter().all(|cost| (500.0..100_000.0).contains(cost)), "{name}");
    assert!(exits.iter().all(|cost| (0.5..6.0).contains(cost)), "{name}");
}

#[test]
fn a_sample_costs_some_exits_and_instructions() {
    if !can_run_all() {
        return;
    }
    let lab = up();
    let recorders = recorders(put_perf(&lab));
    let mut nothing = Vec::new();
    let mut took: Vec<Vec<Took>> = recorders.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        nothing.push(load(&lab));
        for (recorder, took) in recorders.iter().zip(&mut took) {
            took.push(measure(&lab, recorder));
        }
    }
    for (recorder, rounds) in recorders.iter().zip(&took) {
        let Some((hz, without)) = recorder.samples else { continue };
        let without = recorders.iter().position(|other| other.name == without);
        check_row(recorder.name, hz, rounds, without.map_or(&nothing, |at| &took[at]));
    }
}
