//! The conditions of a measurement: what executed the machines, and the load of this system.

use std::fs;

use lab::{Accelerator, Lab};
use report::plural;
use serde::Serialize;

use crate::bench::error::Result;

/// The system's data in reports of all measurements.
#[derive(Clone, Debug, Serialize)]
pub struct Surroundings {
    /// Accelerator of the lab's first machine; `None` outside of a lab.
    pub accelerator: Option<Accelerator>,
    /// Whether the lab's time counts instructions, a nanosecond each.
    pub counts_instructions: bool,
    /// Load average of this system over a minute, before and after (`/proc/loadavg`).
    pub load_average: [f64; 2],
    /// CPUs of this system.
    pub cpus: usize,
}

impl Surroundings {
    /// At the begin of a measurement without a lab.
    pub(crate) fn begin() -> Self {
        let load = load_average();
        Self {
            accelerator: None,
            counts_instructions: false,
            load_average: [load, load],
            cpus: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        }
    }

    /// At the begin of a measurement in a running lab.
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

    /// The load of this system, for the end of reports.
    pub(crate) fn load(&self) -> String {
        let [before, after] = self.load_average;
        format!(
            "{}, load average {before:.1} before and {after:.1} after.",
            plural(self.cpus as u64, "CPU")
        )
    }
}

/// Load average over a minute; 0 if the system does not report it.
fn load_average() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|load| load.parse().ok()).unwrap_or(0.0)
}
