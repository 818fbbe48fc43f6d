//! Which threads there are to ask about: those that were switched to and from most often.

use std::collections::BTreeMap;

use timeline::Losses;
use timeline::reading::each_trace_event;

use super::names::Names;
use super::target::Switches;
use crate::path::Machines;
use crate::view::View;

/// Threads of one name on one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusyThread {
    /// Its machine: `host`, or the name of the VM.
    pub machine: String,
    /// Its name; for a vCPU's thread, the name of the vCPU.
    pub thread: String,
    /// How often it got a CPU of its machine, or lost one.
    pub switches: u64,
}

/// Threads that there are to ask about.
#[derive(Debug)]
pub struct Busiest {
    /// The busiest first.
    pub threads: Vec<BusyThread>,
    /// By recording, what was lost.
    pub losses: Vec<Losses>,
}

/// All threads; `tick` receives the number of bytes read.
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
