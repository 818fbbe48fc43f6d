//! LoongArch: `arch/loongarch/kvm/trace.h`. From the header; not tested on a real recording yet.

use super::{Arch, Isa, IsaCodes, Rule};
use crate::thread_event::Kind;

pub(super) const ARCH: Arch = Arch {
    rules: &[
        Rule::new("kvm:kvm_exit", Kind::Exit).value("reason"),
        // KVM's emulation traces a finer reason for the same exit.
        Rule::new("kvm:kvm_exit_idle", Kind::FinerReason).value("reason"),
        Rule::new("kvm:kvm_exit_cache", Kind::FinerReason).value("reason"),
        Rule::new("kvm:kvm_enter", Kind::Entry),
        Rule::new("kvm:kvm_reenter", Kind::Entry),
    ],
    details: &[],
    accesses: &[],
    injections: &[],
    isas: &[IsaCodes {
        waits: |code| code == IDLE,
        interrupts: |code| code == 0,
        names: EXCEPTIONS,
        ..IsaCodes::new(Isa::Loongarch, "loongarch")
    }],
};

/// `KVM_TRACE_EXIT_IDLE` (`arch/loongarch/kvm/trace.h`).
const IDLE: u64 = 64;

/// `EXCCODE_*` (`arch/loongarch/include/asm/loongarch.h`): the print fmt has symbols for `IDLE` and
/// `CACHE` only. An exit without an exception is a host interrupt.
const EXCEPTIONS: &[(u64, &str)] = &[
    (0, "INT"),
    (1, "TLBL"),
    (2, "TLBS"),
    (3, "TLBI"),
    (4, "TLBM"),
    (5, "TLBNR"),
    (6, "TLBNX"),
    (7, "TLBPE"),
    (8, "ADE"),
    (9, "ALE"),
    (10, "BCE"),
    (11, "SYS"),
    (12, "BP"),
    (13, "INE"),
    (14, "IPE"),
    (15, "FPDIS"),
    (16, "LSXDIS"),
    (17, "LASXDIS"),
    (18, "FPE"),
    (19, "WATCH"),
    (20, "BTDIS"),
    (21, "BTE"),
    (22, "GSPR"),
    (23, "HVC"),
    (24, "GCM"),
];
