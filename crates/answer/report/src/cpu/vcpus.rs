//! The columns of vCPUs: what each did with its time.

use analyses::cpu::VcpuUse;

use super::{row, states};
use crate::column::{self, Column, Unit};

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
    let level_two = |row: &Row<'_>| {
        let host = row.report.cpu.recorded.get(row.of.recording);
        host.is_some_and(|host| host.nested).then_some(row.of.level_two_ns)
    };
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
        Column::time(
            ("level2", "level 2"),
            "Time in guests of the guest; null where their exits were not recorded.",
            level_two,
        ),
        Column::ratio(("in level 2", "in level 2"), "Share of level2.", |row: &Row<'_>| {
            column::ratio(row.of.level_two_ns, row.of.times.total())
        })
        .only_in_tables()
        .shown_if(TABLE, 1, |row| row.of.level_two_ns > 0)
        .missing("-"),
    ]
}
