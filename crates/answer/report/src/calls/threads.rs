//! The columns of threads: what each did in traced functions.

use analyses::calls::ThreadCalls;

use super::row::{self, timed};
use crate::column::{Column, Described, Unit};

pub(super) type Row<'r> = row::Row<'r, ThreadCalls>;

pub(super) const TABLE: &str = "threads";

impl<'r> Described for Row<'r> {
    fn all_columns() -> Vec<Column<Self>> {
        columns()
    }
}

/// All columns, in the order of JSON.
pub(super) fn columns<'r>() -> Vec<Column<Row<'r>>> {
    vec![
        Column::number(("tid", "thread"), Unit::Id, "Thread id; 0 of idle threads.", |row: &Row<'_>| {
            Some(row.subject.thread.into())
        }),
        Column::text(("name", "thread"), "Its name and id.", |row: &Row<'_>| Some(row.subject.title()))
            .shown(TABLE, 0),
        Column::number(("count", "calls"), Unit::Count, "Calls that returned.", |row: &Row<'_>| {
            Some(row.subject.count)
        })
        .shown(TABLE, 0),
        timed(("traced", "traced"), "From its first event, or the kernel's first look at its clock before that, to its last: `self_ns`, `off_cpu_ns` and `unaccounted_ns` together, if --correct is not given. Null where the tracer records no times, or where they are cycles.", |row: &Row<'_>| {
            row.subject.traced_ns
        })
        .shown(TABLE, 0),
        timed(("self", "self"), "In traced functions, on a CPU. Null where the tracer records no times, or where they are cycles.", |row: &Row<'_>| row.subject.self_ns)
            .shown(TABLE, 0),
        Column::time(
            ("off_cpu", "off CPU"),
            "Off the CPU, in traced functions or outside. Null also without sched_switch in the recording.",
            |row: &Row<'_>| row.off_cpu(row.subject.off_cpu_ns),
        )
        .null("switches of threads were not recorded")
        .shown_if_known(TABLE, 1),
        timed(("unaccounted", "unaccounted"), "Covered by no call: outside of traced functions, and in calls that did not return. Never below zero. Null where the tracer records no times, or where they are cycles.", |row: &Row<'_>| {
            row.subject.unaccounted_ns()
        })
        .shown(TABLE, 1),
        Column::number(
            ("overrun", "overrun"),
            Unit::Count,
            "Calls that the kernel could not follow: its stack of return addresses was full.",
            |row: &Row<'_>| Some(row.subject.overrun),
        ),
    ]
}
