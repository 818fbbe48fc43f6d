//! The columns of vCPUs: their time by state.

use analyses::cpu::VcpuUse;

use super::{row, states};
use crate::column::{Column, Described, Unit};

pub(super) type Row<'r> = row::Row<'r, VcpuUse>;
/// The table of vCPUs.
pub(super) const TABLE: &str = "vcpus";

impl<'r> Described for Row<'r> {
    const ABOUT: Option<&'static str> = Some("One vCPU.");
    fn all_columns() -> Vec<Column<Self>> {
        columns(false)
    }

    fn about(object: &str) -> Option<&'static str> {
        (object == "states").then_some(states::ABOUT)
    }
}

pub(super) fn columns<'r>(several_recordings: bool) -> Vec<Column<Row<'r>>> {
    let mut columns = vec![row::source(TABLE, several_recordings)];
    columns.extend(names());
    columns.push(
        Column::time(("time", "time"), "From the first event to the last.", |row: &Row<'_>| {
            Some(row.subject.times.total())
        })
        .shown(TABLE, 3),
    );
    columns.extend(states::shares(TABLE));
    columns.extend(uses());
    columns.extend(states::times());
    columns
}

fn names<'r>() -> Vec<Column<Row<'r>>> {
    vec![
        Column::text(("vm", "VM"), "Its VM.", |row: &Row<'_>| {
            row.report.vm_name(row.subject.recording, row.subject.vm).map(str::to_owned)
        })
        .null("unknown")
        .shown(TABLE, 0),
        Column::number(
            ("vcpu", "vCPU"),
            Unit::Id,
            "Number of the vCPU in the VM.",
            |row: &Row<'_>| Some(row.subject.vcpu.into()),
        )
        .shown(TABLE, 0),
        Column::number(
            ("tid", "thread"),
            Unit::Id,
            "The host thread that runs the vCPU.",
            |row: &Row<'_>| Some(row.subject.thread.into()),
        ),
    ]
}

fn uses<'r>() -> Vec<Column<Row<'r>>> {
    vec![
        Column::time(
            ("guest_recorded", "guest recorded"),
            "Time for which the guest's own recording shows what ran. Null if the guest was not recorded.",
            |row: &Row<'_>| row.subject.guest_known_ns,
        ),
        Column::time(
            ("on_cpu", "on CPUs"),
            "Time on CPU, according to its states.",
            |row: &Row<'_>| Some(row.subject.times.on_cpu()),
        ),
        Column::time(
            ("busy", "true use"),
            "on_cpu minus guest_idle and halt_poll.",
            |row: &Row<'_>| Some(row.subject.times.busy()),
        ),
        states::level_two(|row: &Row<'_>| row.subject.recording),
    ]
}
