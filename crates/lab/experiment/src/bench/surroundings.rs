//! The conditions of a measurement: who executed the machines, and how busy this system was.

use std::fs;

use lab::{Accelerator, Lab};
use report::plural;
use serde::Serialize;

use crate::bench::error::Result;

/// What measurements of all kinds report of the system.
#[derive(Clone, Debug, Serialize)]
pub struct Surroundings {
    /// What executes the lab's first machine; none outside of a lab.
    pub accelerator: Option<Accelerator>,
    /// Whether the lab's time is the number of instructions that it executes: a nanosecond each.
    pub counts_instructions: bool,
    /// Load average of this system over a minute, before and after (`/proc/loadavg`).
    pub load_average: [f64; 2],
    /// Processors of this system.
    pub cpus: usize,
}

impl Surroundings {
    /// As a measurement begins that no lab is used for.
    pub(crate) fn begin() -> Self {
        let load = load_average();
        Self {
            accelerator: None,
            counts_instructions: false,
            load_average: [load, load],
            cpus: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        }
    }

    /// As a measurement begins in a lab that is up.
    pub(crate) fn begin_in(lab: &Lab) -> Result<Self> {
        let description = lab.description()?;
        Ok(Self {
            accelerator: Some(description.accelerator.unwrap_or(Accelerator::Tcg)),
            counts_instructions: description.instruction_ns.is_some(),
            ..Self::begin()
        })
    }

    pub(crate) fn end(self) -> Self {
        let [before, _] = self.load_average;
        Self { load_average: [before, load_average()], ..self }
    }

    /// How busy this system was, as reports end with it.
    pub(crate) fn load(&self) -> String {
        let [before, after] = self.load_average;
        format!(
            "{}, load average {before:.1} before and {after:.1} after.",
            plural(self.cpus as u64, "CPU")
        )
    }
}

/// Processes that run or wait to, averaged over a minute; 0 where the system doesn't say.
fn load_average() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|load| load.parse().ok()).unwrap_or(0.0)
}
