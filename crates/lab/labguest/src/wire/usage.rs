//! The usage of a machine's threads, interrupts and guests so far, and the results of a measured workload.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A thread's usage since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadUsage {
    /// Its thread id.
    pub tid: u32,
    /// Name of its process.
    pub process: String,
    /// Its own name.
    pub thread: String,
    /// CPU time (`/proc/PID/task/TID/schedstat`).
    pub cpu_ns: u64,
    /// Number of sleeps, and so of wake-ups (`voluntary_ctxt_switches`).
    pub sleeps: u64,
}

/// A machine's usage since boot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Time of the reading, since boot.
    pub at_ns: u64,
    /// All its threads, including the kernel's.
    pub threads: Vec<ThreadUsage>,
    /// Interrupts of all CPUs by device or type (`/proc/interrupts`).
    pub interrupts: BTreeMap<String, u64>,
    /// KVM's counters, summed over the machine's guests (`/sys/kernel/debug/kvm`).
    pub kvm: BTreeMap<String, u64>,
}

/// Results of a measured workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// Run time.
    pub duration_ns: u64,
    /// Passes of the score, summed over all CPUs.
    pub iterations: u64,
    /// Number of switches away from the load's threads: each is a `sched_switch` event.
    pub switches: u64,
    /// Requested number of switches.
    pub switches_asked: u64,
    /// The machine's usage before the workload.
    pub before: Usage,
    /// The machine's usage at the end of the workload.
    pub after: Usage,
}

/// Results of a subject of tracers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Looped {
    /// Time of the timed operations.
    pub duration_ns: u64,
    /// Timed system calls, or rounds of two switches.
    pub iterations: u64,
    /// Number of their events: entries and exits of system calls, or switches away from the threads.
    pub events: u64,
    /// Number of events, including the warm-up.
    pub all_events: u64,
}

/// Prefix of the load threads' names.
pub const LOAD_THREAD: &str = "hs-load";

/// Printed when a measured workload begins.
pub const MEASURE_BEGIN: &str = "begin";

/// Printed when a measured workload ends; a line with the results ([`Measured`]) follows.
pub const MEASURE_END: &str = "end";
