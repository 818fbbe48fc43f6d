//! Several runs per side: variation between runs counts, variation within runs does not.

use analyses::diff::Run;

use super::made::{World, compared, row};

/// Runs that randomly differ by 5%.
const WORLD: World = World { exits: 100.0, between: 0.05, ..World::INDEPENDENT };

fn runs(world: World, count: u64, seed: u64) -> Vec<Run> {
    (0..count).map(|run| world.run(seed * 100 + run)).collect()
}

fn false_alarms(a: u64, b: u64) -> f64 {
    let alarms = (0..200).filter(|pair| {
        let diff = compared(&runs(WORLD, a, 2 * pair), &runs(WORLD, b, 2 * pair + 1), *pair);
        row(&diff, "mean").p.unwrap() < 0.05
    });
    alarms.count() as f64 / 200.0
}

// 5% of 200 are 10; more than 20 (10%) have a probability of one in five hundred.

#[test]
fn equal_sets_of_runs_are_seldom_called_different() {
    for (a, b) in [(3, 3), (5, 5), (2, 6), (5, 1), (1, 3)] {
        let found = false_alarms(a, b);
        eprintln!("{a} against {b}: {found}");
        assert!(found <= 0.10, "{a} against {b}: {found}");
    }
}

#[test]
fn one_run_a_side_can_not_know_of_other_runs() {
    // The reason to record several runs: a single run does not show that the next one differs by 20%.
    let world = World { between: 0.2, exits: 3000.0, ..WORLD };
    let alarms = (0..50).filter(|pair| {
        let diff = compared(&[world.run(2 * pair)], &[world.run(2 * pair + 1)], *pair);
        row(&diff, "p50").p.unwrap() < 0.05
    });
    assert!(alarms.count() > 25);
}

#[test]
fn a_change_beyond_what_runs_vary_is_found() {
    let world = World { exits: 1000.0, ..WORLD };
    let slower = World { median_ns: 85_000.0, ..world };
    let diff = compared(&runs(world, 5, 1), &runs(slower, 5, 2), 1);
    let found = row(&diff, "mean");
    assert!(found.significant, "{found:?}");
    assert_eq!((found.a.runs, found.b.runs), (5, 5));
    assert!(found.a.sd.unwrap() > 0.0 && found.b.sd.unwrap() > 0.0);
    let test = found.permutation.unwrap();
    assert!((test.p - 2.0 / 252.0).abs() < 1e-12 && test.least == test.p);
    // The value is the mean of all runs, and the ratio is that of the means.
    let (a, b) = (found.a.value.unwrap(), found.b.value.unwrap());
    assert!((found.ratio.unwrap() - b / a).abs() < 1e-12);
}

#[test]
fn three_runs_a_side_are_judged_though_parting_them_again_can_not() {
    let world = World { exits: 1000.0, ..WORLD };
    let slower = World { median_ns: 100_000.0, ..world };
    let diff = compared(&runs(world, 3, 1), &runs(slower, 3, 2), 1);
    assert_eq!(diff.least_p, Some(0.1));
    let found = row(&diff, "mean");
    assert!(found.significant && found.permutation.unwrap().p == 0.1, "{found:?}");
}

#[test]
fn runs_that_are_all_the_same_do_not_differ() {
    let same: Vec<Run> = (0..7).map(|_| WORLD.run(1)).collect();
    let diff = compared(&same[..4], &same[4..], 1);
    assert!(diff.rows.iter().all(|row| row.p == Some(1.0) && row.ratio == Some(1.0)));
}
