//! Converts cycles of vCPUs to spans on the guest's clock.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;

use shmring::spans::{Activity, By, Coverage, Span, SpanWriter};
use timeline::VcpuActivity;
use timeline::cycles::{CycleSink, Interval, SWITCH_TAG, VcpuCycle, VcpuCycles};
use timeline::trace_events::{Gap, TraceEvent, TraceEventSink};
use vms::Vm;

use crate::guest_clock::GuestClock;
use crate::names::Names;

#[cfg(test)]
mod tests;

/// Max switches to remember per vCPU: those since the last published time.
const MAX_SWITCHES: usize = 1 << 16;
/// Max threads whose owners are cached; bounded, because thread ids are reused.
const MAX_THREADS: usize = 4096;

/// State of a published vCPU.
#[derive(Debug)]
struct Vcpu {
    tid: u32,
    clock: GuestClock,
    /// When the vCPU was switched out, and what ran instead.
    switched: VecDeque<(u64, By)>,
    /// The exit whose beginning was published last.
    last_exit_ns: Option<u64>,
    coverage: Coverage,
}

/// State of a VM's spans.
#[derive(Debug)]
pub(crate) struct Spans {
    cycles: VcpuCycles,
    sender: SpanSender,
}

#[derive(Debug)]
struct SpanSender {
    writer: SpanWriter,
    names: Names,
    vcpus: Vec<Vcpu>,
    by_thread: HashMap<u32, usize>,
    owners: Owners,
    spans: u64,
}

impl Spans {
    pub(crate) fn new(vm: &Vm, clocks: &[GuestClock], writer: SpanWriter, names: Names) -> Self {
        let vcpu = |(vcpu, clock): (&vms::Vcpu, &GuestClock)| Vcpu {
            tid: vcpu.tid,
            clock: *clock,
            switched: VecDeque::new(),
            last_exit_ns: None,
            coverage: Coverage::default(),
        };
        let vcpus: Vec<Vcpu> = vm.vcpus.iter().zip(clocks).map(vcpu).collect();
        let by_thread: HashMap<u32, usize> =
            vcpus.iter().enumerate().map(|(index, vcpu)| (vcpu.tid, index)).collect();
        let owners = Owners::new(vm.pid);
        let sender = SpanSender { writer, names, vcpus, by_thread, owners, spans: 0 };
        Self { cycles: VcpuCycles::default(), sender }
    }

    /// Publishes everything up to a time on the host's TSC.
    ///
    /// # Errors
    /// Why nothing more reaches the guest.
    pub(crate) fn publish(&mut self, host_tsc: u64, lost_events: u64) -> Result<(), &'static str> {
        self.cycles.emit_all(host_tsc, &mut self.sender);
        for (index, vcpu) in self.sender.vcpus.iter_mut().enumerate() {
            if vcpu.coverage.from_tsc != 0 {
                vcpu.coverage.to_tsc = vcpu.clock.guest_tsc(host_tsc);
            }
            vcpu.coverage.lost_events = lost_events;
            self.sender.writer.announce(index, vcpu.coverage);
        }
        let goes_on = self.sender.writer.beat();
        // Truncated memory reads as zeros, as if another program had written them.
        self.sender.writer.check().map_err(|_| "its memory was truncated during use")?;
        if goes_on { Ok(()) } else { Err("another program wrote to its memory") }
    }

    /// Updates a vCPU's clock, which KVM may have changed.
    pub(crate) fn set_clock(&mut self, index: usize, clock: GuestClock) {
        if let Some(vcpu) = self.sender.vcpus.get_mut(index) {
            vcpu.clock = clock;
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.sender.spans
    }

    /// Publishes the end.
    pub(crate) fn end(self) {
        self.sender.writer.end();
    }
}

impl TraceEventSink for Spans {
    fn event(&mut self, event: &TraceEvent) {
        if event.tag == SWITCH_TAG
            && let (Some(goes), Some(comes)) = (event.thread_value(0), event.thread_value(2))
        {
            self.sender.switch(event.stamp_ns, goes, comes);
        }
        self.cycles.event(event, &mut self.sender);
    }

    fn gap(&mut self, gap: &Gap) {
        self.cycles.gap(gap);
    }
}

