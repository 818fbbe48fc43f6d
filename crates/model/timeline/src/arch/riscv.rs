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
    // WFI traps as a virtual instruction, as other instructions do: the code alone does not
    // identify a wait.
    isas: &[IsaCodes {
        interrupts: |code| code & (CAUSE_IRQ_FLAG_64 | CAUSE_IRQ_FLAG_32) != 0,
        names: CAUSES,
        ..IsaCodes::new(Isa::Riscv, "riscv")
    }],
};

/// `CAUSE_IRQ_FLAG` (`arch/riscv/include/asm/csr.h`): the highest bit of a `long`.
const CAUSE_IRQ_FLAG_64: u64 = 1 << 63;
/// The same flag in a 32-bit kernel. No exception number has this bit.
const CAUSE_IRQ_FLAG_32: u64 = 1 << 31;

/// `EXC_*`, and `IRQ_*` with the flag of either kernel (`arch/riscv/include/asm/csr.h`): the print
/// fmt has only the number. perf's `kvm stat` shows the same names
/// (`tools/perf/arch/riscv/util/riscv_trap_types.h`).
const CAUSES: &[(u64, &str)] = &[
    (0, "EXC_INST_MISALIGNED"),
    (1, "EXC_INST_ACCESS"),
    (2, "EXC_INST_ILLEGAL"),
    (3, "EXC_BREAKPOINT"),
    (4, "EXC_LOAD_MISALIGNED"),
    (5, "EXC_LOAD_ACCESS"),
    (6, "EXC_STORE_MISALIGNED"),
    (7, "EXC_STORE_ACCESS"),
    (8, "EXC_SYSCALL"),
    (9, "EXC_HYPERVISOR_SYSCALL"),
    (10, "EXC_SUPERVISOR_SYSCALL"),
    (12, "EXC_INST_PAGE_FAULT"),
    (13, "EXC_LOAD_PAGE_FAULT"),
    (15, "EXC_STORE_PAGE_FAULT"),
    (20, "EXC_INST_GUEST_PAGE_FAULT"),
    (21, "EXC_LOAD_GUEST_PAGE_FAULT"),
    (22, "EXC_VIRTUAL_INST_FAULT"),
    (23, "EXC_STORE_GUEST_PAGE_FAULT"),
    (CAUSE_IRQ_FLAG_64 | 1, "IRQ_S_SOFT"),
    (CAUSE_IRQ_FLAG_64 | 2, "IRQ_VS_SOFT"),
    (CAUSE_IRQ_FLAG_64 | 3, "IRQ_M_SOFT"),
    (CAUSE_IRQ_FLAG_64 | 5, "IRQ_S_TIMER"),
    (CAUSE_IRQ_FLAG_64 | 6, "IRQ_VS_TIMER"),
    (CAUSE_IRQ_FLAG_64 | 7, "IRQ_M_TIMER"),
    (CAUSE_IRQ_FLAG_64 | 9, "IRQ_S_EXT"),
    (CAUSE_IRQ_FLAG_64 | 10, "IRQ_VS_EXT"),
    (CAUSE_IRQ_FLAG_64 | 11, "IRQ_M_EXT"),
    (CAUSE_IRQ_FLAG_64 | 12, "IRQ_S_GEXT"),
    (CAUSE_IRQ_FLAG_64 | 13, "IRQ_PMU_OVF"),
    (CAUSE_IRQ_FLAG_32 | 1, "IRQ_S_SOFT"),
    (CAUSE_IRQ_FLAG_32 | 2, "IRQ_VS_SOFT"),
    (CAUSE_IRQ_FLAG_32 | 3, "IRQ_M_SOFT"),
    (CAUSE_IRQ_FLAG_32 | 5, "IRQ_S_TIMER"),
    (CAUSE_IRQ_FLAG_32 | 6, "IRQ_VS_TIMER"),
    (CAUSE_IRQ_FLAG_32 | 7, "IRQ_M_TIMER"),
    (CAUSE_IRQ_FLAG_32 | 9, "IRQ_S_EXT"),
    (CAUSE_IRQ_FLAG_32 | 10, "IRQ_VS_EXT"),
    (CAUSE_IRQ_FLAG_32 | 11, "IRQ_M_EXT"),
    (CAUSE_IRQ_FLAG_32 | 12, "IRQ_S_GEXT"),
    (CAUSE_IRQ_FLAG_32 | 13, "IRQ_PMU_OVF"),
];
