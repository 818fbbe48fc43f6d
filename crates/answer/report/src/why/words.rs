//! Words and numbers of `hyperscope why`.

use analyses::why::{Evidence, VmAnswer};

use crate::advice::shown_fact;
use crate::units::{plural, time};

/// A share in percent, with a digit after the point.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// What a VM's vCPUs did with their time: the largest parts first, those below 1% left out.
pub(super) fn budget(answer: &VmAnswer) -> String {
    let parts = &answer.budget;
    let mut all = [
        (parts.idle_ns, "idle"),
        (parts.guest_ns, "guest code"),
        (parts.exits_ns, "exits"),
        (parts.run_queue_ns, "waiting for a CPU"),
        (parts.blocked_ns, "asleep in exits"),
        (parts.unknown_ns, "unknown"),
    ];
    all.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
    let share = |ns: u64| ns as f64 / parts.total_ns.max(1) as f64;
    let shown: Vec<String> = all
        .iter()
        .filter(|(ns, _)| share(*ns) >= 0.01)
        .map(|(ns, name)| format!("{} {name}", percent(share(*ns))))
        .collect();
    let vcpus = plural(answer.vcpus as u64, "vCPU");
    format!("{} of {vcpus}, {}", time(parts.total_ns, true), shown.join(", "))
}

pub(super) fn evidence(evidence: &Evidence) -> String {
    let fact = shown_fact(&evidence.fact);
    match evidence.span_ns {
        Some((from_ns, _)) => {
            let micros = from_ns % 1_000_000_000 / 1000;
            format!("{fact} at {}.{micros:06} s", from_ns / 1_000_000_000)
        }
        None => fact,
    }
}
