//! Experiments with real commands, and with runs that are made up.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_precision_loss)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use analyses::ab::{Ab, AbRun, AbSide, ab};
use experiment::{
    Configuration, Experiment, ExperimentError, Limits, Metric, Progress, Stop, Unwatched, run,
};
use stats::Chance;

fn experiment(a: &str, b: &str, workload: &str) -> Experiment {
    Experiment {
        configurations: [a, b]
            .map(|setup| Configuration { setup: setup.to_owned(), workload: None })
            .to_vec(),
        prepare: None,
        teardown: None,
        workload: vec![workload.to_owned()],
        metrics: Vec::new(),
        warmup: 1,
        stop: Stop::Blocks(4),
        budget: None,
        seed: 7,
        ignores_failures: false,
    }
}

fn done(experiment: &Experiment, timeout: Duration) -> Result<Ab, ExperimentError> {
    let stop = AtomicBool::new(false);
    run(experiment, Limits { timeout, stop: &stop }, &|_| (), &mut Unwatched)
}

const MINUTE: Duration = Duration::from_secs(60);

/// Each block has a run of either side, set up and taken back around it, in both orders.
#[test]
fn blocks_have_one_run_of_each() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let line = |what: &str| format!("echo {what} $HYPERSCOPE_SIDE >> {}", log.display());
    let all = Experiment {
        prepare: Some(line("prepare")),
        teardown: Some(line("teardown")),
        metrics: vec![Metric::parse("n=n=([0-9]+)").unwrap()],
        stop: Stop::Blocks(12),
        ..experiment(
            &line("setup"),
            &line("setup"),
            "if [ $HYPERSCOPE_SIDE = a ]; then echo n=10; else echo n=20; fi",
        )
    };
    let found = done(&all, MINUTE).unwrap();
    let order: Vec<AbSide> = found.runs.iter().map(|run| run.side).collect();
    let blocks: Vec<&[AbSide]> = order.chunks(2).collect();
    assert_eq!(blocks.len(), 12);
    assert!(blocks.iter().all(|block| block[0] != block[1]));
    assert!(blocks.iter().any(|block| block[0] == AbSide::A));
    assert!(blocks.iter().any(|block| block[0] == AbSide::B));
    let n = found.metrics.iter().find(|metric| metric.name == "n").unwrap();
    assert_eq!((n.means, n.deviations), ([10.0, 20.0], [Some(0.0), Some(0.0)]));
    assert_eq!(n.change.as_ref().unwrap().change.round(), 2.0);
    let log = std::fs::read_to_string(log).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    // With the block that warms up.
    assert_eq!(lines.len(), 13 * 2 * 3);
    for three in lines.chunks(3) {
        let side = three[0].split(' ').next_back().unwrap();
        assert_eq!(three, ["setup", "prepare", "teardown"].map(|what| format!("{what} {side}")));
    }
}

/// Each of several is compared with the first one, and all comparisons count where chance is adjusted for.
#[test]
fn several_are_compared_with_the_first() {
    let all = Experiment {
        configurations: vec![Configuration::default(); 3],
        metrics: vec![Metric::parse("n=n=([0-9]+)").unwrap()],
        stop: Stop::Blocks(8),
        ..experiment(
            "",
            "",
            "case $HYPERSCOPE_SIDE in a) echo n=10;; b) echo n=20;; c) echo n=5;; esac",
        )
    };
    let found = done(&all, MINUTE).unwrap();
    assert_eq!((found.sides, found.blocks(), found.runs.len()), (3, 8, 24));
    for block in found.runs.chunks(3) {
        let mut sides: Vec<&str> = block.iter().map(|run| run.side.name()).collect();
        sides.sort_unstable();
        assert_eq!(sides, ["a", "b", "c"]);
    }
    let n: Vec<_> = found.comparisons(3).collect();
    let means: Vec<_> = n.iter().map(|metric| (metric.side.name(), metric.means)).collect();
    assert_eq!(means, [("b", [10.0, 20.0]), ("c", [10.0, 5.0])]);
    assert!(n.iter().all(|metric| metric.is_significant()));
    assert_eq!(found.metrics.len(), 4 * 2);
}

