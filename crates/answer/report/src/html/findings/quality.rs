//! Findings about the recording itself: missing events, alignment of clocks, cost.

use super::{Finding, Link, PageReport, Weight};
use crate::{CallsSource, align_summary, counted, plural};

pub(super) fn findings_of(page: &PageReport) -> Vec<Finding> {
    let mut findings = losses(page);
    for guest in page.align.iter().flat_map(|align| &align.guests) {
        let violated = guest.result().is_none_or(|result| result.violations() > 0);
        let weight = if violated { Weight::Warning } else { Weight::Info };
        let link = Link { section: "clocks", vm: Some(guest.vm.clone()), ..Link::default() };
        findings.push(Finding::new(weight, "Clocks: {}.", &[align_summary(guest)]).to(link));
    }
    findings.extend(page.calls.iter().flat_map(|calls| &calls.sources).filter_map(traced));
    for source in &page.exits.sources {
        let missing = source.exits_missing();
        if !source.exits.rows.is_empty() && !missing.is_empty() {
            let values = [source.path.as_str(), &missing.join("; ")];
            findings.push(Finding::new(Weight::Info, "Not recorded in {}: {}.", &values));
        }
    }
    findings
}

/// A finding if functions were traced, which slows down everything that is timed.
fn traced(source: &CallsSource) -> Option<Finding> {
    let tracer = source.calls.tracer?.name().to_owned();
    let number = source.calls.sum(|function| function.count);
    let calls = counted(number, "call of kernel functions was", "calls of kernel functions were");
    let values = [calls, tracer, source.path.clone()];
    let sentence = "*{}* traced by {} in {}: the callers' times include the tracer's cost, which may exceed the time of the calls.";
    let link = Link { section: "calls", ..Link::default() };
    Some(Finding::new(Weight::Warning, sentence, &values).to(link))
}

fn losses(page: &PageReport) -> Vec<Finding> {
    let all = || page.exits.sources.iter().map(|source| &source.exits);
    let lost: u64 = all().map(|exits| exits.losses.events_lost).sum();
    let uncounted: u64 = all().map(|exits| exits.losses.uncounted_losses).sum();
    let damaged: u64 = all().map(|exits| exits.losses.pages_damaged()).sum();
    let dropped: u64 = all().flat_map(|exits| &exits.rows).map(|row| row.tally.dropped).sum();
    let mut findings = Vec::new();
    if lost + uncounted > 0 {
        let values = [
            counted(lost, "event was", "events were"),
            plural(uncounted, "place"),
            counted(dropped, "exit overlaps a loss and is", "exits overlap a loss and are"),
        ];
        let sentence = "*{} lost* according to the kernel, and an unknown number at {}; {} left out of all times.";
        findings.push(Finding::new(Weight::Warning, sentence, &values));
    }
    let missing: u64 = all().map(|exits| exits.losses.events_missing).sum();
    if missing > 0 {
        let sentence =
            "*{} missing*: the kernel counted them, but the recording does not contain them.";
        findings.push(Finding::new(
            Weight::Warning,
            sentence,
            &[counted(missing, "event is", "events are")],
        ));
    }
    if damaged > 0 {
        let sentence = "*{}* of the recording could not be read.";
        findings.push(Finding::new(Weight::Warning, sentence, &[plural(damaged, "place")]));
    }
    findings
}
