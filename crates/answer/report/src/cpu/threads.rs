//! The columns of the host's threads: the CPU time of each, and its VM.

use analyses::cpu::ThreadUse;
use analyses::states::Part;

use super::{named, row};
use crate::column::{self, Column, Described, Unit};

pub(super) type Row<'r> = row::Row<'r, ThreadUse>;
pub(super) const TABLE: &str = "threads";

impl<'r> Described for Row<'r> {
    const ABOUT: Option<&'static str> = Some("One thread.");
    fn all_columns() -> Vec<Column<Self>> {
        columns(false)
    }
}

pub(super) fn columns<'r>(several_recordings: bool) -> Vec<Column<Row<'r>>> {
    let mut columns = vec![row::source(TABLE, several_recordings)];
    columns.extend(names());
    columns.extend(uses());
    columns
}

fn names<'r>() -> Vec<Column<Row<'r>>> {
    vec![
        Column::text(("vm", "VM"), "The VM that it serves; null if unknown.", |row: &Row<'_>| {
            let vm = row.subject.vm?;
            row.report.vm_name(row.subject.recording, vm).map(str::to_owned)
        })
        .shown(TABLE, 0),
        Column::text(("part", "part"), "Role of the thread: a vCPU, another VMM thread, a vhost worker, another KVM thread, the \
                                        recording itself, something else, or idle.", |row: &Row<'_>| {
            Some(row.subject.part.name().to_owned())
        }).one_of(["vcpu", "vmm", "vhost", "kvm", "recorder", "other", "idle"])
        .shown(TABLE, 0),
        Column::text(("thread", "thread"), "Name and number.", |row: &Row<'_>| {
            Some(named(row.subject.name.as_deref(), row.subject.thread))
        })
        .only_in_tables()
        .shown(TABLE, 0),
        Column::number(("tid", "thread"), Unit::Id, "Thread id; 0: the idle threads of all CPUs.", |row: &Row<'_>| {
            Some(row.subject.thread.into())
        }),
        Column::text(("name", "name"), "Name of the thread; null if unknown.", |row: &Row<'_>| row.subject.name.clone()),
    ]
}

fn uses<'r>() -> Vec<Column<Row<'r>>> {
    let polled = |row: &Row<'_>| {
        let recorded = row.report.cpu.recorded.get(row.subject.recording);
        let polls =
            row.subject.part == Part::Vcpu && recorded.is_some_and(|recording| recording.halt_poll);
        polls.then_some(row.subject.halt_poll_ns)
    };
    vec![
        Column::time(
            ("cpu", "CPU time"),
            "CPU time according to sched_switch.",
            |row: &Row<'_>| Some(row.subject.cpu_ns),
        )
        .shown(TABLE, 1),
        Column::time(
            ("guest_idle", "guest idle"),
            "vCPUs: time in which the guest's idle thread ran. Null if it was not recorded.",
            |row: &Row<'_>| row.subject.guest_idle_ns,
        )
        .shown(TABLE, 1),
        Column::time(
            ("halt_poll", "halt poll"),
            "vCPUs: time spent on halt polling. Null if it was not recorded.",
            polled,
        )
        .shown(TABLE, 1),
        Column::time(
            ("busy", "true use"),
            "cpu minus guest_idle and halt_poll, as far as they are known.",
            |row: &Row<'_>| Some(row.subject.busy_ns()),
        )
        .shown(TABLE, 0),
        Column::ratio(("of a CPU", "of a CPU"), "Share of the recorded time.", |row: &Row<'_>| {
            column::ratio(row.subject.busy_ns(), row.report.cpu.span_ns)
        })
        .only_in_tables()
        .shown(TABLE, 2),
    ]
}
