//! The columns of vCPUs: what each did with its time.

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
        Column::time(("time", "time"), "From its first event to its last.", |row: &Row<'_>| {
            Some(row.subject.times.total())
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
        Column::text(("vm", "VM"), "Its VM.", |row: &Row<'_>| {
            row.report.vm_name(row.subject.recording, row.subject.vm).map(str::to_owned)
        })
        .null("it is not known")
        .shown(TABLE, 0),
        Column::number(("vcpu", "vCPU"), Unit::Id, "Its number in the VM.", |row: &Row<'_>| {
            Some(row.subject.vcpu.into())
        })
        .shown(TABLE, 0),
        Column::number(
            ("tid", "thread"),
            Unit::Id,
            "The host's thread that is it.",
            |row: &Row<'_>| Some(row.subject.thread.into()),
        ),
    ]
}

fn uses<'r>() -> Vec<Column<Row<'r>>> {
    vec![
        Column::time(
            ("guest_recorded", "guest recorded"),
            "For this long the guest's own recording shows what ran. Null where it was not recorded.",
            |row: &Row<'_>| row.subject.guest_known_ns,
        ),
        Column::time(
            ("on_cpu", "on CPUs"),
            "Time it had a CPU, by its states.",
            |row: &Row<'_>| Some(row.subject.times.on_cpu()),
        ),
        Column::time(
            ("busy", "true use"),
            "on_cpu without guest_idle and halt_poll.",
            |row: &Row<'_>| Some(row.subject.times.busy()),
        ),
        states::level_two(|row: &Row<'_>| row.subject.recording),
    ]
}
