//! Events of interrupts, softirqs and block devices.

use super::Shape;

const SOFTIRQ_FIELDS: &[(&str, &str)] = &[("unsigned int", "vec")];

const SOFTIRQ_PRINT: &str = r#""vec=%u [action=%s]", REC->vec, __print_symbolic(REC->vec, { 0, "HI" }, { 1, "TIMER" }, { 2, "NET_TX" }, { 3, "NET_RX" }, { 4, "BLOCK" }, { 5, "IRQ_POLL" }, { 6, "TASKLET" }, { 7, "SCHED" }, { 8, "HRTIMER" }, { 9, "RCU" })"#;

pub(super) const SHAPES: &[Shape] = &[
    Shape {
        system: "irq",
        name: "irq_handler_entry",
        fields: &[("int", "irq"), ("__data_loc char[]", "name")],
        print: r#""irq=%d name=%s", REC->irq, __get_str(name)"#,
    },
    Shape {
        system: "irq",
        name: "irq_handler_exit",
        fields: &[("int", "irq"), ("int", "ret")],
        print: r#""irq=%d ret=%s", REC->irq, REC->ret ? "handled" : "unhandled""#,
    },
    Shape { system: "irq", name: "softirq_entry", fields: SOFTIRQ_FIELDS, print: SOFTIRQ_PRINT },
    Shape { system: "irq", name: "softirq_exit", fields: SOFTIRQ_FIELDS, print: SOFTIRQ_PRINT },
    Shape { system: "irq", name: "softirq_raise", fields: SOFTIRQ_FIELDS, print: SOFTIRQ_PRINT },
    Shape {
        system: "block",
        name: "block_rq_issue",
        fields: &[("dev_t", "dev"), ("sector_t", "sector"), ("unsigned int", "nr_sector")],
        print: r#""%d %llu + %u", (unsigned int) REC->dev, (unsigned long long)REC->sector, REC->nr_sector"#,
    },
    Shape {
        system: "block",
        name: "block_rq_complete",
        fields: &[("dev_t", "dev"), ("sector_t", "sector"), ("unsigned int", "nr_sector")],
        print: r#""%d %llu + %u", (unsigned int) REC->dev, (unsigned long long)REC->sector, REC->nr_sector"#,
    },
];
