//! Prometheus' own tool reads what is written, and the rules that go with it.

#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::{Seek, Write};
use std::path::PathBuf;
use std::process::Command;

use live::{Histogram, Interval, Row, States, Sums, Vcpu};
use metrics::{Format, Totals, page};
use timeline::Parts;
use timeline::VcpuActivity;
use timeline::arch::Isa;

fn promtool() -> Option<Command> {
    let has_it = Command::new("promtool").arg("--version").output().is_ok();
    if !has_it {
        testkit::skip!("promtool is not installed (apt install prometheus)");
    }
    has_it.then(|| Command::new("promtool"))
}

/// Accepts, and has nothing to say against it.
fn accepted(mut command: Command) {
    let done = command.output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
}

/// Two VMs, one with a name that needs escapes.
fn totals() -> Totals {
    let mut counts = [0; live::BUCKETS];
    counts[40..44].fill(2);
    let sums = Sums {
        count: 9,
        paired: 9,
        time_ns: 90_000,
        parts: Parts { kernel_ns: 60_000, user_ns: 30_000, ..Parts::default() },
        handled: [6, 3, 0],
        times: Histogram::new(counts, 9),
        ..Sums::default()
    };
    let mut interval = Interval { end_ns: 1_000_000_000, ..Interval::default() };
    interval.cost.programs_ns = Some(12_345);
    for vm in ["web", "a\"b\\c\n{d}"] {
        let mut states = States::default();
        states.give(VcpuActivity::Guest, 1_000_000_000);
        interval.vcpus.push(Vcpu {
            vm: vm.to_owned(),
            process: 1,
            vcpu: Some(0),
            thread: 2,
            gone: false,
            states,
            waits: sums.clone(),
        });
        for (reason, waiting) in [("hlt", true), ("npf", false)] {
            interval.rows.push(Row {
                vm: Some(vm.to_owned()),
                vcpu: None,
                level: 1,
                isa: Isa::Svm,
                code: None,
                reason: reason.to_owned(),
                waiting,
                sums: sums.clone(),
            });
        }
    }
    let mut totals = Totals::new(5_000);
    totals.add(&interval);
    totals
}

fn checked(text: &str) -> std::process::Output {
    let mut file: File = tempfile::tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.rewind().unwrap();
    Command::new("promtool").args(["check", "metrics"]).stdin(file).output().unwrap()
}

#[test]
fn metrics_are_read_without_a_remark() {
    if promtool().is_none() {
        return;
    }
    let text = String::from_utf8(page(&totals(), Format::Text)).unwrap();
    let done = checked(&text);
    let said = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.is_empty(), "{said}");
    // It would say so.
    assert!(!checked(&text.replacen("vm=\"web\"", "vm=web", 1)).status.success());
}

#[test]
fn rules_are_read_and_fire() {
    let Some(mut check) = promtool() else { return };
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../packaging/prometheus");
    check.args(["check", "rules", "hyperscope.rules.yaml"]).current_dir(&folder);
    accepted(check);
    let mut test = Command::new("promtool");
    test.args(["test", "rules", "hyperscope.rules.test.yaml"]).current_dir(&folder);
    accepted(test);
}

#[test]
fn rules_ask_only_for_metrics_that_there_are() {
    let rules = include_str!("../../../../packaging/prometheus/hyperscope.rules.yaml");
    let text = String::from_utf8(page(&totals(), Format::Text)).unwrap();
    let mut asked = 0;
    for word in rules.split(|char: char| !char.is_ascii_alphanumeric() && !"_:".contains(char)) {
        if word.starts_with("hyperscope_") {
            asked += 1;
            let is_there = text.lines().any(|line| {
                // A native histogram has the family's name.
                let rest = line.strip_prefix(word);
                let rest = rest.map(|rest| rest.strip_prefix("_bucket").unwrap_or(rest));
                rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
            });
            assert!(is_there, "{word}");
        }
    }
    assert!(asked > 8);
}
