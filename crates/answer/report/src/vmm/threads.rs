//! The columns of VMMs' threads that run no vCPU: they poll, dispatch, submit, and wait.

use analyses::vmm::{ThreadSplit, VmmThread};

use super::row::{self, Row};
use crate::column::{Column, Described, Unit};

pub(super) const TABLE: &str = "threads";

pub(super) type Of<'r> = Row<'r, VmmThread>;

impl<'r> Described for Of<'r> {
    fn all_columns() -> Vec<Column<Self>> {
        columns()
    }
}

pub(super) fn columns<'r>() -> Vec<Column<Of<'r>>> {
    let mut columns = names();
    columns.extend(running());
    columns.extend(waiting());
    columns
}

fn names<'r>() -> Vec<Column<Of<'r>>> {
    vec![
        Column::text(("vm", "VM"), "The VM.", |row: &Of<'_>| Some(row.subject.vm.clone()))
            .shown(TABLE, 0),
        Column::text(("named", "thread"), "Name and id.", |row: &Of<'_>| {
            Some(row::thread(&row.subject.thread))
        })
        .only_in_tables()
        .shown(TABLE, 0),
        Column::number(("tid", "tid"), Unit::Id, "Its id.", |row: &Of<'_>| {
            Some(row.subject.thread.tid.into())
        }),
        Column::text(("thread", "thread"), "Its name.", |row: &Of<'_>| {
            row.subject.thread.name.clone()
        })
        .null("Not recorded."),
    ]
}

fn time<'r>(
    names: (&str, &str),
    help: &str,
    rank: u8,
    time_of: fn(&ThreadSplit) -> u64,
) -> Column<Of<'r>> {
    Column::time(names, help, move |row: &Of<'_>| Some(time_of(&row.subject.split))).shown_if(
        TABLE,
        rank,
        move |row| time_of(&row.subject.split) > 0,
    )
}

fn running<'r>() -> Vec<Column<Of<'r>>> {
    vec![
        time(
            ("wall", "all"),
            "From the thread's first event to its end, or to the end of the recording: cpu_ns plus the parts after not_split_ns.",
            9,
            ThreadSplit::wall_ns,
        ),
        time(("cpu", "ran"), "Running: sum of the next seven columns.", 0, ThreadSplit::cpu_ns),
        time(
            ("poll", "poll"),
            "Running in calls that wait for work, such as ppoll and epoll_wait.",
            1,
            |split| split.poll_ns,
        ),
        time(("dispatch", "dispatch"), "The VMM's own code.", 1, |split| split.dispatch_ns),
        time(
            ("submit", "submit"),
            "Running in calls that move data or let the kernel move it, such as writev and io_uring_enter.",
            1,
            |split| split.submit_ns,
        ),
        time(("lock", "locks"), "Running in futex calls.", 2, |split| split.lock_ns),
        time(
            ("signals", "signals"),
            "Signal handlers, and calls that change the signal mask.",
            4,
            |split| split.signals_ns,
        ),
        time(("calls", "other calls"), "Running in other system calls.", 3, |split| split.calls_ns),
        time(("not_split", "not split"), "Running for an unknown purpose.", 5, |split| {
            split.not_split_ns
        }),
    ]
}

fn waiting<'r>() -> Vec<Column<Of<'r>>> {
    vec![
        time(("idle", "idle"), "Asleep in calls that wait for work.", 2, |split| split.idle_ns),
        time(("submit_wait", "in submit"), "Asleep in calls that move data.", 2, |split| {
            split.submit_wait_ns
        }),
        time(("lock_wait", "in locks"), "Asleep in futex calls.", 2, |split| split.lock_wait_ns),
        time(("call_wait", "in calls"), "Asleep in other system calls.", 4, |split| {
            split.call_wait_ns
        }),
        time(("blocked", "blocked"), "Asleep elsewhere.", 3, |split| split.blocked_ns),
        time(("run_queue", "run queue"), "Run-queue wait.", 2, |split| split.run_queue_ns),
        time(
            ("unknown", "unknown"),
            "Unknown: no event of the thread was seen yet, or events were lost.",
            7,
            |split| split.unknown_ns,
        ),
    ]
}
