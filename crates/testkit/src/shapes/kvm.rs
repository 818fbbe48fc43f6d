//! KVM events that every architecture has.

use super::Shape;

pub(super) const SHAPES: &[Shape] = &[
    Shape {
        system: "kvm",
        name: "kvm_userspace_exit",
        fields: &[("__u32", "reason"), ("int", "errno")],
        print: r#""reason %s (%d)", REC->errno < 0 ? (REC->errno == -4 ? "restart" : "error") : __print_symbolic(REC->reason, { 0, "KVM_EXIT_" "UNKNOWN" }, { 2, "KVM_EXIT_" "IO" }, { 3, "KVM_EXIT_" "HYPERCALL" }, { 5, "KVM_EXIT_" "HLT" }, { 6, "KVM_EXIT_" "MMIO" }, { 10, "KVM_EXIT_" "INTR" }, { 13, "KVM_EXIT_" "S390_SIEIC" }, { 24, "KVM_EXIT_" "SYSTEM_EVENT" }), REC->errno < 0 ? -REC->errno : REC->reason"#,
    },
    Shape {
        system: "kvm",
        name: "kvm_vcpu_wakeup",
        fields: &[("__u64", "ns"), ("bool", "waited"), ("bool", "valid")],
        print: r#""%s time %lld ns, polling %s", REC->waited ? "wait" : "poll", REC->ns, REC->valid ? "valid" : "invalid""#,
    },
    Shape {
        system: "kvm",
        name: "kvm_halt_poll_ns",
        fields: &[
            ("bool", "grow"),
            ("unsigned int", "vcpu_id"),
            ("unsigned int", "new"),
            ("unsigned int", "old"),
        ],
        print: r#""vcpu %u: halt_poll_ns %u (%s %u)", REC->vcpu_id, REC->new, REC->grow ? "grow" : "shrink", REC->old"#,
    },
    Shape {
        system: "kvm",
        name: "kvm_fpu",
        fields: &[("u32", "load")],
        print: r#""%s", __print_symbolic(REC->load, {0, "unload"}, {1, "load"})"#,
    },
    Shape {
        system: "kvm",
        name: "kvm_mmio",
        fields: &[("u32", "type"), ("u32", "len"), ("u64", "gpa"), ("u64", "val")],
        print: r#""mmio %s len %u gpa 0x%llx val 0x%llx", __print_symbolic(REC->type, { 0, "unsatisfied-read" }, { 1, "read" }, { 2, "write" }), REC->len, REC->gpa, REC->val"#,
    },
];
