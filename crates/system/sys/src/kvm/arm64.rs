//! The arm64 part of the machine: vCPU type, and single registers.

use std::os::fd::{AsFd, BorrowedFd};

use super::abi::arm64::{OneRegister, VcpuInit, request};
use super::{Result, TinyVm, with};

/// `pc` of `struct kvm_regs`: a core register of 64 bits at the 64th word.
const PROGRAM_COUNTER: u64 = 0x6030_0000_0010_0040;

impl TinyVm {
    /// Sets the address of the next instruction. The vCPU starts at EL1, without address
    /// translation.
    ///
    /// # Errors
    /// If KVM refuses.
    pub fn set_program_counter(&mut self, address: u64) -> Result<()> {
        let mut register = OneRegister::new(PROGRAM_COUNTER, &raw const address as u64);
        with(self.vcpu.as_fd(), "KVM_SET_ONE_REG", request::SET_ONE_REG, &mut register)
    }
}

/// Initializes the vCPU with the host's CPU type.
pub(super) fn set_up(_: BorrowedFd<'_>, vm: BorrowedFd<'_>, vcpu: BorrowedFd<'_>) -> Result<()> {
    let mut kind = VcpuInit::default();
    with(vm, "KVM_ARM_PREFERRED_TARGET", request::ARM_PREFERRED_TARGET, &mut kind)?;
    with(vcpu, "KVM_ARM_VCPU_INIT", request::ARM_VCPU_INIT, &mut kind)
}
