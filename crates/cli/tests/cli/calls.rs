//! `hyperscope calls` on recordings of real function tracers: tables, JSON, CSV, stacks, flame graphs.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::schemas::{check, closed};
use crate::tool::{assert_golden, hyperscope, output_of, recordings, repository};

const GRAPH: &str = "fixtures/x86-svm/calls.dat";
const FUNCTIONS: &str = "fixtures/x86-svm/functions.dat";

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&output_of(&[&["calls", "--format", "json"], args].concat())).unwrap()
}

#[test]
fn every_recording_keeps_the_schema() {
    let schema = closed("calls");
    for path in recordings() {
        check(&schema, &json(&[&path]), &path);
    }
    for args in [&["--tree", GRAPH, FUNCTIONS][..], &["--correct", "500,300", GRAPH]] {
        check(&schema, &json(args), &args.join(" "));
    }
}

#[test]
fn tables_are_as_expected() {
    let tree = ["--tree", "--top", "12", "--pattern", "*apic*", GRAPH];
    for (name, args) in [
        ("x86-svm-calls.calls.txt", &tree[..]),
        ("x86-svm-calls.corrected.txt", &["--correct", "500,300", "--sort", "total", GRAPH]),
        ("x86-svm-functions.calls.txt", &[FUNCTIONS]),
    ] {
        assert_golden(name, &output_of(&[&["calls"], args].concat()));
    }
    let csv = output_of(&["calls", "--format", "csv", GRAPH]);
    let first: String = csv.split_inclusive('\n').take(12).collect();
    assert_golden("x86-svm-calls.calls.csv", &first);
}

#[test]
fn parts_add_up_with_and_without_correction() {
    for args in [&[GRAPH][..], &["--correct", "500,300", GRAPH]] {
        let report = json(args);
        let source = &report["sources"][0];
        let part = |name: &str| source[name].as_i64().unwrap_or(0);
        let parts = ["self_ns", "tracer_ns", "off_cpu_ns", "unaccounted_ns"].map(part);
        assert_eq!(parts.iter().sum::<i64>(), part("traced_ns"), "{args:?}");
        let functions = source["functions"].as_array().unwrap();
        let sum = |name: &str| -> i64 {
            functions.iter().filter_map(|function| function[name].as_i64()).sum()
        };
        assert_eq!((sum("self_ns"), sum("count")), (part("self_ns"), part("count")));
        let csv = output_of(&[&["calls", "--format", "csv"], args].concat());
        let column = |name: &str| -> i64 {
            column_of(&csv, name).filter_map(|cell| cell.parse::<i64>().ok()).sum()
        };
        for name in ["self_ns", "tracer_ns", "off_cpu_ns", "calls_made"] {
            assert_eq!(column(name), sum(name), "{name} {args:?}");
        }
    }
}

/// The cells of a CSV column whose cells contain no commas.
fn column_of<'c>(csv: &'c str, name: &str) -> impl Iterator<Item = &'c str> {
    let mut rows = csv.lines().map(|line| line.split(','));
    let at = rows.next().unwrap().position(|title| title == name).unwrap();
    rows.map(move |mut cells| cells.nth(at).unwrap())
}

/// The stacks contain the same times as the tables.
#[test]
fn stacks_add_up_to_self_times() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stacks");
    output_of(&["calls", "--folded", file.to_str().unwrap(), GRAPH]);
    let mut by_function: BTreeMap<String, u64> = BTreeMap::new();
    for line in fs::read_to_string(&file).unwrap().lines() {
        let (stack, time) = line.rsplit_once(' ').unwrap();
        let frames: Vec<&str> = stack.split(';').collect();
        assert_eq!(frames[..2], ["host", "CPU 0/KVM-108"], "{line}");
        *by_function.entry(frames.last().unwrap().to_string()).or_default() +=
            time.parse::<u64>().unwrap();
    }
    let off_cpu = by_function.remove("[off CPU]");
    let report = json(&[GRAPH]);
    let mut off_cpu_ns = 0;
    for function in report["sources"][0]["functions"].as_array().unwrap() {
        let name = function["name"].as_str().unwrap();
        let title = match function["module"].as_str() {
            Some(module) => format!("{name} [{module}]"),
            None => name.to_owned(),
        };
        off_cpu_ns += function["off_cpu_ns"].as_u64().unwrap();
        assert_eq!(
            by_function.remove(&title),
            function["self_ns"].as_u64().filter(|ns| *ns > 0),
            "{title}"
        );
    }
    assert_eq!((by_function.len(), off_cpu), (0, Some(off_cpu_ns)));
}

#[test]
fn the_flame_graph_of_the_guide_is_what_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flame.svg");
    output_of(&["calls", "--flame", file.to_str().unwrap(), GRAPH]);
    let picture = fs::read_to_string(&file).unwrap();
    testkit::assert_golden(repository().join("docs/images/flame.svg"), &picture);
    // The sum of self times and off-CPU times: the total is one frame.
    assert!(picture.contains("data-l=\"0.0000000\" data-w=\"1.0000000\" data-n=\"host\""));
    assert!(!picture.contains("http://") || picture.matches("http://").count() == 1);
}

#[test]
fn savings_are_shown_alone_and_together() {
    let report = json(&["--pattern", "kvm_*", "--pattern", "*", FUNCTIONS]);
    let savings = report["sources"][0]["savings"].as_array().unwrap();
    let all = report["sources"][0]["events"].as_u64().unwrap();
    let number = |at: usize, name: &str| savings[at][name].as_u64().unwrap();
    assert!(number(0, "events") < all && number(0, "events") == number(0, "cumulative_events"));
    assert_eq!((number(1, "events"), number(1, "cumulative_events")), (all, all));
    let found: Vec<&Value> = savings.iter().filter(|saving| saving["asked"] == false).collect();
    assert!(found.len() >= 3, "{found:?}");
    for pair in found.windows(2) {
        let count = |saving: &Value, name: &str| saving[name].as_u64().unwrap();
        let gain = count(pair[1], "cumulative_events") - count(pair[0], "cumulative_events");
        assert!(gain > 0 && gain <= count(pair[1], "events"), "{pair:?}");
    }
}

#[test]
fn what_is_wrong_is_reported() {
    for (args, word) in [
        (&["--correct", "5"][..], "120,90"),
        (&["--min-percent", "101", "--tree"], "percentage"),
        (&["--depth", "3"], "--tree"),
        (&["--sort", "name"], "total"),
    ] {
        let run = hyperscope(&[&["calls"], args, &[GRAPH]].concat());
        assert!(run.code == 2 && run.err.contains(word), "{args:?}: {}", run.err);
    }
    let run = hyperscope(&["calls", "--flame", GRAPH, GRAPH]);
    assert!(run.code == 1 && run.err.contains("is an input recording"), "{}", run.err);
    let none = output_of(&["calls", "fixtures/x86-vmx/smp.dat"]);
    assert!(none.contains("no calls were recorded"), "{none}");
}
