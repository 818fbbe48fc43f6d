//! Predicts the savings of a switch from recordings of its side A.

use serde::{Deserialize, Serialize};

use super::recorded::AdvisedRun;
use super::switches::{Switch, Workload};

/// Advice ignores anything that takes less than this share of the VM's time, and applies the same threshold to single
/// addresses. Smaller effects are not measurable, so they don't count in a verdict.
const RESOLUTION: f64 = 0.01;

/// The prediction for a switch and a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    pub switch: String,
    /// The rule of advice.
    pub rule: String,
    pub workload: String,
    /// Whether the rule gives advice, in most runs.
    pub speaks: bool,
    /// The base of the savings: time `outside` the guest, or `waiting` for a CPU.
    pub whole: String,
    /// Time of the base in side A: the median of runs.
    pub whole_ns: f64,
    /// Min share that is saved.
    pub least: f64,
    /// Max share that is saved.
    pub most: f64,
    /// Measurement error, as a share of the same base.
    pub resolution: f64,
    /// Number of recordings of side A.
    pub runs: u64,
}

impl Prediction {
    /// Predicts from runs of side A.
    pub(super) fn from_runs(switch: &Switch, workload: &Workload, runs: &[AdvisedRun]) -> Self {
        let spoke = runs.iter().filter(|run| run.advice_on(switch).pieces > 0).count();
        let speaks = spoke * 2 > runs.len();
        let whole_ns = |run: &AdvisedRun| run.whole_ns(switch.saving_of()) as f64;
        let share = |part: f64, run: &AdvisedRun| part / whole_ns(run).max(1.0);
        let median_of =
            |measure: &dyn Fn(&AdvisedRun) -> f64| median(runs.iter().map(measure).collect());
        let median_if_speaks =
            |measure: &dyn Fn(&AdvisedRun) -> f64| if speaks { median_of(measure) } else { 0.0 };
        Self {
            switch: switch.name.to_owned(),
            rule: switch.rule().to_owned(),
            workload: workload.name.to_owned(),
            speaks,
            whole: switch.whole_name().to_owned(),
            whole_ns: median_of(&whole_ns),
            least: median_if_speaks(&|run| share(run.advice_on(switch).least_ns as f64, run)),
            most: median_if_speaks(&|run| share(run.advice_on(switch).most_ns as f64, run)),
            resolution: median_of(&|run| share(RESOLUTION * run.spent.running_ns as f64, run)),
            runs: runs.len() as u64,
        }
    }

    /// Whether savings match the prediction; without advice, whether there were no measurable savings.
    #[must_use]
    pub fn holds(&self, saved: f64) -> bool {
        if self.speaks {
            saved >= self.least - self.resolution && saved <= self.most + self.resolution
        } else {
            // Both compared runs have this error.
            saved <= 2.0 * self.resolution
        }
    }

    pub(super) fn line(&self) -> String {
        let Self { switch, workload, whole: denominator, .. } = self;
        if self.speaks {
            let (min, max) = (self.least * 100.0, self.most * 100.0);
            format!(
                "{switch}, {workload}: saves {min:.1}% to {max:.1}% of time {denominator}, is predicted"
            )
        } else {
            format!("{switch}, {workload}: no advice")
        }
    }
}

/// The median of some values; 0 if there are none.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    stats::median(&mut values).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn predicted(speaks: bool) -> Prediction {
        let name = String::new;
        Prediction {
            switch: name(),
            rule: name(),
            workload: name(),
            speaks,
            whole: name(),
            whole_ns: 1e6,
            least: if speaks { 0.2 } else { 0.0 },
            most: if speaks { 0.4 } else { 0.0 },
            resolution: 0.02,
            runs: 3,
        }
    }

    #[test]
    fn a_saving_lies_in_its_interval_or_not() {
        let outcomes = [0.17, 0.19, 0.3, 0.41, 0.43].map(|saved| predicted(true).holds(saved));
        assert_eq!(outcomes, [false, true, true, true, false]);
        let silent = [-0.5, 0.0, 0.04, 0.05].map(|saved| predicted(false).holds(saved));
        assert_eq!(silent, [true, true, true, false]);
    }

    #[test]
    fn medians_are_in_the_middle() {
        assert_eq!([vec![3.0, 1.0, 2.0], vec![4.0, 1.0], vec![]].map(median), [2.0, 2.5, 0.0]);
    }
}
