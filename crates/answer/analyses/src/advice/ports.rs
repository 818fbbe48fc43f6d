//! Accesses to ports of legacy PC devices that guests do not need.

use std::ops::RangeInclusive;

use super::evidence::Place;
use super::interrupts;
use super::measured::{Measured, texts};
use super::sums::ExitSums;
use super::thresholds::a_third;
use super::{Advice, Amount, Fact};

/// Serial ports of a PC.
pub(crate) const SERIAL: &[RangeInclusive<u64>] =
    &[0x3f8..=0x3ff, 0x2f8..=0x2ff, 0x3e8..=0x3ef, 0x2e8..=0x2ef];
/// The ACPI PM timer, where QEMU has it (q35, i440fx).
pub(crate) const PM_TIMER: &[RangeInclusive<u64>] = &[0x608..=0x60b, 0xb008..=0xb00b];

/// A legacy device, and its replacement.
struct Legacy {
    ports: &'static [RangeInclusive<u64>],
    name: &'static str,
    why: &'static str,
    helps: &'static [&'static str],
}

static LEGACY: [Legacy; 9] = [
    Legacy {
        ports: SERIAL,
        name: "the serial port",
        why: "Each character costs at least one exit: one to write it, and more to check whether the previous one was sent.",
        helps: &[
            "Use console=hvc0 with -device virtio-serial -device virtconsole: one exit per buffer",
            "Print less: quiet or loglevel=… on the guest's command line",
        ],
    },
    Legacy {
        ports: &[0x70..=0x71],
        name: "the real-time clock (CMOS)",
        why: "Reading this clock takes several accesses, and each one exits to the VMM.",
        helps: &[
            "Use -cpu …,+kvmclock (the default of QEMU's CPU models) and clocksource=kvm-clock or tsc in the guest",
            "Find the reader: a loop that runs hwclock, or a Windows guest without hv-time (-cpu …,hv-time)",
        ],
    },
    Legacy {
        ports: &[0x40..=0x43, 0x61..=0x61],
        name: "the interval timer (PIT)",
        why: "The guest programs or reads the PIT, usually before it has found a better clock.",
        helps: &[
            "Use -cpu …,+kvmclock,+tsc-deadline, and remove clocksource=pit, notsc and nolapic from the guest's command line",
            "For a faster boot: lpj=… skips calibration; combine it with tsc_early_khz=… and no_timer_check",
        ],
    },
    Legacy {
        ports: PM_TIMER,
        name: "the ACPI PM timer",
        why: "The guest uses the ACPI PM timer as its clock, so each time it reads the clock it exits to the VMM.",
        helps: &[
            "Use clocksource=kvm-clock or tsc on the guest's command line; -cpu host,+invtsc lets the guest trust the TSC",
            "For Windows guests: -cpu …,hv-time",
            "Check /sys/devices/system/clocksource/clocksource0/current_clocksource, and the guest's log for the reason why it \
             rejected the TSC",
        ],
    },
    Legacy {
        ports: &[0x1f0..=0x1f7, 0x170..=0x177, 0x3f6..=0x3f6, 0x376..=0x376],
        name: "an IDE disk or CD drive",
        why: "An IDE controller needs several accesses per request, and without DMA one per word.",
        helps: &[
            "Use -drive if=virtio or -device virtio-scsi-pci instead of IDE",
            "If the guest keeps polling an empty CD drive: remove the drive, or use -nodefaults",
        ],
    },
    Legacy {
        ports: &[0xcf8..=0xcff],
        name: "PCI configuration by port",
        why: "The guest accesses PCI configuration space through a pair of ports, mostly while it probes for devices.",
        helps: &[
            "Use -machine q35: memory-mapped configuration (MMCONFIG) takes one exit instead of two",
            "Use fewer devices and bridges (-nodefaults); -machine microvm has no PCI by default",
        ],
    },
    Legacy {
        ports: &[0x20..=0x21, 0xa0..=0xa1, 0x4d0..=0x4d1],
        name: "the old interrupt controller (PIC)",
        why: "The guest uses the 8259 PIC although it could use its APIC.",
        helps: &[
            "Remove noapic and nolapic from the guest's command line; -machine kernel-irqchip=on keeps the PIC in the kernel",
        ],
    },
    Legacy {
        ports: &[0x80..=0x80],
        name: "port 0x80, which old drivers write to as a delay",
        why: "Old drivers write to port 0x80 to wait for slow hardware; in a guest, each write is an exit.",
        helps: &["Use io_delay=none on the guest's command line"],
    },
    Legacy {
        ports: &[0x402..=0x402, 0xe9..=0xe9, 0x510..=0x511],
        name: "the firmware's ports",
        why: "The firmware writes its log or reads its configuration one word at a time.",
        helps: &[
            "Use a firmware build without debug output; for -kernel, use the DMA interface of fw_cfg (on by default since QEMU 2.9)",
        ],
    },
];

/// The name of the device that a port belongs to.
pub(crate) fn device_at(port: u64) -> Option<&'static str> {
    LEGACY.iter().find(|device| is_in(port, device.ports)).map(|device| device.name)
}

/// Whether a port is in one of these ranges.
pub(crate) fn is_in(port: u64, ranges: &[RangeInclusive<u64>]) -> bool {
    ranges.iter().any(|range| range.contains(&port))
}

/// One advice per device whose exits take enough time.
pub(super) fn advise(measured: &Measured<'_>) -> Vec<Advice> {
    LEGACY.iter().filter_map(|device| of_device(measured, device)).collect()
}

fn of_device(measured: &Measured<'_>, device: &Legacy) -> Option<Advice> {
    let places: Vec<&Place> =
        measured.own_exits(|place| place.port().is_some_and(|port| is_in(port, device.ports)));
    let sums = ExitSums::of_all(places.iter().map(|place| &place.sums));
    if !measured.matters(&sums) {
        return None;
    }
    let mut advice = measured.on(&places)?;
    advice.title = format!("The guest accesses {}", device.name);
    advice.why = device.why.to_owned();
    advice.helps = texts(device.helps);
    advice.saving_at_least_ns = a_third(advice.saving_at_most_ns);
    // With kvm-pv-eoi, a guest can end an interrupt without an exit only if it did not exit since the interrupt
    // was injected. An exit in the handler therefore makes the end of its interrupt exit as well.
    let ends = interrupts::ends(measured);
    if ends.count > 0 {
        let ends_ns = ends.taken_ns(measured.recorded);
        advice.saving_at_most_ns = advice.saving_at_most_ns.saturating_add(ends_ns);
        advice.evidence.push(Fact::new("cost of exits that end interrupts", Amount::Time(ends_ns)));
    }
    if measured.recorded.user {
        let fact = Fact::new("exits handled in user space", Amount::Count(sums.by_user));
        advice.evidence.push(fact);
    }
    Some(advice)
}
