//! Names, C types and print formats of the events that tests need, by kernel header.

mod arm64;
mod ftrace;
mod initcall;
mod irq;
mod irq_vectors;
mod kvm;
mod loongarch;
mod powerpc;
mod raw_syscalls;
mod riscv;
mod s390;
mod sched;
mod syscalls;
mod x86;

use crate::machine::Machine;

/// An event format before it is laid out for an architecture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) system: &'static str,
    pub(crate) name: &'static str,
    /// C type and declarator of each field.
    pub(crate) fields: &'static [(&'static str, &'static str)],
    pub(crate) print: &'static str,
}

/// Events of system calls and signals.
pub(crate) const RAW_SYSCALLS: &[Shape] = raw_syscalls::SHAPES;

/// Events of x86's own interrupt vectors.
pub(crate) const IRQ_VECTORS: &[Shape] = irq_vectors::SHAPES;

/// The events of a kernel for `machine`, grouped by system.
pub(crate) fn for_machine(machine: Machine) -> impl Iterator<Item = &'static Shape> {
    let machine_shapes = match machine {
        Machine::X86 => x86::SHAPES,
        Machine::Arm64 => arm64::SHAPES,
        Machine::S390 => s390::SHAPES,
        Machine::Riscv => riscv::SHAPES,
        Machine::Powerpc => powerpc::SHAPES,
        Machine::Loongarch => loongarch::SHAPES,
    };
    let common = [
        kvm::SHAPES,
        sched::SHAPES,
        irq::SHAPES,
        syscalls::SHAPES,
        ftrace::SHAPES,
        initcall::SHAPES,
    ];
    std::iter::once(machine_shapes).chain(common).flatten()
}
