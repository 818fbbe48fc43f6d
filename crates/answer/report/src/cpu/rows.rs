//! Rows of the CPU report for scripts.

use analyses::{GuestFit, HostCpuUse, Part, TaskUse, ThreadUse, VcpuState, VcpuUse, VmUse};
use serde_json::Value;

use super::known::Known;
use super::{CpuReport, optional};
use crate::json::Object;

/// The parts that threads play for VMs.
pub(super) const PARTS: [Part; 4] = [Part::Vcpu, Part::Vmm, Part::Vhost, Part::Kvm];

pub(super) fn guest_json(report: &CpuReport, guest: &(usize, usize, String)) -> Value {
    let (recording, host, name) = guest;
    let placed = report.cpu.placed.iter().find(|(at, _)| at == recording);
    let placed = placed.map_or_else(GuestFit::default, |(_, placed)| *placed);
    Object::default()
        .set("source", report.source(*recording))
        .set("host", report.source(*host))
        .set("vm", name.as_str())
        .set("changes", placed.changes)
        .set("moved", placed.moved)
        .time("most_moved", report.cpu.nanoseconds, Some(placed.most_moved_ns))
        .set("outside", placed.outside)
        .done()
}

pub(super) fn known_of_vm(report: &CpuReport, vm: &VmUse) -> Known {
    let host = report.cpu.recorded.get(vm.recording).copied();
    Known { host, guest: vm.guest_known_ns.map(|_| vm.guest_events) }
}

pub(super) fn known_of_vcpu(report: &CpuReport, vcpu: &VcpuUse) -> Known {
    let host = report.cpu.recorded.get(vcpu.recording).copied();
    Known { host, guest: vcpu.guest_known_ns.map(|_| vcpu.guest_events) }
}

/// A guest's thread is known by its guest; by the host as well if that was recorded.
pub(super) fn known_of_task(report: &CpuReport, task: &TaskUse) -> Known {
    let pair = report.cpu.guests.iter().find(|(guest, ..)| *guest == task.recording);
    let placed = report.cpu.placed.iter().any(|(guest, _)| *guest == task.recording);
    let host = pair.filter(|_| placed).and_then(|(_, host, _)| report.cpu.recorded.get(*host));
    Known { host: host.copied(), guest: Some(task.guest_events) }
}

pub(super) fn vm_json(report: &CpuReport, vm: &VmUse) -> Value {
    let ns = report.cpu.nanoseconds;
    let known = known_of_vm(report, vm);
    let mut row = Object::default();
    row.set("source", report.source(vm.recording))
        .set("vm", vm.name.as_str())
        .set("vcpus", vm.vcpus)
        .time("time", ns, Some(vm.times.total()))
        .time("guest_recorded", ns, vm.guest_known_ns)
        .time("on_cpu", ns, Some(vm.times.on_cpu()))
        .time("busy", ns, Some(vm.times.busy()))
        .set("states", known.json(&vm.times, ns));
    for part in PARTS {
        let part_ns = vm.by_part.as_ref().map(|parts| parts.get(&part).copied().unwrap_or(0));
        row.time(&format!("{}_threads", part.name()), ns, part_ns);
    }
    row.done()
}

pub(super) fn vcpu_json(report: &CpuReport, vcpu: &VcpuUse) -> Value {
    let ns = report.cpu.nanoseconds;
    let known = known_of_vcpu(report, vcpu);
    let nested = known.host.is_some_and(|host| host.nested);
    Object::default()
        .set("source", report.source(vcpu.recording))
        .set("vm", optional(report.vm_name(vcpu.recording, vcpu.vm)))
        .set("vcpu", vcpu.vcpu)
        .set("tid", vcpu.thread)
        .time("time", ns, Some(vcpu.times.total()))
        .time("guest_recorded", ns, vcpu.guest_known_ns)
        .time("on_cpu", ns, Some(vcpu.times.on_cpu()))
        .time("busy", ns, Some(vcpu.times.busy()))
        .time("level2", ns, nested.then_some(vcpu.level_two_ns))
        .set("states", known.json(&vcpu.times, ns))
        .done()
}

pub(super) fn thread_json(report: &CpuReport, thread: &ThreadUse) -> Value {
    let ns = report.cpu.nanoseconds;
    let recorded = report.cpu.recorded.get(thread.recording);
    let polls = thread.part == Part::Vcpu && recorded.is_some_and(|one| one.halt_poll);
    Object::default()
        .set("source", report.source(thread.recording))
        .set("vm", optional(thread.vm.and_then(|vm| report.vm_name(thread.recording, vm))))
        .set("part", thread.part.name())
        .set("tid", thread.thread)
        .set("name", optional(thread.name.as_deref()))
        .time("cpu", ns, Some(thread.cpu_ns))
        .time("guest_idle", ns, thread.guest_idle_ns)
        .time("halt_poll", ns, polls.then_some(thread.halt_poll_ns))
        .time("busy", ns, Some(thread.busy_ns()))
        .done()
}

pub(super) fn task_json(report: &CpuReport, task: &TaskUse) -> Value {
    let ns = report.cpu.nanoseconds;
    let known = known_of_task(report, task);
    let by_host = |value: u64| known.host.map(|_| value);
    let off_cpu = known.knows(VcpuState::Preempted);
    Object::default()
        .set("source", report.source(task.recording))
        .set("vm", optional(report.vm_of_guest(task.recording)))
        .set("tid", task.task)
        .set("name", optional(task.name.as_deref()))
        .time("time", ns, Some(task.times.total()))
        .time("ran", ns, by_host(task.times.guest()))
        .time("exits", ns, by_host(task.times.exits()))
        .time("stolen", ns, off_cpu.then(|| task.times.stolen()))
        .set("states", known.json(&task.times, ns))
        .done()
}

pub(super) fn cpu_json(report: &CpuReport, cpu: &HostCpuUse) -> Value {
    let ns = report.cpu.nanoseconds;
    let mut row = Object::default();
    row.set("source", report.source(cpu.recording)).set("cpu", cpu.cpu);
    for part in PARTS.into_iter().chain([Part::Other, Part::Idle]) {
        row.time(part.name(), ns, Some(cpu.by_part.get(&part).copied().unwrap_or(0)));
    }
    row.time("unknown", ns, Some(cpu.unknown_ns)).done()
}
