//! Change points held against those of another implementation: Apache Otava 0.8.0, on series of one deviation with
//! known steps. `otava.json` has the series, where their steps are, and what `compute_change_points` of
//! `otava.analysis` found: with `window_len` of twice the series, and as `max_pvalue` the level at which this crate
//! tests a place, 0.05 over their number.
//!
//! Otava looks for two parts that differ most within a stretch and stops dividing where they don't differ enough; this
//! crate divides as far as it goes, then takes out what does not stand. So it sees levels that come and go more often.

use fleet::change_points;
use serde_json::Value;

/// Series of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Agreement {
    series: usize,
    /// Both found the same changes at the same places.
    same: usize,
    /// This crate found the steps that there are, no more than one value off.
    right: usize,
    /// Otava did.
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

/// As docs/fleet.md says.
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
