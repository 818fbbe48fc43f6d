//! Notes for the tables: missing events, losses, and what is left out.

use analyses::exits::Exits;
use analyses::recorded::RecordedParts;
use analyses::tally::Tally;

use crate::losses;
use crate::units::{counted, plural};

pub(super) fn notes(exits: &Exits, left_out: &mut Vec<String>) -> String {
    let mut notes: Vec<String> = missing_parts(&exits.recorded)
        .into_iter()
        .map(|part| format!("not recorded: {part}"))
        .collect();
    notes.extend(unknown_parts(exits));
    let dropped: u64 = exits.rows.iter().map(|row| row.tally.dropped).sum();
    let paired: u64 = exits.rows.iter().map(|row| row.tally.paired()).sum();
    let total: u64 = exits.rows.iter().map(|row| row.tally.count).sum();
    if total > paired + dropped {
        let open = total - paired - dropped;
        let (singular, many) = ("exit without an entry is", "exits without an entry are");
        notes.push(counted(open, singular, many) + " counted, not timed");
    }
    if exits.switches_unseen > 0 {
        notes.push(format!(
            "the kernel did not trace {} of vCPU threads: time around each of them may be in another part",
            plural(exits.switches_unseen, "switch")
        ));
    }
    notes.extend(losses::repeats(&exits.repeated_buffers));
    notes.extend(losses::notes(&exits.losses, dropped));
    left_out.sort();
    left_out.dedup();
    if !left_out.is_empty() {
        notes.push(format!(
            "hidden to fit the width: {}; csv and json show all",
            left_out.join(", ")
        ));
    }
    if !exits.nanoseconds {
        notes.push(
            "times are ticks of the recording's clock, which does not count nanoseconds".to_owned(),
        );
    }
    notes.iter().map(|note| format!("{note}\n")).collect()
}

/// Notes that explain question marks.
fn unknown_parts(exits: &Exits) -> Vec<String> {
    let sum = |count_of: fn(&Tally) -> u64| {
        exits.rows.iter().map(|row| count_of(&row.tally)).sum::<u64>()
    };
    let mut notes = Vec::new();
    let unseen = sum(|tally| tally.user_return_unseen);
    if exits.recorded.user_return && unseen > 0 {
        notes.push(format!(
            "?: the return from user space was not seen in {}; user space + return contains that time",
            plural(unseen, "exit")
        ));
    }
    let unknown = sum(|tally| tally.poll_unknown);
    if exits.recorded.halt_poll && unknown > 0 {
        notes.push(format!(
            "?: the end of polling was not seen in {}; kernel contains that time",
            plural(unknown, "exit")
        ));
    }
    notes
}

/// The composition of time that can't be split, and the events that would split it; `None` without
/// such time.
pub(crate) fn not_split(recorded: &RecordedParts) -> Option<String> {
    let (parts, events) = if recorded.user && recorded.off_cpu {
        return None;
    } else if recorded.user {
        ("kernel or waiting", "sched:sched_switch")
    } else if recorded.off_cpu {
        ("kernel or user space", "kvm:kvm_userspace_exit")
    } else {
        ("kernel, user space or waiting", "kvm:kvm_userspace_exit and sched:sched_switch")
    };
    Some(format!("not split: {parts}; {events} would split it"))
}

/// Parts without events in the recording, and the events that would record them.
pub(super) fn missing_parts(recorded: &RecordedParts) -> Vec<String> {
    let parts = [
        (recorded.user, "user space", "kvm:kvm_userspace_exit"),
        (
            recorded.user_return || !recorded.user,
            "the return from user space",
            "kvm:kvm_fpu, kvm:kvm_timer_restore_state or syscalls:sys_enter_ioctl",
        ),
        (recorded.off_cpu, "time off the CPU", "sched:sched_switch"),
        (
            recorded.wake || !recorded.off_cpu,
            "run queue separate from blocked",
            "sched:sched_waking",
        ),
        (recorded.halt_poll, "halt polling", "kvm:kvm_vcpu_wakeup"),
        (recorded.host_work, "host work before kvm_exit", "irq, irq_vectors, timer, sched"),
    ];
    parts
        .into_iter()
        .filter(|(there, ..)| !there)
        .map(|(_, part, events)| format!("{part} (no {events} on a vCPU)"))
        .collect()
}
