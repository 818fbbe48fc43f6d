//! vCPUs that wait in the run queue while other threads run on their CPU.

use super::measured::{Measured, texts};
use super::thresholds::{MAX_NAMED, a_third, matters};
use super::{About, Advice, Amount, Fact, SavingOf};
use crate::cpu::TakenCpu;

/// The idle thread: the CPU was free and was still waking up for the vCPU.
const IDLE: u32 = 0;

/// Name prefixes of threads that work for the VM itself: QEMU's and vhost's. They compete with the vCPU for CPUs
/// on any host.
const OWN: [&str; 4] = ["qemu-", "vhost-", "worker", "IO "];

/// Waits for busy CPUs; the wake-up latency of an idle CPU is excluded.
pub(super) fn advise(measured: &Measured<'_>) -> Vec<Advice> {
    // The recorder's CPU time only exists while recording.
    let (recorders, takers): (Vec<&&TakenCpu>, Vec<&&TakenCpu>) = measured
        .takers
        .iter()
        .filter(|taker| taker.thread != IDLE)
        .partition(|taker| taker.is_recorder());
    let recorders_ns = recorders.iter().map(|taker| taker.ns).fold(0, u64::saturating_add);
    let others_ns = takers.iter().map(|taker| taker.ns).fold(0, u64::saturating_add);
    let strangers = takers.iter().filter(|taker| !may_be_own(taker));
    let strangers_ns = strangers.map(|taker| taker.ns).fold(0, u64::saturating_add);
    let waited_ns = measured.waited_ns();
    let taken_ns = others_ns.min(waited_ns.saturating_sub(recorders_ns));
    let wanted_ns = measured.running_ns.saturating_add(waited_ns);
    let are_waits_known = measured.recorded.off_cpu && measured.recorded.wake;
    if !are_waits_known || !matters(taken_ns, wanted_ns) {
        return Vec::new();
    }
    let mut evidence = vec![
        Fact::new("run-queue wait", Amount::Time(waited_ns)),
        Fact::new("CPU taken by other threads", Amount::Time(taken_ns)),
        Fact::new(
            "share of the time in which vCPUs could run",
            Amount::Share(taken_ns as f64 / wanted_ns.max(1) as f64),
        ),
    ];
    if recorders_ns > 0 {
        evidence.push(Fact::new(
            "CPU taken by the recording itself (not counted)",
            Amount::Time(recorders_ns),
        ));
    }
    evidence.extend(takers.iter().take(MAX_NAMED).map(|taker| {
        let name = taker.name.as_deref().unwrap_or("<...>");
        Fact::new(format!("CPU taken by {name}-{}", taker.thread), Amount::Time(taker.ns))
    }));
    vec![Advice {
        title: "Other threads use the CPUs that vCPUs wait for".to_owned(),
        why: "The scheduler ran other threads while a vCPU of this VM could have run. The guest sees this as steal time, and it \
              makes any exit during which it happens longer."
            .to_owned(),
        helps: texts(&[
            "Give vCPUs dedicated CPUs: taskset or cgroup cpusets (libvirt: vcpupin, emulatorpin), and move the other threads elsewhere",
            "Raise the VM's weight: cpu.weight of its cgroup (libvirt: cputune shares); check that no cpu.max throttles it",
            "Keep other work off these CPUs: isolcpus= or isolated cpuset partitions; irqbalance and housekeeping threads on other CPUs",
            "Move the VM's own VMM and vhost threads: pin iothreads and the emulator (emulatorpin) to CPUs without vCPUs",
        ]),
        evidence,
        saving_at_least_ns: a_third(strangers_ns.min(taken_ns)),
        saving_at_most_ns: taken_ns,
        saving_of: SavingOf::Waiting,
        ..measured.about(About::RunQueue)
    }]
}

/// Whether a thread may belong to the VM: the recording has names of threads, but not their processes.
fn may_be_own(taker: &TakenCpu) -> bool {
    taker.name.as_deref().is_none_or(|name| OWN.iter().any(|prefix| name.starts_with(prefix)))
}
