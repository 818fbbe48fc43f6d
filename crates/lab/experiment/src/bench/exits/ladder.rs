//! Ladders: a kind of exit, step by step with one setting changed, and which steps are significant.

use labguest::exitcost::{AblationOptions, AblationSheet, Kind, StepSheet, System, Toggle};
use serde::Serialize;
use stats::{Chance, Estimate, holm, student_two_sided};

use crate::bench::exits::counts::ReasonShare;
use crate::bench::exits::outcome::Spread;

/// The settings to change.
#[derive(Clone, Debug)]
pub struct Ablation {
    /// Each step alone, or each in addition to those before it.
    pub toggles: Vec<Toggle>,
    /// Whether a step keeps the settings of the steps before it.
    pub is_cumulative: bool,
    /// Operations per run.
    pub operations: u64,
    /// Seed of the orders of steps.
    pub seed: u64,
    /// Whether the first machine's KVM also counts its exits by reason, in a lab.
    pub counts_exits: bool,
}

/// Ladders of one machine.
#[derive(Clone, Debug, Serialize)]
pub struct Ladders {
    /// Its name in tables.
    pub name: String,
    /// The level of the machine that ran the program; `None` outside of a lab.
    pub level: Option<u8>,
    /// Facts about the program's system.
    #[serde(flatten)]
    pub system: System,
    /// Whether a step is compared with the one before it, whose settings it keeps; otherwise with the first.
    pub is_cumulative: bool,
    /// Operations per run.
    pub operations: u64,
    /// Seed of the orders of steps.
    pub seed: u64,
    /// One for each kind.
    pub ladders: Vec<Ladder>,
}

/// A kind, step by step.
#[derive(Clone, Debug, Serialize)]
pub struct Ladder {
    pub kind: Kind,
    /// The first one changes nothing.
    pub steps: Vec<Rung>,
}

/// A step.
#[derive(Clone, Debug, Serialize)]
pub struct Rung {
    /// The last changed setting.
    pub name: String,
    /// Cycles per operation, in each round.
    pub cycles: Option<Spread>,
    /// Ratio to the mean of the first step.
    pub relative_to_first: Option<f64>,
    /// Additional cycles over the step that it is compared with, in the same round: mean and 95% interval.
    pub difference_cycles: Option<Estimate>,
    /// p-value of the difference, corrected for all steps of the ladder (Holm).
    pub p: Option<f64>,
    /// Whether that is below 5%.
    pub is_significant: Option<bool>,
    /// Exits of the first machine's KVM, if counted; most first.
    pub exits: Option<Vec<ReasonShare>>,
    /// Why it was not measured.
    pub not_measured: Option<String>,
}

impl Ablation {
    /// The plan of its steps, in random orders.
    pub(crate) fn plan(&self, kinds: &[Kind], rounds: u32) -> AblationOptions {
        let mut steps = vec![Vec::new()];
        for (at, toggle) in self.toggles.iter().enumerate() {
            let before = if self.is_cumulative { self.toggles.get(..at) } else { None };
            steps.push([before.unwrap_or_default(), std::slice::from_ref(toggle)].concat());
        }
        let mut chance = Chance::new(self.seed);
        let orders = (0..rounds).map(|_| {
            let mut order: Vec<usize> = (0..steps.len()).collect();
            chance.shuffle(&mut order);
            order
        });
        let orders = orders.collect();
        AblationOptions { kinds: kinds.into(), rounds, operations: self.operations, steps, orders }
    }
}

impl Ladders {
    /// From the results of this ablation's plan.
    pub(crate) fn new(
        name: String,
        level: Option<u8>,
        ablation: &Ablation,
        kinds: &[Kind],
        sheet: AblationSheet,
    ) -> Self {
        let names: Vec<String> = std::iter::once("nothing switched".to_owned())
            .chain(ablation.toggles.iter().map(Toggle::name))
            .collect();
        let ladder = |(at, &kind): (usize, &Kind)| Ladder {
            kind,
            steps: rungs(&names, &sheet.steps, at, ablation.is_cumulative),
        };
        Self {
            name,
            level,
            is_cumulative: ablation.is_cumulative,
            operations: ablation.operations,
            seed: ablation.seed,
            ladders: kinds.iter().enumerate().map(ladder).collect(),
            system: sheet.system,
        }
    }
}

