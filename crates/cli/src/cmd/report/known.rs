//! Facts about recordings that precede the pass over time: VMs, processes, names.

use std::collections::HashMap;

use analyses::lanes::LaneMachine;
use analyses::over_time::KnownOfAll;
use report::Source;
use session::Session;
use sources::Samples;
use timeline::Vm;

/// The facts, by recording.
#[derive(Debug)]
pub(super) struct PageFacts {
    vms: Vec<Vec<Vm>>,
    processes: Vec<HashMap<u32, u32>>,
    pub(super) machines: Vec<LaneMachine>,
}

impl PageFacts {
    /// The facts from the exits of a session.
    pub(super) fn from_exits(session: &Session, exits: &[Source]) -> Self {
        let vms: Vec<Vec<Vm>> = exits.iter().map(|source| source.exits.vms.clone()).collect();
        let threads =
            |vms: &Vec<Vm>| vms.iter().flat_map(|vm| &vm.vcpus).map(|vcpu| vcpu.thread).collect();
        let machines = session.view().machines().zip(&vms).map(|(machine, vms)| LaneMachine {
            is_guest: machine.is_guest,
            name: machine.name,
            vcpu_threads: threads(vms),
        });
        Self { machines: machines.collect(), vms, processes: session.processes() }
    }

    /// The facts with samples, by recording.
    pub(super) fn with_samples<'k>(&'k self, samples: &'k [Option<Samples>]) -> KnownOfAll<'k> {
        let Self { vms, processes, machines } = self;
        KnownOfAll { samples, vms, processes, machines }
    }
}
