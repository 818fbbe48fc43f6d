//! What is to be measured, and how often.

use lab::{LabError, Tool};

use super::{Subject, Tracer};

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct TracersPlan {
    /// What is traced.
    pub subjects: Vec<Subject>,
    /// How, in the order of the report.
    pub tracers: Vec<Tracer>,
    /// Those that can't be had, and why: they get a row that says so.
    pub missing: Vec<(Tracer, String)>,
    /// Whether the host's recordings are compared with each other, too.
    pub with_volumes: bool,
    /// Runs of each step of a tracer.
    pub rounds: u32,
    /// System calls of a run; switches are half as many.
    pub iterations: u64,
    /// What the order of runs is drawn from.
    pub seed: u64,
    /// Level of the innermost guest that is traced: 2, or 3 for a guest's guest, too.
    pub levels: u8,
    /// Whether the lab's time is the number of instructions that it executes, so that what else this
    /// system does makes no difference.
    pub counts_instructions: bool,
}

impl TracersPlan {
    /// Leaves out tracers whose tools can't be had.
    pub fn leave_out(&mut self, tools: Vec<(Tool, LabError)>) {
        for (tool, error) in tools {
            let of_tool = |tracer: &Tracer| tracer.tool() == Some(tool);
            let missing = self.tracers.iter().copied().find(of_tool);
            self.missing.extend(missing.map(|tracer| (tracer, error.to_string())));
            self.tracers.retain(|tracer| !of_tool(tracer));
        }
    }
}