/// A workload that hangs is ended with all that it started, and what was set up is taken back.
#[test]
fn what_hangs_is_ended_with_its_group() {
    let folder = tempfile::tempdir().unwrap();
    let (pid, after) = (folder.path().join("pid"), folder.path().join("after"));
    let hangs = Experiment {
        teardown: Some(format!("touch {}", after.display())),
        ..experiment("", "", &format!("sleep 1000 & echo $! > {}; wait", pid.display()))
    };
    let start = Instant::now();
    let error = done(&hangs, Duration::from_millis(700)).unwrap_err();
    assert!(error.to_string().contains("exceeded the timeout"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(30));
    assert!(after.exists());
    let child = std::fs::read_to_string(pid).unwrap();
    let status = format!("/proc/{}/status", child.trim());
    // Whoever takes it in may be slow.
    let is_gone =
        || !std::fs::read_to_string(&status).is_ok_and(|text| !text.contains("State:\tZ"));
    let waited = (0..100).any(|_| {
        is_gone() || {
            std::thread::sleep(Duration::from_millis(50));
            false
        }
    });
    assert!(waited, "{status}");
}

#[test]
fn failures_say_what_failed() {
    let failure_of = |experiment: Experiment| done(&experiment, MINUTE).unwrap_err().to_string();
    let workload = failure_of(experiment("", "", "echo broken pipe >&2; exit 3"));
    assert!(workload.contains("workload") && workload.contains("exit status: 3"), "{workload}");
    assert!(workload.contains("broken pipe"), "{workload}");
    let setup = failure_of(experiment("exit 1", "exit 1", "true"));
    let names = ["warm-up run 1 (A): setup: ", "warm-up run 1 (B): setup: "];
    assert!(names.iter().any(|name| setup.starts_with(name)), "{setup}");
    let metrics = vec![Metric::parse("rate=rate=([0-9]+)").unwrap()];
    let missing = failure_of(Experiment { metrics, ..experiment("", "", "echo none") });
    assert!(missing.contains("for the metric rate: none"), "{missing}");
    let program = vec!["/nonexistent/program".to_owned(), "x".to_owned()];
    let none = failure_of(Experiment { workload: program, ..experiment("", "", "") });
    assert!(none.contains("/nonexistent/program"), "{none}");
}

/// A run that fails ends it, and whole blocks before it stay; the runs of its own block don't.
#[test]
fn a_failure_keeps_whole_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let count = folder.path().join("count");
    let line = format!("echo >> {0}; [ $(wc -l < {0}) -lt 8 ] || exit 3", count.display());
    let all = Experiment { warmup: 0, stop: Stop::Blocks(10), ..experiment("", "", &line) };
    let found = done(&all, MINUTE).unwrap();
    assert_eq!((found.blocks(), found.is_interrupted), (3, false));
    let reason = found.ended_by.unwrap();
    assert!(reason.starts_with("run 8 (") && reason.contains(", block 4): workload: "), "{reason}");
}

/// A signal ends the run that is under way, not what was measured before.
#[test]
fn an_interrupt_keeps_whole_blocks() {
    let stop = AtomicBool::new(false);
    let all = Experiment { warmup: 0, stop: Stop::Blocks(1000), ..experiment("", "", "true") };
    let limits = Limits { timeout: MINUTE, stop: &stop };
    let begins = |progress: Progress| stop.store(progress.block > 5, Ordering::Relaxed);
    let found = run(&all, limits, &begins, &mut Unwatched);
    // A command that ends at once may end before anyone looks.
    let found = found.unwrap();
    assert!(found.runs.len() >= 10 && found.runs.len().is_multiple_of(2), "{}", found.runs.len());
}

#[test]
fn enough_is_when_the_interval_is_narrow() {
    let narrow = Experiment {
        stop: Stop::Width(0.9),
        budget: Some(MINUTE),
        ..experiment("", "", "sleep 0.01")
    };
    let found = done(&narrow, MINUTE).unwrap();
    assert!((6..40).contains(&(found.runs.len() / 2)), "{}", found.runs.len());
    let short = Experiment { budget: Some(Duration::ZERO), ..experiment("", "", "true") };
    assert_eq!(done(&short, MINUTE).unwrap().runs.len(), 2);
}

/// Runs of a machine that others use, too: times vary by some percent, now and then by half, and the machine gets
/// slower meanwhile.
fn made_up(seed: u64, blocks: usize, effect: f64) -> Ab {
    let mut chance = Chance::new(seed);
    let mut unit = move || chance.number() as f64 / u64::MAX as f64;
    let mut runs = Vec::new();
    for block in 1..=blocks {
        let busy = 1.0 + 0.3 * block as f64 / blocks as f64;
        let mut sides = [AbSide::A, AbSide::B];
        if unit() < 0.5 {
            sides.reverse();
        }
        for side in sides {
            let noise: f64 = (0..12).map(|_| unit()).sum::<f64>() - 6.0;
            let disturbed = if unit() < 0.02 { 1.3 } else { 1.0 };
            let factor = if side == AbSide::B { effect } else { 1.0 };
            let value = 1e9 * busy * factor * disturbed * (0.03 * noise).exp();
            runs.push(AbRun { side, block, values: vec![value] });
        }
    }
    ab(&["wall_ns".to_owned()], runs, 2)
}

/// 200 experiments without a difference, and 200 with one of 5%.
#[test]
fn false_alarms_are_few_and_effects_are_found() {
    let found = |effect: f64, first: u64| {
        (first..first + 200)
            .filter(|seed| made_up(*seed, 20, effect).metrics[0].is_significant())
            .count()
    };
    let alarms = found(1.0, 1);
    let slower = found(1.05, 1001);
    println!("{alarms} of 200 without a difference, {slower} of 200 with 5%");
    assert!(alarms <= 10, "{alarms}");
    assert!(slower >= 150, "{slower}");
}

/// What a run says of itself: the drift of the machine, and runs that stand out, which are kept.
#[test]
fn drift_and_outliers_are_shown() {
    let mut all = made_up(3, 20, 1.0);
    let metric = &all.metrics[0];
    let drift = metric.drift.unwrap();
    assert!((0.1..0.4).contains(&drift), "{drift}");
    for run in &mut all.runs {
        run.values[0] = 100.0 + run.block as f64 % 3.0;
    }
    all.runs[7].values[0] = 500.0;
    let again = ab(&["wall_ns".to_owned()], all.runs, 2);
    assert_eq!(again.metrics[0].outliers, [7]);
    assert!(
        again.metrics[0].means.iter().any(|mean| *mean > 110.0),
        "{:?}",
        again.metrics[0].means
    );
}
