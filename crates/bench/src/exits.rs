//! What exits cost: here, or at every level of a lab.
//!
//! `exitcost` makes them and counts cycles; here places are put beside each other.

mod levels;
mod outcome;
mod render;

use std::time::Duration;

use exitcost::{Kind, Way};

use crate::error::{BenchError, Result};

pub use self::levels::{description, manner, run_in_lab};
pub use self::outcome::{Conditions, Outcome, Place, Row, Spread};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Which kinds.
    pub kinds: Vec<Kind>,
    /// Runs of each.
    pub runs: u32,
    /// How long a run takes, about.
    pub run: Duration,
    /// In a lab: machines, one inside the other.
    pub levels: u8,
    /// In a lab: whether its time is the number of instructions that it executes.
    pub counts_instructions: bool,
}

impl Plan {
    fn of(&self, way: Way) -> exitcost::Plan {
        let run_ms = u64::try_from(self.run.as_millis()).unwrap_or(u64::MAX);
        exitcost::Plan { way, kinds: self.kinds.clone(), runs: self.runs, run_ms }
    }
}

/// Measures on this system.
///
/// # Errors
/// When nothing can be measured here.
pub fn run_here(plan: &Plan, way: Way) -> Result<Outcome> {
    let before = crate::load::average();
    let sheet = exitcost::measure(&plan.of(way)).map_err(BenchError::Exits)?;
    let name = match way {
        Way::Vm => "vm",
        Way::Guest => "guest",
    };
    let places = vec![Place::new(name.into(), None, sheet)];
    Ok(Outcome::new(Conditions::new(plan, None, before), places))
}
