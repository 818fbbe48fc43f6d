//! Instructions within functions, on real recordings: they add up to the functions that they are of.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::profile::{amount, inputs, json};
use crate::schemas::{check, closed};
use crate::tool::hyperscope;

/// What a row's innermost function is told apart by here: VM, vCPU, state, exit, module, name.
type Function = [String; 6];

/// Time by function. Where no function is known, addresses stand for it.
fn by_function(report: &Value) -> BTreeMap<Function, u64> {
    let mut sums = BTreeMap::new();
    for row in report["rows"].as_array().unwrap() {
        let leaf = row["stack"].as_array().unwrap().last();
        let of_leaf = |name: &str| leaf.map_or(Value::Null, |leaf| leaf[name].clone()).to_string();
        let key = [&row["vm"], &row["vcpu"], &row["state"], &row["reason"]].map(Value::to_string);
        let [vm, vcpu, state, reason] = key;
        let function = [vm, vcpu, state, reason, of_leaf("module"), of_leaf("symbol")];
        *sums.entry(function).or_default() += amount(row, "time");
    }
    sums
}

#[test]
fn instructions_add_up_to_their_functions_and_lie_in_them() {
    let validator = closed("profile");
    for files in inputs() {
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let by_instruction = json("profile", &[&["--by", "instruction"], &files[..]].concat());
        check(&validator, &by_instruction, &files.join(" "));
        let functions = json("profile", &[&["--raw"], &files[..]].concat());
        // The time of a state is shared out to places of code, in whole nanoseconds: by one more or less each.
        let rows = by_instruction["rows"].as_array().unwrap();
        let (found, expected) = (by_function(&by_instruction), by_function(&functions));
        assert_eq!(found.values().sum::<u64>(), expected.values().sum::<u64>(), "{files:?}");
        assert!(found.keys().eq(expected.keys()), "{files:?}");
        for (function, ns) in &found {
            let is_near = ns.abs_diff(expected[function]) <= rows.len() as u64;
            assert!(is_near, "{files:?} {function:?}: {ns}, not {}", expected[function]);
        }
        let rows = rows.iter();
        for leaf in rows.filter_map(|row| row["stack"].as_array()?.last()) {
            // The longest function of a kernel has some 100 KiB.
            let is_named = leaf["symbol"].is_string() && leaf["module"] != "[user]";
            assert!(!is_named || leaf["offset"].as_u64().unwrap() < 1 << 20, "{leaf}");
        }
    }
}

#[test]
fn one_function_is_shown_in_the_order_of_its_code() {
    let files = ["fixtures/x86-svm/tsc.dat", "fixtures/x86-svm/tsc.guest.dat"];
    let arguments = ["profile", "--by", "instruction", "--symbol", "*idle*", "--format", "csv"];
    let run = hyperscope(&[&arguments[..], &["--idle"], &files].concat());
    assert_eq!(run.code, 0, "{}", run.err);
    let mut rows = csv::Reader::from_reader(run.out.as_bytes());
    let headers = rows.headers().unwrap().clone();
    let place = |name: &str| headers.iter().position(|one| one == name).unwrap();
    let (function, offset) = (place("function"), place("offset"));
    let rows: Vec<csv::StringRecord> = rows.records().map(Result::unwrap).collect();
    assert!(!rows.is_empty() && rows.iter().all(|row| row[function].contains("idle")));
    assert!(rows.iter().all(|row| row[offset].parse::<u64>().is_ok()));
    let table = hyperscope(&[&arguments[..5], &["--idle"], &files].concat());
    assert!(table.out.contains("in *idle*, of which shares are"), "{}", table.out);
    assert!(table.out.contains("have no instruction: record --sample keeps"), "{}", table.out);
    let unknown = hyperscope(&[&arguments[..4], &["no_such_function"], &files].concat());
    assert_eq!((unknown.code, unknown.out.as_str()), (1, ""));
    assert!(unknown.err.contains("no sample is in a function no_such_function"), "{}", unknown.err);
}
