//! From when on rules speak, and why from then on.

/// Exits that a rule wants to see: fewer have no percentiles worth a sentence, and whatever causes them
/// may not go on.
pub(crate) const MIN_EXITS: u64 = 100;

/// Share of the VM's time, in thousandths, that must be at stake: repeated runs of most workloads differ
/// by a percent, so what takes less could not be seen to be saved.
pub(crate) const MIN_PER_MILLE: u64 = 10;

/// KVM polls for 200 us at most unless it was set otherwise (`halt_poll_ns` of x86; arm64 has 500 us, s390 50 us):
/// idles that are shorter can end while it polls on any machine that is set so.
pub(crate) const SHORT_IDLE_NS: u64 = 200_000;

/// Below this a wait before sleep was no polling: KVM polls for 10 us at least where it does at all (`halt_poll_ns_grow_start`),
/// and takes some microseconds from the halt to the switch where it doesn't.
pub(crate) const MIN_POLL_NS: u64 = 10_000;

/// An address that was hit more often is taken for a device's: memory has a fault at an address once,
/// and a few more when its page was moved, shared or write-protected.
pub(crate) const MAX_FAULTS_OF_AN_ADDRESS: u64 = 16;

/// Sentences name this many addresses, ports and threads: a reader acts on the first.
pub(crate) const MAX_NAMED: usize = 3;

/// Whether `part` is at least [`MIN_PER_MILLE`] of `total`.
pub(super) fn matters(part: u64, total: u64) -> bool {
    part > 0 && u128::from(part) * 1000 >= u128::from(total) * u128::from(MIN_PER_MILLE)
}

/// What is saved at least where something goes away for which something cheaper comes: a console of virtio still exits
/// for each line, and memory that is given in advance is still entered in page tables page by page.
pub(crate) const fn a_third(ns: u64) -> u64 {
    ns / 3
}

/// Whether `part` is more than half of `total`.
pub(crate) fn is_most(part: u64, total: u64) -> bool {
    u128::from(part) * 2 > u128::from(total)
}
