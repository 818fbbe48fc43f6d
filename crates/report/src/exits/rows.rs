//! Rows of the exits report as JSON objects; the csv form is made of the same.

use analyses::{By, ExitRow, Exits, KnownParts};
use serde_json::{Value, json};

use super::{PERCENTILES, Source, name_of, rounded};
use crate::json::{Object, code_json, threads_json};

pub(super) fn vms_json(source: &Source) -> Vec<Value> {
    let vm = |vm: &timeline::Vm| {
        json!({
            "source": source.path,
            "vm": vm.name,
            "pid": vm.vcpus.iter().find_map(|vcpu| source.processes.get(&vcpu.thread)),
            "level": 1,
            "vcpus": vm.vcpus.len(),
            "comm": vm.comm,
            "threads": threads_json(vm),
        })
    };
    source.exits.vms.iter().map(vm).collect()
}

pub(super) fn rows_json(source: &Source) -> Vec<Value> {
    source.exits.rows.iter().map(|row| row_json(row, source)).collect()
}

pub(super) fn row_json(row: &ExitRow, source: &Source) -> Value {
    let mut object = Object::default();
    let (group, exits) = (&row.group, &source.exits);
    object
        .set("source", source.path.as_str())
        .set("vm", group.vm.clone())
        .set("level", group.level)
        .set("isa", group.isa.map(analyses::Isa::name))
        .set("reason", group.reason.clone())
        .set("code", group.code.as_ref().map_or(Value::Null, code_json));
    for by in &exits.by {
        match by {
            By::Vcpu => object.set("vcpu", group.vcpu),
            By::Task => object.set("task", group.task.clone()),
            By::Symbol => object.set("symbol", group.symbol.clone()),
            _ => match by.detail() {
                Some(detail) => {
                    let value = group.detail.filter(|(kind, _)| *kind == detail);
                    object.set(name_of(*by), value.map(|(_, value)| value))
                }
                None => &mut object,
            },
        };
    }
    tally_json(&mut object, row, exits);
    object.done()
}

fn tally_json(object: &mut Object, row: &ExitRow, exits: &Exits) {
    let tally = &row.tally;
    let (ns, durations) = (exits.nanoseconds, &tally.durations);
    let handled = json!({
        "kernel": exits.recorded.user.then_some(tally.by_kernel),
        "user": exits.recorded.user.then_some(tally.by_user),
        "l1": tally.by_l1,
    });
    object
        .set("handled", handled)
        .set("waiting", row.waiting)
        .set("count", tally.count)
        .set("paired", tally.paired())
        .time("time", ns, Some(durations.sum()))
        .time("min", ns, durations.min())
        .time("max", ns, durations.max())
        .time("mean", ns, durations.mean().map(rounded))
        .time("sd", ns, durations.standard_deviation().map(rounded))
        .set("relative_error", durations.relative_error());
    let names = ["p50", "p90", "p99", "p999"];
    for (name, value) in names.into_iter().zip(durations.percentiles(PERCENTILES)) {
        object.time(name, ns, value);
    }
    let parts = KnownParts::new(tally, &exits.recorded);
    object
        .time("kernel", ns, Some(parts.kernel_ns))
        .time("user", ns, parts.user_ns)
        .time("user_and_return", ns, parts.user_and_return_ns)
        .time("off_cpu", ns, parts.off_cpu_ns)
        .time("off_cpu_runnable", ns, parts.runnable_ns)
        .time("off_cpu_blocked", ns, parts.blocked_ns)
        .time("halt_poll", ns, parts.halt_poll_ns)
        .time("before_exit", ns, parts.before_exit_ns)
        .time("guest", ns, Some(tally.guest_ns))
        .set("dropped", tally.dropped);
}
