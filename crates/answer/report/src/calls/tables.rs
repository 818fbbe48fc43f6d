//! The tables of `hyperscope calls` for people.

use analyses::{CallTracer, Function, RecordedCalls, ThreadCalls};
use printable::line;

use super::stacks::Stacks;
use super::{CallsReport, CallsSource, TreeLimits};
use crate::table::Table;
use crate::units::{count, plural, share, time};

/// Callers shown of a function, those that called it most; json has all.
const MOST_CALLERS: usize = 1;

impl CallsReport {
    pub(super) fn source_text(&self, source: &CallsSource, width: Option<usize>) -> String {
        let calls = &source.calls;
        let mut out = heading(source);
        let Some(tracer) = calls.tracer else {
            out += "no calls are recorded: trace-cmd record -p function_graph, or -p function\n";
            return out;
        };
        let functions = self.sorted(calls);
        let shown = functions.get(..self.top.min(functions.len())).unwrap_or(&[]);
        let timed = tracer.records_returns();
        let table = if timed { self.timed(calls, shown) } else { counted(calls, shown) };
        out += &format!("\n{}", table.draw(width).0);
        let more = functions.len() - shown.len();
        if more > 0 {
            out += &format!("and {} more functions: --top 0 shows all\n", count(more as u64));
        }
        if timed {
            out += &format!("\n{}", self.threads(calls).draw(width).0);
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

    fn timed(&self, calls: &RecordedCalls, shown: &[&Function]) -> Table {
        let ns = calls.nanoseconds;
        let all_ns = calls.sum(|one| one.self_ns);
        let mut table = Table::default();
        let each = |of: &dyn Fn(&Function) -> String| shown.iter().map(|one| of(one)).collect();
        table.names("function", 0, each(&Function::title));
        table.numbers("calls", 0, each(&|one| count(one.count)));
        let own_ns = |one: &Function| one.self_ns - one.tracer_ns(self.per_call);
        table.numbers("self", 0, each(&|one| time(own_ns(one), ns)));
        table.numbers("self%", 1, each(&|one| share(own_ns(one), all_ns)));
        if self.per_call.is_some() {
            table.numbers("tracer", 1, each(&|one| time(one.tracer_ns(self.per_call), ns)));
        }
        if calls.switches {
            table.numbers("off CPU", 2, each(&|one| time(one.off_cpu_ns, ns)));
        }
        table.numbers("total", 0, each(&|one| time(one.total_ns, ns)));
        let mean = |one: &Function| one.total_ns.checked_div(one.count);
        table.numbers(
            "mean",
            2,
            each(&|one| mean(one).map_or("-".to_owned(), |ns_| time(ns_, ns))),
        );
        table.numbers("max", 3, each(&|one| time(one.max_ns, ns)));
        table
    }

    fn threads(&self, calls: &RecordedCalls) -> Table {
        let ns = calls.nanoseconds;
        let mut threads: Vec<&ThreadCalls> = calls.calling_threads().collect();
        threads.sort_by(|a, b| b.self_ns.cmp(&a.self_ns).then(a.thread.cmp(&b.thread)));
        threads.truncate(self.top);
        let mut table = Table::default();
        let each =
            |of: &dyn Fn(&ThreadCalls) -> String| threads.iter().map(|one| of(one)).collect();
        table.names("thread", 0, each(&ThreadCalls::title));
        table.numbers("calls", 0, each(&|one| count(one.count)));
        table.numbers("traced", 0, each(&|one| time(one.traced_ns, ns)));
        table.numbers("self", 0, each(&|one| time(one.self_ns, ns)));
        if calls.switches {
            table.numbers("off CPU", 1, each(&|one| time(one.off_cpu_ns, ns)));
        }
        table.numbers("unaccounted", 1, each(&|one| time(one.unaccounted_ns(), ns)));
        table
    }
}

fn heading(source: &CallsSource) -> String {
    let calls = &source.calls;
    let tracer = calls.tracer.map_or("no function tracer", CallTracer::name);
    let functions = calls.functions.iter().filter(|one| one.events > 0).count();
    let threads = calls.calling_threads().count();
    format!(
        "{}: {} ({tracer})\n{} of {} by {}, {}\n",
        line(&source.path),
        line(&source.machine),
        plural(calls.sum(|one| one.count), "call"),
        plural(functions as u64, "function"),
        plural(threads as u64, "thread"),
        plural(calls.sum(|one| one.events), "event"),
    )
}

/// Functions of a recording without times.
fn counted(calls: &RecordedCalls, shown: &[&Function]) -> Table {
    let all = calls.sum(|one| one.count);
    let mut table = Table::default();
    let each = |of: &dyn Fn(&Function) -> String| shown.iter().map(|one| of(one)).collect();
    table.names("function", 0, each(&Function::title));
    table.numbers("calls", 0, each(&|one| count(one.count)));
    table.numbers("share", 0, each(&|one| share(one.count, all)));
    let callers = |one: &Function| {
        let names = one.callers.iter().take(MOST_CALLERS).map(|(caller, times)| {
            let caller = calls.functions.get(*caller as usize);
            let title = caller.map_or_else(String::new, Function::title);
            format!("{title} {}", count(*times))
        });
        let mut names: Vec<String> = names.collect();
        if one.callers.len() > MOST_CALLERS {
            names.push("…".to_owned());
        }
        names.join(", ")
    };
    table.names("callers", 1, each(&callers));
    table
}

/// Who called whom, callees below their callers.
fn tree(source: &CallsSource, limits: TreeLimits) -> Table {
    let ns = source.calls.nanoseconds;
    let mut cells: [Vec<String>; 4] = Default::default();
    each_shown(source, limits, &mut |depth, whole, one| {
        let [names, calls, totals, shares] = &mut cells;
        names.push(format!("{}{}", "  ".repeat(depth), one.name));
        calls.push(if one.count > 0 { count(one.count) } else { String::new() });
        totals.push(if source.has_times() { time(one.total, ns) } else { count(one.total) });
        shares.push(share(one.total, whole));
    });
    let [names, calls, totals, shares] = cells;
    let mut table = Table::default();
    table.names("call tree", 0, names);
    table.numbers("calls", 1, calls);
    table.numbers("total", 0, totals);
    table.numbers("total%", 0, shares);
    table
}

/// Gives each stack that is to be shown, with its depth and what is in all stacks.
pub(super) fn each_shown(
    source: &CallsSource,
    limits: TreeLimits,
    each: &mut dyn FnMut(usize, u64, &super::stacks::Stack),
) {
    let stacks = Stacks::of(source);
    let least = stacks.total as f64 * limits.least_percent / 100.0;
    stacks.walk(|depth, one| {
        let is_shown = depth <= limits.depth && one.total as f64 >= least;
        if is_shown {
            each(depth, stacks.total, one);
        }
        is_shown
    });
}

fn savings(calls: &RecordedCalls) -> Table {
    let all = calls.sum(|one| one.events);
    let mut table = Table::default();
    let savings = &calls.savings;
    table.names(
        "not tracing",
        0,
        savings
            .iter()
            .map(|one| format!("{}{}", one.pattern, if one.asked { " (asked)" } else { "" }))
            .collect(),
    );
    table.numbers("functions", 1, savings.iter().map(|one| count(one.functions)).collect());
    table.numbers("events", 1, savings.iter().map(|one| count(one.events)).collect());
    table.numbers("spares", 0, savings.iter().map(|one| share(one.events, all)).collect());
    let together = savings.iter().map(|one| share(one.cumulative_events, all)).collect();
    table.numbers("with those above", 0, together);
    table
}
