//! The longest span of each kind of waiting of each VM: what a reader looks at first.

use rustc_hash::FxHashMap;

use crate::states::{GuestCpu, OccupantSpan, StateSink, StateSpan, States, VcpuRef, VcpuState};
use crate::vms::VmsByVcpu;

/// The longest spans by VM: recording, index of the VM there, and state.
#[derive(Debug, Default)]
pub(super) struct Longest(FxHashMap<(usize, usize, VcpuState), LongestSpan>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LongestSpan {
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    /// Index of the vCPU in its recording.
    vcpu: u32,
}

impl LongestSpan {
    const fn length_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

impl Longest {
    /// The longest span in any of these states.
    pub(super) fn span_ns(
        &self,
        (recording, vm): (usize, usize),
        states: &[VcpuState],
    ) -> Option<(u64, u64)> {
        let spans = states.iter().filter_map(|state| self.0.get(&(recording, vm, *state)));
        let longest = spans.max_by_key(|span| span.length_ns())?;
        Some((longest.from_ns, longest.to_ns))
    }
}

/// By vCPU and state.
#[derive(Debug, Default)]
pub(super) struct LongestSink(FxHashMap<(VcpuRef, VcpuState), LongestSpan>);

impl StateSink for LongestSink {
    fn vcpu(&mut self, vcpu: VcpuRef, span: &StateSpan) {
        let new = LongestSpan { from_ns: span.from_ns, to_ns: span.to_ns, vcpu: vcpu.index };
        let longest = self.0.entry((vcpu, span.state)).or_insert(new);
        if longest.length_ns() < new.length_ns() {
            *longest = new;
        }
    }

    fn task(&mut self, _: GuestCpu, _: u32, _: &StateSpan) {}

    fn cpu(&mut self, _: GuestCpu, _: &OccupantSpan) {}
}

impl LongestSink {
    pub(super) fn answer(self, states: &States) -> Longest {
        let homes: Vec<VmsByVcpu<'_>> = states.vms.iter().map(|vms| VmsByVcpu::new(vms)).collect();
        let mut by_vm: FxHashMap<(usize, usize, VcpuState), LongestSpan> = FxHashMap::default();
        for ((vcpu, state), span) in self.0 {
            let recording = usize::from(vcpu.recording);
            let home = homes.get(recording).and_then(|homes| homes.place(span.vcpu as usize));
            let Some(vm) = home else { continue };
            let longest = by_vm.entry((recording, vm, state)).or_insert(span);
            // Equal lengths: the earlier span, so that the answer does not depend on the order of the map.
            let key = |span: &LongestSpan| (span.length_ns(), std::cmp::Reverse(span.from_ns));
            if key(longest) < key(&span) {
                *longest = span;
            }
        }
        Longest(by_vm)
    }
}
