//! Names of events without a name in the file, as in `perf list`.

use crate::attr::{Attr, event_type};

/// `PERF_COUNT_SW_…`, in the order of their numbers.
const SOFTWARE: [&str; 12] = [
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
    "cgroup-switches",
];

/// `PERF_COUNT_HW_…`, in the order of their numbers.
const HARDWARE: [&str; 10] = [
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
];

/// The name of an event from its attributes.
pub(crate) fn name(attr: &Attr) -> String {
    let named = |names: &[&str]| {
        // The upper bits select a PMU on hybrid processors.
        let at = usize::try_from(attr.config & 0xffff_ffff).ok()?;
        names.get(at).map(|name| (*name).to_owned())
    };
    let known = match attr.kind {
        event_type::SOFTWARE => named(&SOFTWARE),
        event_type::HARDWARE => named(&HARDWARE),
        event_type::TRACEPOINT => Some(format!("tracepoint {}", attr.config)),
        event_type::RAW => Some(format!("r{:x}", attr.config)),
        event_type::BREAKPOINT => Some("mem".to_owned()),
        _ => None,
    };
    known.unwrap_or_else(|| format!("type {} config {:#x}", attr.kind, attr.config))
}
