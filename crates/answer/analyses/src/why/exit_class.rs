//! The cause that exits point to, by what they were about.

use timeline::Detail;

use super::cause::CauseId;
use crate::advice::devices::FIRST_PCI_PORT;
use crate::advice::evidence::Place;
use crate::advice::faults::FAULTS;
use crate::advice::interrupts::{APIC_PAGE, is_sent};
use crate::advice::pause::SPINS;
use crate::advice::ports::{PM_TIMER, SERIAL, is_in};
use crate::advice::thresholds::{MAX_FAULTS_OF_AN_ADDRESS, is_most};
use crate::advice::timers::{DUE, TIMER_MSRS};

/// The page of the HPET's registers on a PC.
const HPET_PAGE: u64 = 0xfed0_0000;

/// Registers of x2APIC.
const APIC_MSRS: std::ops::RangeInclusive<u64> = 0x800..=0x8ff;
/// Registers of the APIC's page: the receiver of an interrupt to send, and the timer's mode, initial and current count.
const ICR_HIGH: u64 = 0x310;
const TIMER_OFFSETS: [u64; 3] = [0x320, 0x380, 0x390];

/// `KVM_HC_KICK_CPU` and `KVM_HC_SEND_IPI` (include/uapi/linux/kvm_para.h).
const KICK_CPU: u64 = 5;
const SEND_IPI: u64 = 10;

/// Instructions by which a hypervisor in the guest runs a guest of its own.
const NESTED: [&str; 17] = [
    "vmrun", "vmload", "vmsave", "stgi", "clgi", "invlpga", "vmlaunch", "vmresume", "vmread",
    "vmwrite", "vmptrld", "vmptrst", "vmclear", "vmon", "vmoff", "invept", "invvpid",
];
/// An interrupt of the host arrived while the guest ran.
const HOST_INTERRUPTS: [&str; 4] = ["interrupt", "intr", "external_interrupt", "irq"];
/// KVM waits until the guest can take an interrupt: part of delivering it.
const DELIVERY: [&str; 6] =
    ["vintr", "interrupt_window", "pending_interrupt", "nmi_window", "nmi", "smi"];
/// An address that always faults, so that KVM need not look it up (Intel).
const MISCONFIGURED: &str = "EPT_MISCONFIG";
const PORT_IO: [&str; 2] = ["io", "io_instruction"];

/// The cause that exits of a kind point to; none if they are how a healthy guest works.
pub(super) fn class_of(place: &Place) -> Option<CauseId> {
    // Texts have other letters than the kernel's names: trace-cmd prints INTR for interrupt.
    let is = |reasons: &[&str]| reasons.iter().any(|name| name.eq_ignore_ascii_case(&place.reason));
    if place.waiting || is(&DELIVERY) {
        return None;
    }
    if place.level > 1 || is(&NESTED) {
        return Some(CauseId::NestedExits);
    }
    if is(&SPINS) {
        return Some(CauseId::PauseLoop);
    }
    if is(&HOST_INTERRUPTS) {
        return Some(CauseId::HostIrq);
    }
    if is(&[DUE]) {
        return Some(CauseId::TimerTicks);
    }
    if is_sent(place) {
        return Some(CauseId::IpiStorm);
    }
    match place.detail {
        Some((Detail::Msr, msr)) => of_msr(msr),
        Some((Detail::Port, port)) => Some(of_port(port)),
        Some((Detail::Gpa, gpa)) => of_address(place, gpa),
        Some((Detail::Hypercall, number)) => Some(of_hypercall(number)),
        _ if is(&PORT_IO) => Some(CauseId::VmmDevice),
        _ if is(&FAULTS) || is(&[MISCONFIGURED]) => of_fault(place),
        _ => Some(CauseId::ExitStorm),
    }
}

fn of_msr(msr: u64) -> Option<CauseId> {
    match msr {
        msr if TIMER_MSRS.contains(&msr) => Some(CauseId::TimerTicks),
        // Ends of interrupts and the like: the interrupts are the cause, whatever raises them.
        msr if APIC_MSRS.contains(&msr) => None,
        _ => Some(CauseId::ExitStorm),
    }
}

fn of_port(port: u64) -> CauseId {
    match port {
        port if is_in(port, SERIAL) => CauseId::SerialConsole,
        port if is_in(port, PM_TIMER) => CauseId::ClockSource,
        port if port >= FIRST_PCI_PORT => CauseId::VmmDevice,
        _ => CauseId::LegacyDevice,
    }
}

fn of_address(place: &Place, gpa: u64) -> Option<CauseId> {
    match (gpa & !0xfff, gpa & 0xfff) {
        (HPET_PAGE, _) => Some(CauseId::ClockSource),
        (APIC_PAGE, ICR_HIGH) => Some(CauseId::IpiStorm),
        (APIC_PAGE, offset) if TIMER_OFFSETS.contains(&offset) => Some(CauseId::TimerTicks),
        (APIC_PAGE, _) => None,
        _ => of_fault(place),
    }
}

/// The VMM handles accesses to its devices; the kernel maps memory, and signals notifications of virtio, which are cheap.
fn of_fault(place: &Place) -> Option<CauseId> {
    let sums = &place.sums;
    if is_most(sums.by_user, sums.count) {
        return Some(CauseId::VmmDevice);
    }
    let is_notification = place.gpa().is_some()
        && sums.count > MAX_FAULTS_OF_AN_ADDRESS
        && sums.parts.blocked_ns == 0;
    (!is_notification).then_some(CauseId::PageFault)
}

fn of_hypercall(number: u64) -> CauseId {
    match number {
        SEND_IPI => CauseId::IpiStorm,
        KICK_CPU => CauseId::PauseLoop,
        _ => CauseId::ExitStorm,
    }
}
