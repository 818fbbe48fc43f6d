//! Exits of a run as metrics, counted in the kernel or in a recording.

use experiment::Count;

/// The exits of a VM with one reason.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReasonSums<'r> {
    /// 1: a guest of this host, 2: a nested guest.
    pub(super) level: u8,
    pub(super) reason: &'r str,
    /// Whether this is a waiting exit, whose time has no cost.
    pub(super) waiting: bool,
    pub(super) count: u64,
    pub(super) cost_ns: u64,
}

/// Metrics of one run.
pub(super) fn exit_metrics(
    rows: &[ReasonSums<'_>],
    guest_ns: u64,
    run_queue_ns: u64,
) -> Vec<Count> {
    let always =
        |name: &str, value: u64| Count { name: name.to_owned(), kind: None, value: value as f64 };
    let costly = || rows.iter().filter(|row| !row.waiting);
    let mut metrics = vec![
        always("exits", rows.iter().map(|row| row.count).sum()),
        always("exit_cost_ns", costly().map(|row| row.cost_ns).sum()),
        always("guest_ns", guest_ns),
        always("run_queue_ns", run_queue_ns),
    ];
    for row in rows {
        let reason = reason_in_names(row.level, row.reason);
        let count = |name, kind, value: u64| Count { name, kind: Some(kind), value: value as f64 };
        metrics.push(count(format!("exits_{reason}"), "exits", row.count));
        if !row.waiting {
            metrics.push(count(format!("exit_cost_{reason}_ns"), "cost", row.cost_ns));
        }
    }
    metrics
}

/// A reason as part of a metric's name, in the syntax of `--fail-if`.
pub(super) fn reason_in_names(level: u8, reason: &str) -> String {
    let plain =
        |char: char| if char.is_ascii_alphanumeric() { char.to_ascii_lowercase() } else { '_' };
    let reason: String = reason.chars().map(plain).collect();
    if level > 1 { format!("l{level}_{reason}") } else { reason }
}
