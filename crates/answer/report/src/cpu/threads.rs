//! The columns of the host's threads: what each had of the CPUs, and for which VM.

use analyses::cpu::ThreadUse;
use analyses::states::Part;

use super::{named, row};
use crate::column::{self, Column, Unit};

pub(super) type Row<'r> = row::Row<'r, ThreadUse>;
/// The table of threads.
pub(super) const TABLE: &str = "threads";

pub(super) fn columns<'r>(several_recordings: bool) -> Vec<Column<Row<'r>>> {
    let mut columns = vec![row::source(TABLE, several_recordings)];
    columns.extend(names());
    columns.extend(uses());
    columns
}

fn names<'r>() -> Vec<Column<Row<'r>>> {
    vec![
        Column::text(("vm", "VM"), "The VM that it serves.", |row: &Row<'_>| {
            let vm = row.of.vm?;
            row.report.vm_name(row.of.recording, vm).map(str::to_owned)
        })
        .shown(TABLE, 0),
        Column::text(("part", "part"), "What it does for the VM.", |row: &Row<'_>| {
            Some(row.of.part.name().to_owned())
        })
        .shown(TABLE, 0),
        Column::text(("thread", "thread"), "Name and number.", |row: &Row<'_>| {
            Some(named(row.of.name.as_deref(), row.of.thread))
        })
        .only_in_tables()
        .shown(TABLE, 0),
        Column::number(("tid", "thread"), Unit::Id, "Its number.", |row: &Row<'_>| {
            Some(row.of.thread.into())
        }),
        Column::text(("name", "name"), "Its name.", |row: &Row<'_>| row.of.name.clone()),
    ]
}

fn uses<'r>() -> Vec<Column<Row<'r>>> {
    let polled = |row: &Row<'_>| {
        let recorded = row.report.cpu.recorded.get(row.of.recording);
        let polls = row.of.part == Part::Vcpu && recorded.is_some_and(|one| one.halt_poll);
        polls.then_some(row.of.halt_poll_ns)
    };
    vec![
        Column::time(
            ("cpu", "CPU time"),
            "CPU time by the scheduler's switches.",
            |row: &Row<'_>| Some(row.of.cpu_ns),
        )
        .shown(TABLE, 1),
        Column::time(
            ("guest_idle", "guest idle"),
            "What of a vCPU's its guest's idle thread had; null where that was not recorded.",
            |row: &Row<'_>| row.of.guest_idle_ns,
        )
        .shown(TABLE, 1),
        Column::time(
            ("halt_poll", "halt poll"),
            "What of a vCPU's it polled for work; null where that was not recorded.",
            polled,
        )
        .shown(TABLE, 1),
        Column::time(("busy", "true use"), "CPU time without both.", |row: &Row<'_>| {
            Some(row.of.busy_ns())
        })
        .shown(TABLE, 0),
        Column::ratio(("of a CPU", "of a CPU"), "Share of the time recorded.", |row: &Row<'_>| {
            column::ratio(row.of.busy_ns(), row.report.cpu.span_ns)
        })
        .only_in_tables()
        .shown(TABLE, 0),
    ]
}
