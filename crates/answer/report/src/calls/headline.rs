//! The result of the calls report in one sentence: how many calls, what they took, and which took most.

use analyses::calls::Function;
use printable::line;

use super::{CallsReport, CallsSource};
use crate::units::{plural, share, time};

/// The sentence about all recordings.
pub(super) fn headline(report: &CallsReport) -> String {
    match report.sources.as_slice() {
        [source] => of_source(report, source),
        sources => {
            let calls = sources.iter().map(|source| source.calls.sum(|function| function.count));
            format!(
                "{}: {}.",
                plural(sources.len() as u64, "recording"),
                plural(calls.fold(0, u64::saturating_add), "call"),
            )
        }
    }
}

/// The sentence about one recording.
pub(super) fn of_source(report: &CallsReport, source: &CallsSource) -> String {
    let path = line(&source.path);
    if source.calls.tracer.is_none() {
        return format!("{path}: no calls were recorded.");
    }
    let calls = &source.calls;
    let number = calls.sum(|function| function.count);
    let functions: Vec<&Function> =
        calls.functions.iter().filter(|function| function.events > 0).collect();
    let mut out = format!(
        "{path}: {} of {}",
        plural(number, "call"),
        plural(functions.len() as u64, "function")
    );
    let value = |function: &Function| {
        if source.has_times() {
            function.self_ns - function.tracer_ns(report.per_call)
        } else {
            function.count
        }
    };
    let sum = functions.iter().map(|function| value(function)).fold(0, u64::saturating_add);
    if source.has_times() {
        out += &format!(" took {} of CPU time", time(sum, calls.nanoseconds));
    }
    let most = functions
        .iter()
        .max_by(|a, b| value(a).cmp(&value(b)).then_with(|| b.title().cmp(&a.title())));
    if let Some(most) = most.filter(|most| value(most) > 0) {
        let how = if source.has_times() { "most" } else { "most often" };
        out += &format!(", {} {how} ({})", line(&most.title()), share(value(most), sum));
    }
    out + "."
}
