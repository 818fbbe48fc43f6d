//! CPU time of the recording itself, and of threads that started during it.

use std::collections::BTreeMap;

use analyses::cpu::{CpuUse, Spread, TakenCpu};
use analyses::states::{Part, VcpuState};

use crate::units::{share, time};

/// Max threads that are listed with their start.
const MAX_BEGINNINGS: usize = 3;
/// Min share of the vCPUs' waits that is worth a line, in percent.
const MIN_PERCENT: u64 = 5;
/// The part of a recording that counts as its beginning, in tenths.
const BEGINNING_TENTHS: u64 = 1;

/// Notes in sentences.
pub(super) fn notes(cpu: &CpuUse) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(recording_itself(cpu));
    notes.extend(beginnings(cpu));
    notes
}

/// CPU time of the recording, and the vCPUs' waits for it.
fn recording_itself(cpu: &CpuUse) -> Option<String> {
    let recorders = || cpu.threads.iter().filter(|thread| thread.part == Part::Recorder);
    let used_ns = recorders().map(|thread| thread.cpu_ns).fold(0, u64::saturating_add);
    if used_ns == 0 {
        return None;
    }
    let mut names: Vec<&str> = recorders().filter_map(|thread| thread.name.as_deref()).collect();
    names.sort_unstable();
    names.dedup();
    let (names, used) = (names.join(", "), time(used_ns, cpu.nanoseconds));
    let had_ns = sum(cpu.takers.iter().filter(|taker| taker.is_recorder()));
    let waited_ns = waited_ns(cpu);
    let waits = match had_ns {
        0 => String::new(),
        _ => format!(
            "; it caused {} of the vCPUs' run-queue wait of {} ({})",
            time(had_ns, cpu.nanoseconds),
            time(waited_ns, cpu.nanoseconds),
            share(had_ns, waited_ns)
        ),
    };
    Some(format!("the recording itself ({names}) used {used} of the hosts' CPU time{waits}"))
}

/// Threads that took CPUs from waiting vCPUs from some time on; threads of one name count together.
fn beginnings(cpu: &CpuUse) -> Vec<String> {
    let mut by_name: BTreeMap<(&str, &str), Taken> = BTreeMap::new();
    for taker in cpu.takers.iter().filter(|taker| taker.thread != 0) {
        let name = taker.name.as_deref().unwrap_or("<...>");
        let sum = by_name.entry((&taker.vm, name)).or_default();
        sum.ns = sum.ns.saturating_add(taker.ns);
        sum.vm_begins_ns = taker.vm_begins_ns;
        sum.spread.merge(&taker.spread);
    }
    let waited_ns = waited_ns(cpu);
    let is_much = |ns: u64| ns.saturating_mul(100) >= waited_ns.saturating_mul(MIN_PERCENT);
    let mut late: Vec<(u64, u64, &str, &str)> = by_name
        .iter()
        .filter(|(_, taker)| is_much(taker.ns) && taker.is_late(cpu.span_ns))
        .map(|((vm, name), taker)| (taker.ns, taker.spread.begins_ns(), *vm, *name))
        .collect();
    late.sort_by_key(|(ns, ..)| std::cmp::Reverse(*ns));
    let sentence = |(ns, begins_ns, vm, name): (u64, u64, &str, &str)| {
        format!(
            "from {} on, {name} ran for {} while vCPUs of {vm} waited for its CPU",
            time(begins_ns, cpu.nanoseconds),
            time(ns, cpu.nanoseconds)
        )
    };
    late.into_iter().take(MAX_BEGINNINGS).map(sentence).collect()
}

/// Threads of a name, and the waits of a VM for them.
#[derive(Default)]
struct Taken {
    ns: u64,
    vm_begins_ns: u64,
    spread: Spread,
}

impl Taken {
    /// Whether it started after the VM's beginning in the recording: before that, no vCPU can wait.
    fn is_late(&self, span_ns: u64) -> bool {
        let after_ns = self.spread.begins_ns().saturating_sub(self.vm_begins_ns);
        let vm_span_ns = span_ns.saturating_sub(self.vm_begins_ns);
        after_ns / BEGINNING_TENTHS > vm_span_ns / 10
    }
}

fn waited_ns(cpu: &CpuUse) -> u64 {
    let waits = [VcpuState::Waiting, VcpuState::Preempted];
    cpu.vms.iter().map(|vm| vm.times.of_all(&waits)).fold(0, u64::saturating_add)
}

fn sum<'t>(takers: impl Iterator<Item = &'t TakenCpu>) -> u64 {
    takers.map(|taker| taker.ns).fold(0, u64::saturating_add)
}
