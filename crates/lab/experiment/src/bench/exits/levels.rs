//! Measures at every level of a lab: with a tiny machine in it, and with the program as a guest.

use std::time::Duration;

use lab::{Arch, Description, Lab, LabError, Session};
use labguest::exitcost::{ExitSource, Sheet};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bench::error::{BenchError, Result};
use crate::bench::exits::ExitsPlan;
use crate::bench::exits::boots::Boot;
use crate::bench::exits::outcome::{Conditions, MeasuredSystem, Outcome};
use crate::bench::restarting_lab::{ProgressFn, RestartingLab};
use crate::bench::shape;
use crate::bench::surroundings::Surroundings;

/// The program that measures in machines.
pub(super) const PROGRAM: &str = "hyperscope-labguest";
/// Max time of a measurement. At deep levels in emulation, an exit takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(900);
/// Max time to load modules.
const SHORT: Duration = Duration::from_secs(60);

/// The lab that a plan needs.
#[must_use]
pub fn description(plan: &ExitsPlan) -> Description {
    let mut description = Description::new(Arch::X86_64, plan.levels);
    if plan.counts_instructions {
        shape::count_instructions(&mut description);
    }
    description
}

/// Measures in a lab that is up as [`description`] specifies. If a machine hangs, its measurement is repeated in
/// restarted machines.
///
/// # Errors
/// When a machine, or the program in it, fails.
pub fn run_in_lab(plan: &ExitsPlan, lab: &Lab, report: ProgressFn<'_>) -> Result<Outcome> {
    let surroundings = Surroundings::begin_in(lab)?;
    let prepare = |lab: &Lab| (1..=plan.levels).map(|level| machine(lab, level)).collect();
    let restarting_lab = RestartingLab::new(lab, description(plan), report, &prepare);
    let mut levels = Levels { plan, restarting_lab };
    let (places, ladders) = match &plan.ablation {
        Some(ablation) => (Vec::new(), levels.ablate(ablation)?),
        None => (levels.places()?, Vec::new()),
    };
    let conditions = Conditions::new(plan, levels.restarting_lab.repeated_runs, surroundings);
    Ok(Outcome::new(conditions, places, ladders))
}

/// Prepares a machine for a tiny one in it. The lab does not load KVM in the deepest machine, which hosts no guest; if
/// KVM can't be loaded, rows report that.
fn machine(lab: &Lab, level: u8) -> Result<Session> {
    let mut session = lab.session(level)?;
    session.check(&[PROGRAM, "host"], SHORT)?;
    Ok(session)
}

/// A lab's machines, one inside the other.
pub(super) struct Levels<'a> {
    pub(super) plan: &'a ExitsPlan,
    restarting_lab: RestartingLab<'a, Vec<Session>>,
}

impl Levels<'_> {
    fn places(&mut self) -> Result<Vec<MeasuredSystem>> {
        let vms = (1..=self.plan.levels).map(|level| (ExitSource::Vm, level));
        let guests = (2..=self.plan.levels).map(|level| (ExitSource::Guest, level));
        let mut places = Vec::new();
        for (way, level) in vms.chain(guests) {
            let (name, what) = match way {
                ExitSource::Vm => (format!("vm in level {level}"), "a machine"),
                ExitSource::Guest => (format!("in level {level}"), "a program"),
            };
            (self.restarting_lab.report)(format!("{what} in level {level}"));
            let sheet: Sheet = self.ask(level, "exit-costs", &self.plan.measure_options(way))?;
            places.push(MeasuredSystem::new(name, Some(level), sheet));
        }
        Ok(places)
    }

    /// Reboots the lab's machines with these options, unless they have them already.
    pub(super) fn boot(&mut self, boot: &Boot) -> Result<()> {
        let mut wanted = description(self.plan);
        wanted.append.clone_from(&boot.line);
        wanted.guest.append.clone_from(&boot.guest_line);
        wanted.processor.clone_from(&boot.processor);
        self.restarting_lab.change(wanted)
    }

    /// Number of restarts of machines.
    pub(super) fn repeated_runs(&self) -> u32 {
        self.restarting_lab.repeated_runs
    }

    /// Reports progress.
    pub(super) fn report(&self, text: String) {
        (self.restarting_lab.report)(text);
    }

    /// Runs a command in a machine; returns its output.
    pub(super) fn check(&mut self, level: u8, command: &[&str]) -> Result<String> {
        self.restarting_lab.run(&format!("level {level}"), &mut |sessions: &mut Vec<Session>| {
            let Some(session) = sessions.get_mut(usize::from(level) - 1) else {
                return Err(LabError::Usage(format!("level {level} does not exist")).into());
            };
            Ok(session.check(command, PATIENCE)?)
        })
    }

    /// Runs a plan with the lab's program in a machine.
    pub(super) fn ask<T: DeserializeOwned>(
        &mut self,
        level: u8,
        verb: &str,
        plan: &impl Serialize,
    ) -> Result<T> {
        let plan = serde_json::to_string(plan).map_err(BenchError::malformed(PROGRAM))?;
        let output = self.check(level, &[PROGRAM, verb, &plan])?;
        serde_json::from_str(&output).map_err(BenchError::malformed(PROGRAM))
    }
}
