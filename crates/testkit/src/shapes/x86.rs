//! KVM events of x86, including nested ones: `isa` 1 is VMX, 2 is SVM.

use super::Shape;

/// The name of the exit reason in `$field`, then two `%s` for the flags that VMX has above the
/// basic reason.
macro_rules! reason {
    ($field:literal) => {
        concat!(
            "(REC->isa == 1) ? __print_symbolic(",
            $field,
            r#" & 0xffff, { 0, "EXCEPTION_NMI" }, { 1, "EXTERNAL_INTERRUPT" }, { 7, "INTERRUPT_WINDOW" }, { 10, "CPUID" }, { 12, "HLT" }, { 18, "VMCALL" }, { 20, "VMLAUNCH" }, { 23, "VMREAD" }, { 24, "VMRESUME" }, { 25, "VMWRITE" }, { 28, "CR_ACCESS" }, { 30, "IO_INSTRUCTION" }, { 31, "MSR_READ" }, { 32, "MSR_WRITE" }, { 40, "PAUSE_INSTRUCTION" }, { 56, "APIC_WRITE" }, { 48, "EPT_VIOLATION" }, { 49, "EPT_MISCONFIG" }, { 52, "PREEMPTION_TIMER" }) : __print_symbolic("#,
            $field,
            r#", { 0x060, "interrupt" }, { 0x061, "nmi" }, { 0x064, "vintr" }, { 0x072, "cpuid" }, { 0x078, "hlt" }, { 0x07b, "io" }, { 0x07c, "msr" }, { 0x080, "vmrun" }, { 0x081, "hypercall" }, { 0x082, "vmload" }, { 0x083, "vmsave" }, { 0x084, "stgi" }, { 0x085, "clgi" }, { 0x400, "npf" }), (REC->isa == 1 && "#,
            $field,
            r#" & ~0xffff) ? " " : "", (REC->isa == 1) ? __print_flags("#,
            $field,
            r#" & ~0xffff, " ", { 0x80000000, "FAILED_VMENTRY" }) : """#
        )
    };
}

const EXIT_FIELDS: &[(&str, &str)] = &[
    ("unsigned int", "exit_reason"),
    ("unsigned long", "guest_rip"),
    ("u32", "isa"),
    ("u64", "info1"),
    ("u64", "info2"),
    ("u32", "intr_info"),
    ("u32", "error_code"),
    ("unsigned int", "vcpu_id"),
];

const EXIT_PRINT: &str = concat!(
    r#""vcpu %u reason %s%s%s rip 0x%lx info1 0x%016llx info2 0x%016llx intr_info 0x%08x error_code 0x%08x", REC->vcpu_id, "#,
    reason!("REC->exit_reason"),
    ", REC->guest_rip, REC->info1, REC->info2, REC->intr_info, REC->error_code"
);

