//! The rows of one vCPU: its strata, each shared out to the code that samples saw in it.

use std::collections::BTreeMap;

use timeline::VmVcpu;

use super::code::{Code, CodeAt};
use super::guest_stacks::{SeenCode, corrected, is_enough};
use super::samples::Place;
use super::sums::{Seen, Stratum, StratumSamples, StratumSum};
use super::{
    Evidence, GuestStacks, Profile, ProfileRow, ProfileVcpu, SampleDifference, SampledTime, weights,
};
use crate::ReasonNames;
use crate::states::{States, VcpuState};

/// Makes rows of the strata of a VM's vCPUs.
pub(super) struct VcpuRows<'r> {
    pub(super) states: &'r States,
    /// Index of the host's recording.
    pub(super) recording: usize,
    /// The recording of its guest.
    pub(super) guest: Option<usize>,
    pub(super) code: Code<'r>,
    pub(super) guest_stacks: GuestStacks,
}

/// What rows of one vCPU are told apart by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RowKey {
    level: u8,
    exit: Option<(u8, u64)>,
    task: Option<u32>,
    evidence: Evidence,
    code: CodeAt,
}

impl VcpuRows<'_> {
    pub(super) fn add(
        &self,
        vm: &str,
        vcpu: &VmVcpu,
        mut strata: Vec<(Stratum, StratumSum)>,
        reasons: &mut [ReasonNames],
        profile: &mut Profile,
    ) {
        strata.sort_by_key(|(stratum, _)| *stratum);
        let recorded = self.states.recorded.get(self.recording);
        let mut rows: BTreeMap<RowKey, SampledTime> = BTreeMap::new();
        let mut states: BTreeMap<VcpuState, u64> = BTreeMap::new();
        for (mut stratum, sum) in strata {
            let is_seen = !sum.exits.seen.is_empty() || !sum.host.seen.is_empty();
            profile.by_address |= stratum.state == VcpuState::Guest && is_seen;
            stratum.state = recorded.map_or(stratum.state, |known| stratum.state.settled(known));
            let difference = self.share_out(&stratum, &sum, &mut |key, row| {
                let time_ns = states.entry(key.code.state).or_default();
                *time_ns = time_ns.saturating_add(row.ns);
                rows.entry(key).or_default().add(&row);
            });
            if let Some(difference) = difference {
                let all = profile.differences.entry(vm.to_owned()).or_default();
                all.time_ns = all.time_ns.saturating_add(difference.time_ns);
                all.moved_ns = all.moved_ns.saturating_add(difference.moved_ns);
            }
        }
        let at = profile.vcpus.len();
        let mut made: Vec<ProfileRow> =
            rows.into_iter().map(|(key, time)| self.row(at, key, time, reasons)).collect();
        made.sort_by_key(|row| std::cmp::Reverse(row.time.ns));
        profile.vcpus.push(ProfileVcpu {
            vm: vm.to_owned(),
            vcpu: vcpu.vcpu,
            comm: self.name(self.recording, vcpu.thread),
            thread: vcpu.thread,
            time_ns: states.values().fold(0, |sum, &ns| sum.saturating_add(ns)),
            states,
        });
        profile.rows.extend(made);
    }

    /// Gives each part of a stratum's time to the code that its samples saw. The host's own come whatever the
    /// guest does; exits also come when a timer of the guest is due, and so are taken only where they are many
    /// more. What a guest sampled itself comes first; how far that differs from what the host saw is returned.
    fn share_out(
        &self,
        of: &Stratum,
        sum: &StratumSum,
        each: &mut dyn FnMut(RowKey, SampledTime),
    ) -> Option<SampleDifference> {
        let key = |evidence, code| {
            let (level, exit, task) = (of.level, of.exit, of.task);
            RowKey { level, exit, task, evidence, code }
        };
        let (evidence, samples) = match sum.host.count.saturating_mul(2) >= sum.exits.count {
            true => (Evidence::Host, &sum.host),
            false => (Evidence::Exits, &sum.exits),
        };
        let code = |place| self.code.at(of, place);
        let (evidence, samples, difference) = if sum.agent.seen.is_empty() {
            (evidence, samples, None)
        } else {
            let host = by_code(samples, code);
            if self.guest_stacks == GuestStacks::Corrected && is_enough(&host) {
                let guest = by_code(&sum.agent, code);
                let (rows, difference) = corrected(sum.time_ns, guest, &host);
                for (code, evidence, time) in rows {
                    let evidence = if code.stack.is_empty() { Evidence::None } else { evidence };
                    each(key(evidence, code), time);
                }
                return Some(difference);
            }
            let difference = is_enough(&host)
                .then(|| corrected(sum.time_ns, by_code(&sum.agent, code), &host).1);
            (Evidence::Agent, &sum.agent, difference)
        };
        if samples.seen.is_empty() {
            let unknown = CodeAt { state: of.state, host_code: false, stack: Vec::new() };
            each(key(Evidence::None, unknown), SampledTime::known(sum.time_ns));
            return None;
        }
        for (code, time) in shared(sum.time_ns, samples, code) {
            let evidence = if code.stack.is_empty() { Evidence::None } else { evidence };
            each(key(evidence, code), time);
        }
        difference
    }

    fn row(
        &self,
        vcpu: usize,
        key: RowKey,
        time: SampledTime,
        reasons: &mut [ReasonNames],
    ) -> ProfileRow {
        let RowKey { level, exit, task, evidence, code } = key;
        let CodeAt { state, host_code, stack } = code;
        let reason =
            exit.and_then(|(isa, code)| Some(reasons.get_mut(self.recording)?.name(isa, code)));
        let comm = task.zip(self.guest).and_then(|(task, guest)| match task {
            0 => Some("<idle>".to_owned()),
            task => self.name(guest, task),
        });
        ProfileRow { vcpu, level, state, reason, comm, stack, host_code, evidence, time }
    }

    fn name(&self, recording: usize, thread: u32) -> Option<String> {
        self.states.pass.names.get(recording)?.of(thread).map(str::to_owned)
    }
}

