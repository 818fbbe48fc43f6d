//! Names of exit reasons from the kernel's print fmts; CTF traces have only the numbers.

use std::fmt::Write;

/// Format and arguments of a print fmt that replace an event's numeric fields by names. `None`: the
/// event has no such field.
pub(super) fn printed(name: &str, has: impl Fn(&str) -> bool) -> Option<(&'static str, String)> {
    match name {
        "kvm_exit" | "kvm_nested_vmexit" | "kvm_nested_vmexit_inject" if has("isa") => {
            let field = ["exit_reason", "exit_code"].into_iter().find(|field| has(field))?;
            Some(("reason %s%s%s", x86(field)))
        }
        "kvm_exit" if has("ret") && has("esr_ec") => {
            let arguments =
                [symbolic("REC->ret", ARM64_RETURNS), symbolic("REC->esr_ec", ARM64_CLASSES)];
            Some(("%s (%s)", arguments.join(", ")))
        }
        "kvm_userspace_exit" if has("reason") => {
            Some(("reason %s", symbolic("REC->reason", USERSPACE)))
        }
        _ => None,
    }
}

/// `isa` selects the table. VMX has flags above the reason.
fn x86(field: &str) -> String {
    let vmx = symbolic(&format!("REC->{field} & 0xffff"), VMX);
    let svm = symbolic(&format!("REC->{field}"), SVM);
    format!(
        "(REC->isa == 1) ? {vmx} : {svm}, (REC->isa == 1 && REC->{field} & ~0xffff) ? \" \" : \"\", \
         (REC->isa == 1) ? __print_flags(REC->{field} & ~0xffff, \" \", {VMX_FLAGS}) : \"\""
    )
}

/// `VMX_EXIT_REASONS_*` (`arch/x86/include/uapi/asm/vmx.h`), and the bus-lock bit (`union
/// vmx_exit_reason`).
const VMX_FLAGS: &str = "{ 0x80000000, \"FAILED_VMENTRY\" }, { 0x08000000, \"SGX_ENCLAVE_MODE\" }, \
    { 0x04000000, \"BUS_LOCK_DETECTED\" }";

fn symbolic(value: &str, table: &[(u64, &str)]) -> String {
    let mut text = format!("__print_symbolic({value}");
    for (number, name) in table {
        // Writing to memory cannot fail.
        let _ = write!(text, ", {{ {number:#x}, \"{name}\" }}");
    }
    text + ")"
}

/// `EXIT_REASON_*` (`arch/x86/include/uapi/asm/vmx.h`).
const VMX: &[(u64, &str)] = &[
    (0, "EXCEPTION_NMI"),
    (1, "EXTERNAL_INTERRUPT"),
    (2, "TRIPLE_FAULT"),
    (3, "INIT_SIGNAL"),
    (4, "SIPI_SIGNAL"),
    (7, "INTERRUPT_WINDOW"),
    (8, "NMI_WINDOW"),
    (9, "TASK_SWITCH"),
    (10, "CPUID"),
    (12, "HLT"),
    (13, "INVD"),
    (14, "INVLPG"),
    (15, "RDPMC"),
    (16, "RDTSC"),
    (18, "VMCALL"),
    (19, "VMCLEAR"),
    (20, "VMLAUNCH"),
    (21, "VMPTRLD"),
    (22, "VMPTRST"),
    (23, "VMREAD"),
    (24, "VMRESUME"),
    (25, "VMWRITE"),
    (26, "VMOFF"),
    (27, "VMON"),
    (28, "CR_ACCESS"),
    (29, "DR_ACCESS"),
    (30, "IO_INSTRUCTION"),
    (31, "MSR_READ"),
    (32, "MSR_WRITE"),
    (33, "INVALID_STATE"),
    (34, "MSR_LOAD_FAIL"),
    (36, "MWAIT_INSTRUCTION"),
    (37, "MONITOR_TRAP_FLAG"),
    (39, "MONITOR_INSTRUCTION"),
    (40, "PAUSE_INSTRUCTION"),
    (41, "MCE_DURING_VMENTRY"),
    (43, "TPR_BELOW_THRESHOLD"),
    (44, "APIC_ACCESS"),
    (45, "EOI_INDUCED"),
    (46, "GDTR_IDTR"),
    (47, "LDTR_TR"),
    (48, "EPT_VIOLATION"),
    (49, "EPT_MISCONFIG"),
    (50, "INVEPT"),
    (51, "RDTSCP"),
    (52, "PREEMPTION_TIMER"),
    (53, "INVVPID"),
    (54, "WBINVD"),
    (55, "XSETBV"),
    (56, "APIC_WRITE"),
    (57, "RDRAND"),
    (58, "INVPCID"),
    (59, "VMFUNC"),
    (60, "ENCLS"),
    (61, "RDSEED"),
    (62, "PML_FULL"),
    (63, "XSAVES"),
    (64, "XRSTORS"),
    (67, "UMWAIT"),
    (68, "TPAUSE"),
    (74, "BUS_LOCK"),
    (75, "NOTIFY"),
    (77, "TDCALL"),
    (84, "MSR_READ_IMM"),
    (85, "MSR_WRITE_IMM"),
];

