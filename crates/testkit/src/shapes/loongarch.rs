//! KVM events of LoongArch: an exit has an exception code, and a second event gives a finer reason.

use super::Shape;

const PC: &[(&str, &str)] = &[("unsigned long", "pc")];
const PC_PRINT: &str = r#""PC: 0x%08lx", REC->pc"#;
const EXIT: &[(&str, &str)] = &[("unsigned long", "pc"), ("unsigned int", "reason")];
const EXIT_PRINT: &str =
    r#""[%s]PC: 0x%08lx", __print_symbolic(REC->reason, { 64, "IDLE" }, { 65, "CACHE" }), REC->pc"#;

pub(super) const SHAPES: &[Shape] = &[
    Shape { system: "kvm", name: "kvm_enter", fields: PC, print: PC_PRINT },
    Shape { system: "kvm", name: "kvm_reenter", fields: PC, print: PC_PRINT },
    Shape { system: "kvm", name: "kvm_out", fields: PC, print: PC_PRINT },
    Shape { system: "kvm", name: "kvm_exit", fields: EXIT, print: EXIT_PRINT },
    Shape { system: "kvm", name: "kvm_exit_idle", fields: EXIT, print: EXIT_PRINT },
    Shape { system: "kvm", name: "kvm_exit_cache", fields: EXIT, print: EXIT_PRINT },
];
