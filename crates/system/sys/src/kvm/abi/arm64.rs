//! Structures and requests of `/dev/kvm` on arm64.

use super::Argument;

pub(in crate::kvm) mod request {
    use super::super::Request;
    use super::{OneRegister, VcpuInit};

    pub(in crate::kvm) const SET_ONE_REG: Request<OneRegister> = Request::for_argument(1, 0xac);
    pub(in crate::kvm) const ARM_VCPU_INIT: Request<VcpuInit> = Request::for_argument(1, 0xae);
    pub(in crate::kvm) const ARM_PREFERRED_TARGET: Request<VcpuInit> =
        Request::for_argument(2, 0xaf);
}

/// `struct kvm_one_reg`.
#[repr(C)]
#[derive(Debug)]
pub(in crate::kvm) struct OneRegister {
    id: u64,
    addr: u64,
}

impl Argument for OneRegister {}

impl OneRegister {
    pub(in crate::kvm) fn new(id: u64, addr: u64) -> Self {
        Self { id, addr }
    }
}

/// `struct kvm_vcpu_init`.
#[repr(C)]
#[derive(Debug, Default)]
pub(in crate::kvm) struct VcpuInit {
    target: u32,
    features: [u32; 7],
}

impl Argument for VcpuInit {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that strace prints for these requests.
    #[test]
    fn requests_have_the_kernels_numbers() {
        assert_eq!(request::SET_ONE_REG.number, 0x4010_aeac);
        assert_eq!(request::ARM_VCPU_INIT.number, 0x4020_aeae);
        assert_eq!(request::ARM_PREFERRED_TARGET.number, 0x8020_aeaf);
    }
}
