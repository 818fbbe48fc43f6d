//! KVM events of RISC-V: exits have the trap's registers but no vCPU number.

use super::Shape;

pub(super) const SHAPES: &[Shape] = &[
    Shape {
        system: "kvm",
        name: "kvm_entry",
        fields: &[("unsigned long", "pc")],
        print: r#""PC: 0x%016lx", REC->pc"#,
    },
    Shape {
        system: "kvm",
        name: "kvm_exit",
        fields: &[
            ("unsigned long", "sepc"),
            ("unsigned long", "scause"),
            ("unsigned long", "stval"),
            ("unsigned long", "htval"),
            ("unsigned long", "htinst"),
        ],
        print: r#""SEPC:0x%lx, SCAUSE:0x%lx, STVAL:0x%lx, HTVAL:0x%lx, HTINST:0x%lx", REC->sepc, REC->scause, REC->stval, REC->htval, REC->htinst"#,
    },
];