pub(super) const SHAPES: &[Shape] = &[
    Shape {
        system: "kvm",
        name: "kvm_entry",
        fields: &[
            ("unsigned int", "vcpu_id"),
            ("unsigned long", "rip"),
            ("bool", "immediate_exit"),
        ],
        print: r#""vcpu %u, rip 0x%lx%s", REC->vcpu_id, REC->rip, REC->immediate_exit ? "[immediate exit]" : """#,
    },
    Shape { system: "kvm", name: "kvm_exit", fields: EXIT_FIELDS, print: EXIT_PRINT },
    Shape {
        system: "kvm",
        name: "kvm_msr",
        fields: &[("unsigned int", "write"), ("u32", "ecx"), ("u64", "data"), ("u8", "exception")],
        print: r#""msr_%s %x = 0x%llx%s", REC->write ? "write" : "read", REC->ecx, REC->data, REC->exception ? " (#GP)" : """#,
    },
    Shape {
        system: "kvm",
        name: "kvm_pio",
        fields: &[
            ("unsigned int", "rw"),
            ("unsigned int", "port"),
            ("unsigned int", "size"),
            ("unsigned int", "count"),
            ("unsigned int", "val"),
        ],
        print: r#""pio_%s at 0x%x size %d count %d val 0x%x", REC->rw ? "write" : "read", REC->port, REC->size, REC->count, REC->val"#,
    },
    Shape {
        system: "kvm",
        name: "kvm_page_fault",
        fields: &[
            ("unsigned int", "vcpu_id"),
            ("unsigned long", "guest_rip"),
            ("u64", "fault_address"),
            ("u64", "error_code"),
        ],
        print: r#""vcpu %u rip 0x%lx address 0x%016llx error_code 0x%llx", REC->vcpu_id, REC->guest_rip, REC->fault_address, REC->error_code"#,
    },
    Shape {
        system: "kvm",
        name: "kvm_hypercall",
        fields: &[
            ("unsigned long", "nr"),
            ("unsigned long", "a0"),
            ("unsigned long", "a1"),
            ("unsigned long", "a2"),
            ("unsigned long", "a3"),
        ],
        print: r#""nr 0x%lx a0 0x%lx a1 0x%lx a2 0x%lx a3 0x%lx", REC->nr, REC->a0, REC->a1, REC->a2, REC->a3"#,
    },
    Shape { system: "kvm", name: "kvm_nested_vmexit", fields: EXIT_FIELDS, print: EXIT_PRINT },
    Shape {
        system: "kvm",
        name: "kvm_nested_vmexit_inject",
        fields: &[
            ("__u32", "exit_code"),
            ("__u64", "exit_info1"),
            ("__u64", "exit_info2"),
            ("__u32", "exit_int_info"),
            ("__u32", "exit_int_info_err"),
            ("__u32", "isa"),
        ],
        print: concat!(
            r#""reason: %s%s%s ext_inf1: 0x%016llx ext_inf2: 0x%016llx ext_int: 0x%08x ext_int_err: 0x%08x", "#,
            reason!("REC->exit_code"),
            ", REC->exit_info1, REC->exit_info2, REC->exit_int_info, REC->exit_int_info_err"
        ),
    },
    Shape {
        system: "kvm",
        name: "kvm_nested_vmenter",
        fields: &[
            ("__u64", "rip"),
            ("__u64", "vmcb"),
            ("__u64", "nested_rip"),
            ("__u32", "int_ctl"),
            ("__u32", "event_inj"),
            ("bool", "tdp_enabled"),
            ("__u64", "guest_pgd"),
            ("__u32", "isa"),
        ],
        print: r#""rip: 0x%016llx %s: 0x%016llx nested_rip: 0x%016llx int_ctl: 0x%08x event_inj: 0x%08x nested_%s=%s %s: 0x%016llx", REC->rip, REC->isa == 1 ? "vmcs" : "vmcb", REC->vmcb, REC->nested_rip, REC->int_ctl, REC->event_inj, REC->isa == 1 ? "ept" : "npt", REC->tdp_enabled ? "y" : "n", !REC->tdp_enabled ? "guest_cr3" : REC->isa == 1 ? "nested_eptp" : "nested_cr3", REC->guest_pgd"#,
    },
    Shape {
        system: "kvm",
        name: "kvm_nested_vmenter_failed",
        fields: &[("__data_loc char[]", "msg"), ("u32", "err")],
        print: r#""%s", __get_str(msg)"#,
    },
    Shape {
        system: "kvm",
        name: "kvm_nested_intr_vmexit",
        fields: &[("__u64", "rip")],
        print: r#""rip: 0x%016llx", REC->rip"#,
    },
    Shape {
        system: "kvm",
        name: "kvm_write_tsc_offset",
        fields: &[
            ("unsigned int", "vcpu_id"),
            ("__u64", "previous_tsc_offset"),
            ("__u64", "next_tsc_offset"),
        ],
        print: r#""vcpu=%u prev=%llu next=%llu", REC->vcpu_id, REC->previous_tsc_offset, REC->next_tsc_offset"#,
    },
    Shape {
        system: "kvm",
        name: "kvm_set_irq",
        fields: &[("unsigned int", "gsi"), ("int", "level"), ("int", "irq_source_id")],
        print: r#""gsi %u level %d source %d", REC->gsi, REC->level, REC->irq_source_id"#,
    },
    Shape {
        system: "kvm",
        name: "kvm_apic_accept_irq",
        fields: &[("__u32", "apicid"), ("__u16", "dm"), ("__u16", "tm"), ("__u8", "vec")],
        print: r#""apicid %x vec %u", REC->apicid, REC->vec"#,
    },
    Shape {
        system: "kvm",
        name: "kvm_apic_ipi",
        fields: &[("__u32", "icr_low"), ("__u32", "dest_id")],
        print: r#""dst %x vec %u", REC->dest_id, (u8)REC->icr_low"#,
    },
    Shape {
        system: "kvm",
        name: "kvm_inj_virq",
        fields: &[("__u8", "vector"), ("bool", "soft"), ("bool", "reinjected")],
        print: r#""IRQ 0x%x", REC->vector"#,
    },
];
