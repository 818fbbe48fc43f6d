//! Accesses to one device address that the VMM handles, and that the kernel could handle.

use std::collections::BTreeMap;

use timeline::Detail;

use super::evidence::Place;
use super::interrupts::{self, APIC_PAGE};
use super::measured::{Measured, texts};
use super::sums::ExitSums;
use super::thresholds::{MAX_NAMED, MIN_EXITS, matters};
use super::{Advice, Amount, Fact};

/// Device pages that other rules cover or no rule covers: APIC, I/O APIC, HPET.
pub(crate) const KNOWN_PAGES: [u64; 3] = [APIC_PAGE, 0xfec0_0000, 0xfed0_0000];

/// Ports from here on belong to PCI devices; lower ports belong to a PC's legacy devices ([`super::ports`]).
pub(crate) const FIRST_PCI_PORT: u64 = 0x1000;

/// One advice per address whose exits take enough time in user space.
pub(super) fn advise(measured: &Measured<'_>) -> Vec<Advice> {
    let mut by_address: BTreeMap<(Detail, u64), Vec<&Place>> = BTreeMap::new();
    for place in measured.own_exits(is_device) {
        by_address.entry(place.detail.unwrap_or((Detail::Gpa, 0))).or_default().push(place);
    }
    let sums = |places: &[&Place]| ExitSums::of_all(places.iter().map(|place| &place.sums));
    let mut found: Vec<_> = by_address
        .into_iter()
        .map(|(at, places)| (at, sums(&places), places))
        .filter(|(_, sums, _)| is_users(measured, sums))
        .collect();
    found.sort_by_key(|(_, sums, _)| std::cmp::Reverse(sums.user_ns(measured.recorded)));
    found.truncate(MAX_NAMED);
    let advice =
        |(at, sums, places): &(_, ExitSums, Vec<&Place>)| at_address(measured, *at, sums, places);
    found.iter().filter_map(advice).collect()
}

/// Whether user space handles most of these exits, and their number and time in user space are large enough.
fn is_users(measured: &Measured<'_>, sums: &ExitSums) -> bool {
    let user_ns = sums.user_ns(measured.recorded);
    sums.is_users() && sums.by_user >= MIN_EXITS && matters(user_ns, measured.running_ns)
}

fn is_device(place: &Place) -> bool {
    let is_pci_port = place.port().is_some_and(|port| port >= FIRST_PCI_PORT);
    let is_known = |gpa: u64| KNOWN_PAGES.contains(&(gpa & !0xfff));
    is_pci_port || place.gpa().is_some_and(|gpa| !is_known(gpa))
}

fn at_address(
    measured: &Measured<'_>,
    (detail, value): (Detail, u64),
    sums: &ExitSums,
    places: &[&Place],
) -> Option<Advice> {
    let place = if detail == Detail::Port { "port" } else { "guest physical address" };
    let mut advice = measured.on(places)?;
    advice.title = format!("The VMM handles accesses to {place} {value:#x}");
    advice.why = "KVM has no handler for this device address, so the vCPU exits to the VMM and waits while the VMM emulates each \
                  access. If the guest notifies the device through this register (virtio's queue notify), KVM could signal an \
                  eventfd and let the vCPU continue. The recording holds the address, not the device."
        .to_owned();
    advice.helps = texts(&[
        "Identify the device: info mtree in QEMU's monitor, or /proc/iomem or /proc/ioports in the guest",
        "For virtio notifications: ioeventfd=on (the default of virtio-pci), with iothread=… for disks, so that the vCPU \
         continues while the device works",
        "For virtio-net: -netdev tap,…,vhost=on, so that the kernel moves packets without the VMM",
        "For interrupt status and acknowledgement of virtio-mmio (offsets 0x60 and 0x64 of the device): use virtio-pci with \
         MSI-X, which needs neither",
        "For a console, timer or emulated card: use a virtio device instead, or write less to it",
    ]);
    let user_ns = sums.user_ns(measured.recorded);
    advice.evidence.push(Fact::new("exits handled in user space", Amount::Count(sums.by_user)));
    advice.evidence.push(Fact::new("cost in user space", Amount::Time(user_ns)));
    // If the guest can avoid the accesses, the exits disappear. If the kernel takes them over, they remain, and
    // the device, which then works in parallel to the vCPU, may send one more interrupt for each.
    let more_ns = interrupts_ns(measured, sums);
    advice.saving_at_least_ns = more_ns.map_or(0, |more_ns| user_ns.saturating_sub(more_ns));
    Some(advice)
}

/// Cost of one interrupt per access: its end-of-interrupt exit, and further accesses to devices in user space.
/// `None` if ends of interrupts do not exit, because then the cost of an interrupt is unknown.
fn interrupts_ns(measured: &Measured<'_>, accesses: &ExitSums) -> Option<u64> {
    let ends = interrupts::ends(measured);
    let user_places = measured.own_exits(|place| is_device(place) && place.sums.is_users());
    let asked_ns =
        ExitSums::of_all(user_places.iter().map(|place| &place.sums)).taken_ns(measured.recorded);
    let others_ns = asked_ns.saturating_sub(accesses.taken_ns(measured.recorded));
    let all_ns = u128::from(ends.taken_ns(measured.recorded).saturating_add(others_ns));
    let more_ns = all_ns * u128::from(accesses.count) / u128::from(ends.count.max(1));
    (ends.count >= MIN_EXITS).then_some(u64::try_from(more_ns).unwrap_or(u64::MAX))
}
