//! RISC-V: `arch/riscv/kvm/trace.h`. From the header; not tested on a real recording yet.

use super::{Arch, Isa, IsaCodes, Rule};
use crate::thread_event::Kind;

pub(super) const ARCH: Arch = Arch {
    rules: &[
        Rule::new("kvm:kvm_exit", Kind::Exit).value("scause"),
        Rule::new("kvm:kvm_entry", Kind::Entry),
    ],
    details: &[],
    accesses: &[],
    injections: &[],
    // WFI traps as a virtual instruction, as others do: the code alone doesn't show a wait.
    isas: &[IsaCodes {
        interrupts: |code| code & CAUSE_IRQ_FLAG != 0,
        ..IsaCodes::new(Isa::Riscv, "riscv")
    }],
};

/// `CAUSE_IRQ_FLAG` (`arch/riscv/include/asm/csr.h`).
const CAUSE_IRQ_FLAG: u64 = 1 << 63;
