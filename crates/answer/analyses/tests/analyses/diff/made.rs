//! Random runs: exits come in bursts, and their durations drift, as in real recordings.

use analyses::diff::{
    Diff, DiffRow, Estimator, KeyValue, Lost, MeasuredGroup, Metric, Options, Question, Run,
    RunInput, RunVm, Series, Stacks, Sums, Unit, diff,
};
use analyses::view::View;
use stats::Chance;

const fn metric(name: &'static str, unit: Unit, estimator: Estimator) -> Metric {
    Metric { name, short: name, unit, estimator, samples: None }
}

/// One metric of each kind.
pub(crate) static QUESTION: Question = Question {
    name: "made",
    columns: &["vm", "reason"],
    metrics: &[
        metric("count", Unit::CountPerSecond, Estimator::PerSecond(0)),
        metric("time", Unit::TimePerSecond, Estimator::PerSecond(1)),
        metric("mean", Unit::Time, Estimator::Per(1, 0)),
        metric("p50", Unit::Time, Estimator::Quantile(500)),
        metric("p99", Unit::Time, Estimator::Quantile(990)),
        metric("share", Unit::Share, Estimator::Share(1)),
    ],
    weight: 1,
    count: 0,
    aligned: false,
    sampled: false,
    measure: |_, _| Run {
        vms: Vec::new(),
        span_ns: (0, 0),
        groups: Vec::new(),
        wholes: Vec::new(),
        nanoseconds: true,
        lost: Lost::default(),
        calls: Vec::new(),
        stacks: Stacks::default(),
    },
    settle: |_| (),
};

pub(crate) const NOTHING: RunInput<'static> =
    RunInput { view: View::on_own_clocks(&[]), samples: &[] };

/// Parameters of random exits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    /// Mean number of exits per run.
    pub(crate) exits: f64,
    /// Median duration.
    pub(crate) median_ns: f64,
    /// Standard deviation of the durations' logarithm.
    pub(crate) spread: f64,
    /// Drift of rate and durations, as standard deviation of their logarithms.
    pub(crate) wander: f64,
    /// Persistence of the drift: its autocorrelation over a 25th of a second.
    pub(crate) memory: f64,
    /// Standard deviation of the logarithm between whole runs.
    pub(crate) between: f64,
}

const SPAN_NS: u64 = 10_000_000_000;
const STEPS: u64 = 250;

/// A normally distributed number, as a sum of twelve uniform ones.
pub(crate) fn normal(chance: &mut Chance) -> f64 {
    (0..12).map(|_| chance.below(1 << 30) as f64 / f64::from(1 << 30)).sum::<f64>() - 6.0
}

impl World {
    /// Independent exits.
    pub(crate) const INDEPENDENT: Self = Self {
        exits: 2000.0,
        median_ns: 50_000.0,
        spread: 0.8,
        wander: 0.0,
        memory: 0.0,
        between: 0.0,
    };
    /// Exits in phases of about a third of a second.
    pub(crate) const IN_PHASES: Self = Self { wander: 0.4, memory: 0.885, ..Self::INDEPENDENT };

    pub(crate) fn run(&self, seed: u64) -> Run {
        let mut chance = Chance::of_part(seed, 1);
        let mut series = Series::default();
        let mut total = Series::default();
        let (mut rate, mut slowness) = (normal(&mut chance), normal(&mut chance));
        let fresh = (1.0 - self.memory * self.memory).sqrt();
        let mut last = 0;
        let of_run = (self.between * normal(&mut chance)).exp();
        for step in 0..STEPS {
            rate = self.memory * rate + fresh * normal(&mut chance);
            slowness = self.memory * slowness + fresh * normal(&mut chance);
            let expected = self.exits / STEPS as f64
                * of_run
                * (self.wander * rate - self.wander * self.wander / 2.0).exp();
            for _ in 0..poisson(expected, &mut chance) {
                let at = step * (SPAN_NS / STEPS) + chance.below((SPAN_NS / STEPS) as usize) as u64;
                let log = self.spread * normal(&mut chance) + self.wander * slowness;
                let ns = (self.median_ns * of_run * log.exp()) as u64;
                add(&mut series, at, ns);
                add(&mut total, at, ns);
                last = last.max(at + ns);
            }
            // Exits of another reason, for the total of shares.
            add(&mut total, step * (SPAN_NS / STEPS), 100_000 + chance.below(200_000) as u64);
        }
        // A run lasts until the last of its other exits.
        let span_ns = (0, last.max(SPAN_NS));
        run(vec![(KeyValue::Text("made".to_owned()), series)], total, span_ns)
    }
}

pub(crate) fn run(groups: Vec<(KeyValue, Series)>, total: Series, span_ns: (u64, u64)) -> Run {
    let groups = groups.into_iter().map(|(reason, series)| MeasuredGroup {
        key: vec![KeyValue::Vm(0), reason],
        series,
        whole_index: Some(0),
        unrecorded: 0,
    });
    Run {
        vms: vec![RunVm { name: "vm".to_owned(), vcpus: 1 }],
        span_ns,
        groups: groups.collect(),
        wholes: vec![total],
        nanoseconds: true,
        lost: Lost::default(),
        calls: Vec::new(),
        stacks: Stacks::default(),
    }
}

pub(crate) fn add(series: &mut Series, at_ns: u64, ns: u64) {
    let mut sums = Sums::default();
    (sums[0], sums[1]) = (1, ns);
    series.add(at_ns, &sums, Some(ns));
}

/// A Poisson-distributed count (Knuth's algorithm, for small means).
pub(crate) fn poisson(mean: f64, chance: &mut Chance) -> u32 {
    let end = (-mean).exp();
    let (mut product, mut count) = (1.0, 0);
    loop {
        product *= chance.below(1 << 30) as f64 / f64::from(1 << 30);
        if product <= end {
            return count;
        }
        count += 1;
    }
}

pub(crate) fn compared(a: &[Run], b: &[Run], seed: u64) -> Diff {
    diff(&QUESTION, a, b, Options { alpha: 0.05, seed })
}

pub(crate) fn row<'d>(diff: &'d Diff, metric: &str) -> &'d DiffRow {
    let at = QUESTION.metrics.iter().position(|candidate| candidate.name == metric).unwrap();
    diff.rows.iter().find(|row| row.metric == at).unwrap()
}
