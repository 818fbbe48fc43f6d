//! Columns of states: times for scripts, shares for tables.

use analyses::states::VcpuState;
use analyses::states::VcpuState as S;

use super::row::{InStates, Row};
use crate::column::{self, Column};

/// States that share a column in tables: heading, states, and how soon a narrow terminal drops it.
pub(super) type Together = (&'static str, &'static [VcpuState], u8);

/// The description of the object of all states.
pub(super) const ABOUT: &str = "Time by state. All states add up to the row's time.";

/// The columns for vCPUs.
const SHARES: [Together; 14] = [
    ("user", &[S::GuestUser], 3),
    ("kernel", &[S::GuestKernel], 3),
    ("irq", &[S::GuestIrq], 5),
    ("guest", &[S::Guest], 0),
    ("guest idle", &[S::GuestIdle], 2),
    ("exit kernel", &[S::BeforeExit, S::ExitKernel], 0),
    ("exit user", &[S::ExitUser], 0),
    ("not split", &[S::NotSplit], 0),
    ("run queue", &[S::Waiting], 1),
    ("preempted", &[S::Preempted], 1),
    ("halt poll", &[S::HaltPoll], 4),
    ("halted", &[S::Halted], 3),
    ("blocked", &[S::Blocked], 1),
    ("unknown", &[S::Unknown], 2),
];

/// Position of the share of nested guests: after that of the guest itself.
const NESTED_AT: usize = 4;

/// The time in each state: null if the recording has no events for it.
pub(super) fn times<'r, T: InStates>() -> Vec<Column<Row<'r, T>>> {
    let column = |state: VcpuState| {
        let time_in_state =
            move |row: &Row<'r, T>| T::known(row).time_in(row.subject.times(), state);
        Column::time((state.name(), state.name()), meaning(state), time_in_state).within("states")
    };
    VcpuState::ALL.into_iter().map(column).collect()
}

/// The meaning of a state.
const fn meaning(state: VcpuState) -> &'static str {
    match state {
        S::GuestUser => {
            "A thread of the guest ran in user space. Null unless events such as the guest's system calls were recorded."
        }
        S::GuestKernel => "A thread of the guest ran in the guest's kernel. Null if guest_user is.",
        S::GuestIrq => {
            "The guest handled interrupts, including softirqs. Null unless the guest's interrupts were recorded."
        }
        S::GuestIdle => "The guest's idle thread ran. Null without the guest's recording.",
        S::Guest => {
            "The guest ran, in user space or in its kernel (not known which), or a guest inside it ran."
        }
        S::BeforeExit => {
            "The host worked between the hardware exit and kvm_exit. Null unless host work was recorded."
        }
        S::ExitKernel => "The host's kernel handled an exit. Null without the host's recording.",
        S::ExitUser => "The VMM handled an exit. Null unless kvm_userspace_exit was recorded.",
        S::NotSplit => {
            "An exit was being handled: in the kernel, in user space, or waiting (not known which). Null: the host was not recorded."
        }
        S::Waiting => {
            "The thread was woken and waited for a CPU. Null unless the host's switches and wake-ups were recorded."
        }
        S::Preempted => {
            "The thread was switched out although it could have continued. Null unless the host's switches were recorded."
        }
        S::HaltPoll => {
            "The guest halted and the host polled for work. Null unless kvm_vcpu_wakeup was recorded."
        }
        S::Halted => {
            "The guest had nothing to do and its vCPU slept. Null unless the host's switches were recorded."
        }
        S::Blocked => {
            "The vCPU's thread slept for another reason. Null unless the host's switches were recorded."
        }
        S::Unknown => {
            "Unknown: events were lost or are missing. Null without the host's recording."
        }
    }
}

/// Shares of a vCPU's time; columns of zeros are left out.
pub(super) fn shares<'r, T: InStates>(table: &'static str) -> Vec<Column<Row<'r, T>>> {
    let column = |(title, states, rank): Together| {
        Column::ratio((title, title), "Share of the time.", move |row: &Row<'r, T>| {
            let times = row.subject.times();
            sum(row, states)?;
            column::ratio(times.of_own(states), times.total())
        })
        .only_in_tables()
        .shown_if(table, rank, move |row| row.subject.times().of_own(states) > 0)
        .missing("-")
    };
    let nested = Column::ratio(
        ("nested guest", "nested guest"),
        "Share of the time in which nested guests ran.",
        |row: &Row<'r, T>| column::ratio(row.subject.times().nested(), row.subject.times().total()),
    )
    .only_in_tables()
    .shown_if(table, 0, |row| row.subject.times().nested() > 0)
    .missing("-");
    let mut columns: Vec<_> = SHARES.into_iter().map(column).collect();
    columns.insert(NESTED_AT, nested);
    columns
}

/// The share of nested guests in the time of the guest.
pub(super) fn level_two<'r, T: InStates>(
    recording: impl Fn(&Row<'r, T>) -> usize + 'static,
) -> Column<Row<'r, T>> {
    Column::time(
        ("level2", "level 2"),
        "Part of the guest time in which a nested guest ran. Null if it was not recorded.",
        move |row: &Row<'r, T>| {
            let host = row.report.cpu.recorded.get(recording(row));
            host.is_some_and(|host| host.nested).then_some(row.subject.times().nested())
        },
    )
}

/// The time in several states, if the recording has events for one of them.
pub(super) fn sum<T: InStates>(row: &Row<'_, T>, states: &[VcpuState]) -> Option<u64> {
    let known = T::known(row);
    let is_known = states.iter().any(|&state| known.knows(state));
    is_known.then(|| row.subject.times().of_all(states))
}
