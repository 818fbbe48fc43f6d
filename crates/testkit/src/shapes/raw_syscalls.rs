//! Events of system calls and signals, which a separate profile records.

use super::Shape;

pub(super) const SHAPES: &[Shape] = &[
    Shape {
        system: "raw_syscalls",
        name: "sys_enter",
        fields: &[("long", "id"), ("unsigned long", "args[6]")],
        print: r#""NR %ld (%lx, %lx, %lx, %lx, %lx, %lx)", REC->id, REC->args[0], REC->args[1], REC->args[2], REC->args[3], REC->args[4], REC->args[5]"#,
    },
    Shape {
        system: "raw_syscalls",
        name: "sys_exit",
        fields: &[("long", "id"), ("long", "ret")],
        print: r#""NR %ld = %ld", REC->id, REC->ret"#,
    },
    Shape {
        system: "signal",
        name: "signal_deliver",
        fields: &[
            ("int", "sig"),
            ("int", "errno"),
            ("int", "code"),
            ("unsigned long", "sa_handler"),
            ("unsigned long", "sa_flags"),
        ],
        print: r#""sig=%d errno=%d code=%d sa_handler=%lx sa_flags=%lx", REC->sig, REC->errno, REC->code, REC->sa_handler, REC->sa_flags"#,
    },
];
