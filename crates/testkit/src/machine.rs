//! Architectures that recordings for tests are of.

/// The architecture whose KVM events a kernel has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Machine {
    /// Intel and AMD; the field `isa` of the events tells them apart (1 VMX, 2 SVM).
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
