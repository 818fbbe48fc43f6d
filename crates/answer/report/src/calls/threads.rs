//! The columns of threads: what each did in traced functions.

use analyses::calls::ThreadCalls;

use super::row::{self, timed};
use crate::column::{Column, Unit};

pub(super) type Row<'r> = row::Row<'r, ThreadCalls>;

/// The one table there is.
pub(super) const TABLE: &str = "threads";

/// All columns, in the order of JSON.
pub(super) fn columns<'r>() -> Vec<Column<Row<'r>>> {
    vec![
        Column::number(("tid", "thread"), Unit::Id, "Thread id.", |row: &Row<'_>| {
            Some(row.of.thread.into())
        }),
        Column::text(("name", "thread"), "Its name and id.", |row: &Row<'_>| Some(row.of.title()))
            .shown(TABLE, 0),
        Column::number(("count", "calls"), Unit::Count, "Calls that returned.", |row: &Row<'_>| {
            Some(row.of.count)
        })
        .shown(TABLE, 0),
        timed(("traced", "traced"), "From its first event to its last.", |row: &Row<'_>| {
            row.of.traced_ns
        })
        .shown(TABLE, 0),
        timed(("self", "self"), "In traced functions, on a CPU.", |row: &Row<'_>| row.of.self_ns)
            .shown(TABLE, 0),
        Column::time(
            ("off_cpu", "off CPU"),
            "Off the CPU, in traced functions or outside.",
            |row: &Row<'_>| row.off_cpu(row.of.off_cpu_ns),
        )
        .null("switches of threads were not recorded")
        .shown_if_known(TABLE, 1),
        timed(("unaccounted", "unaccounted"), "Covered by no call.", |row: &Row<'_>| {
            row.of.unaccounted_ns()
        })
        .shown(TABLE, 1),
        Column::number(
            ("overrun", "overrun"),
            Unit::Count,
            "Calls that the kernel could not follow.",
            |row: &Row<'_>| Some(row.of.overrun),
        ),
    ]
}
