//! Measures the cost of exits: here, or at every level of a lab.
//!
//! `labguest::exitcost` causes them and counts cycles; this module compares the systems.

mod boots;
mod counts;
mod ladder;
mod levels;
mod outcome;
mod render;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use labguest::exitcost::{ExitSource, Kind};

use crate::bench::error::{BenchError, Result};
use crate::bench::surroundings::Surroundings;

pub use self::counts::ReasonShare;
pub use self::ladder::{Ablation, Ladder, Ladders, Rung};
pub use self::levels::{description, run_in_lab};
pub use self::outcome::{Conditions, MeasuredSystem, Outcome, Row, Spread};

/// The plan.
#[derive(Clone, Debug)]
pub struct ExitsPlan {
    pub kinds: Vec<Kind>,
    pub runs: u32,
    /// Approximate length of a run.
    pub run: Duration,
    /// In a lab: number of machines, one inside the other.
    pub levels: u8,
    /// In a lab: whether its time counts instructions.
    pub counts_instructions: bool,
    /// Change settings one at a time, instead of measuring everything once.
    pub ablation: Option<Ablation>,
}

impl ExitsPlan {
    fn measure_options(&self, way: ExitSource) -> labguest::exitcost::MeasureOptions {
        let run_ms = u64::try_from(self.run.as_millis()).unwrap_or(u64::MAX);
        labguest::exitcost::MeasureOptions {
            way,
            kinds: self.kinds.clone(),
            runs: self.runs,
            run_ms,
        }
    }
}

/// Measures on this system. An ablation ends early when `stop` is set, and restores all settings.
///
/// # Errors
/// When nothing can be measured here.
pub fn run_here(plan: &ExitsPlan, way: ExitSource, stop: &AtomicBool) -> Result<Outcome> {
    let surroundings = Surroundings::begin();
    if let Some(ablation) = &plan.ablation {
        let options = ablation.plan(&plan.kinds, plan.runs);
        let sheet = labguest::exitcost::ablate(&options, stop).map_err(BenchError::Exits)?;
        let ladders = vec![Ladders::new("vm".into(), None, ablation, &plan.kinds, sheet)];
        return Ok(Outcome::new(Conditions::new(plan, 0, surroundings), Vec::new(), ladders));
    }
    let sheet =
        labguest::exitcost::measure(&plan.measure_options(way)).map_err(BenchError::Exits)?;
    let name = match way {
        ExitSource::Vm => "vm",
        ExitSource::Guest => "guest",
    };
    let places = vec![MeasuredSystem::new(name.into(), None, sheet)];
    Ok(Outcome::new(Conditions::new(plan, 0, surroundings), places, Vec::new()))
}
