//! 64-bit Arm: `arch/arm64/kvm/trace_arm.h`, `vgic/trace.h`.

use super::{Access, AccessKind, Arch, Injection, Isa, IsaCodes, Rule};
use crate::exit_span::Detail;
use crate::thread_event::Kind;

pub(super) const ARCH: Arch = Arch {
    rules: &[
        // `ret` is the cause of the exit, `esr_ec` the exception class if it was a trap.
        Rule::new("kvm:kvm_exit", Kind::Exit).value("esr_ec").high("ret").flag("isa"),
        Rule::new("kvm:kvm_entry", Kind::Entry),
        Rule::new("kvm:kvm_timer_restore_state", Kind::UserReturn),
    ],
    details: &[
        (Detail::Gpa, Rule::detail("kvm:kvm_guest_fault", "ipa")),
        (Detail::Hypercall, Rule::detail("kvm:kvm_hvc_arm64", "r0")),
    ],
    accesses: &[Access::new("kvm:kvm_hvc_arm64", AccessKind::Hypercall, &["r0"])],
    injections: &[
        Injection::new("kvm:kvm_irq_line", &["none", "level", "common_flags", "none"]),
        Injection::new(
            "kvm:vgic_update_irq_pending",
            &["vcpu_id", "level", "common_flags", "none"],
        ),
    ],
    isas: &[IsaCodes {
        waits: |code| code == TRAP << 32 | WFX,
        interrupts: |code| code >> 32 == IRQ,
        symbol_in: |code| if code >> 32 == TRAP { "esr_ec" } else { "ret" },
        ..IsaCodes::new(Isa::Arm64, "arm64")
    }],
};

/// `ARM_EXCEPTION_IRQ` (`arch/arm64/include/asm/kvm_asm.h`).
const IRQ: u64 = 0;
/// `ARM_EXCEPTION_TRAP` (`arch/arm64/include/asm/kvm_asm.h`).
const TRAP: u64 = 2;
/// `ESR_ELx_EC_WFx` (`arch/arm64/include/asm/esr.h`).
const WFX: u64 = 1;
