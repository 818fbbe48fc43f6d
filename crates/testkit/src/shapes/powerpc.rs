//! KVM events of POWER (book3s HV): guest entry, guest exit, and hypercalls by name.

use super::Shape;

pub(super) const SHAPES: &[Shape] = &[
    Shape {
        system: "kvm_hv",
        name: "kvm_guest_enter",
        fields: &[
            ("int", "vcpu_id"),
            ("unsigned long", "pc"),
            ("unsigned long", "pending_exceptions"),
            ("u8", "ceded"),
        ],
        print: r#""VCPU %d: pc=0x%lx pexcp=0x%lx ceded=%d", REC->vcpu_id, REC->pc, REC->pending_exceptions, REC->ceded"#,
    },
    Shape {
        system: "kvm_hv",
        name: "kvm_guest_exit",
        fields: &[
            ("int", "vcpu_id"),
            ("int", "trap"),
            ("unsigned long", "pc"),
            ("unsigned long", "msr"),
            ("u8", "ceded"),
        ],
        print: r#""VCPU %d: trap=%s pc=0x%lx msr=0x%lx, ceded=%d", REC->vcpu_id, __print_symbolic(REC->trap, {0x500, "EXTERNAL"}, {0x980, "HV_DECREMENTER"}, {0xc00, "SYSCALL"}, {0xe00, "H_DATA_STORAGE"}), REC->pc, REC->msr, REC->ceded"#,
    },
    Shape {
        system: "kvm_hv",
        name: "kvm_hcall_enter",
        fields: &[
            ("int", "vcpu_id"),
            ("unsigned long", "req"),
            ("unsigned long", "gpr4"),
            ("unsigned long", "gpr5"),
            ("unsigned long", "gpr6"),
            ("unsigned long", "gpr7"),
        ],
        print: r#""VCPU %d: hcall=%s GPR4-7=0x%lx,0x%lx,0x%lx,0x%lx", REC->vcpu_id, __print_symbolic(REC->req, {0xe0, "H_CEDE"}, {0x58, "H_PUT_TERM_CHAR"}), REC->gpr4, REC->gpr5, REC->gpr6, REC->gpr7"#,
    },
];
