//! The columns of threads that had a CPU while a VM's vCPUs waited for it in the run queue.

use analyses::cpu::TakenCpu;
use analyses::states::Part;

use super::{named, row};
use crate::column::{self, Column, Described, Unit};

pub(super) type Row<'r> = row::Row<'r, TakenCpu>;
/// The table of these threads.
pub(super) const TABLE: &str = "taken";

impl<'r> Described for Row<'r> {
    const ABOUT: Option<&'static str> =
        Some("One thread, and one VM that waited while the thread ran.");
    fn all_columns() -> Vec<Column<Self>> {
        columns(false)
    }
}

pub(super) fn columns<'r>(several_recordings: bool) -> Vec<Column<Row<'r>>> {
    vec![
        row::source(TABLE, several_recordings),
        Column::text(("vm", "VM"), "The VM that waited.", |row: &Row<'_>| Some(row.subject.vm.clone()))
            .shown(TABLE, 0),
        Column::text(("thread", "thread"), "Name and number.", |row: &Row<'_>| {
            let name = named(row.subject.name.as_deref(), row.subject.thread);
            Some(if row.subject.is_recorder() { format!("{name} (the recording)") } else { name })
        })
        .only_in_tables()
        .shown(TABLE, 0),
        Column::number(
            ("tid", "thread"),
            Unit::Id,
            "Thread id; 0: the CPU was idle until the vCPU ran.",
            |row: &Row<'_>| Some(row.subject.thread.into()),
        ),
        Column::text(("name", "name"), "Name of the thread; null if unknown.", |row: &Row<'_>| row.subject.name.clone()),
        Column::time(("time", "time"), "Time for which it ran while the VM waited.", |row: &Row<'_>| {
            Some(row.subject.ns)
        })
        .shown(TABLE, 0),
        Column::ratio(
            ("share", "of the wait"),
            "Share of the time in which the VM's vCPUs waited or were preempted; null if they never were.",
            |row: &Row<'_>| column::ratio(row.subject.ns, row.subject.vm_waited_ns),
        )
        .shown(TABLE, 0)
        .missing("-"),
        Column::text(
            ("part", "part"),
            "recorder: the thread belongs to the recording itself. Null: any other thread.",
            |row: &Row<'_>| row.subject.is_recorder().then(|| Part::Recorder.name().to_owned()),
        ).one_of(["recorder"])
        .optional(),
        Column::time(
            ("begins", "begins"),
            "Time from the beginning of the recording until the thread first ran. Its effect before that is negligible.",
            |row: &Row<'_>| Some(row.subject.spread.begins_ns()),
        ).optional(),
    ]
}
