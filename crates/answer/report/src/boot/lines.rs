//! The lines of a boot, for tables and CSV: phases, their sum, and initcalls, each with its numbers.

use analyses::boot::{BootedMachine, EventCost, HostCost, Initcall, Phase, PhaseKind, Weight};

use super::{BootReport, begin_ns, call_name};
use crate::column::{self, ratio};
use crate::units::count;

/// Max letters of a phase's name in tables.
const MAX_NAME: usize = 28;

/// A phase, the sum of all phases, or an initcall.
#[derive(Clone, Debug)]
pub(super) struct Line<'b> {
    pub(super) machine: &'b str,
    /// The kind of phase, or `initcall`; `None` for the sum.
    pub(super) kind: Option<&'static str>,
    pub(super) name: String,
    /// Its label in tables.
    pub(super) label: String,
    pub(super) call: Option<&'b Initcall>,
    is_nanoseconds: bool,
    pub(super) since_ns: Option<u64>,
    pub(super) duration_ns: Option<u64>,
    /// Share of all phases.
    pub(super) share: Option<f64>,
    pub(super) guest: Option<GuestNumbers>,
    pub(super) host: Option<HostNumbers>,
    /// Tables show zeros only in the sum.
    is_sum: bool,
}

/// Numbers from the guest's recording.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GuestNumbers {
    pub(super) initcalls: Option<u64>,
    pub(super) initcalls_ns: Option<u64>,
    pub(super) modules: Option<u64>,
    pub(super) forks: Option<u64>,
    pub(super) execs: Option<u64>,
    pub(super) events: Option<u64>,
    pub(super) bytes: Option<u64>,
    /// Cost of recording its events: median, lower and upper end, in nanoseconds of the guest, whatever the
    /// recording's unit.
    pub(super) tracing_ns: Option<[u64; 3]>,
}

/// Cost on the host.
#[derive(Clone, Debug, Default)]
pub(super) struct HostNumbers {
    pub(super) exits: Option<u64>,
    pub(super) time_ns: Option<u64>,
    /// Time without waiting exits.
    pub(super) working_ns: Option<u64>,
    pub(super) waiting_ns: Option<u64>,
    pub(super) kernel_ns: Option<u64>,
    /// Time in the VMM, including the return if that is not distinguished.
    pub(super) user_ns: Option<u64>,
    pub(super) off_cpu_ns: Option<u64>,
    pub(super) halt_poll_ns: Option<u64>,
    pub(super) not_split_ns: Option<u64>,
    /// The reason with the longest time, without waiting exits.
    pub(super) most: Option<String>,
}

impl column::Row for Line<'_> {
    fn is_nanoseconds(&self) -> bool {
        self.is_nanoseconds
    }
}

impl Line<'_> {
    /// Whether times are nanoseconds, not ticks.
    pub(super) fn is_in_ns(&self) -> bool {
        self.is_nanoseconds
    }

    /// A number of the guest, as tables show it.
    pub(super) fn of_guest(&self, number_of: fn(&GuestNumbers) -> Option<u64>) -> Option<u64> {
        let number = number_of(self.guest.as_ref()?);
        number.filter(|&number| self.is_sum || number > 0)
    }

    pub(super) fn of_host(&self, number_of: fn(&HostNumbers) -> Option<u64>) -> Option<u64> {
        number_of(self.host.as_ref()?)
    }
}

/// The phases of a machine, then their sum.
pub(super) fn phases<'b>(report: &'b BootReport, machine: &'b BootedMachine) -> Vec<Line<'b>> {
    let all_ns = machine.phases.iter().map(Phase::duration_ns).fold(0, u64::saturating_add);
    let begin_ns = begin_ns(machine);
    let cost = machine.event_cost.as_ref();
    let line_of = |phase: &'b Phase| Line {
        machine: report.name(machine),
        kind: Some(phase.kind.name()),
        name: phase.name.clone(),
        label: label(phase),
        call: None,
        is_nanoseconds: machine.nanoseconds,
        since_ns: Some(phase.from_ns.saturating_sub(begin_ns)),
        duration_ns: Some(phase.duration_ns()),
        share: ratio(phase.duration_ns(), all_ns),
        guest: phase.guest.as_ref().map(|guest| GuestNumbers {
            initcalls: Some(guest.initcalls),
            initcalls_ns: Some(guest.initcalls_ns),
            modules: Some(guest.modules),
            forks: Some(guest.forks),
            execs: Some(guest.execs),
            ..GuestNumbers::recorded(&guest.weight, cost)
        }),
        host: phase.host.as_ref().map(HostNumbers::new),
        is_sum: false,
    };
    let mut lines: Vec<Line<'b>> = machine.phases.iter().map(line_of).collect();
    let guests = lines.iter().filter_map(|line| line.guest).reduce(GuestNumbers::and);
    let hosts = lines.iter().filter_map(|line| line.host.clone()).reduce(HostNumbers::and);
    let hosts = hosts.map(|all| HostNumbers { most: None, ..all });
    lines.push(Line {
        machine: report.name(machine),
        kind: None,
        name: "all".to_owned(),
        label: "all".to_owned(),
        call: None,
        is_nanoseconds: machine.nanoseconds,
        since_ns: None,
        duration_ns: Some(all_ns),
        share: None,
        guest: guests,
        host: hosts,
        is_sum: true,
    });
    lines
}

