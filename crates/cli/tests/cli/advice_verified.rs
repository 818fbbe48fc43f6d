//! Compares the statements about verified savings with the predictions and measurements in the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use analyses::advice::{RULES, VERIFIED, verified};
use serde_json::Value;

use crate::schemas::{check, closed};
use crate::tool::{output_of, repository};

fn read_rows(name: &str) -> Vec<Value> {
    let path = format!("docs/formats/bench-advice-{name}.json");
    let text = fs::read_to_string(repository().join(&path)).unwrap();
    let report: Value = serde_json::from_str(&text).unwrap();
    check(&closed("bench-advice"), &report, &path);
    report["rows"].as_array().unwrap().clone()
}

/// Predictions and the later measurements; each round has its own files.
const ROUNDS: [(&str, &str); 2] = [("predicted", "measured"), ("predicted-2", "measured-2")];

/// Measured rows, for each switch from its last round: rules were corrected between rounds.
fn standing() -> Vec<Value> {
    let mut rows: Vec<Value> = Vec::new();
    for (_, measured) in ROUNDS {
        let more = read_rows(measured);
        rows.retain(|row| more.iter().all(|new_row| new_row["switch"] != row["switch"]));
        rows.extend(more);
    }
    rows
}

fn number(row: &Value, name: &str) -> f64 {
    row[name].as_f64().unwrap_or_else(|| panic!("no {name}: {row:#}"))
}

fn median(values: &Value) -> f64 {
    let mut values: Vec<f64> =
        values.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

/// Verdicts follow from the numbers, and predictions equal the earlier file.
#[test]
fn measured_savings_are_held_against_what_was_predicted_before() {
    for (predicted, measured) in ROUNDS {
        let (predicted, measured) = (read_rows(predicted), read_rows(measured));
        assert_eq!(predicted.len(), measured.len());
        predicted.iter().zip(&measured).for_each(|(before, row)| verdict_follows(before, row));
    }
}

fn verdict_follows(before: &Value, row: &Value) {
    for (name, value) in before.as_object().unwrap() {
        // A number may change in its last digit when it is read and written again.
        let is_same = match (value.as_f64(), row[name].as_f64()) {
            (Some(a), Some(b)) => (a - b).abs() <= 1e-12 * a.abs(),
            _ => name == "measured" || *value == row[name],
        };
        assert!(is_same, "{name}: {before:#} {row:#}");
    }
    let got = &row["measured"];
    let saved = 1.0 - median(&got["b_ns"]) / median(&got["a_ns"]);
    assert!((saved - number(got, "saved")).abs() < 1e-9, "{row:#}");
    let (min, max) = (number(row, "least"), number(row, "most"));
    let resolution = number(row, "resolution");
    let is_in = saved >= min - resolution && saved <= max + resolution;
    let holds = if row["speaks"] == true { is_in } else { saved <= 2.0 * resolution };
    assert_eq!(got["holds"], holds, "{row:#}");
}

/// For at least six switches, with three workloads each, four in five savings are as predicted, and as many silences
/// are right.
#[test]
fn savings_of_enough_things_are_as_predicted() {
    let measured = standing();
    let held = |speaks: bool| {
        let rows: Vec<&Value> = measured.iter().filter(|row| row["speaks"] == speaks).collect();
        (rows.iter().filter(|row| row["measured"]["holds"] == true).count(), rows.len())
    };
    let switches: BTreeSet<&str> =
        measured.iter().map(|row| row["switch"].as_str().unwrap()).collect();
    assert!(switches.len() >= 6, "{switches:?}");
    let ((as_predicted, total), (right, silent)) = (held(true), held(false));
    assert!(total >= 18 && as_predicted * 5 >= total * 4, "{as_predicted} of {total}");
    assert!(silent >= 6 && right * 5 >= silent * 4, "{right} of {silent} silences");
}

/// The measurements confirm the rules' statements about themselves, and reports contain them.
#[test]
fn rules_say_how_often_their_savings_were_as_predicted() {
    let mut tally: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for row in standing().iter().filter(|row| row["speaks"] == true) {
        let counts = tally.entry(row["rule"].as_str().unwrap().to_owned()).or_default();
        *counts = (counts.0 + usize::from(row["measured"]["holds"] == true), counts.1 + 1);
    }
    let verified_counts = VERIFIED.iter().map(|verification| {
        (verification.rule.to_owned(), (verification.held, verification.predictions))
    });
    assert_eq!(verified_counts.collect::<BTreeMap<_, _>>(), tally);
    assert!(tally.keys().all(|name| RULES.iter().any(|rule| rule.name == name)));

    let mut seen = BTreeSet::new();
    for (file, is_svm) in [
        ("fixtures/arm64/B-vhost-off.dat", false),
        ("fixtures/x86-vmx/nested.dat", false),
        ("fixtures/x86-svm/host-guest.dat", true),
    ] {
        let text = output_of(&["advice", "--format", "json", file]);
        let report: Value = serde_json::from_str(&text).unwrap();
        for row in report["rows"].as_array().unwrap() {
            let expected = match verified(row["rule"].as_str().unwrap()) {
                Some(verification) if is_svm => format!(
                    "verified in the lab: {} of {}",
                    verification.held, verification.predictions
                ),
                // The lab switches nothing on these processors.
                Some(verification) => format!(
                    "saving not verified here, on SVM {} of {}",
                    verification.held, verification.predictions
                ),
                None => "saving not verified".to_owned(),
            };
            assert_eq!(row["checked"], expected, "{row:#}");
            seen.insert(expected.split(' ').take(4).collect::<Vec<_>>().join(" "));
            assert!(output_of(&["advice", file]).contains(&expected), "{expected}");
        }
    }
    assert_eq!(seen.len(), 3, "a rule of each kind speaks of these recordings: {seen:?}");
}
