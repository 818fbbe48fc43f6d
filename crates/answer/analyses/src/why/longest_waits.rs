//! The longest wait of each VM's vCPUs for a CPU: what a reader looks at first.

use rustc_hash::FxHashMap;

use crate::longest_span::LongestSpan;
use crate::states::{GuestCpu, OccupantSpan, StateSink, StateSpan, States, VcpuRef, VcpuState};
use crate::vms::VmsByVcpu;

/// By recording and index of the VM there.
#[derive(Debug, Default)]
pub(super) struct LongestWaits(FxHashMap<(usize, usize), LongestSpan>);

impl LongestWaits {
    pub(super) fn of_vm(&self, recording: usize, vm: usize) -> LongestSpan {
        self.0.get(&(recording, vm)).copied().unwrap_or_default()
    }
}

#[derive(Debug, Default)]
pub(super) struct LongestWaitSink(FxHashMap<VcpuRef, LongestSpan>);

impl StateSink for LongestWaitSink {
    fn vcpu(&mut self, vcpu: VcpuRef, span: &StateSpan) {
        if matches!(span.state, VcpuState::Preempted | VcpuState::Waiting) {
            self.0.entry(vcpu).or_default().add(span.from_ns, span.to_ns);
        }
    }

    fn task(&mut self, _: GuestCpu, _: u32, _: &StateSpan) {}

    fn cpu(&mut self, _: GuestCpu, _: &OccupantSpan) {}
}

impl LongestWaitSink {
    pub(super) fn answer(self, states: &States) -> LongestWaits {
        let homes: Vec<VmsByVcpu<'_>> = states.vms.iter().map(|vms| VmsByVcpu::new(vms)).collect();
        let mut by_vm: FxHashMap<(usize, usize), LongestSpan> = FxHashMap::default();
        for (vcpu, longest) in self.0 {
            let recording = usize::from(vcpu.recording);
            let home = homes.get(recording).and_then(|homes| homes.place(vcpu.index as usize));
            if let Some(vm) = home {
                by_vm.entry((recording, vm)).or_default().merge(longest);
            }
        }
        LongestWaits(by_vm)
    }
}
