//! When vCPUs had no time left: slices of the recording in which a vCPU was hardly ever idle.

use rustc_hash::FxHashMap;
use sources::Recording;

use crate::extent::bounds_ns;
use crate::states::{GuestCpu, OccupantSpan, StateSink, StateSpan, States, VcpuRef, VcpuState};

/// Slices of the time of all recordings: enough to find a load that lasts for a tenth of it, and 1 KiB per vCPU.
const SLICES: usize = 64;
/// A vCPU that is idle for a smaller part of a slice is saturated.
const MAX_IDLE: f64 = 0.05;
/// Part of a slice for which its states must be known.
const MIN_KNOWN: f64 = 0.9;

#[derive(Clone, Copy, Debug, Default)]
struct Slice {
    known_ns: u64,
    idle_ns: u64,
    guest_ns: u64,
}

/// Time without idling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Saturated {
    pub(super) ns: u64,
    /// Part of it in the guest's code.
    pub(super) guest_ns: u64,
}

/// By recording and thread of the vCPU.
#[derive(Debug, Default)]
pub(super) struct Saturation(FxHashMap<(usize, u32), Saturated>);

impl Saturation {
    pub(super) fn of_vcpu(&self, recording: usize, thread: u32) -> Saturated {
        self.0.get(&(recording, thread)).copied().unwrap_or_default()
    }
}

#[derive(Debug)]
pub(super) struct SaturationSink {
    vcpus: FxHashMap<VcpuRef, Vec<Slice>>,
    from_ns: u64,
    slice_ns: u64,
}

impl SaturationSink {
    pub(super) fn new(recordings: &[Recording]) -> Self {
        let (from_ns, to_ns) = bounds_ns(recordings).unwrap_or_default();
        let slice_ns = (to_ns.saturating_sub(from_ns) / SLICES as u64).max(1);
        Self { vcpus: FxHashMap::default(), from_ns, slice_ns }
    }

    pub(super) fn answer(self, states: &States) -> Saturation {
        let mut by_thread = FxHashMap::default();
        for (recording, vms) in states.vms.iter().enumerate() {
            for vcpu in vms.iter().flat_map(|vm| &vm.vcpus) {
                let slices = self.vcpus.get(&VcpuRef::new(recording, vcpu));
                let slices = slices.map_or(&[][..], Vec::as_slice);
                by_thread.insert((recording, vcpu.thread), self.saturated(slices));
            }
        }
        Saturation(by_thread)
    }

    fn saturated(&self, slices: &[Slice]) -> Saturated {
        let mut sum = Saturated::default();
        for slice in slices {
            let is_known = slice.known_ns as f64 >= self.slice_ns as f64 * MIN_KNOWN;
            if is_known && (slice.idle_ns as f64) < slice.known_ns as f64 * MAX_IDLE {
                sum.ns = sum.ns.saturating_add(slice.known_ns);
                sum.guest_ns = sum.guest_ns.saturating_add(slice.guest_ns);
            }
        }
        sum
    }
}

impl StateSink for SaturationSink {
    fn vcpu(&mut self, vcpu: VcpuRef, span: &StateSpan) {
        let slices = self.vcpus.entry(vcpu).or_insert_with(|| vec![Slice::default(); SLICES]);
        let last = SLICES as u64 - 1;
        let slice_of = |ns: u64| (ns.saturating_sub(self.from_ns) / self.slice_ns).min(last);
        for at in slice_of(span.from_ns)..=slice_of(span.to_ns) {
            let begin_ns = self.from_ns.saturating_add(self.slice_ns.saturating_mul(at));
            let end_ns = if at == last { u64::MAX } else { begin_ns.saturating_add(self.slice_ns) };
            let ns = span.to_ns.min(end_ns).saturating_sub(span.from_ns.max(begin_ns));
            let Some(slice) = slices.get_mut(at as usize) else { break };
            if span.state != VcpuState::Unknown {
                slice.known_ns = slice.known_ns.saturating_add(ns);
            }
            if span.state.is_idle() {
                slice.idle_ns = slice.idle_ns.saturating_add(ns);
            } else if span.state.is_guest() {
                slice.guest_ns = slice.guest_ns.saturating_add(ns);
            }
        }
    }

    fn task(&mut self, _: GuestCpu, _: u32, _: &StateSpan) {}

    fn cpu(&mut self, _: GuestCpu, _: &OccupantSpan) {}
}
