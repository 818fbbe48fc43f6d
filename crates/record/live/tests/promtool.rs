//! Prometheus' own tool reads what is written, and the rules and the dashboard that go with it.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Seek, Write};
use std::path::PathBuf;
use std::process::Command;

use live::metrics::{Format, Totals, page};
use live::{Histogram, Interval, Row, States, Sums, Vcpu};
use serde_json::{Value, json};
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
    let output = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{output}");
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
            states,
            waits: sums.clone(),
            ..Vcpu::default()
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
    let output = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && output.is_empty(), "{output}");
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

/// How many metrics a text names; each must be on the page.
fn metrics_asked_for(text: &str) -> usize {
    let page = String::from_utf8(page(&totals(), Format::Text)).unwrap();
    let mut count = 0;
    for word in text.split(|char: char| !char.is_ascii_alphanumeric() && !"_:".contains(char)) {
        if word.starts_with("hyperscope_") {
            count += 1;
            let is_there = page.lines().any(|line| {
                // A native histogram has the family's name.
                let rest = line.strip_prefix(word);
                let rest = rest.map(|rest| rest.strip_prefix("_bucket").unwrap_or(rest));
                rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
            });
            assert!(is_there, "{word}");
        }
    }
    count
}

#[test]
fn rules_ask_only_for_metrics_that_there_are() {
    let rules = include_str!("../../../../packaging/prometheus/hyperscope.rules.yaml");
    assert!(metrics_asked_for(rules) > 8);
}

/// The dashboard's panels, without its rows.
fn panels() -> Vec<Value> {
    let text = include_str!("../../../../packaging/grafana/hyperscope.json");
    let dashboard: Value = serde_json::from_str(text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().clone();
    panels.into_iter().filter(|panel| panel["type"] != "row").collect()
}

/// What a panel asks for, as Grafana sends it where no VM is chosen.
fn queries(panel: &Value) -> Vec<String> {
    let query = |target: &Value| {
        let expression = target["expr"].as_str().unwrap();
        let range = expression.replace("$__rate_interval", "1m").replace("$__range", "1h");
        range.replace("$instance", ".*").replace("$vm", ".*")
    };
    panel["targets"].as_array().unwrap().iter().map(query).collect()
}

#[test]
fn panels_of_the_dashboard_ask_for_what_there_is_and_none_lies_over_another() {
    let panels = panels();
    let mut cells = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for panel in &panels {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        let at = |name: &str| panel["gridPos"][name].as_u64().unwrap();
        assert!(at("x") + at("w") <= 24, "{panel}");
        for place in (0..at("w")).flat_map(|x| (0..at("h")).map(move |y| (x, y))) {
            assert!(cells.insert((at("x") + place.0, at("y") + place.1)), "{panel}");
        }
        for query in queries(panel) {
            assert!(metrics_asked_for(&query) > 0 && !query.contains('$'), "{query}");
        }
    }
    assert!(panels.len() > 15);
}

#[test]
fn queries_of_the_dashboard_are_promql() {
    let Some(mut check) = promtool() else { return };
    let rule = |(at, query): (usize, String)| json!({ "record": format!("q{at}"), "expr": query });
    let queries = panels().iter().flat_map(queries).collect::<Vec<_>>();
    let rules: Vec<Value> = queries.into_iter().enumerate().map(rule).collect();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(file, "{}", json!({ "groups": [{ "name": "dashboard", "rules": rules }] })).unwrap();
    check.args(["check", "rules"]).arg(file.path());
    accepted(check);
}
