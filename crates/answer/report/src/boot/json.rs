//! Fills the JSON document of boots.

use analyses::boot::{
    BootedMachine, EventCost, HostCost, InPhase, Initcall, Phase, ReasonCost, Weight,
};

use super::document::{
    CallTimes, Document, EndTimes, Guest, Host, HostTimes, Init, InitcallTimes, Machine, Mark,
    MarkTimes, OneCall, OneEvent, OnePhase, PhaseTimes, Reason, ReasonTimes, Recorded, Section,
    SectionTimes, Tracing,
};
use super::{BootReport, begin_ns};
use crate::json::RawCode;
use crate::losses::LossSums;

impl<'b> Document<'b> {
    /// Creates the document with the initcalls that `initcalls` chooses for each machine.
    pub(super) fn new(
        report: &'b BootReport,
        initcalls: impl Fn(&'b BootedMachine) -> Vec<&'b Initcall>,
    ) -> Self {
        let machines = report.boot.machines.iter();
        let machine_of =
            |machine: &'b BootedMachine| Machine::new(report, machine, &initcalls(machine));
        Self {
            schema: "hyperscope.boot/1",
            sources: &report.sources,
            alignment: &report.alignment,
            losses: LossSums::new(report.boot.losses.iter(), 0),
            machines: machines.map(machine_of).collect(),
        }
    }
}

impl<'b> Machine<'b> {
    fn new(report: &'b BootReport, machine: &'b BootedMachine, calls: &[&'b Initcall]) -> Self {
        let ns = machine.nanoseconds;
        let begin_ns = begin_ns(machine);
        let cost = machine.event_cost.as_ref();
        let times = |at_ns: u64| {
            let since_ns = at_ns.saturating_sub(begin_ns);
            MarkTimes { in_ns: ns, at: Some(at_ns), since_begin: Some(since_ns) }
        };
        let init = machine.init.as_ref();
        let mark = machine.mark.as_ref();
        let phases = machine.phases.iter();
        let (first, last) = (machine.phases.first(), machine.phases.last());
        Self {
            vm: machine.vm.as_deref(),
            host: report.source(machine.host),
            guest: report.source(machine.guest),
            ends: EndTimes {
                in_ns: ns,
                begin: first.map(|phase| phase.from_ns),
                end: last.map(|phase| phase.to_ns),
            },
            init: init.map(|(program, at_ns)| Init { program, times: times(*at_ns) }),
            mark: mark.map(|(text, at_ns)| Mark { text, times: times(*at_ns) }),
            exits: machine.exits,
            pages_damaged: machine.damaged,
            initcall_ends_without_beginning: machine.strays,
            event_cost: cost.map(OneEvent::new),
            phases: phases.map(|phase| OnePhase::new(phase, cost, begin_ns, ns)).collect(),
            initcalls: calls.iter().map(|call| OneCall::new(call, begin_ns, ns)).collect(),
        }
    }
}

impl<'b> OneEvent<'b> {
    fn new(cost: &'b EventCost) -> Self {
        let EventCost { event, rounds, repeats, median_ps, low_ps, high_ps } = cost;
        Self {
            event,
            rounds: *rounds,
            repeats: *repeats,
            median_ps: *median_ps,
            low_ps: *low_ps,
            high_ps: *high_ps,
        }
    }
}

impl<'b> OnePhase<'b> {
    fn new(phase: &'b Phase, cost: Option<&EventCost>, begin_ns: u64, ns: bool) -> Self {
        let since_ns = phase.from_ns.saturating_sub(begin_ns);
        Self {
            kind: phase.kind.name(),
            name: &phase.name,
            times: PhaseTimes {
                in_ns: ns,
                from: Some(phase.from_ns),
                since_begin: Some(since_ns),
                duration: Some(phase.duration_ns()),
            },
            guest: phase.guest.as_ref().map(|guest| Guest::new(guest, cost, ns)),
            host: phase.host.as_ref().map(|host| Host::new(host, ns)),
        }
    }
}

impl<'b> Guest<'b> {
    fn new(guest: &'b InPhase, cost: Option<&EventCost>, ns: bool) -> Self {
        let section = |(section, initcalls, time_ns): &'b (String, u64, u64)| Section {
            section,
            initcalls: *initcalls,
            time: SectionTimes { in_ns: ns, time: Some(*time_ns) },
        };
        let tracing = cost.map(|cost| cost.cost_of(guest.weight.events));
        Self {
            initcalls: guest.initcalls,
            unfinished: guest.unfinished,
            in_initcalls: InitcallTimes { in_ns: ns, initcalls: Some(guest.initcalls_ns) },
            sections: guest.sections.iter().map(section).collect(),
            forks: guest.forks,
            execs: guest.execs,
            modules: guest.modules,
            recorded: Recorded::new(&guest.weight),
            tracing: tracing.map(|cost| Tracing {
                time_ns: cost.ns,
                low_ns: cost.low_ns,
                high_ns: cost.high_ns,
            }),
        }
    }
}

impl Recorded {
    fn new(weight: &Weight) -> Self {
        let Weight { events, bytes, losses, lost } = *weight;
        Self { events, event_bytes: bytes, losses, events_lost: lost }
    }
}

impl<'b> Host<'b> {
    fn new(cost: &'b HostCost, ns: bool) -> Self {
        let parts = &cost.parts;
        Self {
            exits: cost.exits,
            paired: cost.paired,
            times: HostTimes {
                in_ns: ns,
                time: Some(cost.time_ns),
                waiting: Some(cost.waiting_ns),
                kernel: parts.kernel_ns,
                user: parts.user_ns,
                user_and_return: parts.user_and_return_ns,
                off_cpu: parts.off_cpu_ns,
                halt_poll: parts.halt_poll_ns,
                not_split: Some(parts.not_split_ns),
            },
            reasons: cost.reasons.iter().map(|reason| Reason::new(reason, ns)).collect(),
        }
    }
}

impl<'b> Reason<'b> {
    fn new(cost: &'b ReasonCost, ns: bool) -> Self {
        Self {
            reason: &cost.reason,
            code: RawCode(&cost.code),
            count: cost.exits,
            time: ReasonTimes { in_ns: ns, time: Some(cost.time_ns) },
            waiting: cost.waiting,
        }
    }
}

impl<'b> OneCall<'b> {
    fn new(call: &'b Initcall, begin_ns: u64, ns: bool) -> Self {
        let since_ns = call.from_ns.saturating_sub(begin_ns);
        Self {
            function: call.function.as_deref(),
            address: call.address,
            module: call.module.as_deref(),
            loaded: call.is_loaded,
            level: call.level.as_deref(),
            section: call.section.as_deref(),
            times: CallTimes {
                in_ns: ns,
                since_begin: Some(since_ns),
                duration: call.duration_ns(),
            },
            result: call.result,
            depth: call.depth,
            recorded: call.weight.as_ref().map(Recorded::new),
            host: call.host.as_ref().map(|cost| Host::new(cost, ns)),
        }
    }
}
