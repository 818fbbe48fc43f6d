//! Thresholds of rules, and their reasons.

/// Min exits for an advice: with fewer, percentiles mean nothing, and the cause may be temporary.
pub(crate) const MIN_EXITS: u64 = 100;

/// Min share of the VM's time in thousandths. Repeated runs of most workloads differ by a percent, so smaller
/// savings are invisible.
pub(crate) const MIN_PER_MILLE: u64 = 10;

/// KVM's default max polling time is 200 us (`halt_poll_ns` on x86; arm64 has 500 us, s390 50 us): shorter idles
/// can end while KVM polls, on any host with this setting.
pub(crate) const SHORT_IDLE_NS: u64 = 200_000;

/// Shorter waits before sleep are not polling: KVM polls for at least 10 us (`halt_poll_ns_grow_start`), and
/// without polling it takes some microseconds from the halt to the switch.
pub(crate) const MIN_POLL_NS: u64 = 10_000;

/// Max faults at an address of memory; more accesses mean a device. Memory usually faults once per address, and a
/// few more times if its page is moved, shared or write-protected.
pub(crate) const MAX_FAULTS_OF_AN_ADDRESS: u64 = 16;

/// Max addresses, ports and threads in a sentence: readers act on the first.
pub(crate) const MAX_NAMED: usize = 3;

/// Whether `part` is at least [`MIN_PER_MILLE`] of `total`.
pub(super) fn matters(part: u64, total: u64) -> bool {
    part > 0 && u128::from(part) * 1000 >= u128::from(total) * u128::from(MIN_PER_MILLE)
}

/// Min saving if a cheaper operation replaces an expensive one: a virtio console still exits for each line, and
/// preallocated memory still needs page table entries.
pub(crate) const fn a_third(ns: u64) -> u64 {
    ns / 3
}

/// Whether `part` is more than half of `total`.
pub(crate) fn is_most(part: u64, total: u64) -> bool {
    u128::from(part) * 2 > u128::from(total)
}
