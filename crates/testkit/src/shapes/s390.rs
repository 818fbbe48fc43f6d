//! KVM events of IBM Z: SIE entry and exit; every event of a vCPU has its PSW.

use super::Shape;

pub(super) const SHAPES: &[Shape] = &[
    Shape {
        system: "kvm",
        name: "kvm_s390_sie_enter",
        fields: &[
            ("int", "id"),
            ("unsigned long", "pswmask"),
            ("unsigned long", "pswaddr"),
            ("int", "cpuflags"),
        ],
        print: r#""%02d[%016lx-%016lx]: entering sie flags %x", REC->id, REC->pswmask, REC->pswaddr, REC->cpuflags"#,
    },
    Shape {
        system: "kvm",
        name: "kvm_s390_sie_exit",
        fields: &[
            ("int", "id"),
            ("unsigned long", "pswmask"),
            ("unsigned long", "pswaddr"),
            ("u8", "icptcode"),
        ],
        // The kernel misspells the third name, too.
        print: r#""%02d[%016lx-%016lx]: exit sie icptcode %d (%s)", REC->id, REC->pswmask, REC->pswaddr, REC->icptcode, __print_symbolic(REC->icptcode, {0x04, "Instruction"}, {0x08, "Program interruption"}, {0x0C, "Instruction and program interuption"}, {0x10, "External request"}, {0x14, "External interruption"}, {0x18, "I/O request"}, {0x1C, "Wait state"}, {0x20, "Validity"}, {0x28, "Stop request"})"#,
    },
    Shape {
        system: "kvm",
        name: "kvm_s390_intercept_prog",
        fields: &[
            ("int", "id"),
            ("unsigned long", "pswmask"),
            ("unsigned long", "pswaddr"),
            ("__u16", "code"),
        ],
        print: r#""%02d[%016lx-%016lx]: intercepted program interruption %04x", REC->id, REC->pswmask, REC->pswaddr, REC->code"#,
    },
];
