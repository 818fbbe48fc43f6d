//! Small inputs that were read wrong once, each with what is right.

use serde_json::Value;

use crate::tool::{hyperscope, output_of};

fn input(name: &str) -> String {
    format!("crates/cli/tests/inputs/{name}")
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&output_of(&[args, &["--format", "json"]].concat())).unwrap()
}

#[test]
fn a_threads_name_is_the_one_that_it_had_last() {
    let path = input("renamed-thread-that-moved.dat");
    let cpu = output_of(&["cpu", "--idle", &path]);
    assert!(cpu.contains("gcc-719") && !cpu.contains("bash-719"), "{cpu}");
    let critical = hyperscope(&["critical", "--task", "gcc", &path]);
    assert_eq!(critical.code, 0, "{}", critical.err);
    // Each line has the name of its time.
    let lines = output_of(&["events", &path]);
    let renamed = lines.lines().position(|line| line.contains("gcc:719"));
    let of_thread = |line: &&str| line.trim_start().split(" [").next().unwrap().contains("-719");
    for (at, line) in lines.lines().enumerate().filter(|(_, line)| of_thread(line)) {
        let name = if Some(at) < renamed { "bash-719" } else { "gcc-719" };
        assert!(line.trim_start().starts_with(name), "{line}");
    }
}

#[test]
fn a_stack_has_as_many_frames_as_its_record() {
    let path = input("raw-kernel-stack");
    let lines = output_of(&["events", &path]);
    let frames: Vec<&str> =
        lines.lines().filter_map(|line| line.split_once("=> ")).map(|one| one.1).collect();
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
