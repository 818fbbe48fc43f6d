//! The columns of waiting threads, of causes, and of the steps of one wait.

use analyses::critical::{CriticalPart, CriticalState, CriticalThread};
use analyses::path::Actor;
use analyses::recorders::is_recorder;

use crate::column::{self, Column, Described, Unit};

/// The table of threads.
pub(super) const THREADS: &str = "threads";
/// The table of causes.
pub(super) const PARTS: &str = "parts";

/// A thread that waited.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadRow<'r> {
    pub(super) thread: &'r CriticalThread,
    pub(super) ns: bool,
}

impl column::Row for ThreadRow<'_> {
    fn is_nanoseconds(&self) -> bool {
        self.ns
    }
}

/// One cause of waiting.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartRow<'r> {
    pub(super) part: &'r CriticalPart,
    pub(super) waited_ns: u64,
    pub(super) ns: bool,
}

impl column::Row for PartRow<'_> {
    fn is_nanoseconds(&self) -> bool {
        self.ns
    }
}

impl<'r> Described for ThreadRow<'r> {
    const ABOUT: Option<&'static str> = Some("A thread that waited.");
    fn all_columns() -> Vec<Column<Self>> {
        of_threads()
    }
}

impl<'r> Described for PartRow<'r> {
    const ABOUT: Option<&'static str> = Some("One cause of waiting.");
    fn all_columns() -> Vec<Column<Self>> {
        of_parts()
    }
}

pub(super) fn of_threads<'r>() -> Vec<Column<ThreadRow<'r>>> {
    let time = |names: (&str, &str), help: &str, time_of: fn(&CriticalThread) -> u64| {
        Column::time(names, help, move |row: &ThreadRow<'_>| Some(time_of(row.thread)))
    };
    vec![
        Column::text(
            ("machine", "machine"),
            "Machine of the thread: host, or the name of the VM.",
            |row: &ThreadRow<'_>| Some(row.thread.machine.clone()),
        )
        .shown(THREADS, 0),
        Column::text(("thread", "thread"), "Its name.", |row: &ThreadRow<'_>| {
            Some(row.thread.thread.clone())
        })
        .drawn_as(|row| marked(&row.thread.thread))
        .shown(THREADS, 0),
        Column::number(("tid", "tid"), Unit::Id, "Its id.", |row: &ThreadRow<'_>| {
            Some(u64::from(row.thread.tid))
        })
        .shown(THREADS, 1),
        time(
            ("wall", "all"),
            "From the thread's first event to its last: ran_ns + waited_ns + unknown_ns.",
            |thread| thread.wall_ns,
        )
        .shown(THREADS, 1),
        time(("ran", "ran"), "Time for which the thread ran; for a guest's thread, time for which its guest ran as well.", |thread| {
            thread.ran_ns
        })
        .shown(THREADS, 0),
        time(
            ("waited", "waited"),
            "Time for which the thread had no CPU of its machine, or its vCPU was not in its guest.",
            |thread| thread.waited_ns,
        )
        .shown(THREADS, 0),
        time(
            ("unknown", "unknown"),
            "Time for which the thread's state is unknown: events were lost, or the host was not recorded.",
            |thread| thread.unknown_ns,
        )
        .shown_if(THREADS, 2, |row| row.thread.unknown_ns > 0),
        Column::number(
            ("waits", "waits"),
            Unit::Count,
            "Number of times that the thread had no CPU of its machine.",
            |row: &ThreadRow<'_>| Some(row.thread.waits),
        )
        .shown(THREADS, 2),
        time(
            ("off_cpu", "off CPU"),
            "Time for which the thread had no CPU. The rest of waited_ns is exits, and waits of its vCPU.",
            |thread| thread.off_cpu_ns,
        )
        .shown(THREADS, 3),
    ]
}

/// The columns of causes.
pub(super) fn of_parts<'r>() -> Vec<Column<PartRow<'r>>> {
    let mut columns = what();
    columns.extend([
        Column::time(("time", "time"), "How long.", |row: &PartRow<'_>| Some(row.part.time_ns))
            .shown(PARTS, 0),
        Column::ratio(("share", "share"), "Share of the total wait.", |row: &PartRow<'_>| {
            column::ratio(row.part.time_ns, row.waited_ns)
        })
        .null("there was no wait")
        .shown(PARTS, 0),
        Column::number(
            ("count", "times"),
            Unit::Count,
            "Number of intervals.",
            |row: &PartRow<'_>| Some(row.part.count),
        )
        .shown(PARTS, 2),
        Column::flag(
            ("recorder", "recorder"),
            "The recording itself caused this wait, which only exists while recording.",
            |row: &PartRow<'_>| row.part.is_recorder,
        )
        .optional(),
    ]);
    columns
}

/// Thread, state and cause.
pub(super) fn what<'r>() -> Vec<Column<PartRow<'r>>> {
    vec![
        Column::text(
            ("machine", "machine"),
            "The machine: host, or the name of a VM.",
            |row: &PartRow<'_>| Some(row.part.machine.clone()),
        )
        .shown(PARTS, 0),
        Column::text(("thread", "thread"), "Name of the thread, or interrupt.", |row: &PartRow<'_>| {
            Some(row.part.thread.clone())
        })
        .drawn_as(|row| marked(&row.part.thread))
        .shown(PARTS, 0),
        Column::text(("on", "on"), "Role of the thread.", |row: &PartRow<'_>| {
            Some(row.part.on.name().to_owned())
        }).one_of(Actor::ALL.map(Actor::name))
        .shown(PARTS, 3),
        Column::text(("state", "state"), "What the thread did.", |row: &PartRow<'_>| {
            Some(row.part.state.name().to_owned())
        }).one_of(["running", "guest", "guest_idle", "exit_kernel", "exit_user", "interrupt", "waiting", "preempted", "blocked", "unknown"])
        .drawn_as(|row| words(row.part.state).to_owned())
        .shown(PARTS, 0),
        Column::text(
            ("reason", "reason"),
            "For an exit: its reason. For run-queue wait: the thread that had the CPU. For blocked and unknown: why nothing more \
             is known.",
            |row: &PartRow<'_>| row.part.reason.clone(),
        )
        .null("The state has no reason, or the reason was not recorded.")
        .drawn_as(|row| row.part.reason.as_deref().map_or_else(|| "-".to_owned(), marked))
        .shown(PARTS, 0)
        .missing("-"),
    ]
}

/// A thread's name, with a mark if it belongs to the recording itself.
pub(super) fn marked(name: &str) -> String {
    if is_recorder(name) { format!("{name} (the recording)") } else { name.to_owned() }
}

pub(crate) const fn words(state: CriticalState) -> &'static str {
    match state {
        CriticalState::GuestIdle => "guest idle",
        CriticalState::ExitKernel => "exit, in kernel",
        CriticalState::ExitUser => "exit, in user space",
        CriticalState::Waiting => "run queue, behind",
        CriticalState::Preempted => "preempted, by",
        state => state.name(),
    }
}
