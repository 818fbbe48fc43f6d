//! The report of `hyperscope cpu`: the users of the CPUs, with idle time separate.

mod headline;
mod host_cpus;
mod known;
mod recorders;
mod row;
mod states;
mod tables;
mod takers;
mod tasks;
mod threads;
mod vcpus;
mod vms;

use analyses::cpu::CpuUse;
use analyses::states::GuestFit;
use schemars::JsonSchema;
use serde::Serialize;

use self::row::Row;
use crate::column::{Column, Rows};
use crate::json::{Span, times};
use crate::losses::LossSums;
use crate::recorder_cost::CostDocument;
use crate::table::Table;
use crate::{Legend, RecorderCost, Report};

/// The kind of users to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuBy {
    /// VMs.
    Vm,
    /// vCPUs.
    Vcpu,
    /// Threads that had CPUs while vCPUs waited for them.
    Taken,
    /// Threads of hosts.
    Thread,
    /// Threads of guests.
    Task,
    /// CPUs of hosts.
    Cpu,
}

impl CpuBy {
    /// All kinds, in the order of a report.
    pub const ALL: [Self; 6] =
        [Self::Vm, Self::Vcpu, Self::Taken, Self::Thread, Self::Task, Self::Cpu];

    /// Its name in options.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vm => "vm",
            Self::Vcpu => "vcpu",
            Self::Taken => "taken",
            Self::Thread => "thread",
            Self::Task => "task",
            Self::Cpu => "cpu",
        }
    }
}

/// The use of CPUs in recordings that are read as one.
#[derive(Debug)]
pub struct CpuReport {
    /// Paths of the recordings, as the user named them.
    pub sources: Vec<String>,
    /// The numbers.
    pub cpu: CpuUse,
    /// Tables that are shown; JSON has all.
    pub by: Vec<CpuBy>,
    /// Whether to show idle threads as well.
    pub idle: bool,
    /// Max rows of tables.
    pub top: Option<usize>,
    /// The cost of recording, if the recorder reported it.
    pub recorder_cost: Option<RecorderCost>,
}

impl Report for CpuReport {
    fn headline(&self) -> String {
        headline::headline(self)
    }

    fn tables(&self, width: Option<usize>) -> String {
        tables::tables(self, width)
    }

    fn legend(&self) -> Legend {
        vec![
            ("run queue", "woken, without a CPU"),
            ("preempted", "switched out while runnable"),
            ("halted", "asleep, as the guest has nothing to do"),
            ("blocked", "asleep for another reason"),
        ]
    }

    fn document(&self) -> impl Serialize {
        self.document_of(usize::MAX)
    }

    fn csv(&self) -> Table {
        let in_ns = &[self.cpu.nanoseconds];
        match self.by.first().copied().unwrap_or(CpuBy::Vcpu) {
            CpuBy::Vm => self.rows(&self.cpu.vms, vms::columns).csv(in_ns),
            CpuBy::Vcpu => self.rows(&self.cpu.vcpus, vcpus::columns).csv(in_ns),
            CpuBy::Taken => self.rows(&self.cpu.takers, takers::columns).csv(in_ns),
            CpuBy::Thread => self.rows(&self.cpu.threads, threads::columns).csv(in_ns),
            CpuBy::Task => self.rows(&self.cpu.tasks, tasks::columns).csv(in_ns),
            CpuBy::Cpu => self.rows(&self.cpu.cpus, host_cpus::columns).csv(in_ns),
        }
    }
}

/// Output of `hyperscope cpu --format json`: the users of the CPUs. See docs/cpu.md.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Document<'r> {
    schema: &'static str,
    /// Paths of the recordings, as they were named.
    sources: &'r [String],
    #[serde(flatten)]
    span: Span,
    /// Losses of all sources.
    losses: LossSums,
    /// Cost of the recording itself, if the recorder reported it (sessions of hyperscope record). Null: not
    /// measured.
    recorder_cost: Option<CostDocument<'r>>,
    /// Guests' recordings that were combined with their hosts'.
    guests: Vec<Guest<'r>>,
    /// VMs.
    vms: Rows<vms::Row<'r>>,
    /// vCPUs.
    vcpus: Rows<vcpus::Row<'r>>,
    /// Threads that had a host's CPU while a VM's vCPUs waited for it in the run queue, in descending order of
    /// time. Empty where switches were not recorded.
    taken: Rows<takers::Row<'r>>,
    /// Threads of hosts, in descending order of CPU time. Empty where switches were not recorded.
    threads: Rows<threads::Row<'r>>,
    /// Threads of recorded guests, in descending order of run time.
    tasks: Rows<tasks::Row<'r>>,
    /// CPUs of hosts.
    cpus: Rows<host_cpus::Row<'r>>,
}

