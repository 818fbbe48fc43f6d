//! What a profile is made of: each vCPU's time by state, and where its guest was when an interrupt of
//! the host's ended its run.

use rustc_hash::FxHashMap;

use crate::reasons::ReasonNames;
use crate::states::{GuestCpu, OccupantSpan, StateSink, StateSpan, VcpuRef, VcpuState};

/// Addresses that are kept apart, of all vCPUs together; what was seen at others has address 0.
const MOST_ADDRESSES: usize = 1 << 20;

/// A part of a vCPU's time in which samples are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Stratum {
    pub(super) vcpu: VcpuRef,
    pub(super) level: u8,
    pub(super) state: VcpuState,
    /// The `isa` field and the raw code of the exit that is handled.
    pub(super) exit: Option<(u8, u64)>,
    /// The guest's thread, while it ran.
    pub(super) task: Option<u32>,
}

/// The samples at one address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) samples: u64,
    /// What they stand for: the time since the sample before, summed.
    pub(super) weight_ns: u64,
}

/// A stratum's time, and its samples.
#[derive(Clone, Debug, Default)]
pub(super) struct StratumSum {
    pub(super) time_ns: u64,
    /// Since the last sample.
    pending_ns: u64,
    /// By address in the guest.
    pub(super) seen: FxHashMap<u64, Seen>,
    /// The sum of the squares of weights, which says how unequal they are.
    pub(super) squares: f64,
}

/// What a vCPU did last.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    exit_start_ns: Option<u64>,
    guest: Option<Stratum>,
}

/// Adds spans up.
#[derive(Debug)]
pub(super) struct ProfileSums {
    pub(super) strata: FxHashMap<Stratum, StratumSum>,
    /// By recording.
    pub(super) reasons: Vec<ReasonNames>,
    last: FxHashMap<VcpuRef, Last>,
    addresses: usize,
}

impl ProfileSums {
    pub(super) fn new(reasons: Vec<ReasonNames>) -> Self {
        Self { strata: FxHashMap::default(), reasons, last: FxHashMap::default(), addresses: 0 }
    }

    /// The guest was left at `address`: what it did in this stratum since the last sample, it did there.
    fn sample(&mut self, stratum: Stratum, address: u64) {
        let Some(sum) = self.strata.get_mut(&stratum) else { return };
        let is_new = !sum.seen.contains_key(&address);
        let is_kept = !is_new || self.addresses < MOST_ADDRESSES;
        self.addresses += usize::from(is_new && is_kept);
        let weight_ns = std::mem::take(&mut sum.pending_ns);
        sum.squares += (weight_ns as f64).powi(2);
        let seen = sum.seen.entry(if is_kept { address } else { 0 }).or_default();
        seen.samples = seen.samples.saturating_add(1);
        seen.weight_ns = seen.weight_ns.saturating_add(weight_ns);
    }

    /// Takes the exit that a span is part of, if it is a new one.
    fn exit(&mut self, vcpu: VcpuRef, span: &StateSpan) {
        let Some(exit) = span.exit else { return };
        let last = self.last.entry(vcpu).or_default();
        if last.exit_start_ns.replace(exit.start_ns) == Some(exit.start_ns) {
            return;
        }
        let guest = last.guest.take();
        let reasons = self.reasons.get(usize::from(vcpu.recording));
        let is_sample = reasons.is_some_and(|one| one.isa(exit.isa).interrupts(exit.code));
        if let Some(stratum) = guest.filter(|_| is_sample && exit.guest_pc != 0) {
            self.sample(stratum, exit.guest_pc);
        }
    }
}

impl StateSink for ProfileSums {
    fn vcpu(&mut self, vcpu: VcpuRef, span: &StateSpan) {
        self.exit(vcpu, span);
        let in_guest = span.state.is_guest();
        let stratum = Stratum {
            vcpu,
            level: span.level,
            state: span.state,
            exit: span.exit.map(|exit| (exit.isa, exit.code)),
            task: span.task.filter(|_| in_guest),
        };
        let sum = self.strata.entry(stratum).or_default();
        sum.time_ns = sum.time_ns.saturating_add(span.duration_ns());
        if in_guest {
            sum.pending_ns = sum.pending_ns.saturating_add(span.duration_ns());
            self.last.entry(vcpu).or_default().guest = Some(stratum);
        }
    }

    fn task(&mut self, _: GuestCpu, _: u32, _: &StateSpan) {}

    fn cpu(&mut self, _: GuestCpu, _: &OccupantSpan) {}
}
