//! Events of initcalls (`trace/events/initcall.h`), except `initcall_level`, which has a string.

use super::Shape;

pub(super) const SHAPES: &[Shape] = &[
    Shape {
        system: "initcall",
        name: "initcall_start",
        fields: &[("unsigned long", "func")],
        print: r#""func=%pS", REC->func"#,
    },
    Shape {
        system: "initcall",
        name: "initcall_finish",
        fields: &[("unsigned long", "func"), ("int", "ret")],
        print: r#""func=%pS ret=%d", REC->func, REC->ret"#,
    },
];
