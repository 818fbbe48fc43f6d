//! Intel and AMD: `arch/x86/kvm/trace.h`.

use super::{Access, AccessKind, Arch, Injection, Isa, IsaCodes, Rule};
use crate::exit_span::Detail;
use crate::thread_event::Kind;

pub(super) const ARCH: Arch = Arch {
    rules: &[
        // Nested events had `exit_code` before 5.10.
        Rule::new("kvm:kvm_exit", Kind::Exit).value("exit_reason|exit_code").flag("isa"),
        Rule::new("kvm:kvm_entry", Kind::Entry).value("vcpu_id"),
        Rule::new("kvm:kvm_nested_vmenter", Kind::NestedEnter),
        Rule::new("kvm:kvm_nested_vmrun", Kind::NestedEnter),
        Rule::new("kvm:kvm_nested_vmenter_failed", Kind::NestedEnterFailed),
        Rule::new("kvm:kvm_nested_vmexit", Kind::NestedExit),
        Rule::new("kvm:kvm_nested_vmexit_inject", Kind::NestedInject)
            .value("exit_reason|exit_code"),
    ],
    details: &[
        (Detail::Msr, Rule::detail("kvm:kvm_msr", "ecx")),
        (Detail::Port, Rule::detail("kvm:kvm_pio", "port")),
        (Detail::Gpa, Rule::detail("kvm:kvm_page_fault", "fault_address|address")),
        (Detail::Gpa, Rule::detail("kvm:kvm_fast_mmio", "gpa|fast_mmio")),
        (Detail::Hypercall, Rule::detail("kvm:kvm_hypercall", "nr")),
        (Detail::Hypercall, Rule::detail("kvm:kvm_hv_hypercall", "code")),
        (Detail::Hypercall, Rule::detail("kvm:kvm_xen_hypercall", "nr")),
        (Detail::CpuidLeaf, Rule::detail("kvm:kvm_cpuid", "function")),
        // A probe event: its user chooses the group, which is the event's system.
        (Detail::VmcbClean, Rule::detail("enter_svm_guest_mode", "clean")),
    ],
    accesses: &[
        Access::new("kvm:kvm_fast_mmio", AccessKind::FastMmio, &["gpa|fast_mmio"]),
        Access::new("kvm:kvm_pio", AccessKind::Pio, &["rw", "port"]),
        Access::new("kvm:kvm_msr", AccessKind::Msr, &["write", "ecx"]),
        Access::new("kvm:kvm_hypercall", AccessKind::Hypercall, &["nr"]),
        Access::new("kvm:kvm_hv_hypercall", AccessKind::Hypercall, &["code"]),
        Access::new("kvm:kvm_xen_hypercall", AccessKind::Hypercall, &["nr"]),
        Access::new("kvm:kvm_apic_ipi", AccessKind::Ipi, &[]),
    ],
    injections: &[
        Injection::new("kvm:kvm_msi_set_irq", &["none", "none", "common_flags", "none"]),
        Injection::new("kvm:kvm_apic_accept_irq", &["apicid", "none", "common_flags", "vec"]),
    ],
    isas: &[
        IsaCodes {
            flag: 1,
            waits: vmx_waits,
            interrupts: |code| code & (VMX_FAILED_VMENTRY | 0xffff) == VMX_EXTERNAL_INTERRUPT,
            flag_bits: !0xffff,
            flags: VMX_FLAGS,
            ..IsaCodes::new(Isa::Vmx, "vmx")
        },
        IsaCodes {
            flag: 2,
            waits: svm_waits,
            interrupts: |code| matches!(code, SVM_INTR | SVM_NMI),
            ..IsaCodes::new(Isa::Svm, "svm")
        },
    ],
};

/// `VMX_EXIT_REASONS_FAILED_VMENTRY` (`arch/x86/include/uapi/asm/vmx.h`): the guest did not run.
const VMX_FAILED_VMENTRY: u64 = 0x8000_0000;
/// Flags above the reason (`arch/x86/include/uapi/asm/vmx.h`; the third is a bit of `union
/// vmx_exit_reason` in `arch/x86/kvm/vmx/vmx.h`), with the names of newer print fmts.
const VMX_FLAGS: &[(u64, &str)] = &[
    (VMX_FAILED_VMENTRY, "FAILED_VMENTRY"),
    (0x0800_0000, "SGX_ENCLAVE_MODE"),
    (0x0400_0000, "BUS_LOCK_DETECTED"),
];

/// `EXIT_REASON_EXTERNAL_INTERRUPT` (`arch/x86/include/uapi/asm/vmx.h`).
const VMX_EXTERNAL_INTERRUPT: u64 = 1;
/// `SVM_EXIT_INTR` (`arch/x86/include/uapi/asm/svm.h`).
const SVM_INTR: u64 = 0x060;
/// `SVM_EXIT_NMI` (the same header).
const SVM_NMI: u64 = 0x061;

/// `EXIT_REASON_HLT` and `EXIT_REASON_MWAIT_INSTRUCTION` (`arch/x86/include/uapi/asm/vmx.h`), if
/// the guest ran.
fn vmx_waits(code: u64) -> bool {
    matches!(code & (VMX_FAILED_VMENTRY | 0xffff), 12 | 36)
}

/// `SVM_EXIT_HLT`, `SVM_EXIT_MWAIT`, `SVM_EXIT_MWAIT_COND` (`arch/x86/include/uapi/asm/svm.h`).
fn svm_waits(code: u64) -> bool {
    matches!(code, 0x078 | 0x08b | 0x08c)
}
