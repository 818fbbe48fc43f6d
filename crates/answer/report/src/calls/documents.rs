//! The calls of a recording as JSON, every field of which is in `docs/formats/calls.schema.json`.

use analyses::calls::{Function, Saving, ThreadCalls};
use analyses::distribution::Distribution;
use serde::Serialize;
use serde_json::{Value, json};

use super::tables::each_shown;
use super::{CallsReport, CallsSource, Most, functions, threads};
use crate::column::{Exported, Rows};
use crate::json::Object;

impl CallsReport {
    pub(super) fn source_json(&self, source: &CallsSource, most: Most) -> Value {
        let (calls, ns) = (&source.calls, source.calls.nanoseconds);
        let timed = source.has_times();
        let when_timed = |value: u64| timed.then_some(value);
        let thread_sum = |of: fn(&ThreadCalls) -> u64| -> u64 {
            calls.calling_threads().map(of).fold(0, u64::saturating_add)
        };
        let tracer_ns = calls.sum(|one| one.tracer_ns(self.per_call));
        let functions = self.sorted(calls).into_iter().take(most.functions);
        let threads = calls.calling_threads().take(most.threads);
        let threads = Rows { columns: threads::columns(), rows: self.rows(source, threads) };
        let mut object = Object::default();
        object
            .set("path", source.path.clone())
            .set("machine", source.machine.clone())
            .set("is_guest", source.is_guest)
            .set("tracer", calls.tracer.map(analyses::calls::CallTracer::name))
            .set("events", calls.sum(|one| one.events))
            .set("count", calls.sum(|one| one.count))
            .set("without_call", calls.sum(|one| one.without_call))
            .set("without_return", calls.sum(|one| one.without_return))
            .set("interrupted", calls.interrupted)
            .set("overrun", thread_sum(|one| one.overrun))
            .set("stacks_not_kept_apart", calls.tree.rest())
            .time("traced", ns, when_timed(thread_sum(|one| one.traced_ns)))
            .time("self", ns, when_timed(calls.sum(|one| one.self_ns) - tracer_ns))
            .time("tracer", ns, self.per_call.and(when_timed(tracer_ns)))
            .time("off_cpu", ns, off_cpu(source, thread_sum(|one| one.off_cpu_ns)))
            .time("unaccounted", ns, when_timed(thread_sum(ThreadCalls::unaccounted_ns)))
            .set("functions", functions_json(&self.rows(source, functions)))
            .set("threads", json!(threads))
            .set("tree", self.tree_json(source))
            .set("savings", calls.savings.iter().map(saving_json).collect::<Vec<_>>())
            .set("fastest", fastest_json(source))
            .done()
    }

    fn tree_json(&self, source: &CallsSource) -> Value {
        let Some(limits) = self.tree else { return Value::Null };
        let (ns, timed) = (source.calls.nanoseconds, source.has_times());
        let mut rows = Vec::new();
        each_shown(source, limits, &mut |depth, _, one| {
            let row = Object::default()
                .set("depth", depth)
                .set("name", one.name.clone())
                .set("count", one.count)
                .time("total", ns, timed.then_some(one.total))
                .time("self", ns, timed.then_some(one.own))
                .time("off_cpu", ns, off_cpu(source, one.off_cpu))
                .done();
            rows.push(row);
        });
        Value::Array(rows)
    }
}

/// What the columns say of a function, and who called it.
#[derive(Serialize)]
struct FunctionObject<'c, 'r> {
    #[serde(flatten)]
    columns: Exported<'c, functions::Row<'r>>,
    callers: Vec<Caller>,
}

#[derive(Serialize)]
struct Caller {
    function: Option<String>,
    count: u64,
}

fn functions_json(rows: &[functions::Row<'_>]) -> Value {
    let columns = functions::columns();
    let caller = |row: &functions::Row<'_>, number: u32| {
        row.source.calls.functions.get(number as usize).map(Function::title)
    };
    let object = |row| FunctionObject {
        columns: Exported { columns: &columns, row },
        callers: row
            .of
            .callers
            .iter()
            .map(|&(number, count)| Caller { function: caller(row, number), count })
            .collect(),
    };
    let objects: Vec<_> = rows.iter().map(object).collect();
    json!(objects)
}

/// Time off the CPU, if the recording has it.
fn off_cpu(source: &CallsSource, value: u64) -> Option<u64> {
    (source.has_times() && source.calls.switches).then_some(value)
}

fn saving_json(one: &Saving) -> Value {
    json!({
        "pattern": one.pattern,
        "asked": one.asked,
        "functions": one.functions,
        "events": one.events,
        "cumulative_events": one.cumulative_events,
    })
}

/// How fast the fastest calls were, which bounds what the tracer costs where it is cheapest.
fn fastest_json(source: &CallsSource) -> Value {
    let ns = source.calls.nanoseconds;
    let distribution = |name: &str, object: &mut Object, times: &Distribution| {
        let [low, middle] = times.percentiles([10, 500]);
        object.set(&format!("{name}_count"), times.count());
        object.time(&format!("{name}_min"), ns, times.min());
        object.time(&format!("{name}_p1"), ns, low).time(&format!("{name}_p50"), ns, middle);
    };
    let mut object = Object::default();
    distribution("leaf", &mut object, &source.calls.cost.leaves);
    distribution("between", &mut object, &source.calls.cost.between);
    object.done()
}
