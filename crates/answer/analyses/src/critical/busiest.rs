//! Lists the threads that can be analysed, by number of switches.

use std::collections::BTreeMap;

use timeline::Losses;
use timeline::reading::each_trace_event;

use super::names::Names;
use super::target::Switches;
use crate::path::Machines;
use crate::view::View;

/// Threads with the same name on one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusyThread {
    /// `host`, or the name of the VM.
    pub machine: String,
    /// Thread name; for a vCPU's thread, the name of the vCPU.
    pub thread: String,
    /// Number of times that it got or lost a CPU of its machine.
    pub switches: u64,
}

#[derive(Debug)]
pub struct Busiest {
    /// Threads by switches, descending.
    pub threads: Vec<BusyThread>,
    /// Losses by recording.
    pub losses: Vec<Losses>,
}

/// Lists all threads; `progress` receives the number of bytes read.
#[must_use]
pub fn busiest(view: View<'_>, progress: &(dyn Fn(u64) + Sync)) -> Busiest {
    let View { recordings, guests } = view;
    let machines = Machines::new(view);
    let mut switches = Switches::default();
    let pass = each_trace_event(recordings, &mut switches, progress);
    let names = Names::new(&machines, guests, (&pass.names, &[]));
    let mut sums: BTreeMap<(String, String), u64> = BTreeMap::new();
    for (thread, count) in switches.0 {
        *sums.entry((names.machine(thread.0), names.thread(thread, None))).or_default() += count;
    }
    let busy = |((machine, thread), switches)| BusyThread { machine, thread, switches };
    let mut all: Vec<BusyThread> = sums.into_iter().map(busy).collect();
    all.sort_by_key(|thread| std::cmp::Reverse(thread.switches));
    Busiest { threads: all, losses: pass.losses }
}
