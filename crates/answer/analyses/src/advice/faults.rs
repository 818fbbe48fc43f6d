//! Page faults of guest memory that the host has not allocated yet, or has reclaimed.

use super::devices::KNOWN_PAGES;
use super::evidence::Place;
use super::measured::{Measured, texts};
use super::sums::ExitSums;
use super::thresholds::{MAX_FAULTS_OF_AN_ADDRESS, a_third, is_most};
use super::{Advice, Amount, Fact};

/// Exit reasons for a guest physical address without a page.
pub(crate) const FAULTS: [&str; 4] = ["EPT_VIOLATION", "npf", "DABT_LOW", "IABT_LOW"];

/// The start of the VM is the first of this many equal parts of its time.
const BEGINNING: u64 = 10;

/// The number of accesses per address, and their handler, distinguish faults from device accesses. Faults without
/// an address, beyond the limit of places, are ignored: the advice is too low rather than too high.
pub(super) fn advise(measured: &Measured<'_>) -> Vec<Advice> {
    let places: Vec<&Place> = measured.own_exits(is_fault);
    let all = ExitSums::of_all(places.iter().map(|place| &place.sums));
    let Some((from_ns, to_ns)) = measured.evidence.range_ns.filter(|_| measured.matters(&all))
    else {
        return Vec::new();
    };
    let begun_ns = from_ns + to_ns.saturating_sub(from_ns) / BEGINNING;
    let is_early = |place: &&Place| place.sums.first_ns.is_some_and(|at| at <= begun_ns);
    let early = places.iter().copied().filter(is_early).map(|place| &place.sums);
    let early = ExitSums::of_all(early).count;
    let Some(mut advice) = measured.on(&places) else { return Vec::new() };
    let page = "Back the guest with huge pages: -object memory-backend-memfd,hugetlb=on,hugetlbsize=… (one fault per 2 MB or 1 \
                GB), or transparent huge pages (/sys/kernel/mm/transparent_hugepage/enabled: always, or madvise, which QEMU \
                requests)";
    let first = "Allocate memory before the guest starts: prealloc=on of QEMU's memory backend, with prealloc-threads=…; each \
                 page still takes one cheaper fault to enter the VM's page tables";
    if is_most(early, all.count) {
        advice.title = "The host allocates memory page by page while the guest starts".to_owned();
        advice.why = "The host allocates each page of guest memory when the guest first touches it, with one fault per page. \
                      Most of these faults are in the first tenth of the VM's time."
            .to_owned();
        advice.helps = texts(&[page, first]);
    } else {
        advice.title = "The guest keeps faulting on memory".to_owned();
        advice.why = "Faults continue after startup: either the guest still touches new memory, or the host removed or \
                      write-protected pages (swap, balloon, KSM, NUMA balancing, dirty-page logging during migration)."
            .to_owned();
        advice.helps = texts(&[
            page,
            "Find what removes pages: swap and reclaim in the VM's memory cgroup, balloon and free page reporting, \
             /sys/kernel/mm/ksm/run, kernel.numa_balancing",
            first,
        ]);
    }
    advice.saving_at_least_ns = a_third(advice.saving_at_most_ns);
    advice
        .evidence
        .push(Fact::new("exits in the first tenth of the VM's time", Amount::Count(early)));
    advice.evidence.push(Fact::new("addresses", Amount::Count(places.len() as u64)));
    vec![advice]
}

fn is_fault(place: &Place) -> bool {
    let is_memory = |gpa: u64| !KNOWN_PAGES.contains(&(gpa & !0xfff));
    let sums = &place.sums;
    FAULTS.contains(&place.reason.as_str())
        && place.gpa().is_some_and(is_memory)
        && sums.by_user == 0
        && sums.count <= MAX_FAULTS_OF_AN_ADDRESS
}
