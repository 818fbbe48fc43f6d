//! Rows of one vCPU: distributes the time of its strata over the sampled code.

use std::collections::BTreeMap;

use timeline::VmVcpu;
use timeline::reasons::ReasonNames;

use super::code::{Code, CodeAt};
use super::guest_stacks::{SeenCode, corrected, difference, is_enough};
use super::seen::SeenBy;
use super::slices::{SliceGrid, SliceTimes};
use super::sums::{SampleKind, Stratum, StratumSum};
use super::{
    Evidence, GuestStacks, Profile, ProfileRow, ProfileVcpu, SampleDifference, SampledTime,
};
use crate::states::{States, VcpuState};

/// Builds the rows of a VM's vCPUs.
pub(super) struct VcpuRows<'r> {
    pub(super) states: &'r States,
    /// Index of the host's recording.
    pub(super) recording: usize,
    pub(super) guest: Option<usize>,
    pub(super) code: Code<'r>,
    pub(super) guest_stacks: GuestStacks,
    /// Slices of time, if requested.
    pub(super) grid: Option<SliceGrid>,
}

/// Identity of a row of one vCPU.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RowKey {
    level: u8,
    exit: Option<(u8, u64)>,
    task: Option<u32>,
    evidence: Evidence,
    code: CodeAt,
}

/// A part of a stratum's time.
type Part = (CodeAt, Evidence, SampledTime);

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
        let mut rows: BTreeMap<RowKey, (SampledTime, SliceTimes)> = BTreeMap::new();
        let mut states: BTreeMap<VcpuState, u64> = BTreeMap::new();
        for (mut stratum, sum) in strata {
            let is_seen = !sum.exits.seen.is_empty() || !sum.host.seen.is_empty();
            profile.by_address |= stratum.state == VcpuState::Guest && is_seen;
            stratum.state = recorded.map_or(stratum.state, |known| stratum.state.settled(known));
            let difference = self.share_out(&stratum, &sum, &mut |key, row, by_slice| {
                let time_ns = states.entry(key.code.state).or_default();
                *time_ns = time_ns.saturating_add(row.ns);
                let sum = rows.entry(key).or_default();
                sum.0.add(&row);
                sum.1.extend(&by_slice);
            });
            if let Some(difference) = difference {
                let all = profile.differences.entry(vm.to_owned()).or_default();
                all.time_ns = all.time_ns.saturating_add(difference.time_ns);
                all.moved_ns = all.moved_ns.saturating_add(difference.moved_ns);
            }
        }
        let at = profile.vcpus.len();
        let row = |(key, (time, by_slice))| (self.row(at, key, time, reasons), by_slice);
        let mut made: Vec<(ProfileRow, SliceTimes)> = rows.into_iter().map(row).collect();
        made.sort_by_key(|(row, _)| std::cmp::Reverse(row.time.ns));
        profile.vcpus.push(ProfileVcpu {
            vm: vm.to_owned(),
            vcpu: vcpu.vcpu,
            comm: self.name(self.recording, vcpu.thread),
            thread: vcpu.thread,
            time_ns: states.values().fold(0, |sum, &ns| sum.saturating_add(ns)),
            states,
        });
        let (rows, by_slice): (Vec<_>, Vec<_>) = made.into_iter().unzip();
        profile.rows.extend(rows);
        if let (Some(slices), Some(grid)) = (&mut profile.slices, &self.grid) {
            slices.rows.extend(by_slice.into_iter().map(|times| times.numbered(grid)));
        }
    }

    /// Distributes a stratum's time over the sampled code; the guest's own samples have priority. Returns their
    /// difference from the host's samples.
    fn share_out(
        &self,
        stratum: &Stratum,
        sum: &StratumSum,
        each: &mut dyn FnMut(RowKey, SampledTime, SliceTimes),
    ) -> Option<SampleDifference> {
        let code = |place| self.code.at(stratum, place);
        let by_host = sum.seen_by_host();
        let [host, guest] = [by_host, SampleKind::Agent]
            .map(|kind| SeenBy::from_samples(sum.samples_of(kind), code));
        let is_compared = guest.samples > 0 && is_enough(&guest, &host);
        let difference = is_compared.then(|| difference(sum.time_ns, &guest, &host));
        let times = (sum.time_ns, sum.agent.most_ns());
        let parts = self.parts(stratum, times, &guest, (&host, by_host));
        let by_slice = self.by_slice(sum, &parts, &guest, &host);
        for ((code, evidence, time), by_slice) in parts.into_iter().zip(by_slice) {
            let evidence = if code.stack.is_empty() { Evidence::None } else { evidence };
            let (level, exit, task) = (stratum.level, stratum.exit, stratum.task);
            each(RowKey { level, exit, task, evidence, code }, time, by_slice);
        }
        difference
    }

    /// Times of a stratum's parts by slices, if requested: distributed like their samples.
    fn by_slice(
        &self,
        sum: &StratumSum,
        parts: &[Part],
        guest: &SeenCode,
        host: &SeenCode,
    ) -> Vec<SliceTimes> {
        if self.grid.is_none() {
            return vec![SliceTimes::default(); parts.len()];
        }
        let times: Vec<u64> = parts.iter().map(|(.., time)| time.ns).collect();
        let weights = parts.iter().map(|(code, evidence, _)| match evidence {
            Evidence::Agent => guest.by_slice(code),
            _ => host.by_slice(code),
        });
        sum.by_slice.clone().shared_out(&times, weights.collect())
    }

    /// Parts of a stratum's time; `most_ns` is the max time that the guest's own samples can represent.
    fn parts(
        &self,
        stratum: &Stratum,
        (time_ns, most_ns): (u64, u64),
        guest: &SeenCode,
        (host, by_host): (&SeenCode, SampleKind),
    ) -> Vec<Part> {
        let is_corrected = self.guest_stacks == GuestStacks::Corrected && is_enough(guest, host);
        if guest.samples == 0 {
            return seen_by_host(stratum, time_ns, (host, by_host));
        }
        if is_corrected {
            return corrected(time_ns, guest, host);
        }
        let own_ns = time_ns.min(most_ns);
        let mut parts = shared(guest, own_ns, Evidence::Agent);
        if own_ns < time_ns {
            parts.extend(seen_by_host(stratum, time_ns - own_ns, (host, by_host)));
        }
        parts
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
        self.states.pass.names.get(recording)?.get(thread).map(str::to_owned)
    }
}

/// Distributes a time over the sampled code.
fn shared(seen: &SeenCode, time_ns: u64, evidence: Evidence) -> Vec<Part> {
    seen.shares(time_ns).map(|(code, time)| (code.clone(), evidence, time)).collect()
}

/// Distributes a time over the host's samples; without samples, the code is unknown.
fn seen_by_host(
    stratum: &Stratum,
    time_ns: u64,
    (host, by_host): (&SeenCode, SampleKind),
) -> Vec<Part> {
    if host.samples == 0 {
        let unknown = CodeAt { state: stratum.state, host_code: false, stack: Vec::new() };
        return vec![(unknown, Evidence::None, SampledTime::known(time_ns))];
    }
    shared(host, time_ns, by_host.evidence())
}
