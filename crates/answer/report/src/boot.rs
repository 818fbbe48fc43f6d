//! The report of `hyperscope boot`: phases of a boot and a shutdown, the slowest initcalls, and the
//! host's cost of each.

mod chart;
mod columns;
mod document;
mod json;
mod lines;
mod tables;

use analyses::boot::{Boot, BootedMachine, Initcall, PhaseKind};
use serde::Serialize;

use crate::table::Table;
use crate::{Legend, Report};

pub use chart::boot_svg;
pub(crate) use document::Document;

/// Boots and shutdowns of machines.
#[derive(Debug)]
pub struct BootReport {
    /// Paths of the recordings, as the user named them.
    pub sources: Vec<String>,
    /// How guests were aligned, one line per guest.
    pub alignment: Vec<String>,
    /// The phases and initcalls.
    pub boot: Boot,
    /// Initcalls that tables show, the slowest first.
    pub top: usize,
}

impl Report for BootReport {
    fn headline(&self) -> String {
        tables::headline(self)
    }

    fn tables(&self, width: Option<usize>) -> String {
        tables::tables(self, width)
    }

    fn legend(&self) -> Legend {
        vec![
            ("exit time", "of all vCPUs, without waiting exits"),
            ("kernel", "part of the time of all exits"),
            ("in them", "time in initcalls"),
        ]
    }

    fn document(&self) -> impl Serialize {
        Document::new(self, |machine| machine.initcalls.iter().collect())
    }

    fn csv(&self) -> Table {
        tables::csv(self)
    }
}

impl BootReport {
    /// The document with the `max` slowest outermost initcalls of each machine.
    pub(crate) fn document_of_slowest(&self, max: usize) -> Document<'_> {
        Document::new(self, |machine| slowest(machine).into_iter().take(max).collect())
    }

    fn source(&self, recording: Option<usize>) -> Option<&str> {
        recording.and_then(|at| self.sources.get(at)).map(String::as_str)
    }

    /// The name of a machine: its VM, otherwise its recording.
    fn name<'r>(&'r self, machine: &'r BootedMachine) -> &'r str {
        machine.vm.as_deref().or(self.source(machine.guest)).unwrap_or("guest")
    }
}

/// The first time of a machine.
fn begin_ns(machine: &BootedMachine) -> u64 {
    machine.phases.first().map_or(0, |phase| phase.from_ns)
}

/// Whether the machine has a shutdown phase.
fn goes_down(machine: &BootedMachine) -> bool {
    machine.phases.iter().any(|phase| phase.kind == PhaseKind::Shutdown)
}

/// The name of an initcall: its function, otherwise its module, otherwise its address.
fn call_name(initcall: &Initcall) -> String {
    match (&initcall.function, &initcall.module) {
        (Some(function), _) => function.clone(),
        (None, Some(module)) => format!("[{module}]"),
        (None, None) => format!("{:#x}", initcall.address),
    }
}

/// Outermost initcalls, the slowest first; unfinished ones come last.
fn slowest(machine: &BootedMachine) -> Vec<&Initcall> {
    let mut all: Vec<&Initcall> = machine.initcalls.iter().filter(|call| call.depth == 0).collect();
    all.sort_by_key(|call| std::cmp::Reverse(call.duration_ns()));
    all
}
