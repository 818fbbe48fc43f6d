//! Small inputs that were once read wrong, each with the right result.

use serde_json::Value;

use crate::made_ctf::{self, CpuIn, MadeOrder};
use crate::tool::{hyperscope, output_of};

fn input(name: &str) -> String {
    format!("crates/cli/tests/inputs/{name}")
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&output_of(&[args, &["--format", "json"]].concat())).unwrap()
}

/// The document of a verb without the input's name.
fn without_name(verb: &str, path: &str) -> String {
    output_of(&[verb, "--format", "json", path]).replace(path, "INPUT")
}

#[test]
fn a_thread_that_perf_says_was_woken_is_the_one_that_runs() {
    let (ctf, text) = (input("perf-ctf-wakeups"), input("perf-ctf-wakeups.same.txt"));
    for path in [&ctf, &text] {
        let printed = output_of(&["cpu", path]);
        assert!(printed.contains("31.42%") && printed.contains("39.43%"), "{path}: {printed}");
        let paths = json(&["path", path]);
        assert_eq!(paths["requests"], 5, "{path}");
    }
    let critical = hyperscope(&["critical", "--task", "200", &ctf]);
    assert!(!critical.out.contains("no wake-up event"), "{}", critical.out);
}

#[test]
fn the_cpu_that_events_say_is_theirs() {
    let expected = without_name("cpu", &input("perf-ctf-cpu-in-packets"));
    assert_eq!(without_name("cpu", &input("perf-ctf-cpu-in-events")), expected);
    let printed = output_of(&["cpu", "--by", "cpu", &input("perf-ctf-cpu-in-events")]);
    assert!(printed.contains("76.92%") && printed.contains("23.08%"), "{printed}");
}

#[test]
fn cpus_are_found_wherever_a_trace_has_them() {
    for order in [MadeOrder::Little, MadeOrder::Big] {
        let folder = tempfile::tempdir().unwrap();
        let made = |cpu_in| {
            let path = folder.path().join(format!("{cpu_in:?}"));
            made_ctf::of_two_cpus(&path, order, cpu_in);
            path.to_str().unwrap().to_owned()
        };
        let lines = |path: &str| {
            let text = output_of(&["events", path]);
            text.replace("context_cpu_id=0 ", "")
                .replace("context_cpu_id=1 ", "")
                .replace("perf_cpu=0 ", "")
                .replace("perf_cpu=1 ", "")
        };
        let expected = lines(&made(CpuIn::Packets));
        assert_eq!(expected.lines().count(), 21);
        assert!(expected.starts_with("cpus=2\n") && expected.contains("[001]"), "{expected}");
        for cpu_in in
            [CpuIn::Events, CpuIn::Context, CpuIn::MixedStreams, CpuIn::EventsAgainstPackets]
        {
            assert_eq!(lines(&made(cpu_in)), expected, "{cpu_in:?} {order:?}");
        }
    }
}

#[test]
fn a_clock_beyond_64_bits_counts_from_its_own_zero() {
    let (beyond, plain) = (input("ctf-clock-beyond"), input("perf-ctf-cpu-in-packets"));
    for verb in ["cpu", "exits"] {
        assert_eq!(without_name(verb, &beyond), without_name(verb, &plain), "{verb}");
    }
    let info = output_of(&["info", &beyond]);
    assert!(info.contains("1351530929945824323 s, does not fit 64 bits of nanoseconds"), "{info}");
    let events = hyperscope(&["events", &beyond]);
    assert_eq!((events.code, events.out), (0, output_of(&["events", &plain])));
    assert!(events.err.contains("times count from the clock's zero"), "{}", events.err);
}

#[test]
fn a_threads_name_is_the_one_that_it_had_last() {
    let path = input("renamed-thread-that-moved.dat");
    let cpu = output_of(&["cpu", "--idle", &path]);
    assert!(cpu.contains("gcc-719") && !cpu.contains("bash-719"), "{cpu}");
    let critical = hyperscope(&["critical", "--task", "gcc", &path]);
    assert_eq!(critical.code, 0, "{}", critical.err);
    // Each line has the thread's name at its time.
    let lines = output_of(&["events", &path]);
    let renamed = lines.lines().position(|line| line.contains("gcc:719"));
    let of_thread = |line: &&str| line.trim_start().split(" [").next().unwrap().contains("-719");
    for (at, line) in lines.lines().enumerate().filter(|(_, line)| of_thread(line)) {
        let name = if Some(at) < renamed { "bash-719" } else { "gcc-719" };
        assert!(line.trim_start().starts_with(name), "{line}");
    }
}

#[test]
fn cpus_without_events_are_counted() {
    let path = input("six-cpus-four-idle.dat");
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.dat");
    let copy = copy.to_str().unwrap();
    output_of(&["export", "--to", "tracedat", "-o", copy, &path]);
    for path in [path.as_str(), copy] {
        assert_eq!(json(&["info", path])["files"][0]["cpus"], 6, "{path}");
        assert!(output_of(&["events", path]).starts_with("cpus=6\n"));
    }
}

#[test]
fn a_stack_has_as_many_frames_as_its_record() {
    let path = input("raw-kernel-stack");
    let lines = output_of(&["events", &path]);
    let frames: Vec<&str> =
        lines.lines().filter_map(|line| line.split_once("=> ")).map(|pair| pair.1).collect();
    assert_eq!(frames, ["alpha", "beta", "0xffffffff81000340"]);
    let event: Value =
        serde_json::from_str(&output_of(&["events", "--format", "jsonl", &path])).unwrap();
    let addresses = [0xffff_ffff_8100_0120_u64, 0xffff_ffff_8100_0230, 0xffff_ffff_8100_0340];
    assert_eq!(event["fields"]["caller"], serde_json::json!(addresses));
}

#[test]
fn exit_reasons_have_their_flags() {
    let exits = json(&["exits", &input("raw-exit-flags")]);
    let row = |row: &Value| {
        let reason = row["reason"].as_str().unwrap().to_owned();
        (reason, row["count"].as_u64().unwrap(), row["waiting"].as_bool().unwrap())
    };
    let mut rows: Vec<_> = exits["rows"].as_array().unwrap().iter().map(row).collect();
    rows.sort();
    let expected = [
        ("EPT_VIOLATION", 2, false),
        ("EPT_VIOLATION BUS_LOCK_DETECTED", 1, false),
        ("HLT", 1, true),
        ("HLT FAILED_VMENTRY", 1, false),
    ];
    assert_eq!(rows, expected.map(|(name, count, waits)| (name.to_owned(), count, waits)));
}

#[test]
fn riscv_exits_of_every_input_have_the_kernels_names() {
    let text = input("text-riscv.txt");
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.dat");
    let copy = copy.to_str().unwrap();
    output_of(&["export", "--to", "tracedat", "-o", copy, &text]);
    for path in [text.as_str(), copy] {
        let exits = json(&["exits", path]);
        let rows = exits["rows"].as_array().unwrap().iter();
        let mut reasons: Vec<&str> = rows.map(|row| row["reason"].as_str().unwrap()).collect();
        reasons.sort_unstable();
        assert_eq!(reasons, ["EXC_STORE_GUEST_PAGE_FAULT", "IRQ_S_TIMER"], "{path}");
    }
}