/// The steps of the kind at this place in the plan.
fn rungs(names: &[String], steps: &[StepSheet], kind: usize, is_cumulative: bool) -> Vec<Rung> {
    let values = |step: &StepSheet| step.cycles.get(kind).cloned().unwrap_or_default();
    let first = steps.first().map(values).unwrap_or_default();
    let first_mean = stats::mean(&first).filter(|&mean| mean > 0.0);
    let mut against = None;
    let mut rungs: Vec<Rung> = Vec::new();
    for (name, step) in names.iter().zip(steps) {
        let cycles = values(step);
        let compared = against.as_ref().filter(|_| !cycles.is_empty());
        let differences = compared.map(|other: &Vec<f64>| {
            cycles.iter().zip(other).map(|(value, other)| value - other).collect::<Vec<f64>>()
        });
        let relative = first_mean.zip(stats::mean(&cycles)).map(|(first, mean)| mean / first);
        if !cycles.is_empty() && (is_cumulative || against.is_none()) {
            against = Some(cycles.clone());
        }
        rungs.push(Rung {
            name: name.clone(),
            relative_to_first: relative,
            difference_cycles: differences.as_deref().and_then(Estimate::from_values),
            p: differences.as_deref().and_then(chance),
            is_significant: None,
            exits: None,
            cycles: Spread::from_runs(cycles),
            not_measured: step.not_measured.clone(),
        });
    }
    judge(&mut rungs);
    rungs
}

/// p-value of Student's t-test that the mean difference of rounds is 0.
#[allow(clippy::cast_precision_loss, reason = "rounds are few")]
fn chance(differences: &[f64]) -> Option<f64> {
    let (mean, sd) = (stats::mean(differences)?, stats::standard_deviation(differences)?);
    if mean == 0.0 {
        return Some(1.0);
    }
    let n = differences.len() as f64;
    Some(student_two_sided((mean / (sd / n.sqrt())).abs(), n - 1.0))
}

/// Corrects the p-values of all steps for their number, and sets their significance.
fn judge(rungs: &mut [Rung]) {
    let all: Vec<f64> = rungs.iter().filter_map(|rung| rung.p).collect();
    let judged = rungs.iter_mut().filter(|rung| rung.p.is_some());
    for (rung, p) in judged.zip(holm(&all)) {
        (rung.p, rung.is_significant) = (Some(p), Some(p < 0.05));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(cycles: &[f64]) -> StepSheet {
        StepSheet { cycles: vec![cycles.into()], not_measured: None }
    }

    #[test]
    fn steps_are_compared_round_by_round_with_the_first_or_the_one_before() {
        let names = ["a", "b", "c", "d"].map(str::to_owned);
        let refused = StepSheet { cycles: Vec::new(), not_measured: Some("no".into()) };
        let steps = [
            step(&[100.0, 200.0, 300.0]),
            step(&[150.0, 249.0, 351.0]),
            refused,
            step(&[151.0, 250.0, 349.0]),
        ];
        let alone = rungs(&names, &steps, 0, false);
        assert_eq!(alone[0].difference_cycles, None);
        assert_eq!(alone[1].difference_cycles.unwrap().mean, 50.0);
        assert_eq!(alone[1].relative_to_first, Some(1.25));
        assert_eq!(alone[1].is_significant, Some(true));
        assert_eq!((alone[2].p, alone[2].is_significant), (None, None));
        assert_eq!(alone[3].difference_cycles.unwrap().mean, 50.0);
        let cumulative = rungs(&names, &steps, 0, true);
        assert_eq!(cumulative[3].difference_cycles.unwrap().mean, 0.0);
        assert_eq!(cumulative[3].is_significant, Some(false));
    }

    /// Expected value: `ttest_1samp([50, 49, 51], 0).pvalue` of scipy 1.17.
    #[test]
    fn a_chance_is_that_of_students_test() {
        assert!((chance(&[50.0, 49.0, 51.0]).unwrap() / 0.000_133_309 - 1.0).abs() < 1e-4);
        assert_eq!(chance(&[0.0, 0.0]), Some(1.0));
        assert_eq!(chance(&[5.0, 5.0]), Some(0.0));
        assert_eq!(chance(&[5.0]), None);
    }

    #[test]
    fn cumulative_steps_keep_what_was_switched() {
        let ablation = Ablation {
            toggles: vec![Toggle::NoIoeventfd, Toggle::NoIrqchip],
            is_cumulative: true,
            operations: 10,
            seed: 1,
            counts_exits: false,
        };
        let plan = ablation.plan(&[Kind::Cpuid], 3);
        assert_eq!(plan.steps[0], []);
        assert_eq!(plan.steps[2], [Toggle::NoIoeventfd, Toggle::NoIrqchip]);
        for mut order in plan.orders {
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2]);
        }
        let alone = Ablation { is_cumulative: false, ..ablation }.plan(&[Kind::Cpuid], 3);
        assert_eq!(alone.steps[2], [Toggle::NoIrqchip]);
    }
}
