//! Every report begins with its result in one sentence, and 80 columns keep what cannot be derived.

use crate::tool::command;

const HOST: &str = "fixtures/x86-svm/host-guest.dat";
const GUEST: &str = "fixtures/x86-svm/host-guest.guest.dat";
const NESTED: &str = "fixtures/x86-vmx/nested.dat";
const SMP: &str = "fixtures/x86-vmx/smp.dat";
const OFF: &str = "fixtures/arm64/B-vhost-off.dat";
const ON: &str = "fixtures/arm64/B-vhost-on.dat";
const BOOT: [&str; 2] = ["fixtures/x86-svm/boot.dat", "fixtures/x86-svm/boot.guest.dat"];
const CALLS: &str = "fixtures/x86-svm/calls.dat";
const FUNCTIONS: &str = "fixtures/x86-svm/functions.dat";
const VIRTIO: &str = "fixtures/x86-svm/virtio.guest.dat";
const TSC: [&str; 2] = ["fixtures/x86-svm/tsc.dat", "fixtures/x86-svm/tsc.guest.dat"];
const QEMU: &str = "fixtures/x86-svm/qemu.dat";

fn at_80_columns(args: &[&str]) -> String {
    let output = command().args(args).env("COLUMNS", "80").output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The first line with those that continue it.
fn first_sentence(text: &str) -> String {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default().to_owned();
    let continued = lines.take_while(|line| line.starts_with("  ") && !line.trim().contains("  "));
    continued.fold(first, |sentence, line| format!("{sentence} {}", line.trim()))
}

fn assert_begins(args: &[&str], wanted: &str) {
    let text = at_80_columns(args);
    assert_eq!(first_sentence(&text), wanted, "{args:?}:\n{text}");
}

#[test]
fn every_report_begins_with_a_sentence() {
    for args in [
        &["exits", HOST][..],
        &["exits", HOST, SMP, GUEST],
        &["exits", GUEST],
        &["exits", FUNCTIONS],
        &["nested", NESTED],
        &["nested", HOST, GUEST],
        &["cpu", HOST, GUEST],
        &["cpu", SMP],
        &["cpu", GUEST],
        &["cpu", FUNCTIONS],
        &["irqs", TSC[0], TSC[1]],
        &["irqs", SMP],
        &["path", ON],
        &["path", FUNCTIONS],
        &["critical", HOST],
        &["critical", HOST, "--request", "1:p50"],
        &["profile", HOST, GUEST],
        &["profile", "--by", "comm", HOST],
        &["profile", FUNCTIONS],
        &["calls", CALLS],
        &["calls", CALLS, FUNCTIONS],
        &["calls", SMP],
        &["boot", BOOT[0], BOOT[1]],
        &["boot", FUNCTIONS],
        &["virtio", VIRTIO],
        &["virtio", HOST],
        &["vmm", QEMU],
        &["vmm", GUEST],
        &["vmm", QEMU, SMP],
        &["diff", OFF, ON],
        &["diff", "path", OFF, ON],
        &["diff", "boot", OFF, ON],
        &["align", HOST, GUEST],
        &["align", HOST],
        &["info", HOST],
        &["info", HOST, GUEST],
        &["advice", HOST],
        &["advice", HOST, SMP],
    ] {
        let sentence = first_sentence(&at_80_columns(args));
        let is_one = sentence.ends_with('.') && !sentence.trim_end_matches('.').contains(". ");
        assert!(is_one, "{args:?}: {sentence}");
    }
}

#[test]
fn a_sentence_has_the_result_with_its_numbers() {
    assert_begins(
        &["exits", HOST],
        "fixtures/x86-svm/host-guest.dat: 1 vCPU of vm-119 made 9,034 exits in 10.2 s; 231 are waiting exits, the others cost \
         1.61 s of CPU time (15.79% of vCPU time), msr most (29.60%).",
    );
    assert_begins(
        &["exits", "fixtures/x86-vmx/vmm.dat"],
        "fixtures/x86-vmx/vmm.dat: 1 vCPU of vm-171 made 2,113 exits in 1.24 s; 50 are waiting exits, the others took 178 ms \
         (14.66% of vCPU time), IO_INSTRUCTION most (28.14%).",
    );
    assert_begins(
        &["cpu", HOST, GUEST],
        "fixtures/x86-svm/host-guest.dat, fixtures/x86-svm/host-guest.guest.dat: in 10.2 s, vCPU 0 of vm-119 used 5.76 s of CPU \
         time and waited 653 ms in the run queue, 274 ms of it for trace-cmd-127 (the recording).",
    );
    assert_begins(
        &["path", "fixtures/x86-vmx/vmm.dat"],
        "401 requests took 99.7 us at p50 and 151 us at p99; vcpu had the largest part of their time (100.00%).",
    );
    assert_begins(
        &["diff", OFF, ON],
        "17 of 40 comparisons of exits are significant: all cost_ns_per_s went from 10.7% to 43.8% (4.10x), among others.",
    );
}

/// What was not recorded is said, and no number stands for it.
#[test]
fn a_sentence_says_nothing_that_was_not_recorded() {
    let nested = "fixtures/x86-svm/nested.dat";
    let sentence = first_sentence(&at_80_columns(&["cpu", nested]));
    assert!(sentence.ends_with("; its run-queue wait was not recorded."), "{sentence}");
    let sentence = first_sentence(&at_80_columns(&["exits", nested]));
    assert!(sentence.contains("; they took ") && !sentence.contains("cost"), "{sentence}");
    let sentence = first_sentence(&at_80_columns(&["calls", FUNCTIONS]));
    assert!(!sentence.contains("took"), "{sentence}");
    assert_begins(&["align", HOST], "No pair of a guest's recording and its host's recording.");
    assert_begins(&["path", FUNCTIONS], "No complete request was found.");
    assert_begins(&["boot", FUNCTIONS], "No machine boots or shuts down in this recording.");
}

/// Titles of all columns that the text has.
fn has_columns(text: &str, titles: &[&str]) -> bool {
    let is_head = |line: &str| {
        let cells: Vec<&str> = line.split("  ").map(str::trim).collect();
        titles.iter().all(|title| cells.contains(title))
    };
    text.lines().any(is_head)
}

#[test]
fn what_cannot_be_derived_stays_at_80_columns() {
    let percentiles: &[&str] = &["p50", "p90", "p99"];
    for (args, titles) in [
        (&["exits", HOST][..], &["exits", "time", "cost", "p50", "p90", "p99", "max"][..]),
        (&["exits", HOST], &["before exit", "kernel", "user space", "run queue", "blocked"]),
        (&["exits", "fixtures/x86-vmx/vmm.dat"], percentiles),
        (&["cpu", SMP], &["exit kernel", "exit user", "run queue", "preempted", "blocked"]),
        (&["irqs", TSC[0], TSC[1]], &["own time", "host's", "p50", "p90", "p99"]),
        (&["virtio", VIRTIO], percentiles),
        (&["path", ON], percentiles),
        (&["vmm", QEMU], &["device", "way back", "waited"]),
        (&["boot", BOOT[0], BOOT[1]], &["exit time", "kernel", "user", "off CPU"]),
        (&["nested", NESTED], &["exits", "per exit", "factor", "time"]),
        (&["calls", CALLS], &["self", "off CPU", "total", "max"]),
        (&["diff", OFF, ON], &["A", "B", "B / A", "95% interval", "p adj."]),
    ] {
        let text = at_80_columns(args);
        assert!(has_columns(&text, titles), "{args:?} without {titles:?}:\n{text}");
    }
}

/// A legend is the end of the text, and explains no column that is hidden.
#[test]
fn a_legend_comes_last_and_explains_columns_that_are_there() {
    for columns in [60, 80, 100, 200] {
        let output = command().args(["exits", HOST]).env("COLUMNS", columns.to_string()).output();
        let text = String::from_utf8(output.unwrap().stdout).unwrap();
        let legend = text.rsplit("\n\n").next().unwrap().replace("\n  ", " ");
        assert!(legend.contains("run queue = runnable"), "{columns}: {text}");
        for (title, meaning) in [("sd", "sd = "), ("before exit", "before exit = "), ("±", "± = ")]
        {
            let is_there = has_columns(&text, &[title]);
            assert_eq!(legend.contains(meaning), is_there, "{columns}: {title}: {text}");
        }
        let tables = text.lines().filter(|line| has_columns(line, &["exits", "time%"])).count();
        assert_eq!(text.matches("time% of ").count(), tables, "{columns}: {text}");
    }
    let wide = at_80_columns(&["exits", HOST]);
    assert!(!has_columns(&wide, &["sd"]), "80 columns have no room for all");
}
