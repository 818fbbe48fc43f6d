//! Rare exits, and exits on only one side.

use analyses::diff::{KeyValue, Run, Scale, Series};
use stats::Chance;

use super::made::{add, compared, poisson, row, run};

/// A run of ten seconds with exits of 40 us at the given times, in addition to steady exits of another reason.
fn with_exits(events: &[u64]) -> Run {
    let mut series = Series::default();
    events.iter().for_each(|at| add(&mut series, *at, 40_000));
    let mut steady = Series::default();
    (0..1000).for_each(|step| add(&mut steady, step * 10_000_000, 30_000));
    let mut total = steady.clone();
    total.merge(&series);
    let named = |name: &str| KeyValue::Text(name.to_owned());
    let mut groups = vec![(named("steady"), steady)];
    if !events.is_empty() {
        groups.push((named("rare"), series));
    }
    run(groups, total, (0, 10_000_000_000))
}

fn scattered(count: u32, seed: u64) -> Run {
    let mut chance = Chance::new(seed);
    let events: Vec<u64> = (0..count).map(|_| chance.below(10_000_000_000) as u64).collect();
    with_exits(&events)
}

#[test]
fn rare_exits_that_fall_on_one_side_by_chance_are_no_difference() {
    let mut chance = Chance::new(5);
    let mut alarms = 0;
    for pair in 0..400 {
        let mean = [0.5, 2.0, 5.0][pair as usize % 3];
        let (a, b) = (poisson(mean, &mut chance), poisson(mean, &mut chance));
        let diff = compared(&[scattered(a, 2 * pair)], &[scattered(b, 2 * pair + 1)], pair);
        let rare = |row: &&analyses::diff::DiffRow| row.key[1] == KeyValue::Text("rare".into());
        let rates = diff.rows.iter().filter(rare).filter(|row| row.metric < 2);
        alarms += u32::from(rates.filter_map(|row| row.p).any(|p| p < 0.05));
    }
    // 5% of 400 are 20, for two correlated metrics.
    assert!(alarms <= 30, "{alarms} of 400");
}

#[test]
fn exits_of_one_side_have_a_difference_and_no_ratio() {
    let none = with_exits(&[]);
    let many = scattered(200, 1);
    for (a, b, sign) in [(&none, &many, 1.0), (&many, &none, -1.0)] {
        let diff = compared(std::slice::from_ref(a), std::slice::from_ref(b), 1);
        let found = row(&diff, "count");
        assert_eq!(found.key[1], KeyValue::Text("rare".into()), "the greatest effect comes first");
        assert_eq!(found.ratio, None);
        let (scale, low, high) = found.interval.unwrap();
        assert_eq!(scale, Scale::Difference);
        assert!(low < 20.0 * sign && 20.0 * sign < high && low * high > 0.0, "{found:?}");
        assert!(found.significant, "{found:?}");
        let mean = row(&diff, "mean");
        let (there, gone) = if sign > 0.0 { (&mean.b, &mean.a) } else { (&mean.a, &mean.b) };
        assert_eq!((there.value, gone.value), (Some(40_000.0), None));
        assert_eq!((mean.p, mean.significant), (None, false));
    }
}

#[test]
fn what_a_few_values_can_not_show_is_not_reported() {
    let diff = compared(&[with_exits(&[5])], &[with_exits(&[7])], 1);
    for metric in ["mean", "p50", "p99"] {
        let rare: Vec<_> =
            diff.rows.iter().filter(|row| row.key[1] == KeyValue::Text("rare".into())).collect();
        let at = super::made::QUESTION
            .metrics
            .iter()
            .position(|candidate| candidate.name == metric)
            .unwrap();
        let row = rare.iter().find(|row| row.metric == at).unwrap();
        assert_eq!((row.a.value, row.p, row.interval), (Some(40_000.0), None, None), "{metric}");
    }
}

#[test]
fn a_short_benchmark_in_a_long_recording_is_compared() {
    // 500 exits within a thousandth of a second: the slices are as narrow as the burst.
    let burst = |ns: u64, seed: u64| {
        let mut series = Series::default();
        let mut chance = Chance::new(seed);
        for step in 0..500 {
            let at = 4_000_000_000 + step * 2000;
            add(&mut series, at, ns + chance.below(500) as u64);
        }
        run(vec![(KeyValue::Text("cpuid".into()), series.clone())], series, (0, 10_000_000_000))
    };
    let diff = compared(&[burst(1000, 1)], &[burst(1100, 2)], 1);
    assert!(row(&diff, "mean").significant && row(&diff, "p50").significant);
    let same = compared(&[burst(1000, 1)], &[burst(1000, 3)], 1);
    assert!(!row(&same, "mean").significant && !row(&same, "p50").significant);
}

#[test]
fn the_same_run_twice_is_the_same() {
    let diff = compared(&[scattered(50, 1)], &[scattered(50, 1)], 1);
    assert!(diff.rows.iter().all(|row| !row.significant));
    assert!(diff.rows.iter().all(|row| row.ratio.is_none_or(|ratio| ratio == 1.0)));
    assert!(diff.rows.iter().all(|row| row.p.is_none_or(|p| p == 1.0)));
}

#[test]
fn results_come_again_from_their_seed() {
    let values = |seed| {
        let diff = compared(&[scattered(50, 1)], &[scattered(60, 2)], seed);
        diff.rows.iter().map(|row| row.p).collect::<Vec<_>>()
    };
    assert_eq!(values(1), values(1));
    assert_ne!(values(1), values(2));
}
