//! Compares change points with those of Apache Otava 0.8.0, on series with one deviation and known steps. `otava.json`
//! has the series, the positions of their steps, and the results of `compute_change_points` in `otava.analysis`:
//! `window_len` is twice the series, and `max_pvalue` is the level at which this crate tests a place, 0.05 over their
//! number.
//!
//! Otava searches for the two most different parts within a stretch, and stops dividing if they don't differ enough.
//! This crate divides as far as possible, then removes weak places, so it finds levels that come and go more often.

use fleet::change_points;
use serde_json::Value;

/// Series of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Agreement {
    series: usize,
    /// Both found the same changes at the same places.
    same: usize,
    /// This crate found the true steps, at most one value off.
    right: usize,
    /// Otava found the true steps.
    otava_right: usize,
}

fn places(value: &Value) -> Vec<usize> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|number| Some(number.as_u64()? as usize))
        .collect()
}

fn is_right(found: &[usize], steps: &[usize]) -> bool {
    let is_near = |(place, other): (&usize, &usize)| place.abs_diff(*other) <= 1;
    found.len() == steps.len() && found.iter().zip(steps).all(is_near)
}

fn agreement(series: &[Value], kind: &str) -> Agreement {
    let mut all = Agreement::default();
    for case in series.iter().filter(|case| case["kind"] == kind) {
        let values = case["values"].as_array().into_iter().flatten();
        let values: Vec<f64> = values.filter_map(Value::as_f64).collect();
        let ours: Vec<usize> = change_points(&values, 0.05).iter().map(|point| point.at).collect();
        let (otava, steps) = (places(&case["otava"]), places(&case["steps"]));
        all.series += 1;
        all.same += usize::from(ours == otava);
        all.right += usize::from(is_right(&ours, &steps));
        all.otava_right += usize::from(is_right(&otava, &steps));
    }
    println!("{kind}: {all:?}");
    all
}

/// The rates that docs/fleet.md states.
#[test]
fn change_points_are_those_of_otava_or_better() {
    let series: Vec<Value> = serde_json::from_str(include_str!("otava.json")).unwrap();
    let expected = [
        ("none", [36, 35, 35, 34]),
        ("step", [54, 44, 45, 45]),
        ("stairs", [54, 37, 36, 35]),
        ("stays a while", [54, 34, 36, 28]),
    ];
    for (kind, [count, same, right, otava_right]) in expected {
        let expected = Agreement { series: count, same, right, otava_right };
        assert_eq!(agreement(&series, kind), expected, "{kind}");
    }
}
