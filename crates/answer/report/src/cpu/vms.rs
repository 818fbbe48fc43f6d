//! The columns of VMs: the time of their vCPUs, and of the host's threads that work for them.

use analyses::cpu::VmUse;
use analyses::states::Part;

use super::row::{self, PARTS};
use super::states;
use crate::column::{Column, Described, Unit};

pub(super) type Row<'r> = row::Row<'r, VmUse>;
/// The table of VMs.
pub(super) const TABLE: &str = "vms";

impl<'r> Described for Row<'r> {
    const ABOUT: Option<&'static str> = Some("One VM.");
    fn all_columns() -> Vec<Column<Self>> {
        columns(false)
    }

    fn about(object: &str) -> Option<&'static str> {
        (object == "states").then_some(states::ABOUT)
    }
}

pub(super) fn columns<'r>(several_recordings: bool) -> Vec<Column<Row<'r>>> {
    let mut columns = vec![
        row::source(TABLE, several_recordings),
        Column::text(("vm", "VM"), "Its name.", |row: &Row<'_>| Some(row.subject.name.clone()))
            .shown(TABLE, 0),
        Column::number(("vcpus", "vCPUs"), Unit::Count, "Number of vCPUs.", |row: &Row<'_>| {
            Some(row.subject.vcpus as u64)
        })
        .shown(TABLE, 3),
        Column::time(
            ("time", "time"),
            "Time of the VM's vCPUs, each from its first event to its last.",
            |row: &Row<'_>| Some(row.subject.times.total()),
        ),
        Column::time(
            ("guest_recorded", "guest recorded"),
            "Time for which the guest's own recording shows what ran. Null if the guest was not recorded.",
            |row: &Row<'_>| row.subject.guest_known_ns,
        ),
        Column::time(
            ("on_cpu", "on CPUs"),
            "Time of the vCPUs on CPU, according to their states.",
            |row: &Row<'_>| Some(row.subject.times.on_cpu()),
        ),
    ];
    columns.extend(states::shares(TABLE));
    columns.push(
        Column::time(
            ("busy", "vCPUs, true use"),
            "on_cpu minus guest_idle and halt_poll.",
            |row: &Row<'_>| Some(row.subject.times.busy()),
        )
        .shown(TABLE, 0),
    );
    columns.extend(states::times());
    columns.push(states::level_two(|row: &Row<'_>| row.subject.recording));
    columns.extend(PARTS.map(threads));
    columns
}

/// CPU time of the host's threads with this role for the VM.
fn threads<'r>(part: Part) -> Column<Row<'r>> {
    let part_ns = move |row: &Row<'_>| {
        let parts = row.subject.by_part.as_ref()?;
        Some(parts.get(&part).copied().unwrap_or(0))
    };
    let title = match part {
        Part::Vmm => "VMM",
        other => other.name(),
    };
    let name = format!("{}_threads", part.name());
    let help =
        "CPU time of the host threads that serve the VM in this role; null without sched_switch.";
    let column = Column::time((&name, title), help, part_ns);
    match part {
        // They are the vCPUs.
        Part::Vcpu => column,
        _ => {
            column.shown_if(TABLE, 1, move |row| part_ns(row).is_some_and(|ns| ns > 0)).missing("-")
        }
    }
}
