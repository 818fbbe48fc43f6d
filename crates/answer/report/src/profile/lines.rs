//! The lines of a profile: its rows as they are, or combined by the requested subject.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use analyses::profile::{
    CodeFrame, Evidence, InstructionAt, ProfileRow, ProfileVcpu, SampledMachine, SampledTime,
    USER_MODULE,
};
use analyses::states::{Part, VcpuState};

use super::evidence::EvidenceSet;
use super::{ProfileBy, ProfileReport};
use crate::column;

/// A part of the time of a VM, or of one of its vCPUs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'r> {
    pub(super) nanoseconds: bool,
    /// The total of shares.
    pub(super) whole_ns: u64,
    pub(super) key: Key<'r>,
    /// The stack from the root; by function, only the innermost frame.
    pub(super) stack: &'r [CodeFrame],
    /// Whether it is the host's code.
    pub(super) host_code: bool,
    pub(super) evidence: EvidenceSet,
    pub(super) time: SampledTime,
    pub(super) modes: Modes,
}

/// Time by code and mode, as other profilers of hosts with guests report it; idle time is in none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Modes {
    /// The host's kernel.
    pub(super) sys_ns: u64,
    /// The VMM.
    pub(super) usr_ns: u64,
    /// The guest's kernel.
    pub(super) guest_sys_ns: u64,
    /// The guest's user space.
    pub(super) guest_usr_ns: u64,
}

impl Modes {
    fn for_state(state: VcpuState, ns: u64) -> Self {
        let mut modes = Self::default();
        match state {
            VcpuState::BeforeExit
            | VcpuState::ExitKernel
            | VcpuState::HaltPoll
            | VcpuState::NotSplit => modes.sys_ns = ns,
            VcpuState::ExitUser => modes.usr_ns = ns,
            VcpuState::GuestUser => modes.guest_usr_ns = ns,
            VcpuState::GuestKernel | VcpuState::GuestIrq | VcpuState::GuestIdle => {
                modes.guest_sys_ns = ns;
            }
            _ => {}
        }
        modes
    }

    /// For a thread of the host that ran this stack.
    fn of_stack(stack: &[CodeFrame], ns: u64) -> Self {
        if stack.last().is_some_and(|frame| frame.user_space) {
            Self { usr_ns: ns, ..Self::default() }
        } else {
            Self { sys_ns: ns, ..Self::default() }
        }
    }

    fn add(&mut self, other: &Self) {
        self.sys_ns = self.sys_ns.saturating_add(other.sys_ns);
        self.usr_ns = self.usr_ns.saturating_add(other.usr_ns);
        self.guest_sys_ns = self.guest_sys_ns.saturating_add(other.guest_sys_ns);
        self.guest_usr_ns = self.guest_usr_ns.saturating_add(other.guest_usr_ns);
    }
}

/// The key of a line; `None` if a part was not requested or is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key<'r> {
    pub(super) vm: &'r str,
    pub(super) vcpu: Option<u32>,
    pub(super) level: Option<u8>,
    pub(super) state: Option<VcpuState>,
    pub(super) reason: Option<&'r str>,
    pub(super) comm: Option<&'r str>,
    /// For a thread that is no vCPU: its role for the VM.
    pub(super) part: Option<Part>,
}

impl column::Row for Line<'_> {
    fn is_nanoseconds(&self) -> bool {
        self.nanoseconds
    }
}

/// Every row of the profile.
pub(super) fn all(report: &ProfileReport) -> Vec<Line<'_>> {
    let whole_ns = report.shown_ns();
    let rows = report.profile.rows.iter().map(|row| Line::from_row(report, row, whole_ns));
    rows.chain(of_threads(report, whole_ns)).chain(of_machines(report, whole_ns)).collect()
}

/// Lines of threads of all machines, if no vCPU is recorded.
fn of_machines(report: &ProfileReport, whole_ns: u64) -> impl Iterator<Item = Line<'_>> {
    let machines = report.profile.machines.iter();
    machines.flat_map(move |machine| of_machine(report, machine, whole_ns))
}