impl SpanSender {
    fn switch(&mut self, host_tsc: u64, goes: u32, comes: u32) {
        let is_vcpu = self.by_thread.contains_key(&comes);
        let Some(vcpu) = self.by_thread.get(&goes).and_then(|at| self.vcpus.get_mut(*at)) else {
            return;
        };
        let by = match (comes, is_vcpu) {
            // The CPU is idle.
            (0, _) => By::Unknown,
            (_, true) => By::OwnVcpu,
            _ if self.owners.is_own(comes) => By::OwnVmm,
            _ => By::Others,
        };
        if vcpu.switched.len() >= MAX_SWITCHES {
            vcpu.switched.pop_front();
        }
        vcpu.switched.push_back((host_tsc, by));
    }
}

impl Vcpu {
    /// What ran after the last switch-out before `host_tsc`.
    fn by(&mut self, host_tsc: u64) -> By {
        while self.switched.get(1).is_some_and(|(at, _)| *at <= host_tsc) {
            self.switched.pop_front();
        }
        self.switched.front().filter(|(at, _)| *at <= host_tsc).map_or(By::Unknown, |(_, by)| *by)
    }

    fn span(&mut self, interval: &Interval, cycle: &VcpuCycle<'_>) -> Option<Span> {
        let activity = activity(interval.activity)?;
        let exit = cycle.exit.filter(|_| interval.in_exit);
        let begins_exit = exit.is_some_and(|exit| self.last_exit_ns != Some(exit.start_ns));
        if let Some(exit) = exit {
            self.last_exit_ns = Some(exit.start_ns);
        }
        let by =
            if activity == Activity::Preempted { self.by(interval.from_ns) } else { By::Unknown };
        let start_tsc = self.clock.guest_tsc(interval.from_ns);
        Some(Span {
            start_tsc,
            ticks: self.clock.guest_tsc(interval.to_ns).saturating_sub(start_tsc),
            activity,
            by,
            begins_exit,
            code: exit.map(|exit| exit.code as u32),
            isa: exit.map_or(0, |exit| exit.isa),
            level: exit.map_or(cycle.level, |exit| exit.level),
        })
    }
}

/// The published activity of an interval; `None` while the vCPU runs its guest.
fn activity(activity: VcpuActivity) -> Option<Activity> {
    Some(match activity {
        VcpuActivity::Guest => return None,
        VcpuActivity::BeforeExit | VcpuActivity::Kernel | VcpuActivity::HaltPoll => {
            Activity::Kernel
        }
        VcpuActivity::User => Activity::User,
        VcpuActivity::Preempted => Activity::Preempted,
        VcpuActivity::Waiting => Activity::Waiting,
        VcpuActivity::Blocked => Activity::Asleep,
        VcpuActivity::Unknown => Activity::Unknown,
    })
}

impl CycleSink for SpanSender {
    fn cycle(&mut self, cycle: &VcpuCycle<'_>) {
        let Some(&index) = self.by_thread.get(&cycle.thread) else { return };
        let Some(vcpu) = self.vcpus.get_mut(index) else { return };
        for interval in cycle.intervals {
            if vcpu.coverage.from_tsc == 0 {
                vcpu.coverage.from_tsc = vcpu.clock.guest_tsc(interval.from_ns).max(1);
            }
            let Some(span) = vcpu.span(interval, cycle) else { continue };
            if let Some(code) = span.code {
                self.names.publish(span.isa, code, &mut self.writer);
            }
            self.writer.push(index, &span);
            self.spans += 1;
        }
    }
}

/// Which threads belong to the VMM.
#[derive(Debug)]
struct Owners {
    tasks: PathBuf,
    known: HashMap<u32, bool>,
}

impl Owners {
    fn new(pid: u32) -> Self {
        Self { tasks: PathBuf::from(format!("/proc/{pid}/task")), known: HashMap::new() }
    }

    fn is_own(&mut self, tid: u32) -> bool {
        if self.known.len() >= MAX_THREADS {
            self.known.clear();
        }
        let look = || self.tasks.join(tid.to_string()).exists();
        *self.known.entry(tid).or_insert_with(look)
    }
}