/// `SVM_EXIT_*` (`arch/x86/include/uapi/asm/svm.h`).
const SVM: &[(u64, &str)] = &[
    (0, "read_cr0"),
    (2, "read_cr2"),
    (3, "read_cr3"),
    (4, "read_cr4"),
    (8, "read_cr8"),
    (16, "write_cr0"),
    (18, "write_cr2"),
    (19, "write_cr3"),
    (20, "write_cr4"),
    (24, "write_cr8"),
    (32, "read_dr0"),
    (33, "read_dr1"),
    (34, "read_dr2"),
    (35, "read_dr3"),
    (36, "read_dr4"),
    (37, "read_dr5"),
    (38, "read_dr6"),
    (39, "read_dr7"),
    (48, "write_dr0"),
    (49, "write_dr1"),
    (50, "write_dr2"),
    (51, "write_dr3"),
    (52, "write_dr4"),
    (53, "write_dr5"),
    (54, "write_dr6"),
    (55, "write_dr7"),
    (64, "DE excp"),
    (65, "DB excp"),
    (67, "BP excp"),
    (68, "OF excp"),
    (69, "BR excp"),
    (70, "UD excp"),
    (71, "NM excp"),
    (72, "DF excp"),
    (74, "TS excp"),
    (75, "NP excp"),
    (76, "SS excp"),
    (77, "GP excp"),
    (78, "PF excp"),
    (80, "MF excp"),
    (81, "AC excp"),
    (82, "MC excp"),
    (83, "XF excp"),
    (96, "interrupt"),
    (97, "nmi"),
    (98, "smi"),
    (99, "init"),
    (100, "vintr"),
    (101, "cr0_sel_write"),
    (102, "read_idtr"),
    (103, "read_gdtr"),
    (104, "read_ldtr"),
    (105, "read_rt"),
    (106, "write_idtr"),
    (107, "write_gdtr"),
    (108, "write_ldtr"),
    (109, "write_rt"),
    (110, "rdtsc"),
    (111, "rdpmc"),
    (112, "pushf"),
    (113, "popf"),
    (114, "cpuid"),
    (115, "rsm"),
    (116, "iret"),
    (117, "swint"),
    (118, "invd"),
    (119, "pause"),
    (120, "hlt"),
    (121, "invlpg"),
    (122, "invlpga"),
    (123, "io"),
    (124, "msr"),
    (125, "task_switch"),
    (126, "ferr_freeze"),
    (127, "shutdown"),
    (128, "vmrun"),
    (129, "hypercall"),
    (130, "vmload"),
    (131, "vmsave"),
    (132, "stgi"),
    (133, "clgi"),
    (134, "skinit"),
    (135, "rdtscp"),
    (136, "icebp"),
    (137, "wbinvd"),
    (138, "monitor"),
    (139, "mwait"),
    (141, "xsetbv"),
    (143, "write_efer_trap"),
    (144, "write_cr0_trap"),
    (148, "write_cr4_trap"),
    (152, "write_cr8_trap"),
    (162, "invpcid"),
    (165, "buslock"),
    (166, "idle-halt"),
    (0x400, "npf"),
    (0x401, "avic_incomplete_ipi"),
    (0x402, "avic_unaccelerated_access"),
    (0x403, "vmgexit"),
    (0x80000001, "vmgexit_mmio_read"),
    (0x80000002, "vmgexit_mmio_write"),
    (0x80000003, "vmgexit_nmi_complete"),
    (0x80000004, "vmgexit_ap_hlt_loop"),
    (0x80000005, "vmgexit_ap_jump_table"),
    (0x80000010, "vmgexit_page_state_change"),
    (0x80000011, "vmgexit_guest_request"),
    (0x80000012, "vmgexit_ext_guest_request"),
    (0x80000013, "vmgexit_ap_creation"),
    (0x8000fffd, "vmgexit_hypervisor_feature"),
    (u64::MAX, "invalid_guest_state"),
];

