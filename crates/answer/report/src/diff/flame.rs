//! The stacks of both sides in one flame graph: the width of a frame is its mean time, its colour the difference.

use analyses::diff::{ChangedStack, StackChanges, StackFrame, Unit};
use printable::line;

use super::DiffReport;
use super::numbers::{change, interval, number, p_value};
use crate::flame::{Begins, Drawing, Frame, change_class};
use crate::folded::frame;
use crate::units::plural;

impl DiffReport {
    /// The flame graph, as an SVG document.
    #[must_use]
    pub fn flame(&self, changes: &StackChanges, title: &str) -> String {
        let [a, b] = changes.ns_per_s();
        let total = (a + b).max(1.0);
        let mut drawing = Drawing::default();
        let mut begins = Begins::at(0);
        walk(changes, |depth, stack| {
            // Integers, so that frames of one caller are adjacent without a gap.
            let amount = width(stack);
            drawing.push(Frame {
                depth,
                offset: begins.place(depth, amount as u64) as f64 / total,
                width: amount / total,
                name: name(changes, stack),
                title: self.tip(stack, [a, b]),
                class: class(stack),
            })
        });
        let seconds = |durations: &[f64]| {
            number(durations.iter().sum::<f64>() * 1e9, Unit::Time, self.diff.nanoseconds)
        };
        let legend = format!(
            "orange: more in B · blue: less in B · grey: no significant difference (alpha {}) · width: mean of A ({}) and B ({})",
            self.diff.options.alpha,
            seconds(&self.diff.seconds.0),
            seconds(&self.diff.seconds.1),
        );
        drawing.document(title, &legend)
    }

    /// One line for each stack with self time, with nanoseconds per second of A and of B.
    #[must_use]
    pub fn folded(&self, changes: &StackChanges) -> String {
        let mut out = String::new();
        let mut stack: Vec<String> = Vec::new();
        walk(changes, |depth, node| {
            stack.truncate(depth);
            stack.push(frame(&name(changes, node)));
            let [a, b] = node.own_ns_per_s.map(|rate| rate.round() as u64);
            if a > 0 || b > 0 {
                out += &format!("{} {a} {b}\n", stack.join(";"));
            }
            true
        });
        out
    }

    fn tip(&self, stack: &ChangedStack, totals: [f64; 2]) -> String {
        let rate = |rate: f64| number(rate, Unit::TimePerSecond, self.diff.nanoseconds);
        let share = |rate: f64, total: f64| number(rate / total.max(1.0), Unit::Share, true);
        let [a, b] = stack.ns_per_s;
        let mut tip = format!(
            "A: {} of a CPU, {} of all\nB: {} of a CPU, {} of all",
            rate(a),
            share(a, totals[0]),
            rate(b),
            share(b, totals[1])
        );
        let Some(row) = &stack.judged else {
            return tip
                + &format!("\n{}: too little data to compare", plural(stack.samples, "sample"));
        };
        let nanoseconds = self.diff.nanoseconds;
        if let Some(change) = change(row, Unit::TimePerSecond, nanoseconds) {
            let between = interval(row, Unit::TimePerSecond, nanoseconds);
            tip += &format!("\n{change} ({between})");
        }
        if let Some(p) = row.p_adjusted {
            let verdict = if row.significant { "" } else { ": no significant difference" };
            tip += &format!("\np adjusted {}{verdict}", p_value(p));
        }
        if stack.samples > 0 {
            tip += &format!("\n{}", plural(stack.samples, "sample"));
        }
        tip
    }
}

/// The width of a frame: the mean of both sides, times two.
fn width(stack: &ChangedStack) -> f64 {
    let [a, b] = stack.ns_per_s;
    (a + b).round()
}

fn class(stack: &ChangedStack) -> String {
    let row = stack.judged.as_ref().filter(|row| row.significant);
    row.map_or_else(|| "n".to_owned(), |_| change_class(stack.ns_per_s[0], stack.ns_per_s[1]))
}

fn name(changes: &StackChanges, stack: &ChangedStack) -> String {
    match &stack.frame {
        StackFrame::Vm(vm) => {
            let name = changes.vms.get(*vm).map_or("?", String::as_str);
            format!("VM {}", line(name))
        }
        StackFrame::Part(name) | StackFrame::Code(name) => name.clone(),
    }
}

/// Calls `each` with every stack and its depth, callers before callees, the widest first; if it returns false, the
/// callees are skipped.
fn walk(changes: &StackChanges, mut each: impl FnMut(usize, &ChangedStack) -> bool) {
    let mut callees: Vec<Vec<usize>> = vec![Vec::new(); changes.stacks.len()];
    let mut next: Vec<(usize, usize)> = Vec::new();
    for (at, stack) in changes.stacks.iter().enumerate() {
        match stack.caller.and_then(|caller| callees.get_mut(caller)) {
            Some(all) => all.push(at),
            None => next.push((0, at)),
        }
    }
    let time = |at: usize| changes.stacks.get(at).map_or(0.0, width);
    let by_time = |at: usize, other: usize| time(at).total_cmp(&time(other));
    next.sort_by(|(_, at), (_, other)| by_time(*at, *other));
    while let Some((depth, at)) = next.pop() {
        let Some(stack) = changes.stacks.get(at) else { continue };
        if each(depth, stack) {
            let mut children: Vec<usize> = callees.get(at).cloned().unwrap_or_default();
            children.sort_by(|callee, other| by_time(*callee, *other));
            next.extend(children.into_iter().map(|callee| (depth + 1, callee)));
        }
    }
}
