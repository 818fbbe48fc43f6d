//! Measures in the lab whether suggestions of `hyperscope advice` save what they predict.
//!
//! Each switch has a side as advice finds it (A), a side as advice suggests it (B), and workloads. Predictions come
//! only from recordings of side A, and can be saved to a file before side B has ever run. Then both sides run in pairs,
//! in random order, and the savings of B are compared with the prediction.

mod judgement;
mod prediction;
mod recorded;
mod render;
mod side;
mod switches;

use lab::{Arch, Description, Lab};
use stats::Chance;

use crate::bench::error::Result;
use crate::bench::machines::BootedMachine;
use crate::bench::restarting_lab::{Folder, ProgressFn, RestartingLab};
use crate::bench::shape;
use crate::bench::surroundings::Surroundings;

pub use self::judgement::{Conditions, Measured, Outcome, Row};
pub use self::prediction::Prediction;
use self::recorded::AdvisedRun;
pub use self::switches::{SWITCHES, Switch, Workload};

/// The plan.
#[derive(Clone, Debug)]
pub struct AdvicePlan {
    /// The suggestions to test.
    pub switches: Vec<&'static Switch>,
    /// Number of runs of side A for predictions, and of pairs of runs.
    pub runs: u32,
    /// Seed of the order of sides.
    pub seed: u64,
    pub predicts_only: bool,
    /// Earlier predictions; `None`: predict first.
    pub predicted: Option<Vec<Prediction>>,
}

/// The required lab: its guests are started one after another.
///
/// Its time counts instructions, so that other work of this system does not affect the measurement.
#[must_use]
pub fn description() -> Description {
    let mut description = Description::new(Arch::X86_64, 2);
    description.started = 1;
    shape::count_instructions(&mut description);
    description
}

/// Predicts, and measures in a lab that is up as [`description`] specifies.
///
/// # Errors
/// When a machine, or a program in it, fails.
pub fn run(plan: &AdvicePlan, lab: &Lab, report: ProgressFn<'_>) -> Result<Outcome> {
    let surroundings = Surroundings::begin_in(lab)?;
    let folder = Folder::make()?;
    let prepare = |lab: &Lab| BootedMachine::host_of(lab);
    let mut check = Check {
        plan,
        lab,
        folder: &folder,
        machines: RestartingLab::new(lab, description(), report, &prepare),
        chance: Chance::new(plan.seed),
    };
    let mut rows = Vec::new();
    for switch in &plan.switches {
        rows.extend(check.of_switch(switch)?);
    }
    let repeated_runs = check.machines.repeated_runs;
    Ok(Outcome::new(Conditions::new(plan, repeated_runs, surroundings.end()), rows))
}

struct Check<'a> {
    plan: &'a AdvicePlan,
    lab: &'a Lab,
    folder: &'a Folder,
    machines: RestartingLab<'a, BootedMachine>,
    chance: Chance,
}

impl Check<'_> {
    /// Predictions for each workload, with measurements unless only predictions are requested.
    fn of_switch(&mut self, switch: &'static Switch) -> Result<Vec<Row>> {
        let predicted = match &self.plan.predicted {
            Some(all) => {
                all.iter().filter(|prediction| prediction.switch == switch.name).cloned().collect()
            }
            None => self.predict(switch)?,
        };
        if self.plan.predicts_only {
            return Ok(predicted.into_iter().map(Row::predicted).collect());
        }
        let [a, b] = self.pairs(switch)?;
        let row = |prediction: Prediction| {
            let at = switch
                .workloads
                .iter()
                .position(|workload| workload.name == prediction.workload)?;
            let row = Row::measured(prediction, a.get(at)?, b.get(at)?);
            (self.machines.report)(row.line());
            Some(row)
        };
        Ok(predicted.into_iter().filter_map(row).collect())
    }

    /// Predicts from recordings of side A.
    fn predict(&mut self, switch: &'static Switch) -> Result<Vec<Prediction>> {
        let mut runs = vec![Vec::new(); switch.workloads.len()];
        for at in 1..=self.plan.runs {
            self.side(switch, 0, &format!("predicting, {at} of {}", self.plan.runs), &mut runs)?;
        }
        let prediction_of = |(workload, runs): (&Workload, &Vec<AdvisedRun>)| {
            let prediction = Prediction::from_runs(switch, workload, runs);
            (self.machines.report)(prediction.line());
            prediction
        };
        Ok(switch.workloads.iter().zip(&runs).map(prediction_of).collect())
    }

    /// Runs of both sides, by workload.
    fn pairs(&mut self, switch: &'static Switch) -> Result<[Vec<Vec<AdvisedRun>>; 2]> {
        let mut all = [(); 2].map(|()| vec![Vec::new(); switch.workloads.len()]);
        for pair in 1..=self.plan.runs {
            let mut order = [0, 1];
            self.chance.shuffle(&mut order);
            for side in order {
                let Some(runs) = all.get_mut(side) else { continue };
                self.side(switch, side, &format!("pair {pair} of {}", self.plan.runs), runs)?;
            }
        }
        Ok(all)
    }

    /// One run of each workload, in a guest that is booted for them.
    fn side(
        &mut self,
        switch: &'static Switch,
        side: usize,
        what: &str,
        to: &mut [Vec<AdvisedRun>],
    ) -> Result<()> {
        let Some(setup) = switch.sides.get(side) else { return Ok(()) };
        let letter = if side == 0 { "A" } else { "B" };
        let name = format!("{}, {what}: side {letter}", switch.name);
        (self.machines.report)(name.clone());
        let (lab, folder) = (self.lab, self.folder.path());
        let ran =
            self.machines.run(&name, &mut |host| side::run(switch, setup, lab, host, folder))?;
        to.iter_mut().zip(ran).for_each(|(to, run)| to.push(run));
        Ok(())
    }
}
