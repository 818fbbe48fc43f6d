//! The report of `hyperscope profile`: the code that vCPUs ran, in rows that add up to their time.

mod columns;
mod document;
mod evidence;
mod flame;
mod headline;
mod lines;
mod notes;
mod pprof;
mod speedscope;
mod stacks;

use std::io;
use std::path::Path;

use analyses::profile::{Profile, SampledMachine, SampledThread};
use serde::Serialize;

use self::columns::{TABLE, columns, of_instructions, of_threads};
pub(crate) use self::document::Document;
use self::lines::Line;
pub(crate) use self::notes::notes as profile_notes;
use crate::column::{self, Column};
use crate::table::Table;
use crate::units::plural;
use crate::{Legend, RecorderCost, Report, losses};

/// The subject of rows in tables and CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileBy {
    /// VMs.
    Vm,
    /// States of vCPUs.
    State,
    /// Threads: of guests if their recording has them, otherwise of vCPUs.
    Comm,
    /// Functions.
    Symbol,
    /// Instructions of functions.
    Instruction,
}

impl ProfileBy {
    /// All subjects, from the coarsest.
    pub const ALL: [Self; 5] = [Self::Vm, Self::State, Self::Comm, Self::Symbol, Self::Instruction];

    /// Its name in options.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vm => "vm",
            Self::State => "state",
            Self::Comm => "comm",
            Self::Symbol => "symbol",
            Self::Instruction => "instruction",
        }
    }
}

/// The code that vCPUs of some recordings ran.
#[derive(Debug)]
pub struct ProfileReport {
    /// Paths of the recordings, as the user named them.
    pub sources: Vec<String>,
    /// The numbers.
    pub profile: Profile,
    /// The subject of rows in tables and CSV; JSON has everything.
    pub by: ProfileBy,
    /// Limits tables to functions with this name; a pattern with `*` and `?`.
    pub symbol: Option<String>,
    /// Max rows of tables.
    pub top: usize,
    /// Whether tables include idle time of guests.
    pub idle: bool,
    /// Whether to show other threads of sampled hosts that work for VMs.
    pub threads: bool,
    /// Whether to show stacks of guests as they were sampled.
    pub raw: bool,
    /// The cost of recording, if the recorder reported it.
    pub recorder_cost: Option<RecorderCost>,
}

impl Report for ProfileReport {
    fn headline(&self) -> String {
        headline::headline(self)
    }

    fn tables(&self, width: Option<usize>) -> String {
        if self.is_empty() {
            return self.losses();
        }
        let all = lines::shown(self);
        let mut out = headline::of_shares(self, &all);
        let shown = all.get(..self.top.min(all.len())).unwrap_or(&all);
        let mut table = Table::default();
        column::draw(&self.columns(), &mut table, TABLE, shown);
        let (drawn, left_out) = table.draw(width);
        out += &format!("{drawn}\n");
        let more = all.len() - shown.len();
        if more > 0 {
            out += &format!("and {}: --top 0 shows all\n", plural(more as u64, "more row"));
        }
        let cost = self.recorder_cost.as_ref().map(RecorderCost::note);
        for note in notes::notes(self).into_iter().chain(cost) {
            out += &format!("{note}\n");
        }
        if !left_out.is_empty() {
            out += &format!(
                "hidden to fit the width: {}; csv and json show all\n",
                left_out.join(", ")
            );
        }
        out + &self.losses()
    }

    fn legend(&self) -> Legend {
        vec![
            ("from", "lower end of the share's 95% interval"),
            ("to", "upper end"),
            ("samples", "evidence for the code; 0: its time is known without"),
            ("sys%", "host kernel"),
            ("usr%", "VMM"),
        ]
    }

    fn document(&self) -> impl Serialize {
        Document::new(self)
    }

    fn csv(&self) -> Table {
        column::csv(&self.columns(), &lines::lines(self), &[self.profile.nanoseconds])
    }
}

impl ProfileReport {
    /// Whether neither exits nor samples show what ran.
    fn is_empty(&self) -> bool {
        self.profile.vcpus.is_empty() && self.profile.machines.is_empty()
    }

