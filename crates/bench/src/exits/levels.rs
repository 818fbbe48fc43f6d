//! At every level of a lab: a tiny machine in it, and the program as a guest.

use std::time::Duration;

use exitcost::{Sheet, Way};
use lab::{Arch, Description, Lab, Session};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{BenchError, Result};
use crate::exits::Plan;
use crate::exits::ladder::{Ablation, Ladders};
use crate::exits::outcome::{Conditions, Outcome, Place};
use crate::shape;
use crate::surroundings::Surroundings;

/// How long a place may take. Deep down in emulation an exit takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(3600);
/// How long it takes to load modules.
const SHORT: Duration = Duration::from_secs(60);

/// The lab that a plan needs.
#[must_use]
pub fn description(plan: &Plan) -> Description {
    let mut description = Description::new(Arch::X86_64, plan.levels);
    if plan.counts_instructions {
        shape::count_instructions(&mut description);
    }
    description
}

/// Measures in a lab that is up as [`description`] says.
///
/// # Errors
/// When a machine, or the program in it, fails.
pub fn run_in_lab(plan: &Plan, lab: &Lab, tell: &dyn Fn(String)) -> Result<Outcome> {
    let surroundings = Surroundings::begin_in(lab)?;
    if let Some(ablation) = &plan.ablation {
        let mut ladders = Vec::new();
        for level in 1..=plan.levels {
            tell(format!("a machine in level {level}, one thing switched at a time"));
            ladders.push(ablate(plan, ablation, &mut lab.session(level)?)?);
        }
        return Ok(Outcome::new(Conditions::new(plan, surroundings), Vec::new(), ladders));
    }
    let mut places = Vec::new();
    for level in 1..=plan.levels {
        tell(format!("a machine in level {level}"));
        let mut session = lab.session(level)?;
        load_kvm(&mut session)?;
        places.push(place(plan, Way::Vm, format!("vm in level {level}"), &mut session)?);
    }
    for level in 2..=plan.levels {
        tell(format!("a program in level {level}"));
        let mut session = lab.session(level)?;
        places.push(place(plan, Way::Guest, format!("in level {level}"), &mut session)?);
    }
    Ok(Outcome::new(Conditions::new(plan, surroundings), places, Vec::new()))
}

/// The deepest machine hosts no guest, so the lab doesn't load KVM there. Where it doesn't load, rows say
/// that there is none.
fn load_kvm(session: &mut Session) -> Result<()> {
    let script = "[ -e /dev/kvm ] || { insmod /lab/modules/irqbypass.ko; insmod /lab/modules/kvm.ko; \
        insmod /lab/modules/kvm-amd.ko || insmod /lab/modules/kvm-intel.ko; }; true";
    session.check(&["sh", "-c", script], SHORT)?;
    Ok(())
}

fn ablate(plan: &Plan, ablation: &Ablation, session: &mut Session) -> Result<Ladders> {
    load_kvm(session)?;
    let asked = ablation.plan(&plan.kinds, plan.runs);
    let sheet = ask(session, "exit-ablation", &asked)?;
    let level = session.level();
    let name = format!("vm in level {level}");
    Ok(Ladders::new(name, Some(level), ablation, &plan.kinds, sheet))
}

fn place(plan: &Plan, way: Way, name: String, session: &mut Session) -> Result<Place> {
    let sheet: Sheet = ask(session, "exit-costs", &plan.of(way))?;
    Ok(Place::new(name, Some(session.level()), sheet))
}

/// Has the lab's program in a machine measure what a plan asks for.
fn ask<T: DeserializeOwned>(session: &mut Session, verb: &str, plan: &impl Serialize) -> Result<T> {
    const PROGRAM: &str = "hyperscope-labguest";
    let plan = serde_json::to_string(plan).map_err(BenchError::senseless(PROGRAM))?;
    let said = session.check(&[PROGRAM, verb, &plan], PATIENCE)?;
    serde_json::from_str(&said).map_err(BenchError::senseless(PROGRAM))
}