/// One guest.
#[derive(Debug, JsonSchema, Serialize)]
struct Guest<'r> {
    /// Path of the guest's recording.
    source: &'r str,
    /// Path of its host's recording.
    host: &'r str,
    /// The VM.
    vm: &'r str,
    /// Changes of the running task in the guest that were combined with the host's times.
    changes: u64,
    /// Part of these: outside the guest's windows by at most the clocks' bound, and moved to the nearest window.
    moved: u64,
    #[serde(flatten)]
    times: GuestTimes,
    /// Changes further outside, which are left out: the running task is unknown until the next change.
    outside: u64,
}

times! {
    /// How far a guest's changes were moved.
    struct GuestTimes {
        /// Largest move. Nanoseconds; null where the clock counts no nanoseconds.
        most_moved = "most_moved",
    }
}

impl CpuReport {
    /// The document with the first `most` threads, and tasks.
    pub(crate) fn document_of(&self, max: usize) -> Document<'_> {
        let cpu = &self.cpu;
        Document {
            schema: "hyperscope.cpu/1",
            sources: &self.sources,
            span: Span { in_ns: cpu.nanoseconds, span: Some(cpu.span_ns) },
            losses: LossSums::new(cpu.losses.iter(), 0),
            recorder_cost: self.recorder_cost.as_ref().map(RecorderCost::document),
            guests: cpu.guests.iter().map(|guest| self.guest(guest)).collect(),
            vms: self.rows(&cpu.vms, vms::columns),
            vcpus: self.rows(&cpu.vcpus, vcpus::columns),
            taken: self.rows(first(&cpu.takers, max), takers::columns),
            threads: self.rows(first(&cpu.threads, max), threads::columns),
            tasks: self.rows(first(&cpu.tasks, max), tasks::columns),
            cpus: self.rows(&cpu.cpus, host_cpus::columns),
        }
    }

    fn rows<'r, T>(
        &'r self,
        all: &'r [T],
        columns: fn(bool) -> Vec<Column<Row<'r, T>>>,
    ) -> Rows<Row<'r, T>> {
        let rows = all.iter().map(|subject| Row { report: self, subject }).collect();
        Rows { columns: columns(false), rows }
    }

    fn guest<'r>(&'r self, (recording, host, name): &'r (usize, usize, String)) -> Guest<'r> {
        let placed = self.cpu.placed.iter().find(|(at, _)| at == recording);
        let placed = placed.map_or_else(GuestFit::default, |(_, placed)| *placed);
        Guest {
            source: self.source(*recording),
            host: self.source(*host),
            vm: name,
            changes: placed.changes,
            moved: placed.moved,
            times: GuestTimes {
                in_ns: self.cpu.nanoseconds,
                most_moved: Some(placed.most_moved_ns),
            },
            outside: placed.outside,
        }
    }

    /// No event shows which threads used CPUs.
    fn is_empty(&self) -> bool {
        let cpu = &self.cpu;
        cpu.vcpus.is_empty() && cpu.tasks.is_empty() && cpu.threads.is_empty()
    }

    fn source(&self, recording: usize) -> &str {
        self.sources.get(recording).map_or("", String::as_str)
    }

    fn vm_name(&self, recording: usize, vm: usize) -> Option<&str> {
        // VMs are in the order of their recordings.
        let first = self.cpu.vms.partition_point(|vm| vm.recording < recording);
        let found = self.cpu.vms.get(first.checked_add(vm)?)?;
        (found.recording == recording).then_some(found.name.as_str())
    }

    /// The VM that a guest's recording was made in.
    fn vm_of_guest(&self, recording: usize) -> Option<&str> {
        let guest = self.cpu.guests.iter().find(|(guest, ..)| *guest == recording);
        guest.map(|(_, _, name)| name.as_str())
    }
}

fn first<T>(all: &[T], max: usize) -> &[T] {
    all.get(..max).unwrap_or(all)
}

/// A thread by its name and number.
pub(crate) fn named(name: Option<&str>, thread: u32) -> String {
    match (thread, name) {
        (0, _) => "idle".to_owned(),
        (_, Some(name)) => format!("{name}-{thread}"),
        (_, None) => thread.to_string(),
    }
}