    fn machine_name(&self, machine: &SampledMachine) -> &str {
        machine_name(&self.sources, machine)
    }
}

/// The name of a machine: for a guest, its recording; empty for a host.
pub(crate) fn machine_name<'s>(sources: &'s [String], machine: &SampledMachine) -> &'s str {
    let path = sources.get(machine.recording).filter(|_| machine.is_guest).map(Path::new);
    let name = |path| sources::guest_named(path).or_else(|| path.file_stem()?.to_str());
    path.and_then(name).unwrap_or_default()
}

impl ProfileReport {
    /// The time of all vCPUs.
    fn time_ns(&self) -> u64 {
        self.profile.vcpus.iter().map(|vcpu| vcpu.time_ns).fold(0, u64::saturating_add)
    }

    /// The columns of tables and CSV.
    fn columns<'r>(&self) -> Vec<Column<Line<'r>>> {
        match self.by {
            ProfileBy::Comm => of_threads(),
            ProfileBy::Instruction => of_instructions(),
            _ => columns(),
        }
    }

    /// The shown part of vCPU time and of the threads' time.
    fn shown_ns(&self) -> u64 {
        let machines = self.profile.machines.iter().flat_map(|machine| &machine.threads);
        let of_machines = machines.map(SampledThread::time_ns).fold(0, u64::saturating_add);
        self.busy_ns().saturating_add(self.threads_ns()).saturating_add(of_machines)
    }

    /// The shown part of all vCPUs' time.
    fn busy_ns(&self) -> u64 {
        let idle = |row: &&analyses::profile::ProfileRow| row.state.is_idle() && !self.idle;
        let idle = self.profile.rows.iter().filter(idle).map(|row| row.time.ns);
        self.time_ns().saturating_sub(idle.fold(0, u64::saturating_add))
    }

    /// The time of other threads, if they are shown.
    fn threads_ns(&self) -> u64 {
        let threads = self.profile.threads.iter().filter(|_| self.threads);
        threads.map(|thread| thread.time_ns).fold(0, u64::saturating_add)
    }

    fn losses(&self) -> String {
        let notes = self.profile.losses.iter().flat_map(|loss| losses::notes(loss, 0));
        notes.map(|note| format!("{note}\n")).collect()
    }

    /// Whether a sample is in a function that matches this name or pattern.
    #[must_use]
    pub fn has_function(&self, wanted: &str) -> bool {
        let of_rows = self.profile.rows.iter().filter_map(|row| row.stack.last());
        let of_threads = self.profile.threads.iter().flat_map(|thread| &thread.stacks);
        let machines = self.profile.machines.iter().flat_map(|machine| &machine.threads);
        let of_machines = machines.flat_map(|thread| &thread.stacks);
        let of_threads = of_threads.filter_map(|(stack, ..)| stack.last());
        let of_machines = of_machines.filter_map(|(stack, _)| stack.last());
        let mut leaves = of_rows.chain(of_threads).chain(of_machines);
        let matches_wanted = |symbol: &String| ftrace::eventfmt::glob(wanted, symbol);
        leaves.any(|leaf| leaf.symbol.as_ref().is_some_and(matches_wanted))
    }

    /// Stacks with their times in the folded format: one line each, frames separated by semicolons.
    #[must_use]
    pub fn folded(&self) -> String {
        stacks::Tree::new(self).folded()
    }

    /// A profile for pprof, compressed with gzip as its readers expect.
    ///
    /// # Errors
    /// None in practice: it is compressed into memory.
    pub fn pprof(&self) -> io::Result<Vec<u8>> {
        pprof::pprof(self)
    }

    /// A profile for speedscope: a JSON document.
    #[must_use]
    pub fn speedscope(&self, title: &str) -> String {
        speedscope::speedscope(self, title)
    }

    /// A flame graph as an SVG document.
    #[must_use]
    pub fn flame(&self, title: &str) -> String {
        flame::flame(self, title)
    }
}