/// `ARM_EXCEPTION_*` (`arch/arm64/include/asm/kvm_asm.h`).
const ARM64_RETURNS: &[(u64, &str)] =
    &[(0, "IRQ"), (1, "SERROR"), (2, "TRAP"), (0xbadca11, "HYP_GONE")];

/// `ESR_ELx_EC_*` (`arch/arm64/include/asm/esr.h`).
const ARM64_CLASSES: &[(u64, &str)] = &[
    (0, "UNKNOWN"),
    (1, "WFx"),
    (3, "CP15_32"),
    (4, "CP15_64"),
    (5, "CP14_MR"),
    (6, "CP14_LS"),
    (7, "FP_ASIMD"),
    (8, "CP10_ID"),
    (9, "PAC"),
    (12, "CP14_64"),
    (21, "SVC64"),
    (22, "HVC64"),
    (23, "SMC64"),
    (24, "SYS64"),
    (25, "SVE"),
    (31, "IMP_DEF"),
    (32, "IABT_LOW"),
    (33, "IABT_CUR"),
    (34, "PC_ALIGN"),
    (36, "DABT_LOW"),
    (37, "DABT_CUR"),
    (38, "SP_ALIGN"),
    (40, "FP_EXC32"),
    (44, "FP_EXC64"),
    (47, "SERROR"),
    (48, "BREAKPT_LOW"),
    (49, "BREAKPT_CUR"),
    (50, "SOFTSTP_LOW"),
    (51, "SOFTSTP_CUR"),
    (52, "WATCHPT_LOW"),
    (53, "WATCHPT_CUR"),
    (56, "BKPT32"),
    (58, "VECTOR32"),
    (60, "BRK64"),
];

/// `KVM_EXIT_*` (`include/uapi/linux/kvm.h`).
const USERSPACE: &[(u64, &str)] = &[
    (0, "KVM_EXIT_UNKNOWN"),
    (1, "KVM_EXIT_EXCEPTION"),
    (2, "KVM_EXIT_IO"),
    (3, "KVM_EXIT_HYPERCALL"),
    (4, "KVM_EXIT_DEBUG"),
    (5, "KVM_EXIT_HLT"),
    (6, "KVM_EXIT_MMIO"),
    (7, "KVM_EXIT_IRQ_WINDOW_OPEN"),
    (8, "KVM_EXIT_SHUTDOWN"),
    (9, "KVM_EXIT_FAIL_ENTRY"),
    (10, "KVM_EXIT_INTR"),
    (11, "KVM_EXIT_SET_TPR"),
    (12, "KVM_EXIT_TPR_ACCESS"),
    (13, "KVM_EXIT_S390_SIEIC"),
    (14, "KVM_EXIT_S390_RESET"),
    (15, "KVM_EXIT_DCR"),
    (16, "KVM_EXIT_NMI"),
    (17, "KVM_EXIT_INTERNAL_ERROR"),
    (18, "KVM_EXIT_OSI"),
    (19, "KVM_EXIT_PAPR_HCALL"),
    (20, "KVM_EXIT_S390_UCONTROL"),
    (21, "KVM_EXIT_WATCHDOG"),
    (22, "KVM_EXIT_S390_TSCH"),
    (23, "KVM_EXIT_EPR"),
    (24, "KVM_EXIT_SYSTEM_EVENT"),
    (25, "KVM_EXIT_S390_STSI"),
    (26, "KVM_EXIT_IOAPIC_EOI"),
    (27, "KVM_EXIT_HYPERV"),
    (28, "KVM_EXIT_ARM_NISV"),
    (29, "KVM_EXIT_X86_RDMSR"),
    (30, "KVM_EXIT_X86_WRMSR"),
];
