//! Why a VM is slow: causes ranked by the time that they cost its vCPUs, each with evidence, and how sure it is.
//!
//! The vCPUs' time is a budget of states that adds up exactly ([`Budget`]). Each file here explains one part of it: exits by
//! what they were about (`exit_causes`), waits for a CPU by who ran instead (`run_queue`), halts (`idle`), threads that
//! serve the VM (`serving_threads`), requests to disks (`disks`), and the guest's own code (`guest_code`). A part below
//! its threshold ([`Threshold`]) is not a cause: healthy VMs show as much.

mod budget;
mod cause;
mod disk_waits;
mod disks;
mod exit_causes;
mod exit_class;
mod exits_by_vm;
mod guest_code;
mod idle;
mod index;
mod ipis;
mod longest_waits;
mod run_queue;
mod saturation;
mod serving_threads;
mod thread_delays;
mod threshold;

use std::collections::HashMap;

use timeline::Losses;
use timeline::reading::{Reading, Task};

use crate::advice::{EvidenceOf, ExitEvidence, VmEvidence};
use crate::cpu::{CpuUse, CpuUseSink, VmUse};
use crate::exit_question::ask;
use crate::nested::{Nested, OfLevelTwo};
use crate::states::{StateSink, states_for_all};
use crate::view::View;

use self::disk_waits::{DiskWaitSink, DiskWaits};
use self::exits_by_vm::ExitsByVm;
use self::index::Index;
use self::ipis::{IpiSink, Ipis};
use self::longest_waits::{LongestWaitSink, LongestWaits};
use self::saturation::{Saturation, SaturationSink};
use self::thread_delays::{ThreadDelaySink, ThreadDelays};
use self::threshold::Threshold;

pub use self::budget::Budget;
pub use self::cause::{Cause, CauseId, Evidence};

/// Passes over the recordings: exits, and states with other events.
pub const PASSES: u64 = 2;

/// What a VM did with its time, and what made it slow.
#[derive(Clone, Debug)]
pub struct VmAnswer {
    /// Index of its host's recording.
    pub recording: usize,
    pub vm: String,
    pub vcpus: usize,
    pub budget: Budget,
    /// The costliest first; empty if nothing is wrong.
    pub causes: Vec<Cause>,
}

/// Events that a recording lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unseen {
    pub events: &'static str,
    /// What they would show.
    pub shows: &'static str,
}

/// Answers for all VMs of some recordings.
#[derive(Debug)]
pub struct Why {
    /// The VM with the costliest cause first.
    pub vms: Vec<VmAnswer>,
    /// By recording, the events that it lacks.
    pub unseen: Vec<Vec<Unseen>>,
    /// By recording.
    pub losses: Vec<Losses>,
    /// Whether times are nanoseconds: thresholds are lengths of time, so that no cause is claimed otherwise.
    pub nanoseconds: bool,
}

/// All that causes are derived from, for one VM.
pub(crate) struct Observed<'o> {
    vm: &'o VmUse,
    index: &'o Index<'o>,
    exits: Option<&'o VmEvidence>,
    all_exits: &'o ExitsByVm<'o>,
    timed: &'o Timed,
    budget: Budget,
}

impl Observed<'_> {
    /// The share of the vCPUs' time.
    fn share(&self, ns: u64) -> f64 {
        ns as f64 / self.budget.total_ns.max(1) as f64
    }

    /// Whether a part of the vCPUs' time is large enough to be this cause.
    fn matters(&self, id: CauseId, ns: u64) -> bool {
        let Threshold { of_all, of_busy } = Threshold::for_cause(id);
        let busy_ns = self.budget.busy_ns();
        self.share(ns) >= of_all && ns as f64 >= busy_ns as f64 * of_busy
    }

    fn cause(&self, id: CauseId, cost_ns: u64, confidence: f64) -> Cause {
        Cause {
            id,
            vm: self.vm.name.clone(),
            vcpu: None,
            cost_ns,
            share: self.share(cost_ns).min(1.0),
            confidence,
            evidence: Vec::new(),
            open: None,
        }
    }
}

