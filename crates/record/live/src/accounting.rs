//! The running accounting: BPF programs accumulate exits, and intervals are read from them.

use std::collections::HashSet;

use bpf::load::RunTimes;
use sys::{ClockId, clock_ns, process_cpu_ns};
use timeline::arch::Isa;
use timeline::reasons::ReasonNames;

use crate::error::Result;
use crate::interval::{Before, By, Interval, Names};
use crate::owners::Owners;
use crate::programs::{Programs, Room};
use crate::reasons::reason_names;
use crate::snapshot::Snapshot;

/// Default max rows that the kernel keeps per interval.
const ROWS: u32 = 8192;

/// Limits, and what to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Max rows (a vCPU's exits of one reason and level) per interval; the rest is summed in one row.
    pub rows: u32,
    /// Makes the kernel count the programs' CPU time, which costs two clock reads per run of any BPF program.
    pub own_cost: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { rows: ROWS, own_cost: true }
    }
}

/// Exits are accumulated while this exists.
#[derive(Debug)]
pub struct Accounting {
    programs: Programs,
    names: KnownNames,
    before: Before,
    bank: usize,
    begin_ns: u64,
    process_ns: u64,
    programs_ns: Option<u64>,
    /// CPU time of its programs, if requested.
    run_times: Option<RunTimes>,
}

/// Names of VMs and reasons.
#[derive(Debug)]
struct KnownNames {
    owners: Owners,
    reasons: ReasonNames,
}

impl Names for KnownNames {
    fn vm(&self, process: u32) -> String {
        self.owners.name(process)
    }

    fn isa(&self, isa: u8) -> Isa {
        self.reasons.isa(isa)
    }

    fn reason(&mut self, isa: u8, code: u64) -> String {
        self.reasons.name(isa, code)
    }
}

impl Accounting {
    /// Starts the accounting.
    ///
    /// # Errors
    /// When the kernel lacks support, or the user lacks permission.
    pub fn begin(limits: Limits) -> Result<Self> {
        let reasons = reason_names()?;
        let mut programs = Programs::load(Room::new(limits.rows))?;
        let run_times = limits.own_cost.then(RunTimes::count);
        let begin_ns = clock_ns(ClockId::Monotonic);
        programs.begin_interval(begin_ns, 0)?;
        programs.attach()?;
        let mut accounting = Self {
            programs,
            names: KnownNames { owners: Owners::default(), reasons },
            before: Before::default(),
            bank: 0,
            begin_ns,
            process_ns: 0,
            programs_ns: None,
            run_times,
        };
        // Exits during the attachment of the programs belong to no interval.
        accounting.close()?;
        accounting.measure();
        Ok(accounting)
    }

    /// Begin of the current interval, on the monotonic clock.
    #[must_use]
    pub fn begin_ns(&self) -> u64 {
        self.begin_ns
    }

    /// Ends the current interval, and begins the next.
    ///
    /// # Errors
    /// When the kernel's maps can't be read.
    pub fn interval(&mut self, by: By) -> Result<Interval> {
        let (times, snapshot) = self.close()?;
        let processes: HashSet<u32> = snapshot.vcpus.iter().map(|state| state.process).collect();
        self.names.owners.know(&processes);
        let mut interval = self.before.interval(times, &snapshot, by, &mut self.names);
        let (process_ns, programs_ns) = self.measure();
        interval.cost.process_ns = process_ns;
        interval.cost.programs_ns = programs_ns;
        Ok(interval)
    }

    /// Switches to the other bank at a point in time, and reads this one.
    fn close(&mut self) -> Result<((u64, u64), Snapshot)> {
        let other = 1 - self.bank;
        let end_ns = self.programs.end_interval(other)?;
        let snapshot = self.programs.take(self.bank)?;
        let times = (self.begin_ns, end_ns);
        (self.bank, self.begin_ns) = (other, end_ns);
        Ok((times, snapshot))
    }

    /// CPU times of this process and the programs since the last call.
    fn measure(&mut self) -> (u64, Option<u64>) {
        let process_ns = process_cpu_ns();
        let run_times = self.run_times.as_ref();
        let programs_ns = run_times.and_then(|times| self.programs.run_time_ns(times));
        let since = (
            process_ns.saturating_sub(self.process_ns),
            programs_ns.zip(self.programs_ns).map(|(now, before)| now.saturating_sub(before)),
        );
        (self.process_ns, self.programs_ns) = (process_ns, programs_ns);
        since
    }
}
