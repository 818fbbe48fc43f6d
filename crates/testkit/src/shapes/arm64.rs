//! KVM events of 64-bit Arm: exits have no vCPU number.

use super::Shape;

pub(super) const SHAPES: &[Shape] = &[
    Shape {
        system: "kvm",
        name: "kvm_entry",
        fields: &[("unsigned long", "vcpu_pc")],
        print: r#""PC: 0x%016lx", REC->vcpu_pc"#,
    },
    Shape {
        system: "kvm",
        name: "kvm_exit",
        fields: &[("int", "ret"), ("unsigned int", "esr_ec"), ("unsigned long", "vcpu_pc")],
        print: r#""%s: HSR_EC: 0x%04x (%s), PC: 0x%016lx", __print_symbolic(REC->ret, {0, "IRQ" }, {1, "SERROR" }, {2, "TRAP" }, {0xbadca11, "HYP_GONE" }), REC->esr_ec, __print_symbolic(REC->esr_ec, { (0x00), "UNKNOWN" }, { (0x01), "WFx" }, { (0x16), "HVC64" }, { (0x17), "SMC64" }, { (0x18), "SYS64" }, { (0x20), "IABT_LOW" }, { (0x24), "DABT_LOW" }), REC->vcpu_pc"#,
    },
    Shape {
        system: "kvm",
        name: "kvm_guest_fault",
        fields: &[("u64", "vcpu_pc"), ("u64", "hsr"), ("u64", "hxfar"), ("u64", "ipa")],
        print: r#""ipa %#llx, hsr %#llx, hxfar %#llx, pc %#llx", REC->ipa, REC->hsr, REC->hxfar, REC->vcpu_pc"#,
    },
    Shape {
        system: "kvm",
        name: "kvm_timer_restore_state",
        fields: &[("unsigned long", "ctl"), ("unsigned long long", "cval"), ("int", "timer_idx")],
        print: r#""CTL: %#08lx CVAL: %#16llx arch_timer_ctx_index: %d", REC->ctl, REC->cval, REC->timer_idx"#,
    },
    Shape {
        system: "kvm",
        name: "kvm_wfx_arm64",
        fields: &[("unsigned long", "vcpu_pc"), ("bool", "is_wfe")],
        print: r#""guest executed wf%c at: 0x%016lx", REC->is_wfe ? 'e' : 'i', REC->vcpu_pc"#,
    },
];
