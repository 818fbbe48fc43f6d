//! The report of `hyperscope boot`: phases of a boot and a shutdown, the slowest initcalls, and what
//! each cost the host.

mod chart;
mod columns;
mod document;
mod json;
mod lines;
mod tables;

use analyses::boot::{Boot, BootedMachine, Initcall, PhaseKind};
use serde::Serialize;

use crate::Report;
use crate::table::Table;

pub use chart::boot_svg;
pub(crate) use document::Document;

/// How machines boot and go down.
#[derive(Debug)]
pub struct BootReport {
    /// Paths of the recordings, as the user named them.
    pub sources: Vec<String>,
    /// How the guests among them were aligned, a line each.
    pub alignment: Vec<String>,
    /// What was found.
    pub boot: Boot,
    /// Initcalls that tables show, the slowest first.
    pub top: usize,
}

impl Report for BootReport {
    fn text(&self, width: Option<usize>) -> String {
        tables::text(self, width)
    }

    fn document(&self) -> impl Serialize {
        Document::new(self, |machine| machine.initcalls.iter().collect())
    }

    fn csv(&self) -> Table {
        tables::csv(self)
    }
}

impl BootReport {
    /// The document with the `most` slowest initcalls of each machine that are within no other.
    pub(crate) fn document_of_slowest(&self, max: usize) -> Document<'_> {
        Document::new(self, |machine| slowest(machine).into_iter().take(max).collect())
    }

    fn source(&self, recording: Option<usize>) -> Option<&str> {
        recording.and_then(|at| self.sources.get(at)).map(String::as_str)
    }

    /// What a machine is called: its VM, else its recording.
    fn name<'r>(&'r self, machine: &'r BootedMachine) -> &'r str {
        machine.vm.as_deref().or(self.source(machine.guest)).unwrap_or("guest")
    }
}

/// When a machine was first seen.
fn begin_ns(machine: &BootedMachine) -> u64 {
    machine.phases.first().map_or(0, |phase| phase.from_ns)
}

/// Whether one of the phases is on the way down.
fn goes_down(machine: &BootedMachine) -> bool {
    machine.phases.iter().any(|phase| phase.kind == PhaseKind::Shutdown)
}

/// What an initcall is called: its function, else the module whose it is, else its address.
fn call_name(initcall: &Initcall) -> String {
    match (&initcall.function, &initcall.module) {
        (Some(function), _) => function.clone(),
        (None, Some(module)) => format!("[{module}]"),
        (None, None) => format!("{:#x}", initcall.address),
    }
}

/// Initcalls that are within no other, the slowest first; those that did not end come last.
fn slowest(machine: &BootedMachine) -> Vec<&Initcall> {
    let mut all: Vec<&Initcall> = machine.initcalls.iter().filter(|call| call.depth == 0).collect();
    all.sort_by_key(|call| std::cmp::Reverse(call.duration_ns()));
    all
}
