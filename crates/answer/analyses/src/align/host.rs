//! Times at which a host's vCPUs were not in their guest.

use sources::Recording;
use timeline::align::Away;
use timeline::{ExitSink, ExitSpan, Vm, each_exit, group_vms};

/// The vCPUs of a host.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) vms: Vec<Vm>,
    /// By index of the vCPU.
    away: Vec<Away>,
}

#[derive(Default)]
struct AwaySink {
    away: Vec<Away>,
}

impl ExitSink for AwaySink {
    fn exit(&mut self, vcpu: usize, span: &ExitSpan) {
        if self.away.len() <= vcpu {
            self.away.resize_with(vcpu + 1, Away::default);
        }
        if let Some(away) = self.away.get_mut(vcpu) {
            away.add(span);
        }
    }
}

impl Host {
    pub(super) fn read(recording: &Recording, progress: &(dyn Fn(u64) + Sync)) -> Self {
        let pass = each_exit(recording, false, AwaySink::default(), progress);
        let vms = group_vms(recording, &pass.vcpus);
        Self { vms, away: pass.sink.away }
    }

    /// Times at which the vCPU with this index was not in its guest.
    pub(super) fn away(&self, index: usize) -> Option<&Away> {
        self.away.get(index)
    }
}