/// Lines of the threads of one machine.
pub(super) fn of_machine<'r>(
    report: &'r ProfileReport,
    machine: &'r SampledMachine,
    whole_ns: u64,
) -> impl Iterator<Item = Line<'r>> {
    let stacks = machine.threads.iter().flat_map(|thread| {
        let comm = thread.comm.as_deref();
        thread.stacks.iter().map(move |(stack, time)| (comm, stack, *time))
    });
    stacks.map(move |(comm, stack, time)| {
        let state = machine.state_of(stack);
        Line {
            nanoseconds: report.profile.nanoseconds && machine.unit.nanoseconds,
            whole_ns,
            key: Key {
                vm: report.machine_name(machine),
                state,
                comm,
                part: machine.is_host_code(stack).then_some(Part::Other),
                ..Key::default()
            },
            stack,
            host_code: machine.is_host_code(stack),
            evidence: machine.evidence_of(stack).into(),
            time,
            modes: match state {
                Some(state) => Modes::for_state(state, time.ns),
                None => Modes::of_stack(stack, time.ns),
            },
        }
    })
}

/// Lines of other threads of hosts, if requested.
fn of_threads(report: &ProfileReport, whole_ns: u64) -> impl Iterator<Item = Line<'_>> {
    let threads = report.profile.threads.iter().filter(|_| report.threads);
    threads.flat_map(move |thread| {
        thread.stacks.iter().map(move |(stack, evidence, time)| Line {
            nanoseconds: report.profile.nanoseconds,
            whole_ns,
            key: Key {
                vm: &thread.vm,
                comm: thread.comm.as_deref(),
                part: Some(thread.part),
                ..Key::default()
            },
            stack,
            host_code: true,
            evidence: (*evidence).into(),
            time: *time,
            modes: Modes::of_stack(stack, time.ns),
        })
    })
}

/// As [`all`], by vCPU in the profile's order.
pub(super) fn by_vcpu(report: &ProfileReport) -> Vec<Vec<Line<'_>>> {
    let mut by_vcpu: Vec<Vec<Line<'_>>> = vec![Vec::new(); report.profile.vcpus.len()];
    for (row, line) in report.profile.rows.iter().zip(all(report)) {
        by_vcpu.get_mut(row.vcpu).into_iter().for_each(|lines| lines.push(line));
    }
    by_vcpu
}

/// The lines in CSV, in descending order of time.
pub(super) fn lines(report: &ProfileReport) -> Vec<Line<'_>> {
    put_together(report, all(report).into_iter().filter(|line| line.is_asked_for(report)).collect())
}

/// The lines in tables: without idle time, unless requested.
pub(super) fn shown(report: &ProfileReport) -> Vec<Line<'_>> {
    let is_shown = |line: &Line<'_>| report.idle || !line.key.state.is_some_and(VcpuState::is_idle);
    let shown = |line: &Line<'_>| is_shown(line) && line.is_asked_for(report);
    let mut lines = put_together(report, all(report).into_iter().filter(shown).collect());
    if report.by == ProfileBy::Symbol {
        lines = put_places_together(report, lines);
    }
    add_those_before(&mut lines);
    if report.symbol.is_some() {
        let whole_ns = lines.iter().map(|line| line.time.ns).fold(0, u64::saturating_add);
        lines.iter_mut().for_each(|line| line.whole_ns = whole_ns);
        if report.by == ProfileBy::Instruction {
            lines.sort_by(|line, other| line.stack.cmp(other.stack));
        }
    }
    lines
}

/// Adds the instruction before each sampled one, if it is known and was not sampled.
fn add_those_before<'r>(lines: &mut Vec<Line<'r>>) {
    let key = |line: &Line<'r>| Some((line.key, line.function()?, line.host_code));
    let mut there: BTreeSet<_> = lines.iter().filter_map(key).collect();
    let mut added = Vec::new();
    for line in lines.iter() {
        for frame in line.instruction().map_or(&[][..], |at| &at.before) {
            if there.insert((line.key, frame, line.host_code)) {
                let (time, modes) = (SampledTime::default(), Modes::default());
                let (stack, evidence) = (std::slice::from_ref(frame), Evidence::None.into());
                added.push(Line { stack, evidence, time, modes, ..*line });
            }
        }
    }
    lines.extend(added);
}

/// The key of code: by name if the function is known, whatever its file's build.
type CodeKey<'r> = (Option<&'r str>, Option<&'r str>, Option<&'r CodeFrame>);

fn code_key<'r>(line: &Line<'r>) -> (CodeKey<'r>, bool) {
    let Some(frame) = line.function() else { return ((None, None, None), false) };
    let is_whole = frame.symbol.is_none() || frame.instruction.is_some();
    let key = (frame.symbol.as_deref(), frame.module.as_deref(), Some(frame).filter(|_| is_whole));
    (key, line.host_code)
}

