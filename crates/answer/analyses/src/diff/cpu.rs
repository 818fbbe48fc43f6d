//! Compares CPU usage: vCPUs by state, host threads by their role for VMs.

use std::collections::{BTreeMap, HashMap};

use rustc_hash::FxHashMap;

use super::exits::metric;
use super::question::{
    Estimator, KeyValue, Lost, MeasuredGroup, Metric, Question, Run, RunInput, RunVm, Unit,
};
use super::series::{Series, Sums};
use super::stacks::Stacks;
use crate::states::{
    GuestCpu, OccupantSpan, Part, Roles, StateSink, StateSpan, States, VcpuRef, VcpuState, states,
};
use crate::view::View;
use crate::vms::VmsByVcpu;

const COUNT: usize = 0;
const TIME: usize = 1;

/// The question of `hyperscope diff cpu`.
pub(super) const QUESTION: Question = Question {
    name: "cpu",
    columns: &["vm", "part", "state"],
    metrics: &METRICS,
    weight: TIME,
    count: COUNT,
    aligned: false,
    sampled: false,
    measure,
    settle: |_| (),
};

const METRICS: [Metric; 4] = [
    metric("time_ns_per_s", "time", Unit::TimePerSecond, Estimator::PerSecond(TIME)),
    metric("count_per_s", "count", Unit::CountPerSecond, Estimator::PerSecond(COUNT)),
    metric("mean_ns", "mean", Unit::Time, Estimator::Per(TIME, COUNT)),
    metric("p99_ns", "p99", Unit::Time, Estimator::Quantile(990)),
];

/// Max threads until their roles are known; further threads are counted together.
const MAX_THREADS: usize = 1024;
/// Pseudo id of all threads beyond [`MAX_THREADS`].
const OTHERS: u32 = u32::MAX;

#[derive(Debug, Default)]
struct CpuSeries {
    vcpus: FxHashMap<(VcpuRef, VcpuState), Series>,
    threads: FxHashMap<u32, Series>,
}

impl StateSink for CpuSeries {
    fn vcpu(&mut self, vcpu: VcpuRef, span: &StateSpan) {
        add(self.vcpus.entry((vcpu, span.state)).or_default(), span.from_ns, span.duration_ns());
    }

    fn task(&mut self, _: GuestCpu, _: u32, _: &StateSpan) {}

    fn cpu(&mut self, _: GuestCpu, span: &OccupantSpan) {
        let Some(thread) = span.thread else { return };
        let is_room = self.threads.len() < MAX_THREADS || self.threads.contains_key(&thread);
        let series = self.threads.entry(if is_room { thread } else { OTHERS }).or_default();
        add(series, span.from_ns, span.to_ns.saturating_sub(span.from_ns));
    }
}

fn add(series: &mut Series, from_ns: u64, duration_ns: u64) {
    let mut sums = Sums::default();
    (sums[COUNT], sums[TIME]) = (1, duration_ns);
    series.add(from_ns, &sums, Some(duration_ns));
}

fn measure(input: RunInput<'_>, progress: &(dyn Fn(u64) + Sync)) -> Run {
    let Some(host) = input.view.recordings.first() else { return Run::empty() };
    let mut sums = CpuSeries::default();
    let states = states(View::on_own_clocks(std::slice::from_ref(host)), &mut sums, progress);
    let lost = Lost::from_losses(&states.pass.losses);
    Run {
        vms: states.vms.first().map_or_else(Vec::new, |vms| vms.iter().map(RunVm::new).collect()),
        span_ns: states.pass.spans_ns.first().copied().flatten().unwrap_or((0, 0)),
        groups: groups(&states, &sums),
        wholes: Vec::new(),
        nanoseconds: host.is_nanoseconds(),
        lost,
        calls: Vec::new(),
        stacks: Stacks::default(),
    }
}

/// Group of a vCPU state or of running threads: VM, role, state.
type Key = (Option<usize>, Part, &'static str);

fn groups(states: &States, sums: &CpuSeries) -> Vec<MeasuredGroup> {
    let mut groups: BTreeMap<Key, Series> = BTreeMap::new();
    let vms = states.vms.first().map_or(&[][..], Vec::as_slice);
    let homes = VmsByVcpu::new(vms);
    for ((vcpu, state), series) in &sums.vcpus {
        let vm = homes.place(vcpu.index as usize);
        groups.entry((vm, Part::Vcpu, state.name())).or_default().merge(series);
    }
    let processes = HashMap::new();
    let roles = Roles::new(states, 0, &processes, sums.threads.keys().copied());
    for (thread, series) in &sums.threads {
        let role = roles.role_of(*thread);
        groups.entry((role.vm, role.part, "runs")).or_default().merge(series);
    }
    let group = |((vm, part, state), series): (Key, Series)| MeasuredGroup {
        key: vec![
            vm.map_or(KeyValue::None, KeyValue::Vm),
            KeyValue::Text(part.name().to_owned()),
            KeyValue::Text(state.to_owned()),
        ],
        series,
        whole_index: None,
        unrecorded: 0,
    };
    groups.into_iter().map(group).collect()
}
