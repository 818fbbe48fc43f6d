//! The result of the CPU report in one sentence: which vCPU used most, and which waited longest for a CPU.

use analyses::cpu::{TakenCpu, VcpuUse};
use analyses::states::VcpuState;
use printable::line;

use super::row::{InStates, Row};
use super::{CpuReport, named, states};
use crate::greatest::greatest;
use crate::units::{plural, time};

pub(super) fn headline(report: &CpuReport) -> String {
    let cpu = &report.cpu;
    let sources = line(&report.sources.join(", ")).into_owned();
    if report.is_empty() {
        return format!("{sources}: no events show which threads used the CPUs.");
    }
    let result = match cpu.vcpus.as_slice() {
        [] => without_vcpus(report),
        [vcpu] => of_vcpu(report, vcpu),
        vcpus => of_vcpus(report, vcpus),
    };
    format!("{sources}: {result}.")
}

fn of_vcpu(report: &CpuReport, vcpu: &VcpuUse) -> String {
    let cpu = &report.cpu;
    let ns = |time_ns| time(time_ns, cpu.nanoseconds);
    let mut out = format!(
        "in {}, {} used {} of CPU time",
        ns(cpu.span_ns),
        name(report, vcpu),
        ns(vcpu.times.busy()),
    );
    match waited_ns(report, vcpu) {
        None => out += "; its run-queue wait was not recorded",
        Some(waited_ns) => {
            out += &format!(" and waited {} in the run queue", ns(waited_ns));
            if let Some(taker) = greatest_taker(report) {
                out += &format!(", {} of it for {}", ns(taker.ns), taker_name(taker));
            }
        }
    }
    out
}

fn of_vcpus(report: &CpuReport, vcpus: &[VcpuUse]) -> String {
    let cpu = &report.cpu;
    let ns = |time_ns| time(time_ns, cpu.nanoseconds);
    let mut out = format!("in {}, of {}, ", ns(cpu.span_ns), plural(vcpus.len() as u64, "vCPU"));
    let busiest = greatest(vcpus.iter().map(|vcpu| (vcpu.times.busy(), vcpu)));
    if let Some((busy_ns, vcpu)) = busiest {
        out += &format!("{} used most CPU time ({})", name(report, vcpu), ns(busy_ns));
    }
    let waiters = vcpus.iter().filter_map(|vcpu| Some((waited_ns(report, vcpu)?, vcpu)));
    match greatest(waiters) {
        None => out += "; run-queue wait was not recorded",
        Some((0, _)) => out += ", and none waited in the run queue",
        Some((waited_ns, vcpu)) => {
            let is_same = busiest.is_some_and(|(_, busiest)| std::ptr::eq(busiest, vcpu));
            let who =
                if is_same { " and".to_owned() } else { format!(", and {}", name(report, vcpu)) };
            out += &format!("{who} waited longest in the run queue ({})", ns(waited_ns));
            if let Some(taker) = greatest_taker(report) {
                let (thread, vm) = (taker_name(taker), line(&taker.vm).into_owned());
                let ran = ns(taker.ns);
                out += &format!("; {thread} ran longest meanwhile ({ran} while {vm} waited)");
            }
        }
    }
    out
}

/// What threads did where no vCPU was recorded.
fn without_vcpus(report: &CpuReport) -> String {
    let cpu = &report.cpu;
    let ns = |time_ns| time(time_ns, cpu.nanoseconds);
    let span = ns(cpu.span_ns);
    if let Some(task) = cpu.tasks.iter().find(|task| task.task != 0) {
        let thread = line(&named(task.name.as_deref(), task.task)).into_owned();
        let given = ns(task.times.total());
        return format!(
            "in {span}, the guest scheduled {thread} longest ({given}); there are no vCPUs"
        );
    }
    match cpu.threads.iter().find(|thread| thread.thread != 0) {
        Some(thread) => {
            let name = line(&named(thread.name.as_deref(), thread.thread)).into_owned();
            let used = ns(thread.cpu_ns);
            format!("in {span}, {name} used most CPU time ({used}); there are no vCPUs")
        }
        None => format!("in {span}, only idle threads ran; there are no vCPUs"),
    }
}

fn name(report: &CpuReport, vcpu: &VcpuUse) -> String {
    let vm = report.vm_name(vcpu.recording, vcpu.vm).unwrap_or("an unknown VM");
    format!("vCPU {} of {}", vcpu.vcpu, line(vm))
}

/// For how long it could have run and had no CPU; `None`: not recorded.
fn waited_ns(report: &CpuReport, vcpu: &VcpuUse) -> Option<u64> {
    let row = Row { report, subject: vcpu };
    states::sum(&row, &[VcpuState::Waiting, VcpuState::Preempted])
        .filter(|_| VcpuUse::known(&row).knows(VcpuState::Preempted))
}

/// The thread that ran longest while vCPUs of a VM waited; idle CPUs are no thread.
fn greatest_taker(report: &CpuReport) -> Option<&TakenCpu> {
    let takers = report.cpu.takers.iter().filter(|taker| taker.thread != 0 && taker.ns > 0);
    greatest(takers.map(|taker| (taker.ns, taker))).map(|(_, taker)| taker)
}

fn taker_name(taker: &TakenCpu) -> String {
    let name = line(&named(taker.name.as_deref(), taker.thread)).into_owned();
    if taker.is_recorder() { format!("{name} (the recording)") } else { name }
}
