//! Stacks as lines of text, for other tools: `machine;thread;caller;function N`.

use super::{CallsSource, Stacks};
use crate::folded::frame;

/// The frame for time off the CPU.
pub(super) const OFF_CPU: &str = "[off CPU]";

/// One line for each stack with self time; the value is nanoseconds, ticks, or calls.
pub(super) fn folded(source: &CallsSource) -> String {
    let mut out = String::new();
    let mut stack = vec![frame(&source.machine)];
    Stacks::from_source(source).walk(|depth, node| {
        stack.truncate(depth + 1);
        stack.push(frame(&node.name));
        let line = stack.join(";");
        if node.self_amount > 0 {
            out += &format!("{line} {}\n", node.self_amount);
        }
        if node.off_cpu > 0 {
            out += &format!("{line};{OFF_CPU} {}\n", node.off_cpu);
        }
        true
    });
    out
}