fn put_together<'r>(report: &'r ProfileReport, lines: Vec<Line<'r>>) -> Vec<Line<'r>> {
    let mut sums: BTreeMap<(Key<'_>, (CodeKey<'_>, bool)), Line<'_>> = BTreeMap::new();
    for line in lines {
        let line = line.by(report.by);
        let sum = sums.entry((line.key, code_key(&line)));
        sum.and_modify(|sum| sum.add(&line)).or_insert(line);
    }
    let mut lines: Vec<Line<'_>> = sums.into_values().collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.time.ns));
    lines
}

/// In tables of functions, places in programs are combined if each has less than one of this many parts of the
/// time.
const SCATTERED: u64 = 100;

/// Code of programs without a known file, at any address.
static SOMEWHERE: LazyLock<[CodeFrame; 1]> = LazyLock::new(|| {
    let module = Some(USER_MODULE.to_owned());
    [CodeFrame { module, user_space: true, ..CodeFrame::default() }]
});

/// Whether a line is one of many places in programs that have little time each.
pub(super) fn is_scattered(line: &Line<'_>) -> bool {
    let is_little = line.time.ns.saturating_mul(SCATTERED) < line.whole_ns;
    is_little && line.function().is_some_and(CodeFrame::is_user_address)
}

/// Combines places in programs that have little time each into one line.
fn put_places_together<'r>(report: &'r ProfileReport, lines: Vec<Line<'r>>) -> Vec<Line<'r>> {
    let place = |line: Line<'r>| {
        if is_scattered(&line) { Line { stack: &*SOMEWHERE, ..line } } else { line }
    };
    put_together(report, lines.into_iter().map(place).collect())
}

impl<'r> Line<'r> {
    fn from_row(report: &'r ProfileReport, row: &'r ProfileRow, whole_ns: u64) -> Self {
        let vcpu = report.profile.vcpus.get(row.vcpu);
        let thread_comm =
            || vcpu.and_then(|vcpu| vcpu.comm.as_deref()).filter(|_| !row.state.is_guest());
        Self {
            nanoseconds: report.profile.nanoseconds,
            whole_ns,
            key: Key {
                vm: vcpu.map_or("", |vcpu: &ProfileVcpu| vcpu.vm.as_str()),
                vcpu: vcpu.map(|vcpu| vcpu.vcpu),
                level: Some(row.level),
                state: Some(row.state),
                reason: row.reason.as_deref(),
                comm: row.comm.as_deref().or_else(thread_comm),
                part: None,
            },
            stack: &row.stack,
            host_code: row.host_code || !row.state.is_guest(),
            evidence: row.evidence.into(),
            time: row.time,
            modes: Modes::for_state(row.state, row.time.ns),
        }
    }

    /// Removes the parts that were not requested.
    fn by(mut self, by: ProfileBy) -> Self {
        let Key { vm, level, state, reason, comm, part, .. } = self.key;
        let of_vm = Key { vm, part: part.filter(|_| by != ProfileBy::Vm), ..Key::default() };
        self.key = match by {
            ProfileBy::Vm => of_vm,
            ProfileBy::State => Key { level, state, reason, ..of_vm },
            ProfileBy::Comm => Key { comm, ..of_vm },
            ProfileBy::Symbol => Key { level, state, reason, comm: None, ..of_vm },
            ProfileBy::Instruction => of_vm,
        };
        self.stack = self.stack.get(self.stack.len().saturating_sub(1)..).unwrap_or(&[]);
        if !matches!(by, ProfileBy::Symbol | ProfileBy::Instruction) {
            // Together these are the time of the state, which requires no sample.
            (self.stack, self.evidence, self.host_code) = (&[], Evidence::None.into(), false);
            self.time =
                SampledTime { samples: self.time.samples, ..SampledTime::known(self.time.ns) };
        }
        self
    }

    /// Whether it matches the requested function, if there is one.
    fn is_asked_for(&self, report: &ProfileReport) -> bool {
        let Some(wanted) = &report.symbol else { return true };
        let symbol = self.function().and_then(|frame| frame.symbol.as_deref());
        symbol.is_some_and(|symbol| ftrace::eventfmt::glob(wanted, symbol))
    }

    /// The sampled instruction, if rows are instructions.
    pub(super) fn instruction(&self) -> Option<&'r InstructionAt> {
        self.function()?.instruction.as_deref()
    }

    /// The sampled function.
    pub(super) fn function(&self) -> Option<&'r CodeFrame> {
        self.stack.last()
    }

    fn add(&mut self, other: &Self) {
        self.evidence = self.evidence.with(other.evidence);
        self.time.add(&other.time);
        self.modes.add(&other.modes);
    }
}

#[cfg(test)]
mod tests;
