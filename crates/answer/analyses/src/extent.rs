//! Time range of several recordings.

use sources::Recording;

/// First and last event of all recordings.
pub(crate) fn bounds_ns(recordings: &[Recording]) -> Option<(u64, u64)> {
    let bounds = recordings.iter().filter_map(Recording::extent_ns);
    bounds.reduce(|all, bounds| (all.0.min(bounds.0), all.1.max(bounds.1)))
}

/// Length of [`bounds_ns`]; 0 without events.
pub(crate) fn span_ns(recordings: &[Recording]) -> u64 {
    bounds_ns(recordings).map_or(0, |(from_ns, to_ns)| to_ns.saturating_sub(from_ns))
}