/// Samples by the code that they saw.
fn by_code(samples: &StratumSamples, code: impl Fn(Place) -> CodeAt) -> SeenCode {
    let mut seen = SeenCode { samples: samples.count, ..SeenCode::default() };
    for (&place, one) in &samples.seen {
        let sum = seen.code.entry(code(place)).or_default();
        sum.samples = sum.samples.saturating_add(one.samples);
        sum.weight_ns = sum.weight_ns.saturating_add(one.weight_ns);
    }
    let whole = seen.code.values().fold(0.0, |sum, one| sum + one.weight_ns as f64);
    seen.effective = weights::effective(whole, samples.squares);
    seen
}

/// A time shared out by samples to the code that they saw: the shares add up to it.
pub(super) fn shared<C: Ord>(
    time_ns: u64,
    samples: &StratumSamples,
    code: impl Fn(Place) -> C,
) -> Vec<(C, SampledTime)> {
    let mut seen: BTreeMap<C, Seen> = BTreeMap::new();
    for (&place, one) in &samples.seen {
        let code = seen.entry(code(place)).or_default();
        code.samples = code.samples.saturating_add(one.samples);
        code.weight_ns = code.weight_ns.saturating_add(one.weight_ns);
    }
    let weights: Vec<u64> = seen.values().map(|one| one.weight_ns).collect();
    let whole = weights.iter().fold(0.0, |sum, &weight| sum + weight as f64);
    let effective = weights::effective(whole, samples.squares);
    let shares = weights::shares(time_ns, &weights);
    let timed = seen
        .into_iter()
        .zip(shares)
        .map(|((code, one), ns)| (code, weights::time(time_ns, ns, one.samples, effective)));
    timed.collect()
}
