//! The events of the kernel's function tracers.

use super::Shape;

pub(super) const SHAPES: &[Shape] = &[
    Shape {
        system: "ftrace",
        name: "function",
        fields: &[("unsigned long", "ip"), ("unsigned long", "parent_ip")],
        print: r#"" %ps <-- %ps", (void *)REC->ip, (void *)REC->parent_ip"#,
    },
    Shape {
        system: "ftrace",
        name: "funcgraph_entry",
        fields: &[("unsigned long", "func"), ("int", "depth")],
        print: r#""--> %ps (%d)", (void *)REC->func, REC->depth"#,
    },
    // Replaces `funcgraph_entry` if return addresses are enabled (`funcgraph-retaddr`).
    Shape {
        system: "ftrace",
        name: "funcgraph_retaddr_entry",
        fields: &[("unsigned long", "func"), ("int", "depth"), ("unsigned long", "retaddr")],
        print: r#""--> %ps (%d) <- %ps", (void *)REC->func, REC->depth, (void *)REC->retaddr"#,
    },
    Shape {
        system: "ftrace",
        name: "funcgraph_exit",
        fields: &[
            ("unsigned long", "func"),
            ("int", "depth"),
            ("unsigned int", "overrun"),
            ("unsigned long long", "calltime"),
            ("unsigned long long", "rettime"),
        ],
        print: r#""<-- %ps (%d) (start: %llx  end: %llx) over: %d", (void *)REC->func, REC->depth, REC->calltime, REC->rettime, REC->depth"#,
    },
];
