//! The columns of vCPUs: what each did with its time.

use analyses::cpu::VcpuUse;

use super::{row, states};
use crate::column::{Column, Unit};

pub(super) type Row<'r> = row::Row<'r, VcpuUse>;
/// The table of vCPUs.
pub(super) const TABLE: &str = "vcpus";

pub(super) fn columns<'r>(several_recordings: bool) -> Vec<Column<Row<'r>>> {
    let mut columns = vec![row::source(TABLE, several_recordings)];
    columns.extend(names());
    columns.push(
        Column::time(("time", "time"), "From its first event to its last.", |row: &Row<'_>| {
            Some(row.of.times.total())
        })
        .shown(TABLE, 0),
    );
    columns.extend(states::shares(TABLE));
    columns.extend(uses());
    columns.extend(states::times());
    columns
}

fn names<'r>() -> Vec<Column<Row<'r>>> {
    vec![
        Column::text(("vm", "VM"), "Name of its VM.", |row: &Row<'_>| {
            row.report.vm_name(row.of.recording, row.of.vm).map(str::to_owned)
        })
        .shown(TABLE, 0),
        Column::number(("vcpu", "vCPU"), Unit::Id, "Its number.", |row: &Row<'_>| {
            Some(row.of.vcpu.into())
        })
        .shown(TABLE, 0),
        Column::number(("tid", "thread"), Unit::Id, "Its thread on the host.", |row: &Row<'_>| {
            Some(row.of.thread.into())
        }),
    ]
}

fn uses<'r>() -> Vec<Column<Row<'r>>> {
    vec![
        Column::time(
            ("guest_recorded", "guest recorded"),
            "How much of it the guest's recording covers; null without one.",
            |row: &Row<'_>| row.of.guest_known_ns,
        ),
        Column::time(("on_cpu", "on CPUs"), "Time on CPUs.", |row: &Row<'_>| {
            Some(row.of.times.on_cpu())
        }),
        Column::time(
            ("busy", "true use"),
            "Time on CPUs with something to do.",
            |row: &Row<'_>| Some(row.of.times.busy()),
        ),
        states::level_two(|row: &Row<'_>| row.of.recording),
    ]
}
