//! Calls of functions as nested slices.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use super::export;
use crate::tool::output_of;

const CALLS: &str = "fixtures/x86-svm/calls.dat";

#[test]
fn callees_lie_within_their_callers() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calls.json");
    export("chrome", &file, &[CALLS]);
    let trace: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let slices = trace["traceEvents"].as_array().unwrap().iter();
    let ns = |value: &Value| (value.as_f64().unwrap() * 1000.0).round() as u64;
    let mut slices: Vec<(u64, u64, &str)> = slices
        .filter(|event| event["ph"] == "X" && event["cat"] == "call")
        .map(|event| {
            (
                ns(&event["ts"]),
                ns(&event["ts"]) + ns(&event["dur"]),
                event["name"].as_str().unwrap(),
            )
        })
        .collect();
    slices.sort_by_key(|&(from_ns, to_ns, _)| (from_ns, u64::MAX - to_ns));
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut ends_ns: Vec<u64> = Vec::new();
    for (from_ns, to_ns, name) in slices {
        ends_ns.retain(|end_ns| *end_ns > from_ns);
        assert!(ends_ns.last().is_none_or(|end_ns| to_ns <= *end_ns), "{name} at {from_ns}");
        ends_ns.push(to_ns);
        *counts.entry(name).or_default() += 1;
    }
    let report: Value =
        serde_json::from_str(&output_of(&["calls", "--format", "json", CALLS])).unwrap();
    let functions = report["sources"][0]["functions"].as_array().unwrap();
    for function in functions.iter().filter(|function| function["count"] != 0) {
        let name = function["name"].as_str().unwrap();
        let title = match function["module"].as_str() {
            Some(module) => format!("{name} [{module}]"),
            None => name.to_owned(),
        };
        assert_eq!(counts.get(title.as_str()).copied(), function["count"].as_u64(), "{title}");
    }
}
