//! POWER, book3s HV: `arch/powerpc/kvm/trace_hv.h`. From the header; not tested on a real recording yet.
//!
//! On POWER9 and later, each vCPU's own thread records its events. On earlier CPUs one thread ran
//! all vCPUs of a core, so their times cannot be separated by thread.

use super::{Access, AccessKind, Arch, Isa, IsaCodes, Rule};
use crate::exit_span::Detail;
use crate::thread_event::Kind;

pub(super) const ARCH: Arch = Arch {
    rules: &[
        Rule::new("kvm_hv:kvm_guest_exit", Kind::Exit).value("trap").high("ceded"),
        Rule::new("kvm_hv:kvm_guest_enter", Kind::Entry).value("vcpu_id"),
    ],
    details: &[(Detail::Hypercall, Rule::detail("kvm_hv:kvm_hcall_enter", "req"))],
    accesses: &[Access::new("kvm_hv:kvm_hcall_enter", AccessKind::Hypercall, &["req"])],
    injections: &[],
    isas: &[IsaCodes {
        waits: |code| code >> 32 != 0,
        interrupts: |code| INTERRUPTS.contains(&code),
        symbol_in: |_| "trap",
        suffix: |code| if code >> 32 != 0 { " (ceded)" } else { "" },
        ..IsaCodes::new(Isa::Powerpc, "powerpc")
    }],
};

/// `BOOK3S_INTERRUPT_EXTERNAL`, `_DECREMENTER` and `_HV_DECREMENTER`, for a guest that has not
/// ceded (`arch/powerpc/include/asm/kvm_asm.h`).
const INTERRUPTS: [u64; 3] = [0x500, 0x900, 0x980];
