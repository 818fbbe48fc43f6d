//! An interval as one line of JSON: docs/formats/top.schema.json.

use crate::guest_views::SeenGuest;
use crate::{ACTIVITIES, Interval, RanInstead, Row, Sums, Vcpu};
use channel::wire::{CpuUse, GuestView, TaskUse};
use serde_json::{Map, Value, json};
use timeline::reasons::Code;

/// The document's name and version.
const SCHEMA: &str = "hyperscope.top/1";

/// The line, without its end; guests are those that were asked for.
#[must_use]
pub fn line(interval: &Interval, guests: &[SeenGuest]) -> String {
    let rows: Vec<Value> = interval.rows.iter().map(row).collect();
    let vcpus: Vec<Value> = interval.vcpus.iter().map(vcpu).collect();
    let document = json!({
        "schema": SCHEMA,
        "ts_ns": interval.end_ns,
        "interval_ns": interval.interval_ns(),
        "rows": rows,
        "vcpus": vcpus,
        "guests": guests.iter().map(guest).collect::<Vec<_>>(),
        "cost": {
            "cpu_ns": interval.cost.cpu_ns(),
            "process_ns": interval.cost.process_ns,
            "programs_ns": interval.cost.programs_ns,
            "per_exit_ns": interval.cost.per_exit_ns(),
        },
        "left_out": {
            "exits": interval.left_out.without_state,
            "pieces": interval.left_out.pieces,
            "waits": interval.left_out.waits,
            "ran_instead": interval.left_out.takers,
            "sched_events": interval.left_out.sched_events,
        },
    });
    document.to_string()
}

fn row(row: &Row) -> Value {
    let of = [
        ("vm", json!(row.vm)),
        ("vcpu", json!(row.vcpu)),
        ("level", json!((row.level > 0).then_some(row.level))),
        ("isa", json!(row.code.as_ref().map(|_| row.isa.name()))),
        ("reason", json!(row.reason)),
        ("code", row.code.as_ref().map_or(Value::Null, code)),
        ("waiting", json!(row.waiting)),
    ];
    let mut all = object(of);
    all.append(&mut sums(&row.sums));
    Value::Object(all)
}

fn code(code: &Code) -> Value {
    match code {
        Code::Number(number) => json!(number),
        pair @ Code::Pair(..) => json!(pair.to_string()),
        Code::NotRecorded => Value::Null,
    }
}

fn sums(sums: &Sums) -> Map<String, Value> {
    let [kernel, user, l1] = sums.handled;
    object([
        ("count", json!(sums.count)),
        ("paired", json!(sums.paired)),
        ("handled", json!({ "kernel": kernel, "user": user, "l1": l1 })),
        ("time_ns", json!(sums.time_ns)),
        ("cost_ns", json!(sums.cost_ns())),
        ("before_exit_ns", json!(sums.before_exit_ns)),
        ("kernel_ns", json!(sums.parts.kernel_ns)),
        ("user_ns", json!(sums.parts.user_ns)),
        ("runnable_ns", json!(sums.parts.runnable_ns)),
        ("blocked_ns", json!(sums.parts.blocked_ns)),
        ("halt_poll_ns", json!(sums.parts.halt_poll_ns)),
        ("guest_ns", json!(sums.guest_ns)),
        ("p50_ns", json!(sums.times.quantile_ns(0.5))),
        ("p99_ns", json!(sums.times.quantile_ns(0.99))),
    ])
}

fn vcpu(vcpu: &Vcpu) -> Value {
    let states = ACTIVITIES.map(|(activity, name)| (name, json!(vcpu.states.of(activity))));
    json!({
        "vm": vcpu.vm,
        "pid": vcpu.process,
        "vcpu": vcpu.vcpu,
        "thread": vcpu.thread,
        "gone": vcpu.gone,
        "time_ns": vcpu.states.total_ns(),
        "states": object(states),
        "nested_guest_ns": vcpu.states.nested_ns(),
        "run_queue": {
            "waits": vcpu.waits.count,
            "time_ns": vcpu.waits.time_ns,
            "p50_ns": vcpu.waits.times.quantile_ns(0.5),
            "p99_ns": vcpu.waits.times.quantile_ns(0.99),
            "ran_instead": vcpu.ran_instead.iter().map(ran_instead).collect::<Vec<_>>(),
        },
    })
}

fn ran_instead(one: &RanInstead) -> Value {
    json!({
        "thread": one.thread,
        "pid": one.process,
        "name": one.name,
        "vm": one.vm,
        "time_ns": one.time_ns,
    })
}

fn guest(guest: &SeenGuest) -> Value {
    let view = guest.view.as_ref();
    json!({
        "name": guest.name,
        "channel": guest.channel,
        "pid": guest.process,
        "fault": view.err(),
        "view": view.ok().map(self::view),
    })
}

fn view(view: &GuestView) -> Value {
    let cpus = view.cpus.iter().map(|(cpu, used)| {
        let mut of = object([("cpu", json!(cpu))]);
        of.append(&mut cpu_use(used));
        Value::Object(of)
    });
    json!({
        "interval_ns": view.span_ns,
        "agent_cpu_ns": view.agent_cpu_ns,
        "cpu_count": view.cpu_count,
        "all_cpus": cpu_use(&view.all_cpus),
        "cpus": cpus.collect::<Vec<_>>(),
        "task_count": view.task_count,
        "unread_threads": view.unread_threads,
        "tasks_run_ns": view.tasks_run_ns,
        "tasks_waited_ns": view.tasks_waited_ns,
        "tasks": view.tasks.iter().map(task).collect::<Vec<_>>(),
    })
}

fn cpu_use(used: &CpuUse) -> Map<String, Value> {
    object([
        ("user_ns", json!(used.user_ns)),
        ("system_ns", json!(used.system_ns)),
        ("irq_ns", json!(used.irq_ns)),
        ("steal_ns", json!(used.steal_ns)),
        ("idle_ns", json!(used.idle_ns)),
        ("guest_ns", json!(used.guest_ns)),
    ])
}

fn task(task: &TaskUse) -> Value {
    json!({
        "pid": task.pid,
        "name": task.name,
        "threads": task.threads,
        "run_ns": task.run_ns,
        "waited_ns": task.waited_ns,
    })
}

fn object<const N: usize>(of: [(&str, Value); N]) -> Map<String, Value> {
    of.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
