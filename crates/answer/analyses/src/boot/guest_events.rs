//! Reports by hypercall of machines without a recording of their own, from the time their modules are loaded:
//! marks, and the first and last report. They have no initcall levels.

use std::collections::BTreeMap;

use sources::{Collected, Recording};
use timeline::{VcpuInfo, Vm};

use super::events::shown;
use super::{BootMarks, BootedMachine, PhaseKind, phases};
use crate::hypertrace::{
    Carrier, GuestEvent, GuestEventSink, HypertraceFiles, VcpuThread, hypertrace,
};

/// Reports of guests, by host thread.
#[derive(Debug, Default)]
pub(super) struct GuestReports(BTreeMap<u32, VcpuReport>);

/// Reports of one vCPU.
#[derive(Debug)]
struct VcpuReport {
    first_ns: u64,
    last_ns: u64,
    /// The first two marks that may end the boot: one of them may begin a shutdown instead.
    until: Vec<(u64, String)>,
    /// The first mark that begins a shutdown.
    down: Vec<(u64, String)>,
}

impl GuestReports {
    /// Reads the reports of all guests of a host.
    pub(super) fn hear(
        host: &Recording,
        collected: &Option<Collected>,
        marks: &BootMarks,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Self {
        let mut listener = ReportSink { marks, reports: Self::default() };
        let (host, collected) = (std::slice::from_ref(host), std::slice::from_ref(collected));
        let files = HypertraceFiles { collected, ..HypertraceFiles::default() };
        if files.may_have_events(host) {
            hypertrace(host, files, ::hypertrace::NUMBER, &mut listener, progress);
        }
        listener.reports
    }

    /// All times at which a phase can begin or end.
    pub(super) fn times(&self) -> impl Iterator<Item = u64> {
        self.0.values().flat_map(|report| {
            let marks = report.until.iter().chain(&report.down).map(|(ns, _)| *ns);
            [report.first_ns, report.last_ns].into_iter().chain(marks)
        })
    }

    /// vCPUs by their reports, for a host without recorded exits.
    pub(super) fn vcpus(&self) -> Vec<VcpuInfo> {
        let info = |(thread, report): (&u32, &VcpuReport)| VcpuInfo {
            thread: *thread,
            vcpu_id: None,
            first_ns: report.first_ns,
        };
        self.0.iter().map(info).collect()
    }

    /// A VM by its reports; without reports it has no phases.
    pub(super) fn machine(&self, vm: &Vm, marks: &BootMarks, nanoseconds: bool) -> BootedMachine {
        let vcpus = || vm.vcpus.iter().filter_map(|vcpu| self.0.get(&vcpu.thread));
        let mut machine =
            BootedMachine { vm: Some(vm.name.clone()), nanoseconds, ..BootedMachine::default() };
        let first_ns = vcpus().map(|report| report.first_ns).min();
        let last_ns = vcpus().map(|report| report.last_ns).max();
        let Some((first_ns, last_ns)) = first_ns.zip(last_ns) else { return machine };
        let mut event: Vec<&(u64, String)> =
            vcpus().flat_map(|report| report.until.iter().chain(&report.down)).collect();
        // A mark can be in both lists.
        event.sort_unstable();
        event.dedup();
        let mut begins = vec![(first_ns, PhaseKind::User, "sends events by hypercall".to_owned())];
        let mut goes_down = false;
        for (ns, text) in event {
            if marks.is_down(text) && !goes_down {
                goes_down = true;
                begins.push((*ns, PhaseKind::Shutdown, text.clone()));
            } else if marks.is_until(text) && machine.mark.is_none() {
                machine.mark = Some((text.clone(), *ns));
                begins.push((*ns, PhaseKind::Running, text.clone()));
            }
        }
        machine.phases = phases(begins, last_ns, None);
        machine
    }
}

struct ReportSink<'m> {
    marks: &'m BootMarks,
    reports: GuestReports,
}

impl GuestEventSink for ReportSink<'_> {
    fn event(&mut self, from: VcpuThread, event: &GuestEvent, _by: &Carrier) {
        let ns = event.stamp_ns();
        let report = self.reports.0.entry(from.thread).or_insert_with(|| VcpuReport {
            first_ns: ns,
            last_ns: ns,
            until: Vec::new(),
            down: Vec::new(),
        });
        report.first_ns = report.first_ns.min(ns);
        report.last_ns = report.last_ns.max(ns);
        let GuestEvent::Mark(mark, _) = event else { return };
        let text = shown(&mark.text);
        if self.marks.is_until(&text) {
            keep(&mut report.until, 2, (ns, text.clone()));
        }
        if self.marks.is_down(&text) {
            keep(&mut report.down, 1, (ns, text));
        }
    }
}

/// Inserts a mark into the `max` earliest ones.
fn keep(all: &mut Vec<(u64, String)>, max: usize, mark: (u64, String)) {
    let at = all.partition_point(|(ns, _)| *ns <= mark.0);
    if at < max {
        all.insert(at, mark);
        all.truncate(max);
    }
}
