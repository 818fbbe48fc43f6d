//! Scheduler events.

use super::Shape;

const WAKE_FIELDS: &[(&str, &str)] =
    &[("char", "comm[16]"), ("pid_t", "pid"), ("int", "prio"), ("int", "target_cpu")];

const WAKE_PRINT: &str =
    r#""comm=%s pid=%d prio=%d target_cpu=%03d", REC->comm, REC->pid, REC->prio, REC->target_cpu"#;

pub(super) const SHAPES: &[Shape] = &[
    Shape {
        system: "sched",
        name: "sched_switch",
        fields: &[
            ("char", "prev_comm[16]"),
            ("pid_t", "prev_pid"),
            ("int", "prev_prio"),
            ("long", "prev_state"),
            ("char", "next_comm[16]"),
            ("pid_t", "next_pid"),
            ("int", "next_prio"),
        ],
        print: r#""prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s%s ==> next_comm=%s next_pid=%d next_prio=%d", REC->prev_comm, REC->prev_pid, REC->prev_prio, (REC->prev_state & ((0x000000ff + 1) - 1)) ? __print_flags(REC->prev_state & ((0x000000ff + 1) - 1), "|", { 0x00000001, "S" }, { 0x00000002, "D" }, { 0x00000004, "T" }, { 0x00000008, "t" }, { 0x00000010, "X" }, { 0x00000020, "Z" }, { 0x00000040, "P" }, { 0x00000080, "I" }) : "R", REC->prev_state & 0x00000100 ? "+" : "", REC->next_comm, REC->next_pid, REC->next_prio"#,
    },
    Shape { system: "sched", name: "sched_waking", fields: WAKE_FIELDS, print: WAKE_PRINT },
    Shape { system: "sched", name: "sched_wakeup", fields: WAKE_FIELDS, print: WAKE_PRINT },
    Shape { system: "sched", name: "sched_wakeup_new", fields: WAKE_FIELDS, print: WAKE_PRINT },
    Shape {
        system: "sched",
        name: "sched_migrate_task",
        fields: &[
            ("char", "comm[16]"),
            ("pid_t", "pid"),
            ("int", "prio"),
            ("int", "orig_cpu"),
            ("int", "dest_cpu"),
        ],
        print: r#""comm=%s pid=%d prio=%d orig_cpu=%d dest_cpu=%d", REC->comm, REC->pid, REC->prio, REC->orig_cpu, REC->dest_cpu"#,
    },
    Shape {
        system: "sched",
        name: "sched_process_exit",
        fields: &[("char", "comm[16]"), ("pid_t", "pid"), ("int", "prio")],
        print: r#""comm=%s pid=%d prio=%d", REC->comm, REC->pid, REC->prio"#,
    },
];
