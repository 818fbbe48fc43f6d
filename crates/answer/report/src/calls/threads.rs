//! The columns of threads: their time in traced functions.

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
        Column::number(("tid", "thread"), Unit::Id, "Thread id; 0: idle threads.", |row: &Row<'_>| {
            Some(row.subject.thread.into())
        }),
        Column::text(("name", "thread"), "Name and id.", |row: &Row<'_>| Some(row.subject.title()))
            .shown(TABLE, 0),
        Column::number(("count", "calls"), Unit::Count, "Calls that returned.", |row: &Row<'_>| {
            Some(row.subject.count)
        })
        .shown(TABLE, 0),
        timed(("traced", "traced"), "From the thread's first event, or the kernel's first clock read before it, to the last \
                                     event: the sum of `self_ns`, `off_cpu_ns` and `unaccounted_ns` unless --correct is given. \
                                     Null if the tracer records no times, or if times are cycles.", |row: &Row<'_>| {
            row.subject.traced_ns
        })
        .shown(TABLE, 0),
        timed(("self", "self"), "CPU time in traced functions. Null if the tracer records no times, or if times are cycles.", |row: &Row<'_>| row.subject.self_ns)
            .shown(TABLE, 0),
        Column::time(
            ("off_cpu", "off CPU"),
            "Time off the CPU, in traced functions or outside. Null also if sched_switch was not recorded.",
            |row: &Row<'_>| row.off_cpu(row.subject.off_cpu_ns),
        )
        .null("sched_switch was not recorded")
        .shown_if_known(TABLE, 1),
        timed(("unaccounted", "unaccounted"), "Time covered by no call: outside traced functions, and in calls that did not \
                                               return. Never below zero. Null if the tracer records no times, or if times are \
                                               cycles.", |row: &Row<'_>| {
            row.subject.unaccounted_ns()
        })
        .shown(TABLE, 1),
        Column::number(
            ("overrun", "overrun"),
            Unit::Count,
            "Calls that the kernel could not follow because its stack of return addresses was full.",
            |row: &Row<'_>| Some(row.subject.overrun),
        ),
    ]
}
