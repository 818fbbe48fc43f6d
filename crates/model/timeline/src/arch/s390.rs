//! IBM Z: `arch/s390/kvm/trace.h`, `trace-s390.h`. From the headers; not tested on a real recording yet.

use super::{Access, AccessKind, Arch, Isa, IsaCodes, Rule};
use crate::exit_span::Detail;
use crate::thread_event::Kind;

pub(super) const ARCH: Arch = Arch {
    rules: &[
        Rule::new("kvm-s390:kvm_s390_sie_exit", Kind::Exit).value("icptcode"),
        Rule::new("kvm:kvm_s390_sie_exit", Kind::Exit).value("icptcode"),
        Rule::new("kvm-s390:kvm_s390_sie_enter", Kind::Entry).value("id"),
        Rule::new("kvm:kvm_s390_sie_enter", Kind::Entry).value("id"),
    ],
    details: &[(Detail::Hypercall, Rule::detail("kvm_s390_intercept_diag", "code"))],
    accesses: &[Access::new("kvm_s390_intercept_diag", AccessKind::Hypercall, &["code"])],
    injections: &[],
    isas: &[IsaCodes { waits: |code| code == ICPT_WAIT, ..IsaCodes::new(Isa::S390, "s390") }],
};

/// `ICPT_WAIT` (`arch/s390/include/asm/kvm_host.h`).
const ICPT_WAIT: u64 = 0x1c;