/// Some initcalls of a machine.
pub(super) fn initcalls<'b>(
    report: &'b BootReport,
    machine: &'b BootedMachine,
    calls: impl IntoIterator<Item = &'b Initcall>,
) -> Vec<Line<'b>> {
    let begin_ns = begin_ns(machine);
    let cost = machine.event_cost.as_ref();
    let line_of = |call: &'b Initcall| Line {
        machine: report.name(machine),
        kind: Some("initcall"),
        name: call_name(call),
        label: call_name(call),
        call: Some(call),
        is_nanoseconds: machine.nanoseconds,
        since_ns: Some(call.from_ns.saturating_sub(begin_ns)),
        duration_ns: call.duration_ns(),
        share: None,
        guest: call.weight.as_ref().map(|weight| GuestNumbers::recorded(weight, cost)),
        host: call.host.as_ref().map(HostNumbers::new),
        is_sum: false,
    };
    calls.into_iter().map(line_of).collect()
}

impl GuestNumbers {
    fn recorded(weight: &Weight, cost: Option<&EventCost>) -> Self {
        let cost = cost.map(|cost| cost.cost_of(weight.events));
        Self {
            events: Some(weight.events),
            bytes: Some(weight.bytes),
            tracing_ns: cost.map(|cost| [cost.ns, cost.low_ns, cost.high_ns]),
            ..Self::default()
        }
    }

    fn and(self, other: Self) -> Self {
        let tracing = |[a, b, c]: [u64; 3], [d, e, f]: [u64; 3]| {
            [a.saturating_add(d), b.saturating_add(e), c.saturating_add(f)]
        };
        Self {
            initcalls: sum(self.initcalls, other.initcalls),
            initcalls_ns: sum(self.initcalls_ns, other.initcalls_ns),
            modules: sum(self.modules, other.modules),
            forks: sum(self.forks, other.forks),
            execs: sum(self.execs, other.execs),
            events: sum(self.events, other.events),
            bytes: sum(self.bytes, other.bytes),
            tracing_ns: [self.tracing_ns, other.tracing_ns].into_iter().flatten().reduce(tracing),
        }
    }
}

impl HostNumbers {
    fn new(cost: &HostCost) -> Self {
        let parts = &cost.parts;
        let most = cost.reasons.iter().find(|reason| !reason.waiting);
        Self {
            exits: Some(cost.exits),
            time_ns: Some(cost.time_ns),
            working_ns: Some(cost.working_ns()),
            waiting_ns: Some(cost.waiting_ns),
            kernel_ns: parts.kernel_ns,
            user_ns: parts.user_ns.or(parts.user_and_return_ns),
            off_cpu_ns: parts.off_cpu_ns,
            halt_poll_ns: parts.halt_poll_ns,
            not_split_ns: Some(parts.not_split_ns),
            most: most.map(|reason| format!("{} {}", reason.reason, count(reason.exits))),
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            exits: sum(self.exits, other.exits),
            time_ns: sum(self.time_ns, other.time_ns),
            working_ns: sum(self.working_ns, other.working_ns),
            waiting_ns: sum(self.waiting_ns, other.waiting_ns),
            kernel_ns: sum(self.kernel_ns, other.kernel_ns),
            user_ns: sum(self.user_ns, other.user_ns),
            off_cpu_ns: sum(self.off_cpu_ns, other.off_cpu_ns),
            halt_poll_ns: sum(self.halt_poll_ns, other.halt_poll_ns),
            not_split_ns: sum(self.not_split_ns, other.not_split_ns),
            most: None,
        }
    }
}

/// The sum of known values.
fn sum(first: Option<u64>, other: Option<u64>) -> Option<u64> {
    [first, other].into_iter().flatten().reduce(u64::saturating_add)
}

/// A phase's label in tables and charts.
pub(super) fn label(phase: &Phase) -> String {
    let name = match phase.kind {
        // Without a boot before it, this phase begins with the recording.
        PhaseKind::Running if phase.name != "recorded" => format!("after {:?}", phase.name),
        PhaseKind::Shutdown => format!("down: {}", phase.name),
        _ => phase.name.clone(),
    };
    match name.char_indices().nth(MAX_NAME) {
        Some((at, _)) => format!("{}…", name.get(..at).unwrap_or_default()),
        None => name,
    }
}
