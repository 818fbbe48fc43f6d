//! The plan of a measurement of tracers.

use lab::{LabError, Tool};

use super::{Subject, Tracer};

/// The plan.
#[derive(Clone, Debug)]
pub struct TracersPlan {
    /// Subjects to trace.
    pub subjects: Vec<Subject>,
    /// Tracers, in the order of the report.
    pub tracers: Vec<Tracer>,
    /// Unavailable tracers, and why: their rows report it.
    pub missing: Vec<(Tracer, String)>,
    /// Whether to compare recording variants of the host as well.
    pub with_volumes: bool,
    /// Runs of each step of a tracer.
    pub rounds: u32,
    /// System calls per run; half as many switches.
    pub iterations: u64,
    /// Seed of the order of runs.
    pub seed: u64,
    /// Level of the innermost traced guest: 2, or 3 for a nested guest as well.
    pub levels: u8,
    /// Whether the lab's time counts instructions, so that other work of this system has no effect.
    pub counts_instructions: bool,
}

impl TracersPlan {
    /// Removes tracers whose tools are not available.
    pub fn leave_out(&mut self, tools: Vec<(Tool, LabError)>) {
        for (tool, error) in tools {
            let of_tool = |tracer: &Tracer| tracer.tool() == Some(tool);
            let missing = self.tracers.iter().copied().find(of_tool);
            self.missing.extend(missing.map(|tracer| (tracer, error.to_string())));
            self.tracers.retain(|tracer| !of_tool(tracer));
        }
    }
}
