//! Fills the JSON document of calls.

use analyses::calls::{CallTracer, Function, Saving, ThreadCalls};

use super::document::{
    BetweenTimes, Caller, Callers, Fastest, LeafTimes, SavingRow, Source, SourceTimes, TreeRow,
    TreeTimes,
};
use super::tables::each_shown;
use super::{CallsReport, CallsSource, Most, functions, threads};
use crate::column::{Rows, RowsWith};

impl CallsReport {
    pub(super) fn source<'r>(&self, source: &'r CallsSource, most: Most) -> Source<'r> {
        let calls = &source.calls;
        let threads = calls.calling_threads().take(most.threads);
        Source {
            path: &source.path,
            machine: &source.machine,
            is_guest: source.is_guest,
            tracer: calls.tracer.map(CallTracer::name),
            events: calls.sum(|function| function.events),
            count: calls.sum(|function| function.count),
            without_call: calls.sum(|function| function.without_call),
            without_return: calls.sum(|function| function.without_return),
            interrupted: calls.interrupted,
            overrun: thread_sum(source, |thread| thread.overrun),
            stacks_not_kept_apart: calls.tree.rest(),
            times: self.times(source),
            functions: self.functions_with_callers(source, most.functions),
            threads: Rows { columns: threads::columns(), rows: self.rows(source, threads) },
            tree: self.tree_rows(source),
            savings: calls.savings.iter().map(SavingRow::new).collect(),
            fastest: fastest(source),
        }
    }

    fn times(&self, source: &CallsSource) -> SourceTimes {
        let calls = &source.calls;
        let when_timed = |value: u64| source.has_times().then_some(value);
        let tracer_ns = calls.sum(|function| function.tracer_ns(self.per_call));
        SourceTimes {
            in_ns: calls.nanoseconds,
            traced: when_timed(thread_sum(source, |thread| thread.traced_ns)),
            self_time: when_timed(calls.sum(|function| function.self_ns) - tracer_ns),
            tracer: self.per_call.and(when_timed(tracer_ns)),
            off_cpu: off_cpu(source, thread_sum(source, |thread| thread.off_cpu_ns)),
            unaccounted: when_timed(thread_sum(source, ThreadCalls::unaccounted_ns)),
        }
    }

    /// The first functions, each with its callers.
    fn functions_with_callers<'r>(
        &self,
        source: &'r CallsSource,
        max: usize,
    ) -> RowsWith<functions::Row<'r>, Callers> {
        let functions = self.sorted(&source.calls).into_iter().take(max);
        let rows = self.rows(source, functions).into_iter().map(|row| {
            let callers = callers(&row);
            (row, callers)
        });
        RowsWith { columns: functions::columns(), rows: rows.collect() }
    }

    fn tree_rows(&self, source: &CallsSource) -> Option<Vec<TreeRow>> {
        let limits = self.tree?;
        let (in_ns, timed) = (source.calls.nanoseconds, source.has_times());
        let mut rows = Vec::new();
        each_shown(source, limits, &mut |depth, _, stack| {
            rows.push(TreeRow {
                depth,
                name: stack.name.clone(),
                count: stack.count,
                times: TreeTimes {
                    in_ns,
                    total: timed.then_some(stack.total),
                    self_time: timed.then_some(stack.self_amount),
                    off_cpu: off_cpu(source, stack.off_cpu),
                },
            });
        });
        Some(rows)
    }
}

fn thread_sum(source: &CallsSource, value: fn(&ThreadCalls) -> u64) -> u64 {
    source.calls.calling_threads().map(value).fold(0, u64::saturating_add)
}

fn callers(row: &functions::Row<'_>) -> Callers {
    let function = |number: u32| row.source.calls.functions.get(number as usize);
    let caller = |&(number, count): &(u32, u64)| Caller {
        function: function(number).map(Function::title),
        count,
    };
    Callers { callers: row.subject.callers.iter().map(caller).collect() }
}

/// Time off the CPU, if the recording has it.
fn off_cpu(source: &CallsSource, value: u64) -> Option<u64> {
    (source.has_times() && source.calls.switches).then_some(value)
}

impl<'r> SavingRow<'r> {
    fn new(saving: &'r Saving) -> Self {
        Self {
            pattern: &saving.pattern,
            asked: saving.is_requested,
            functions: saving.functions,
            events: saving.events,
            cumulative_events: saving.cumulative_events,
        }
    }
}

/// Times of the fastest calls, which bound the tracer's cost where it is cheapest.
fn fastest(source: &CallsSource) -> Fastest {
    let in_ns = source.calls.nanoseconds;
    let (leaves, between) = (&source.calls.cost.leaves, &source.calls.cost.between);
    let [leaf_p1, leaf_p50] = leaves.percentiles([10, 500]);
    let [between_p1, between_p50] = between.percentiles([10, 500]);
    Fastest {
        leaf_count: leaves.count(),
        leaf: LeafTimes { in_ns, min: leaves.min(), p1: leaf_p1, p50: leaf_p50 },
        between_count: between.count(),
        between: BetweenTimes { in_ns, min: between.min(), p1: between_p1, p50: between_p50 },
    }
}
