//! The columns of exits that VMMs handled: where their time in user space went.

use analyses::vmm::{ExitSplit, VmmExits};

use super::row::{Row, address, code, kind};
use crate::column::{Column, Described, Kind, Unit};
use crate::json::RawCode;

pub(super) const TABLE: &str = "exits";

pub(super) type Of<'r> = Row<'r, VmmExits>;

impl<'r> Described for Of<'r> {
    fn all_columns() -> Vec<Column<Self>> {
        columns()
    }
}

pub(super) fn columns<'r>() -> Vec<Column<Of<'r>>> {
    let mut columns = names();
    columns.push(user());
    columns.extend(running());
    columns.extend(waiting());
    columns
}

fn names<'r>() -> Vec<Column<Of<'r>>> {
    vec![
        Column::text(("vm", "VM"), "The VM.", |row: &Of<'_>| Some(row.subject.vm.clone()))
            .shown(TABLE, 0),
        Column::number(
            ("level", "level"),
            Unit::Level,
            "1: guests of the recorded machine; 2: any guest inside those.",
            |row: &Of<'_>| Some(row.subject.level.into()),
        )
        .shown(TABLE, 9),
        Column::text(("isa", "isa"), "Instruction set.", |row: &Of<'_>| {
            Some(row.subject.isa.name().to_owned())
        }),
        Column::text(
            ("reason", "reason"),
            "The kernel's name of the exit reason.",
            |row: &Of<'_>| Some(row.subject.reason.clone()),
        )
        .shown(TABLE, 0),
        Column::any(
            ("code", "code"),
            (Unit::Text, Kind::NumberOrText),
            "The raw code, as in exits. Null: a text contains only names of reasons.",
            |row: &Of<'_>| code(&row.subject.code),
        ).matching(RawCode::PAIR),
        Column::text(
            ("about", "about"),
            "Kind of address: port, gpa (guest physical address), msr, hypercall, cpuid_leaf.",
            |row: &Of<'_>| kind(row.subject.about).map(str::to_owned),
        )
        .null("No event shows the exits' details."),
        Column::number(
            ("address", "address"),
            Unit::Hex,
            "Port or address of the device, or another detail of the exits.",
            |row: &Of<'_>| row.subject.about.map(|(_, value)| value),
        )
        .null("See about.")
        .drawn_as(|row| address(row.subject))
        .shown(TABLE, 0),
        Column::text(
            ("of_device", "of device"),
            "The guest's name for the device at that address: its disk, network interface or virtio device.",
            |row: &Of<'_>| row.subject.device.clone(),
        )
        .null("The guest's agent did not report a device there."),
        Column::number(
            ("exits", "exits"),
            Unit::Count,
            "Exits that the VMM handled, with an entry after them and without losses.",
            |row: &Of<'_>| Some(row.subject.exits),
        )
        .shown(TABLE, 0),
    ]
}

fn user<'r>() -> Column<Of<'r>> {
    Column::time(
        ("user", "ran"),
        "CPU time for the VMM: user_ns or user_and_return_ns of exits. Sum of the next seven columns.",
        |row: &Of<'_>| row.source.vmm.is_split.then_some(row.subject.split.user_ns()),
    )
    .null("kvm_userspace_exit or sched_switch was not recorded.")
    .shown(TABLE, 0)
    .missing("?")
}

/// A part that is known if system calls were recorded.
fn part<'r>(
    names: (&str, &str),
    help: &str,
    rank: u8,
    time_of: fn(&ExitSplit) -> u64,
) -> Column<Of<'r>> {
    Column::time(names, help, move |row: &Of<'_>| {
        let vmm = &row.source.vmm;
        (vmm.has_calls && vmm.is_split).then(|| time_of(&row.subject.split))
    })
    .null("System calls, kvm_userspace_exit or sched_switch were not recorded.")
    .shown_if(TABLE, rank, move |row| row.source.vmm.has_calls && time_of(&row.subject.split) > 0)
}

fn running<'r>() -> Vec<Column<Of<'r>>> {
    vec![
        part(
            ("return", "return"),
            "From kvm_userspace_exit to the return of the ioctl. Null: system calls, kvm_userspace_exit or sched_switch were not recorded.",
            2,
            |split| split.return_ns,
        ),
        part(
            ("signals", "signals"),
            "Signal handlers, and calls that change the signal mask. Null: system calls, kvm_userspace_exit or sched_switch were \
             not recorded.",
            3,
            |split| split.signals_ns,
        ),
        part(
            ("device", "device"),
            "The VMM's own code: its main loop and its devices. Null: system calls, kvm_userspace_exit or sched_switch were not \
             recorded.",
            1,
            |split| split.device_ns,
        ),
        part(
            ("lock", "locks"),
            "Running in futex calls. Null: system calls, kvm_userspace_exit or sched_switch were not recorded.",
            2,
            |split| split.lock_ns,
        ),
        part(
            ("calls", "calls"),
            "Running in other system calls. Null: system calls, kvm_userspace_exit or sched_switch were not recorded.",
            1,
            |split| split.calls_ns,
        ),
        part(
            ("back", "way back"),
            "From the KVM_RUN ioctl until KVM loads the guest's state, or until the entry if no event shows that. Null: system \
             calls, kvm_userspace_exit or sched_switch were not recorded.",
            1,
            |split| split.back_ns,
        ),
        Column::time(
            ("not_split", "not split"),
            "Running for an unknown purpose.",
            |row: &Of<'_>| row.source.vmm.is_split.then_some(row.subject.split.not_split_ns),
        )
        .null("See user_ns.")
        .shown_if(TABLE, 4, |row| row.source.vmm.has_calls && row.subject.split.not_split_ns > 0),
    ]
}

fn waiting<'r>() -> Vec<Column<Of<'r>>> {
    vec![
        Column::time(
            ("waited", "waited"),
            "Off the CPU while the VMM handled the exits. Sum of the next four columns.",
            |row: &Of<'_>| row.source.vmm.is_split.then_some(row.subject.split.waited_ns()),
        )
        .null("See user_ns.")
        .shown(TABLE, 1)
        .missing("?"),
        part(
            ("lock_wait", "in locks"),
            "Asleep in futex calls. Null: system calls, kvm_userspace_exit or sched_switch were not recorded.",
            3,
            |split| split.lock_wait_ns,
        ),
        part(
            ("call_wait", "in calls"),
            "Asleep in other system calls. Null: system calls, kvm_userspace_exit or sched_switch were not recorded.",
            3,
            |split| split.call_wait_ns,
        ),
        part(
            ("blocked", "blocked"),
            "Asleep elsewhere, as in page faults. Null: system calls, kvm_userspace_exit or sched_switch were not recorded.",
            5,
            |split| split.blocked_ns,
        ),
        part(
            ("run_queue", "run queue"),
            "Run-queue wait: preempted, or woken and not yet scheduled. Null: system calls, kvm_userspace_exit or sched_switch \
             were not recorded.",
            4,
            |split| split.run_queue_ns,
        ),
    ]
}
