//! Runs the steps of an ablation.
//!
//! Each round runs all steps in random order, each in a new machine: a drift over time affects all steps, and rounds
//! can be compared step by step.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use sys::guest_instructions::has_vmmcall;
use sys::kvm::Controllers;

use crate::exitcost::ablation_sheet::{AblationOptions, AblationSheet, StepSheet};
use crate::exitcost::host;
use crate::exitcost::kind::Kind;
use crate::exitcost::machine::{LONG, Machine, MachineError, SHORT, Setup};
use crate::exitcost::runs::{EMPTY, WARM_UP, net, per};
use crate::exitcost::toggle::Toggle;
use crate::exitcost::undo::Undo;
use crate::exitcost::vm;

/// The note of the changes in force, in a folder that only root can write.
const NOTE: &str = "/run/hyperscope-bench-exits.undo";

/// Measures; see [`crate::exitcost::ablate`].
pub(crate) fn ablate(
    options: &AblationOptions,
    stop: &AtomicBool,
) -> Result<AblationSheet, String> {
    let (_, long_mode) = vm::machine().map_err(|error| error.to_string())?;
    if !long_mode && options.kinds.iter().any(|kind| kind.needs_long_mode()) {
        return Err(vm::NO_CR8.into());
    }
    let kinds = options.kinds.len();
    let fresh = StepSheet { cycles: vec![Vec::new(); kinds], not_measured: None };
    let mut steps = vec![fresh; options.steps.len()];
    for order in options.orders.iter().take(options.rounds as usize) {
        for &at in order {
            if stop.load(Ordering::Relaxed) {
                return Err("interrupted; all settings are restored".into());
            }
            let (Some(toggles), Some(sheet)) = (options.steps.get(at), steps.get_mut(at)) else {
                continue;
            };
            if sheet.not_measured.is_some() {
                continue;
            }
            match step(options, toggles, long_mode) {
                Ok(cycles) => {
                    sheet.cycles.iter_mut().zip(cycles).for_each(|(all, value)| all.push(value));
                }
                Err(why) if at == 0 => return Err(why),
                Err(why) => *sheet = StepSheet { not_measured: Some(why), ..StepSheet::default() },
            }
        }
    }
    Ok(AblationSheet { system: host::system(), steps })
}

/// A run of each kind, with the step's settings.
fn step(
    options: &AblationOptions,
    toggles: &[Toggle],
    long_mode: bool,
) -> Result<Vec<f64>, String> {
    let mut undo = Undo::new(Path::new(NOTE)).map_err(|error| error.to_string())?;
    for toggle in toggles {
        toggle.apply(&mut undo).map_err(|error| error.to_string())?;
    }
    let has = |toggle: &Toggle| toggles.contains(toggle);
    let controllers = if has(&Toggle::NoIrqchip) { Controllers::User } else { Controllers::Kernel };
    let (has_doorbells, has_vhost) = (!has(&Toggle::NoIoeventfd), has(&Toggle::Vhost));
    let setup = Setup { long_mode, controllers, has_doorbells, has_vhost };
    let cycles = in_machine(options, setup).map_err(|error| error.to_string());
    undo.done();
    cycles
}

fn in_machine(options: &AblationOptions, setup: Setup) -> Result<Vec<f64>, MachineError> {
    let mut machine = Machine::new(setup, has_vmmcall())?;
    let empty = per(machine.batch(None, EMPTY, SHORT)?.cycles, EMPTY);
    let mut all = Vec::new();
    for &kind in &options.kinds {
        let count = kind.at_most(options.operations);
        machine.batch(Some(kind), WARM_UP.min(count), SHORT)?;
        let cycles = machine.batch(Some(kind), count, LONG)?.cycles;
        all.push(net(cycles, count, if kind == Kind::HltWake { 0.0 } else { empty }));
    }
    Ok(all)
}
