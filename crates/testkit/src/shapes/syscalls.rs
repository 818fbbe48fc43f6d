//! Entry events of system calls.

use super::Shape;

pub(super) const SHAPES: &[Shape] = &[Shape {
    system: "syscalls",
    name: "sys_enter_ioctl",
    fields: &[
        ("int", "__syscall_nr"),
        ("unsigned long", "fd"),
        ("unsigned long", "cmd"),
        ("unsigned long", "arg"),
    ],
    print: r#""fd: 0x%08lx, cmd: 0x%08lx, arg: 0x%08lx", ((unsigned long)(REC->fd)), ((unsigned long)(REC->cmd)), ((unsigned long)(REC->arg))"#,
}];
