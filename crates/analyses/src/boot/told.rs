//! A machine that has no recording of its own: what it tells its host by hypercalls from the moment
//! its module is loaded, and nothing of its kernel's levels.

use std::collections::HashSet;

use sources::Recording;
use timeline::Vm;

use super::events::shown;
use super::{BootMarks, BootedMachine, Phase, PhaseKind, phases};
use crate::hypertrace::{BesideRecordings, Carrier, Told, ToldSink, VcpuThread, hypertrace};

/// The phases of a VM as its hypercalls tell them; one without a name of its own is all there is
/// where it tells nothing.
pub(super) fn machine(
    host: &Recording,
    vm: &Vm,
    marks: &BootMarks,
    tick: &(dyn Fn(u64) + Sync),
) -> BootedMachine {
    let threads = vm.vcpus.iter().map(|vcpu| vcpu.thread).collect();
    let mut listener = Listener { threads, first_ns: None, last_ns: 0, marks: Vec::new() };
    let beside = BesideRecordings::default();
    hypertrace(std::slice::from_ref(host), beside, ::hypertrace::NUMBER, &mut listener, tick);
    let mut machine = BootedMachine {
        vm: Some(vm.name.clone()),
        nanoseconds: host.is_nanoseconds(),
        ..BootedMachine::default()
    };
    machine.phases = listener.phases(marks, &mut machine.mark);
    machine
}

struct Listener {
    threads: HashSet<u32>,
    /// The first thing told.
    first_ns: Option<u64>,
    last_ns: u64,
    marks: Vec<(u64, String)>,
}

impl ToldSink for Listener {
    fn told(&mut self, from: VcpuThread, told: &Told, _by: &Carrier) {
        if !self.threads.contains(&from.thread) {
            return;
        }
        let ns = told.stamp_ns();
        self.first_ns = Some(self.first_ns.map_or(ns, |first| first.min(ns)));
        self.last_ns = self.last_ns.max(ns);
        if let Told::Mark(mark, _) = told {
            self.marks.push((ns, shown(&mark.text)));
        }
    }
}

impl Listener {
    fn phases(mut self, marks: &BootMarks, mark: &mut Option<(String, u64)>) -> Vec<Phase> {
        let Some(first_ns) = self.first_ns else { return Vec::new() };
        self.marks.sort_by_key(|(ns, _)| *ns);
        let mut begins = vec![(first_ns, PhaseKind::User, "tells by hypercall".to_owned())];
        let mut goes_down = false;
        for (ns, text) in self.marks {
            if marks.is_down(&text) && !goes_down {
                goes_down = true;
                begins.push((ns, PhaseKind::Shutdown, text));
            } else if marks.is_until(&text) && mark.is_none() {
                *mark = Some((text.clone(), ns));
                begins.push((ns, PhaseKind::Running, text));
            }
        }
        phases(begins, self.last_ns, None)
    }
}
