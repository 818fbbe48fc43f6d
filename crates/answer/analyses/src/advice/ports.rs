//! Accesses to ports of devices that a PC has had for decades, and that guests can do without.

use super::evidence::Place;
use super::interrupts;
use super::measured::{Measured, texts};
use super::sums::ExitSums;
use super::thresholds::a_third;
use super::{Advice, Amount, Fact};

/// A device of a PC, with what a guest has in its place.
struct Legacy {
    ports: &'static [std::ops::RangeInclusive<u64>],
    name: &'static str,
    why: &'static str,
    helps: &'static [&'static str],
}

static LEGACY: [Legacy; 9] = [
    Legacy {
        ports: &[0x3f8..=0x3ff, 0x2f8..=0x2ff, 0x3e8..=0x3ef, 0x2e8..=0x2ef],
        name: "the serial port",
        why: "Each character costs an exit or more: one to write it, others to ask whether the last is gone.",
        helps: &[
            "console=hvc0 with -device virtio-serial -device virtconsole: one exit for a whole buffer",
            "Less text: quiet or loglevel=… on the guest's command line",
        ],
    },
    Legacy {
        ports: &[0x70..=0x71],
        name: "the real-time clock (CMOS)",
        why: "Reading the clock takes several accesses, and each exits to the VMM.",
        helps: &[
            "-cpu …,+kvmclock (the default of QEMU's CPU models) and clocksource=kvm-clock or tsc in the guest",
            "Find who reads it: hwclock in a loop, a Windows guest without hv-time (-cpu …,hv-time)",
        ],
    },
    Legacy {
        ports: &[0x40..=0x43, 0x61..=0x61],
        name: "the interval timer (PIT)",
        why: "The guest programs or reads the PIT, which mostly happens before it has found a better clock.",
        helps: &[
            "-cpu …,+kvmclock,+tsc-deadline, and no clocksource=pit, notsc or nolapic on the guest's command line",
            "At boot: lpj=… spares calibration; tsc_early_khz=… and no_timer_check go with it",
        ],
    },
    Legacy {
        ports: &[0x608..=0x60b, 0xb008..=0xb00b],
        name: "the ACPI PM timer",
        why: "The guest's clock is the ACPI PM timer: each time that it asks for the time is an exit to the VMM.",
        helps: &[
            "clocksource=kvm-clock or tsc on the guest's command line; -cpu host,+invtsc lets it trust the TSC",
            "Windows: -cpu …,hv-time",
            "See /sys/devices/system/clocksource/clocksource0/current_clocksource and the guest's log for why TSC was given up",
        ],
    },
    Legacy {
        ports: &[0x1f0..=0x1f7, 0x170..=0x177, 0x3f6..=0x3f6, 0x376..=0x376],
        name: "an IDE disk or CD drive",
        why: "An IDE controller takes several accesses for a request, and without DMA one for each word.",
        helps: &[
            "-drive if=virtio or -device virtio-scsi-pci in place of IDE",
            "An empty CD drive that the guest asks all the time: remove it, or -nodefaults",
        ],
    },
    Legacy {
        ports: &[0xcf8..=0xcff],
        name: "PCI configuration by port",
        why: "The guest goes through PCI configuration two ports at a time; it mostly does while it looks for devices.",
        helps: &[
            "-machine q35: memory-mapped configuration (MMCONFIG) takes one exit in place of two",
            "Fewer devices and bridges (-nodefaults); -machine microvm has no PCI unless asked",
        ],
    },
    Legacy {
        ports: &[0x20..=0x21, 0xa0..=0xa1, 0x4d0..=0x4d1],
        name: "the old interrupt controller (PIC)",
        why: "The guest uses the 8259 PIC where it could use its APIC.",
        helps: &[
            "No noapic or nolapic on the guest's command line; -machine kernel-irqchip=on keeps it in the kernel",
        ],
    },
    Legacy {
        ports: &[0x80..=0x80],
        name: "port 0x80, by which old drivers wait",
        why: "Writes to port 0x80 are delays for devices of the last century; in a guest each is an exit.",
        helps: &["io_delay=none on the guest's command line"],
    },
    Legacy {
        ports: &[0x402..=0x402, 0xe9..=0xe9, 0x510..=0x511],
        name: "the firmware's ports",
        why: "The firmware writes its log, or reads its configuration word by word.",
        helps: &[
            "A build of the firmware without debug output; -kernel with qemu's DMA interface of fw_cfg (on by default since 2.9)",
        ],
    },
];

/// Devices whose exits take long enough.
pub(super) fn advise(measured: &Measured<'_>) -> Vec<Advice> {
    LEGACY.iter().filter_map(|device| of_device(measured, device)).collect()
}

fn of_device(measured: &Measured<'_>, device: &Legacy) -> Option<Advice> {
    let is_its = |port: u64| device.ports.iter().any(|range| range.contains(&port));
    let places: Vec<&Place> = measured.own_exits(|place| place.port().is_some_and(is_its));
    let sums = ExitSums::of_all(places.iter().map(|place| &place.sums));
    if !measured.matters(&sums) {
        return None;
    }
    let mut advice = measured.on(&places)?;
    advice.title = format!("The guest talks to {}", device.name);
    advice.why = device.why.to_owned();
    advice.helps = texts(device.helps);
    advice.saving_at_least_ns = a_third(advice.saving_at_most_ns);
    // A guest that ends interrupts in memory (kvm-pv-eoi) does so only where it didn't exit since the interrupt came:
    // exits from its handlers have the ends of those interrupts exit as well.
    let ends = interrupts::ends(measured);
    if ends.count > 0 {
        let ends_ns = ends.taken_ns(measured.recorded);
        advice.saving_at_most_ns = advice.saving_at_most_ns.saturating_add(ends_ns);
        advice.evidence.push(Fact::new("ends of interrupts that exit", Amount::Time(ends_ns)));
    }
    if measured.recorded.user {
        let fact = Fact::new("of them dealt with in user space", Amount::Count(sums.by_user));
        advice.evidence.push(fact);
    }
    Some(advice)
}
