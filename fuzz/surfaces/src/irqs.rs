//! Accounting of interrupt handlers, for any recording.

use analyses::irqs::{By, HandlerSums, Irqs, irqs};
use analyses::view::View;
use report::IrqsReport;
use sources::Recording;

use crate::recording::render;

/// There are at most as many ended runs as runs, self time is at most total time, and rows by CPU
/// or thread sum to those by handler.
pub(crate) fn check(recording: &Recording) {
    let irqs_by = |by| irqs(View::on_own_clocks(std::slice::from_ref(recording)), by, &|_| ());
    let by_handler = irqs_by(By::Handler);
    for by in [By::Cpu, By::Thread] {
        assert_eq!(sums(&irqs_by(by)), sums(&by_handler), "{by:?}");
    }
    for row in &by_handler.rows {
        let HandlerSums { run_count, durations, own_ns, placed, delays, .. } = &row.sums;
        assert!(durations.count() <= *run_count && delays.count() <= *run_count, "{row:?}");
        assert!(*own_ns <= durations.sum(), "{row:?}");
        assert_eq!(*placed, 0, "a host where there is none: {row:?}");
        let counted: u64 = durations.by_power_of_two().iter().map(|(_, count)| count).sum();
        assert_eq!(counted, durations.count(), "{row:?}");
    }
    render(&IrqsReport {
        sources: vec!["bytes".to_owned()],
        irqs: by_handler,
        top: usize::MAX,
        histogram: true,
        recorder_cost: None,
    });
}

/// Number of runs, of ended runs, and their times.
fn sums(irqs: &Irqs) -> (u64, u64, u64) {
    let rows = irqs.rows.iter().map(|row| &row.sums);
    rows.fold((0, 0, 0), |(starts, ended, own_ns), handler_sums| {
        (
            starts + handler_sums.run_count,
            ended + handler_sums.durations.count(),
            own_ns.saturating_add(handler_sums.own_ns),
        )
    })
}
