//! The tables of `hyperscope calls` for people.

use analyses::calls::{CallTracer, Function, RecordedCalls, ThreadCalls};
use printable::line;

use super::stacks::Stacks;
use super::{CallsReport, CallsSource, TreeLimits, functions, headline, threads};
use crate::column;
use crate::losses;
use crate::table::Table;
use crate::units::{count, plural, share, time};

impl CallsReport {
    pub(super) fn source_text(&self, source: &CallsSource, width: Option<usize>) -> String {
        let calls = &source.calls;
        let mut out = String::new();
        if self.sources.len() > 1 {
            out += &format!("\n{}\n", headline::of_source(self, source));
        }
        let Some(tracer) = calls.tracer else {
            out += "Use trace-cmd record -p function_graph, or -p function.\n";
            let lost = losses::notes(&calls.losses, 0);
            return out + &lost.iter().map(|note| format!("{note}\n")).collect::<String>();
        };
        out += &heading(source, tracer);
        let functions = self.sorted(calls);
        let shown = functions.get(..self.top.min(functions.len())).unwrap_or(&[]);
        let timed = tracer.records_returns();
        let table = if timed { functions::TIMED } else { functions::COUNTED };
        out += &format!("\n{}", self.functions(source, shown, table).draw(width).0);
        let more = functions.len() - shown.len();
        if more > 0 {
            out += &format!("and {}: --top 0 shows all\n", plural(more as u64, "more function"));
        }
        if timed {
            out += &format!("\n{}", self.threads(source).draw(width).0);
        }
        if let Some(limits) = self.tree {
            out += &format!("\n{}", tree(source, limits).draw(width).0);
        }
        if !calls.savings.is_empty() {
            out += &format!("\n{}", savings(calls).draw(width).0);
        }
        let notes = self.notes(source);
        if !notes.is_empty() {
            out += &format!("\n{}\n", notes.join("\n"));
        }
        out
    }

    fn functions(&self, source: &CallsSource, shown: &[&Function], table: &str) -> Table {
        let rows = self.rows(source, shown.iter().copied());
        let mut drawn = Table::default();
        column::draw(&functions::columns(), &mut drawn, table, &rows);
        drawn
    }

    fn threads(&self, source: &CallsSource) -> Table {
        let mut threads: Vec<&ThreadCalls> = source.calls.calling_threads().collect();
        threads.sort_by(|a, b| b.self_ns.cmp(&a.self_ns).then(a.thread.cmp(&b.thread)));
        threads.truncate(self.top);
        let mut drawn = Table::default();
        column::draw(&threads::columns(), &mut drawn, threads::TABLE, &self.rows(source, threads));
        drawn
    }
}

fn heading(source: &CallsSource, tracer: CallTracer) -> String {
    let (calls, tracer) = (&source.calls, tracer.name());
    let threads = calls.calling_threads().count();
    format!(
        "{} ({tracer}): {}, {}\n",
        line(&source.machine),
        plural(threads as u64, "thread"),
        plural(calls.sum(|function| function.events), "event"),
    )
}

/// Call tree, callees below their callers.
fn tree(source: &CallsSource, limits: TreeLimits) -> Table {
    let ns = source.calls.nanoseconds;
    let mut cells: [Vec<String>; 4] = Default::default();
    each_shown(source, limits, &mut |depth, total, stack| {
        let [names, calls, totals, shares] = &mut cells;
        names.push(format!("{}{}", "  ".repeat(depth), stack.name));
        calls.push(if stack.count > 0 { count(stack.count) } else { String::new() });
        totals.push(if source.has_times() { time(stack.total, ns) } else { count(stack.total) });
        shares.push(share(stack.total, total));
    });
    let [names, calls, totals, shares] = cells;
    let mut table = Table::default();
    table.names("call tree", 0, names);
    table.numbers("calls", 1, calls);
    table.numbers("total", 0, totals);
    table.numbers("total%", 0, shares);
    table
}

/// Passes on each stack to show, with its depth and the sum of all stacks.
pub(super) fn each_shown(
    source: &CallsSource,
    limits: TreeLimits,
    each: &mut dyn FnMut(usize, u64, &super::stacks::Stack),
) {
    let stacks = Stacks::from_source(source);
    let min = stacks.total as f64 * limits.least_percent / 100.0;
    stacks.walk(|depth, stack| {
        let is_shown = depth <= limits.depth && stack.total as f64 >= min;
        if is_shown {
            each(depth, stacks.total, stack);
        }
        is_shown
    });
}

fn savings(calls: &RecordedCalls) -> Table {
    let all = calls.sum(|function| function.events);
    let mut table = Table::default();
    let savings = &calls.savings;
    table.names(
        "not tracing",
        0,
        savings
            .iter()
            .map(|saving| {
                format!("{}{}", saving.pattern, if saving.is_requested { " (asked)" } else { "" })
            })
            .collect(),
    );
    table.numbers("functions", 1, savings.iter().map(|saving| count(saving.functions)).collect());
    table.numbers("events", 1, savings.iter().map(|saving| count(saving.events)).collect());
    table.numbers("spares", 0, savings.iter().map(|saving| share(saving.events, all)).collect());
    let together = savings.iter().map(|saving| share(saving.cumulative_events, all)).collect();
    table.numbers("cumulative", 0, together);
    table
}