/// Explains the time of all VMs of a view's recordings; `processes` has, by recording, the process of vCPU threads if the
/// recorder knew it. `progress` gets the number of bytes read.
#[must_use]
pub fn why(
    view: View<'_>,
    processes: &[HashMap<u32, u32>],
    progress: &(dyn Fn(u64) + Sync),
) -> Why {
    let exits: Vec<(ExitEvidence, Nested)> = view
        .recordings
        .iter()
        .map(|recording| ask(recording, &(EvidenceOf, OfLevelTwo), progress))
        .collect();
    let exits: Vec<ExitsByVm<'_>> =
        exits.iter().map(|(exits, nested)| ExitsByVm::new(exits, nested)).collect();
    let timed = Timed::read(view, processes, progress);
    let mut vms = timed.answers(&exits);
    vms.sort_by_key(|vm| {
        let cost_ns = vm.causes.first().map_or(0, |cause| cause.cost_ns);
        std::cmp::Reverse((cost_ns, vm.budget.busy_ns()))
    });
    Why {
        vms,
        unseen: exits.iter().map(ExitsByVm::unseen).collect(),
        losses: timed.cpu.losses.clone(),
        nanoseconds: timed.cpu.nanoseconds,
    }
}

/// What one reading in the order of time gives.
struct Timed {
    cpu: CpuUse,
    longest_waits: LongestWaits,
    saturation: Saturation,
    delays: ThreadDelays,
    disks: DiskWaits,
    ipis: Ipis,
}

impl Timed {
    fn read(
        view: View<'_>,
        processes: &[HashMap<u32, u32>],
        progress: &(dyn Fn(u64) + Sync),
    ) -> Self {
        let mut cpu = CpuUseSink::new(view.recordings);
        let mut longest_waits = LongestWaitSink::default();
        let mut saturation = SaturationSink::new(view.recordings);
        let mut delays = ThreadDelaySink::new(view);
        let mut disks = DiskWaitSink::new(view);
        let mut ipis = IpiSink::default();
        let reading = Reading::on_one_clock(view.recordings);
        let mut delay_task = reading.trace_events(&mut delays);
        let mut disk_task = reading.trace_events(&mut disks);
        let mut ipi_task = reading.trace_events(&mut ipis);
        let tasks: &mut [&mut dyn Task] = &mut [&mut delay_task, &mut disk_task, &mut ipi_task];
        let sinks: Vec<&mut dyn StateSink> = vec![&mut cpu, &mut longest_waits, &mut saturation];
        let states = states_for_all(view, sinks, (&reading, tasks), progress);
        Self {
            longest_waits: longest_waits.answer(&states),
            saturation: saturation.answer(&states),
            cpu: cpu.answer(view, processes, &states),
            delays: delays.answer(),
            disks: disks.answer(),
            ipis: ipis.answer(),
        }
    }

    fn answers(&self, exits: &[ExitsByVm<'_>]) -> Vec<VmAnswer> {
        let index = Index::new(&self.cpu);
        let answer = |vm: &VmUse| {
            let all_exits = exits.get(vm.recording)?;
            let exits = all_exits.of_vm(&vm.name);
            let budget = Budget::new(&vm.times);
            Some(Observed { vm, index: &index, exits, all_exits, timed: self, budget }.answer())
        };
        self.cpu.vms.iter().filter_map(answer).collect()
    }
}

impl Observed<'_> {
    fn answer(&self) -> VmAnswer {
        VmAnswer {
            recording: self.vm.recording,
            vm: self.vm.name.clone(),
            vcpus: self.vm.vcpus,
            budget: self.budget,
            causes: if self.timed.cpu.nanoseconds { self.causes() } else { Vec::new() },
        }
    }

    fn causes(&self) -> Vec<Cause> {
        let mut causes = exit_causes::causes(self);
        causes.extend(run_queue::causes(self));
        causes.extend(idle::causes(self));
        // A quota throttles the threads that serve the VM, too.
        if !causes.iter().any(|cause| cause.id == CauseId::CpuQuota) {
            causes.extend(serving_threads::causes(self));
        }
        causes.extend(disks::cause(self));
        causes.sort_by_key(|cause| (std::cmp::Reverse(cause.cost_ns), cause.id));
        causes.extend(guest_code::cause(self, &causes));
        causes
    }
}
