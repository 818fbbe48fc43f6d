//! The x86 part of the machine: registers, the first PIC, the time stamp counter.

use std::os::fd::{AsFd, BorrowedFd};

use super::abi::x86::{Cpuid, DeviceAttribute, Irqchip, Registers, SpecialRegisters, request};
use super::{Result, TinyVm, with};

impl TinyVm {
    /// Reads segment, control and other special registers.
    ///
    /// # Errors
    /// If KVM refuses.
    pub fn special_registers(&self) -> Result<SpecialRegisters> {
        let mut registers = SpecialRegisters::default();
        with(self.vcpu.as_fd(), "KVM_GET_SREGS", request::GET_SREGS, &mut registers)?;
        Ok(registers)
    }

    /// Sets segment, control and other special registers.
    ///
    /// # Errors
    /// If KVM refuses.
    pub fn set_special_registers(&mut self, registers: &SpecialRegisters) -> Result<()> {
        with(self.vcpu.as_fd(), "KVM_SET_SREGS", request::SET_SREGS, &mut registers.clone())
    }

    /// Sets the general registers and the instruction pointer.
    ///
    /// # Errors
    /// If KVM refuses.
    pub fn set_registers(&mut self, registers: &Registers) -> Result<()> {
        with(self.vcpu.as_fd(), "KVM_SET_REGS", request::SET_REGS, &mut registers.clone())
    }

    /// Sets the first PIC to use vectors from `base` on, with automatic end of interrupt, so that a
    /// handler need not access it.
    ///
    /// # Errors
    /// If KVM refuses, or if it does not emulate the controllers.
    pub fn set_pic(&mut self, base: u8) -> Result<()> {
        let mut chip = Irqchip::first_pic();
        with(self.vm.as_fd(), "KVM_GET_IRQCHIP", request::GET_IRQCHIP, &mut chip)?;
        chip.set_pic(base);
        with(self.vm.as_fd(), "KVM_SET_IRQCHIP", request::SET_IRQCHIP, &mut chip)
    }

    /// Injects an interrupt if KVM does not emulate the controllers.
    ///
    /// # Errors
    /// If KVM refuses.
    pub fn interrupt(&mut self, vector: u8) -> Result<()> {
        with(self.vcpu.as_fd(), "KVM_INTERRUPT", request::INTERRUPT, &mut u32::from(vector))
    }

    /// The offset of the guest's time stamp counter from the host's.
    ///
    /// # Errors
    /// If the kernel does not report it: it is older than 5.16.
    pub fn tsc_offset(&self) -> Result<i64> {
        let mut offset = 0_i64;
        let mut argument = DeviceAttribute::tsc_offset(&raw mut offset as u64);
        let call = "KVM_GET_DEVICE_ATTR of the TSC's offset";
        with(self.vcpu.as_fd(), call, request::GET_DEVICE_ATTR, &mut argument)?;
        Ok(offset)
    }
}

/// Initializes the vCPU with the features that KVM supports.
pub(super) fn set_up(kvm: BorrowedFd<'_>, _: BorrowedFd<'_>, vcpu: BorrowedFd<'_>) -> Result<()> {
    let mut table = Cpuid::empty();
    with(kvm, "KVM_GET_SUPPORTED_CPUID", request::GET_SUPPORTED_CPUID, &mut *table)?;
    with(vcpu, "KVM_SET_CPUID2", request::SET_CPUID2, &mut *table)
}
