//! Architectures of test recordings.

/// The architecture, which decides a kernel's KVM events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Machine {
    /// Intel and AMD; the event field `isa` distinguishes them (1 VMX, 2 SVM).
    X86,
    /// 64-bit Arm.
    Arm64,
    /// IBM Z.
    S390,
    /// RISC-V.
    Riscv,
    /// POWER, book3s HV.
    Powerpc,
    /// LoongArch.
    Loongarch,
}
