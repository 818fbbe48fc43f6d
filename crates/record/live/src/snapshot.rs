//! The content of the programs' maps at the end of an interval.

use timeline::VcpuActivity;

use crate::states::{ACTIVITIES, States};
use crate::sums::Sums;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Exits by thread, level and reason.
    pub rows: Vec<(RowKey, Sums)>,
    /// Run-queue waits, by thread.
    pub waits: Vec<(u32, Sums)>,
    /// Threads that ran while others waited.
    pub takers: Vec<Taker>,
    /// Exits beyond the max number of rows.
    pub other: Sums,
    /// Threads of vCPUs, including ended ones.
    pub vcpus: Vec<VcpuState>,
    /// Exits of threads beyond the capacity, since the start.
    pub without_state: u64,
    /// Parts of exits that were not kept, whose halt polling counts as kernel time, since the start.
    pub pieces_left_out: u64,
    /// Run-queue waits beyond the capacity, since the start.
    pub waits_left_out: u64,
    /// Threads that ran while one waited, beyond the capacity, since the start.
    pub takers_left_out: u64,
    /// Switches and wake-ups of these threads that must have happened but were not traced, since the start.
    pub sched_events_unseen: u64,
}

/// A thread that ran on the CPU for which a vCPU's thread waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taker {
    /// The vCPU's thread.
    pub waiter: u32,
    /// The thread that ran; 0: the CPU was idle.
    pub thread: u32,
    /// Its process; 0: the kernel's idle task.
    pub process: u32,
    /// Its name; empty if it had ended.
    pub name: String,
    /// Its time in the interval: the wait may continue.
    pub time_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKey {
    /// The vCPU's thread.
    pub thread: u32,
    /// 1: a guest of this host; 2: any nested guest.
    pub level: u8,
    /// The event's `isa` field, 0 if there is none.
    pub isa: u8,
    /// The raw code.
    pub code: u64,
}

/// The programs' state of a vCPU's thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VcpuState {
    /// Its process: the VMM.
    pub process: u32,
    pub thread: u32,
    /// The vCPU's number, if the kernel knows it.
    pub vcpu: Option<u32>,
    /// The thread has ended.
    pub gone: bool,
    /// When it was first seen.
    pub born_ns: u64,
    /// Time up to which its activity is known.
    pub latest_ns: u64,
    /// Its activity since then.
    pub now: VcpuActivity,
    /// While its guest runs: a nested guest runs.
    pub in_nested: bool,
    /// When it was woken up, if it does not run yet.
    pub woken_ns: Option<u64>,
    /// Its states from first to latest.
    pub did: States,
    /// Its states at the begin of the current interval, and the time of that.
    pub saved: States,
    /// See `saved`.
    pub saved_ns: u64,
}

impl VcpuState {
    /// Its states at the end of an interval, which is the begin of the current one.
    #[must_use]
    pub fn done_by(&self, end_ns: u64) -> States {
        if self.saved_ns == end_ns {
            return self.saved;
        }
        if self.born_ns >= end_ns {
            return States::default();
        }
        let mut did = self.did;
        if !self.gone && end_ns > self.latest_ns {
            self.give(end_ns, &mut did);
        }
        did
    }

    /// Adds the time since the latest event to the current activity.
    fn give(&self, to_ns: u64, did: &mut States) {
        let took_ns = to_ns.saturating_sub(self.latest_ns);
        if self.now == VcpuActivity::Guest && self.in_nested {
            return did.give_nested(took_ns);
        }
        let slept_ns = match (self.now, self.woken_ns) {
            (VcpuActivity::Blocked, Some(woken_ns)) => {
                woken_ns.saturating_sub(self.latest_ns).min(took_ns)
            }
            _ => took_ns,
        };
        did.give(self.now, slept_ns);
        did.give(VcpuActivity::Waiting, took_ns - slept_ns);
    }

    /// Whether its numbers are consistent: they are not if it was changed while it was read.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let known_ns = self.latest_ns.checked_sub(self.born_ns);
        let saved_ns = self.saved_ns.checked_sub(self.born_ns);
        known_ns == Some(self.did.total_ns()) && saved_ns == Some(self.saved.total_ns())
    }
}

const _: () = assert!(ACTIVITIES.len() == 9);

#[cfg(test)]
mod tests {
    use super::*;

    fn blocked(latest_ns: u64, woken_ns: Option<u64>) -> VcpuState {
        let mut did = States::default();
        did.give(VcpuActivity::Guest, latest_ns - 100);
        VcpuState {
            process: 1,
            thread: 2,
            vcpu: Some(0),
            gone: false,
            born_ns: 100,
            latest_ns,
            now: VcpuActivity::Blocked,
            in_nested: false,
            woken_ns,
            did,
            saved: States::default(),
            saved_ns: 100,
        }
    }

    #[test]
    fn time_until_the_end_is_what_the_thread_still_does() {
        let state = blocked(1000, None);
        let done = state.done_by(1500);
        assert_eq!((done.time_ns(VcpuActivity::Blocked), done.total_ns()), (500, 1400));
        let done = blocked(1000, Some(1200)).done_by(1500);
        assert_eq!(
            (done.time_ns(VcpuActivity::Blocked), done.time_ns(VcpuActivity::Waiting)),
            (200, 300)
        );
        assert_eq!(VcpuState { gone: true, ..state }.done_by(1500).total_ns(), 900);
    }

    #[test]
    fn a_guest_of_the_guest_runs_until_the_end_of_the_interval() {
        let runs =
            |in_nested| VcpuState { now: VcpuActivity::Guest, in_nested, ..blocked(1000, None) };
        let (guest, nested) = (runs(false).done_by(1500), runs(true).done_by(1500));
        assert_eq!((guest.nested_ns(), nested.nested_ns()), (0, 500));
        assert_eq!((nested.time_ns(VcpuActivity::Guest), nested.total_ns()), (1400, 1400));
    }

    #[test]
    fn what_came_after_the_end_is_left_to_the_next_interval() {
        let mut saved = States::default();
        saved.give(VcpuActivity::Kernel, 400);
        let state = VcpuState { saved, saved_ns: 500, ..blocked(1000, None) };
        assert_eq!(state.done_by(500).total_ns(), 400);
        assert_eq!(blocked(1000, None).done_by(50).total_ns(), 0);
    }

    #[test]
    fn what_was_changed_while_it_was_read_is_noticed() {
        assert!(blocked(1000, None).is_whole());
        assert!(!VcpuState { latest_ns: 999, ..blocked(1000, None) }.is_whole());
    }
}
