//! Stacks as lines of text, for other tools: `machine;thread;caller;function N`.

use super::{CallsSource, Stacks};
use crate::folded::frame;

/// What is off the CPU, as a frame.
pub(super) const OFF_CPU: &str = "[off CPU]";

/// A line for each stack that has time of its own; the time is nanoseconds, or ticks, or calls.
pub(super) fn folded(source: &CallsSource) -> String {
    let mut out = String::new();
    let mut stack = vec![frame(&source.machine)];
    Stacks::of(source).walk(|depth, one| {
        stack.truncate(depth + 1);
        stack.push(frame(&one.name));
        let line = stack.join(";");
        if one.own > 0 {
            out += &format!("{line} {}\n", one.own);
        }
        if one.off_cpu > 0 {
            out += &format!("{line};{OFF_CPU} {}\n", one.off_cpu);
        }
        true
    });
    out
}
