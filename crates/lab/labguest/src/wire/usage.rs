//! What a machine's threads, interrupts and guests have used so far, and what a measured workload did.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a thread has used since it began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadUsage {
    /// Its number.
    pub tid: u32,
    /// Name of its process.
    pub process: String,
    /// Its own name.
    pub thread: String,
    /// Time on a processor (`/proc/PID/task/TID/schedstat`).
    pub cpu_ns: u64,
    /// How often it went to sleep, and so was woken up (`voluntary_ctxt_switches`).
    pub sleeps: u64,
}

/// What a machine has used since it began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// When it was looked at, since the machine began.
    pub at_ns: u64,
    /// All its threads, those of the kernel among them.
    pub threads: Vec<ThreadUsage>,
    /// Interrupts by the name of who asked for them, on all processors (`/proc/interrupts`).
    pub interrupts: BTreeMap<String, u64>,
    /// KVM's counters, of all the machine's guests together (`/sys/kernel/debug/kvm`).
    pub kvm: BTreeMap<String, u64>,
}

/// What a measured workload did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// How long it ran.
    pub duration_ns: u64,
    /// Passes of the score's work, of all processors together.
    pub iterations: u64,
    /// How often the load's threads were switched away from: each is a `sched_switch` event.
    pub switches: u64,
    /// What was asked of the load, as switches.
    pub switches_asked: u64,
    /// What the machine had used before.
    pub before: Usage,
    /// What it had used when the workload ended.
    pub after: Usage,
}

/// What a subject of tracers did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Looped {
    /// How long what was timed took.
    pub duration_ns: u64,
    /// System calls, or rounds of two switches, that were timed.
    pub iterations: u64,
    /// Events that these make: each system call's begin and end, or switches away from its threads.
    pub events: u64,
    /// The same with those before the clock started.
    pub all_events: u64,
}

/// The names of the load's threads begin so.
pub const LOAD_THREAD: &str = "hs-load";

/// What a measured workload prints as it begins.
pub const MEASURE_BEGIN: &str = "begin";

/// What a measured workload prints as it ends; a line with what it did ([`Measured`]) follows.
pub const MEASURE_END: &str = "end";
