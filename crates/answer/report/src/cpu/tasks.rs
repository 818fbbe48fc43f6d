//! The columns of guests' threads: the time that the guest gave each, and how much of it really
//! ran.

use analyses::cpu::TaskUse;
use analyses::states::VcpuState as S;
use analyses::states::VcpuState;

use super::row::{InStates, Row as RowOf};
use super::states::{self, Together};
use super::{named, row};
use crate::column::{self, Column, Described, Unit};

pub(super) type Row<'r> = RowOf<'r, TaskUse>;
/// The table of guests' threads.
pub(super) const TABLE: &str = "tasks";

/// States in which a scheduled thread did not run.
const LOST: [Together; 7] = [
    ("in irqs", &[S::GuestIrq], 2),
    ("exit kernel", &[S::BeforeExit, S::ExitKernel], 1),
    ("exit user", &[S::ExitUser], 1),
    ("not split", &[S::NotSplit], 1),
    ("stolen", &[S::Waiting, S::Preempted], 0),
    ("halted", &[S::HaltPoll, S::Halted, S::Blocked], 1),
    ("unknown", &[S::Unknown], 1),
];

impl<'r> Described for Row<'r> {
    const ABOUT: Option<&'static str> = Some("One thread.");
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
    columns.extend(uses());
    columns.extend(LOST.map(lost));
    columns.extend(states::times());
    columns
}

/// Whether its host was recorded as well.
pub(super) fn has_host(row: &Row<'_>) -> bool {
    TaskUse::known(row).host.is_some()
}

fn names<'r>() -> Vec<Column<Row<'r>>> {
    vec![
        Column::text(
            ("vm", "VM"),
            "The guest's VM; null without the host's recording.",
            |row: &Row<'_>| row.report.vm_of_guest(row.subject.recording).map(str::to_owned),
        )
        .shown(TABLE, 0),
        Column::text(("thread", "thread"), "Name and number.", |row: &Row<'_>| {
            Some(named(row.subject.name.as_deref(), row.subject.task))
        })
        .only_in_tables()
        .shown(TABLE, 0),
        Column::number(
            ("tid", "thread"),
            Unit::Id,
            "Thread id in the guest; 0: the idle threads of all its CPUs.",
            |row: &Row<'_>| Some(row.subject.task.into()),
        ),
        Column::text(("name", "name"), "Name of the thread; null if unknown.", |row: &Row<'_>| {
            row.subject.name.clone()
        }),
    ]
}

fn uses<'r>() -> Vec<Column<Row<'r>>> {
    let ran = |row: &Row<'_>| has_host(row).then(|| row.subject.times.guest());
    let stolen = |row: &Row<'_>| {
        let is_known = TaskUse::known(row).knows(VcpuState::Preempted);
        is_known.then(|| row.subject.times.stolen())
    };
    vec![
        Column::time(("time", "given"), "Time for which the guest scheduled the thread.", |row: &Row<'_>| {
            Some(row.subject.times.total())
        })
        .shown(TABLE, 0),
        Column::time(("ran", "ran"), "Time for which it really ran, in nanoseconds. Null without the host's recording, or if the \
                                      clock does not count nanoseconds.", ran)
            .shown_if_known(TABLE, 0)
            .missing("-"),
        Column::ratio(("share", "share"), "Share of the scheduled time for which it really ran.", move |row: &Row<'_>| {
            column::ratio(ran(row)?, row.subject.times.total())
        })
        .only_in_tables()
        .shown_if(TABLE, 0, has_host)
        .missing("-"),
        Column::time(
            ("exits", "exits"),
            "Time in which the host handled exits while the thread had the vCPU: before_exit, exit_kernel and exit_user. Null if \
             it was not recorded.",
            |row: &Row<'_>| has_host(row).then(|| row.subject.times.exits()),
        ),
        Column::time(
            ("stolen", "stolen"),
            "Time in which the vCPU could have run but had no CPU: waiting and preempted. Null if it was not recorded.",
            stolen,
        ),
    ]
}

/// Time in some states, unless it is zero.
fn lost<'r>((title, states, rank): Together) -> Column<Row<'r>> {
    Column::time((title, title), "Time in these states.", move |row: &Row<'_>| {
        states::sum(row, states)
    })
    .only_in_tables()
    .shown_if(TABLE, rank, move |row| row.subject.times.of_all(states) > 0)
    .missing("-")
}
