//! The cause that exits point to, by what they were about.

use timeline::Detail;

use super::cause::CauseId;
use crate::advice::devices::FIRST_PCI_PORT;
use crate::advice::evidence::Place;
use crate::advice::interrupts::APIC_PAGE;
use crate::advice::thresholds::is_most;

/// Serial ports of a PC.
const SERIAL: [std::ops::RangeInclusive<u64>; 4] =
    [0x3f8..=0x3ff, 0x2f8..=0x2ff, 0x3e8..=0x3ef, 0x2e8..=0x2ef];
/// The ACPI PM timer, where QEMU has it (q35, i440fx).
const PM_TIMER: [std::ops::RangeInclusive<u64>; 2] = [0x608..=0x60b, 0xb008..=0xb00b];
/// The page of the HPET's registers on a PC.
const HPET_PAGE: u64 = 0xfed0_0000;

/// `IA32_TSC_DEADLINE`, and x2APIC's timer: initial count, mode.
const TIMER_MSRS: [u64; 3] = [0x6e0, 0x838, 0x832];
/// x2APIC's register that sends interrupts.
const ICR_MSR: u64 = 0x830;
/// Registers of x2APIC.
const APIC_MSRS: std::ops::RangeInclusive<u64> = 0x800..=0x8ff;
/// Registers of the APIC's page: interrupt command, and the timer's mode, initial and current count.
const ICR_OFFSETS: [u64; 2] = [0x300, 0x310];
const TIMER_OFFSETS: [u64; 3] = [0x320, 0x380, 0x390];

/// `KVM_HC_KICK_CPU` and `KVM_HC_SEND_IPI` (include/uapi/linux/kvm_para.h).
const KICK_CPU: u64 = 5;
const SEND_IPI: u64 = 10;

/// Instructions by which a hypervisor in the guest runs a guest of its own.
const NESTED: [&str; 17] = [
    "vmrun", "vmload", "vmsave", "stgi", "clgi", "invlpga", "vmlaunch", "vmresume", "vmread",
    "vmwrite", "vmptrld", "vmptrst", "vmclear", "vmon", "vmoff", "invept", "invvpid",
];
const SPINS: [&str; 2] = ["pause", "pause_instruction"];
/// An interrupt of the host arrived while the guest ran.
const HOST_INTERRUPTS: [&str; 4] = ["interrupt", "intr", "external_interrupt", "irq"];
/// KVM waits until the guest can take an interrupt: part of delivering it.
const DELIVERY: [&str; 6] =
    ["vintr", "interrupt_window", "pending_interrupt", "nmi_window", "nmi", "smi"];
const TIMER_IS_DUE: &str = "preemption_timer";
/// The hardware has no page for a guest physical address, or one that always faults.
const FAULTS: [&str; 5] = ["npf", "ept_violation", "ept_misconfig", "dabt_low", "iabt_low"];
const PORT_IO: [&str; 2] = ["io", "io_instruction"];

/// The cause that exits of a kind point to; none if they are how a healthy guest works.
pub(super) fn class_of(place: &Place) -> Option<CauseId> {
    let reason = place.reason.to_ascii_lowercase();
    let is = |reasons: &[&str]| reasons.contains(&reason.as_str());
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
    if reason == TIMER_IS_DUE {
        return Some(CauseId::TimerTicks);
    }
    match place.detail {
        Some((Detail::Msr, msr)) => of_msr(msr),
        Some((Detail::Port, port)) => Some(of_port(port)),
        Some((Detail::Gpa, gpa)) => of_address(place, gpa),
        Some((Detail::Hypercall, number)) => Some(of_hypercall(number)),
        _ if is(&PORT_IO) => Some(CauseId::VmmDevice),
        _ if is(&FAULTS) => of_fault(place),
        _ => Some(CauseId::ExitStorm),
    }
}

fn of_msr(msr: u64) -> Option<CauseId> {
    match msr {
        ICR_MSR => Some(CauseId::IpiStorm),
        msr if TIMER_MSRS.contains(&msr) => Some(CauseId::TimerTicks),
        // Ends of interrupts and the like: the interrupts are the cause, whatever raises them.
        msr if APIC_MSRS.contains(&msr) => None,
        _ => Some(CauseId::ExitStorm),
    }
}

fn of_port(port: u64) -> CauseId {
    let is_in =
        |ranges: &[std::ops::RangeInclusive<u64>]| ranges.iter().any(|range| range.contains(&port));
    match port {
        _ if is_in(&SERIAL) => CauseId::SerialConsole,
        _ if is_in(&PM_TIMER) => CauseId::ClockSource,
        port if port >= FIRST_PCI_PORT => CauseId::VmmDevice,
        _ => CauseId::LegacyDevice,
    }
}

fn of_address(place: &Place, gpa: u64) -> Option<CauseId> {
    match (gpa & !0xfff, gpa & 0xfff) {
        (HPET_PAGE, _) => Some(CauseId::ClockSource),
        (APIC_PAGE, offset) if ICR_OFFSETS.contains(&offset) => Some(CauseId::IpiStorm),
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
        && sums.count > crate::advice::thresholds::MAX_FAULTS_OF_AN_ADDRESS
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
