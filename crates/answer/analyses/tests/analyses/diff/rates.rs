//! One run per side: false positives, coverage, power.

use analyses::diff::Scale;

use super::made::{QUESTION, World, compared, row};

/// Number of pairs of runs; `HYPERSCOPE_PAIRS` sets more, as for the table in docs/diff.md.
fn pairs() -> u64 {
    std::env::var("HYPERSCOPE_PAIRS").ok().and_then(|pairs| pairs.parse().ok()).unwrap_or(100)
}

/// Share of pairs of equal runs with p below 0.05, by metric. These are the pairs whose interval excludes a ratio
/// of 1, so the coverage is 1 minus this share.
fn false_alarms(world: World) -> Vec<(&'static str, f64)> {
    let mut alarms = vec![0u32; QUESTION.metrics.len()];
    for pair in 0..pairs() {
        let diff = compared(&[world.run(2 * pair)], &[world.run(2 * pair + 1)], pair);
        for (alarms, metric) in alarms.iter_mut().zip(QUESTION.metrics) {
            let row = row(&diff, metric.name);
            let (scale, low, high) = row.interval.unwrap();
            assert_eq!(scale, Scale::Ratio);
            let p = row.p.unwrap();
            let left_out = low > 1.0 || high < 1.0;
            // The test for rare counts may only increase p.
            assert!(p >= 0.0499 || left_out, "{row:?}");
            *alarms += u32::from(left_out);
        }
    }
    let share = |alarms: &u32| f64::from(*alarms) / pairs() as f64;
    QUESTION.metrics.iter().map(|metric| metric.name).zip(alarms.iter().map(share)).collect()
}

fn check(world: World, max: f64) {
    let found = false_alarms(world);
    eprintln!("{} pairs: {found:?}", pairs());
    assert!(found.iter().all(|(_, share)| *share <= max), "{found:?}");
    assert!(found.iter().any(|(_, share)| *share > 0.0), "never wrong: too careful? {found:?}");
}

// 5% of 100 pairs are 5; more than 12 have a probability of one in seven hundred.

#[test]
fn equal_runs_are_seldom_called_different() {
    check(World::INDEPENDENT, 0.12);
}

#[test]
fn phases_are_not_taken_for_differences() {
    check(World::IN_PHASES, 0.12);
}

/// Ten seconds contain only a few phases of a second: too few to show their variation. docs/diff.md warns of this.
#[test]
fn phases_as_long_as_a_second_need_longer_recordings() {
    check(World { memory: 0.96, ..World::IN_PHASES }, 0.25);
}

#[test]
fn few_exits_are_not_either() {
    check(World { exits: 1100.0, spread: 1.2, ..World::INDEPENDENT }, 0.12);
}

/// Tests that ignore phases fail here, which is the reason for blocks.
#[test]
fn without_blocks_phases_would_be_differences() {
    let world = World::IN_PHASES;
    let alarms = (0..100).filter(|pair| {
        let side = |seed| {
            let run = world.run(seed);
            let durations = run.groups[0].series.durations().clone();
            let error = durations.standard_deviation().unwrap() / (durations.count() as f64).sqrt();
            stats::Side { value: durations.mean().unwrap(), error, freedom: 1e6 }
        };
        stats::compare(&side(2 * pair), &side(2 * pair + 1), 0.05).p < 0.05
    });
    assert!(alarms.count() > 25);
}

#[test]
fn a_change_of_a_quarter_is_found_and_reported() {
    let slower = World { median_ns: 62_500.0, ..World::INDEPENDENT };
    let mut inside = 0;
    for pair in 0..40 {
        let a = World::INDEPENDENT.run(pair);
        let diff = compared(&[a], &[slower.run(pair + 1000)], pair);
        for metric in ["time", "mean", "p50"] {
            let row = row(&diff, metric);
            assert!(row.significant, "{metric}: {row:?}");
            let (_, low, high) = row.interval.unwrap();
            inside += u32::from(low < 1.25 && 1.25 < high);
        }
        assert!(!row(&diff, "count").significant || row(&diff, "count").p_adjusted.unwrap() < 0.05);
    }
    assert!(inside > 100, "the true ratio is in {inside} of 120 intervals of 95%");
}
