//! The JSON document of a boot.

use analyses::boot::{BootedMachine, EventCost, HostCost, InPhase, Initcall, Phase, Weight};
use serde_json::{Value, json};

use super::{BootReport, begin_ns};
use crate::json::{Object, code_json};

pub(super) fn machine(
    report: &BootReport,
    machine: &BootedMachine,
    initcalls: &[&Initcall],
) -> Value {
    let ns = machine.nanoseconds;
    let begin_ns = begin_ns(machine);
    let mark_at = |what: &str, mark: &Option<(String, u64)>| {
        mark.as_ref().map_or(Value::Null, |(text, at_ns)| {
            Object::default()
                .set(what, text.clone())
                .time("at", ns, Some(*at_ns))
                .time("since_begin", ns, Some(at_ns.saturating_sub(begin_ns)))
                .done()
        })
    };
    let cost = machine.event_cost.as_ref();
    let phases = machine.phases.iter().map(|one| phase(one, cost, begin_ns, ns));
    let initcalls = initcalls.iter().map(|one| initcall(one, begin_ns, ns));
    Object::default()
        .set("vm", machine.vm.clone())
        .set("host", report.source(machine.host))
        .set("guest", report.source(machine.guest))
        .time("begin", ns, machine.phases.first().map(|one| one.from_ns))
        .time("end", ns, machine.phases.last().map(|one| one.to_ns))
        .set("init", mark_at("program", &machine.init))
        .set("mark", mark_at("text", &machine.mark))
        .set("exits", machine.exits)
        .set("pages_damaged", machine.damaged)
        .set("initcall_ends_without_beginning", machine.strays)
        .set("event_cost", cost.map_or(Value::Null, event_cost))
        .set("phases", phases.collect::<Vec<_>>())
        .set("initcalls", initcalls.collect::<Vec<_>>())
        .done()
}

/// To a tenth of a nanosecond or better: what a phase took is not made of rounded numbers.
fn event_cost(cost: &EventCost) -> Value {
    json!({
        "event": cost.event,
        "rounds": cost.rounds,
        "repeats": cost.repeats,
        "median_ps": cost.median_ps,
        "low_ps": cost.low_ps,
        "high_ps": cost.high_ps,
    })
}

fn phase(phase: &Phase, cost: Option<&EventCost>, begin_ns: u64, ns: bool) -> Value {
    let mut object = Object::default();
    object
        .set("kind", phase.kind.name())
        .set("name", phase.name.clone())
        .time("from", ns, Some(phase.from_ns))
        .time("since_begin", ns, Some(phase.from_ns.saturating_sub(begin_ns)))
        .time("duration", ns, Some(phase.duration_ns()))
        .set("guest", phase.guest.as_ref().map_or(Value::Null, |one| in_phase(one, cost, ns)))
        .set("host", host(phase.host.as_ref(), ns));
    object.done()
}

fn in_phase(guest: &InPhase, cost: Option<&EventCost>, ns: bool) -> Value {
    let section = |(name, count, time_ns): &(String, u64, u64)| {
        Object::default()
            .set("section", name.clone())
            .set("initcalls", *count)
            .time("time", ns, Some(*time_ns))
            .done()
    };
    let tracing = |cost: &EventCost| {
        let cost = cost.of(guest.weight.events);
        json!({ "time_ns": cost.ns, "low_ns": cost.low_ns, "high_ns": cost.high_ns })
    };
    let mut object = Object::default();
    object
        .set("initcalls", guest.initcalls)
        .set("unfinished", guest.unfinished)
        .time("initcalls", ns, Some(guest.initcalls_ns))
        .set("sections", guest.sections.iter().map(section).collect::<Vec<_>>())
        .set("forks", guest.forks)
        .set("execs", guest.execs)
        .set("modules", guest.modules)
        .set("recorded", weight(&guest.weight))
        .set("tracing", cost.map_or(Value::Null, tracing));
    object.done()
}

fn weight(weight: &Weight) -> Value {
    json!({
        "events": weight.events,
        "event_bytes": weight.bytes,
        "losses": weight.losses,
        "events_lost": weight.lost,
    })
}

fn host(cost: Option<&HostCost>, ns: bool) -> Value {
    let Some(cost) = cost else { return Value::Null };
    let parts = &cost.parts;
    let reason = |one: &analyses::boot::ReasonCost| {
        Object::default()
            .set("reason", one.reason.clone())
            .set("code", code_json(&one.code))
            .set("count", one.exits)
            .time("time", ns, Some(one.time_ns))
            .set("waiting", one.waiting)
            .done()
    };
    Object::default()
        .set("exits", cost.exits)
        .set("paired", cost.paired)
        .time("time", ns, Some(cost.time_ns))
        .time("waiting", ns, Some(cost.waiting_ns))
        .time("kernel", ns, parts.kernel_ns)
        .time("user", ns, parts.user_ns)
        .time("user_and_return", ns, parts.user_and_return_ns)
        .time("off_cpu", ns, parts.off_cpu_ns)
        .time("halt_poll", ns, parts.halt_poll_ns)
        .time("not_split", ns, Some(parts.not_split_ns))
        .set("reasons", cost.reasons.iter().map(reason).collect::<Vec<_>>())
        .done()
}

fn initcall(one: &Initcall, begin_ns: u64, ns: bool) -> Value {
    let recorded = one.weight.as_ref().map_or(Value::Null, weight);
    Object::default()
        .set("function", one.function.clone())
        .set("address", one.address)
        .set("module", one.module.clone())
        .set("loaded", one.is_loaded)
        .set("level", one.level.clone())
        .set("section", one.section.clone())
        .time("since_begin", ns, Some(one.from_ns.saturating_sub(begin_ns)))
        .time("duration", ns, one.duration_ns())
        .set("result", one.result)
        .set("depth", one.depth)
        .set("recorded", recorded)
        .set("host", host(one.host.as_ref(), ns))
        .done()
}
