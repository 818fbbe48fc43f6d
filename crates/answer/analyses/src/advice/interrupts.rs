//! Exits by accesses to the interrupt controller that processors can virtualise (x86: APICv, AVIC).

use super::evidence::Place;
use super::measured::{Measured, texts};
use super::sums::ExitSums;
use super::thresholds::{MIN_EXITS, a_third};
use super::{Advice, Amount, Fact};

/// The page of the local APIC's registers, at its default address.
pub(crate) const APIC_PAGE: u64 = 0xfee0_0000;
/// The end-of-interrupt register: its offset in the page, and its MSR in x2APIC mode.
const EOI: (u64, u64) = (0xb0, 0x80b);
/// The interrupt command register, which sends interrupts to other vCPUs.
const ICR: (u64, u64) = (0x300, 0x830);
/// Other x2APIC registers that a processor with APICv or AVIC virtualises: task priority, and self-IPI. Writes to
/// the timer registers still exit.
const VIRTUALISED: [u64; 2] = [0x808, 0x83f];
/// In-service, trigger-mode and request registers. Linux reads the trigger mode at each level-triggered interrupt
/// of an I/O APIC, and APICv virtualises the read.
const STATES: std::ops::RangeInclusive<u64> = 0x810..=0x827;

/// Reasons that only exist with a virtualised interrupt controller.
const SIGNS: [&str; 4] =
    ["APIC_WRITE", "EOI_INDUCED", "avic_incomplete_ipi", "avic_unaccelerated_access"];

/// Exits by ends of interrupts.
pub(super) fn ends(measured: &Measured<'_>) -> ExitSums {
    ExitSums::of_all(measured.own_exits(is_end).into_iter().map(|place| &place.sums))
}

/// With a virtualised controller, neither ends of interrupts nor accesses to the register page exit.
pub(super) fn advise(measured: &Measured<'_>) -> Vec<Advice> {
    let is_virtualised = measured.own_exits(|place| SIGNS.contains(&place.reason.as_str()));
    let places: Vec<&Place> = measured.own_exits(is_access);
    let sums = |includes: fn(&Place) -> bool| {
        ExitSums::of_all(places.iter().filter(|place| includes(place)).map(|place| &place.sums))
    };
    let (all, ends) = (sums(|_| true), sums(is_end));
    if !is_virtualised.is_empty() || ends.count < MIN_EXITS || !measured.matters(&all) {
        return Vec::new();
    }
    let Some(mut advice) = measured.on(&places) else { return Vec::new() };
    advice.title = "Accesses to the interrupt controller leave the guest".to_owned();
    advice.why = "The guest writes to its local APIC to end interrupts and to send them to its other vCPUs, and each write \
                  exits: the processor cannot virtualise the APIC, or KVM was not allowed to use that feature."
        .to_owned();
    advice.helps = texts(&[
        "Intel: load kvm_intel with enable_apicv=1 (the default on processors that support it; see \
         /sys/module/kvm_intel/parameters/enable_apicv)",
        "AMD: load kvm_amd with avic=1; if the VM uses x2APIC, use a processor with x2AVIC, or -cpu …,-x2apic",
        "QEMU: keep the APIC in the kernel (-machine kernel-irqchip=on or split) and leave kvm-pv-eoi on, so that guests end \
         most interrupts without a write",
        "Reduce interrupts: fewer device queues, more interrupt coalescing, or a slower tick in the guest's kernel",
    ]);
    advice.saving_at_least_ns = a_third(sums(is_kernels).taken_ns(measured.recorded));
    advice.evidence.push(Fact::new("exits that end interrupts (EOI)", Amount::Count(ends.count)));
    let sent = sums(is_sent).count;
    advice
        .evidence
        .push(Fact::new("exits that send interrupts to other vCPUs (ICR)", Amount::Count(sent)));
    vec![advice]
}

fn is_access(place: &Place) -> bool {
    let is_virtualised =
        place.msr().is_some_and(|msr| VIRTUALISED.contains(&msr) || STATES.contains(&msr));
    is_end(place) || is_sent(place) || is_virtualised || is_in_page(place)
}

/// Whether an access is to the register page; `APIC_ACCESS` has no address and always is.
fn is_in_page(place: &Place) -> bool {
    place.reason == "APIC_ACCESS" || place.gpa().is_some_and(|gpa| gpa & !0xfff == APIC_PAGE)
}

/// Whether an access ends an interrupt; also true if the register is unknown.
fn is_end(place: &Place) -> bool {
    place.reason == "APIC_ACCESS" || is_register(place, EOI)
}

/// Whether the kernel handles this end of an interrupt. Ends of level-triggered interrupts of a user-space I/O
/// APIC always exit to user space.
fn is_kernels(place: &Place) -> bool {
    is_end(place) && !place.sums.is_users()
}

pub(crate) fn is_sent(place: &Place) -> bool {
    is_register(place, ICR)
}

fn is_register(place: &Place, (offset, msr): (u64, u64)) -> bool {
    place.msr() == Some(msr) || place.gpa() == Some(APIC_PAGE + offset)
}
