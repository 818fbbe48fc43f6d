//! Runs the workload once with a variant, and measures its usage.

use std::path::Path;
use std::time::Duration;

use analyses::device_exits::{DeviceExits, device_exits};
use labguest::wire::{ThreadUsage, Usage};

use crate::bench::channels::Variant;
use crate::bench::channels::arrived::Arrived;
use crate::bench::channels::recording::Recording;
use crate::bench::device::Device;
use crate::bench::error::{BenchError, Result};
use crate::bench::machines::{BootedMachines, Boundary, FOLDER, Running};

/// Options of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunOptions {
    pub(crate) time: Duration,
    /// Switches per second of the load.
    pub(crate) switches: u64,
    /// Whether all CPUs also run the score.
    pub(crate) with_score: bool,
    /// Whether the host also records its exits, to attribute them.
    pub(crate) with_exits: bool,
    pub(crate) buffer_kib: u32,
    /// Whether the machines' time counts instructions.
    pub(crate) counts_instructions: bool,
}

/// Results of a run.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// Length of the workload.
    pub(crate) seconds: f64,
    /// Passes per second of CPU time of guest and host; if instructions are counted, passes per 10^9 of them, which is
    /// a second of the machines' time.
    pub(crate) score: f64,
    /// Passes per second of CPU time of the host's vCPU threads.
    pub(crate) guest_score: f64,
    pub(crate) passes: u64,
    /// Whether scores are per 10^9 instructions.
    pub(crate) counts_instructions: bool,
    /// Passes per second of wall-clock time.
    pub(crate) wall_score: f64,
    /// Switches away from the load's threads.
    pub(crate) switches: u64,
    /// Requested number of these switches.
    pub(crate) switches_asked: u64,
    pub(crate) arrived: Arrived,
    /// CPU time of the programs in the guest that move pages.
    pub(crate) agent_cpu_ns: u64,
    /// Wake-ups of their threads.
    pub(crate) agent_wakeups: u64,
    /// CPU time per second of the host's threads other than vCPUs.
    pub(crate) host_cpu_ns_per_s: f64,
    /// Exits of the guest per second, from KVM's counter.
    pub(crate) exits_per_s: f64,
    /// Interrupts of the guest by name.
    pub(crate) interrupts: Vec<(String, u64)>,
    /// Exits by device of the guest, from the host's recording.
    pub(crate) exits_by_device: Vec<(String, DeviceExits)>,
}

impl Run {
    /// Switches of the load that did not arrive.
    pub(crate) fn missing(&self) -> u64 {
        let came = self.arrived.load_switches;
        came.map_or(0, |came| self.switches.saturating_sub(came))
    }

    /// Whether all switches of the load arrived.
    pub(crate) fn is_whole(&self) -> bool {
        self.arrived.is_whole() && self.missing() == 0
    }

    /// Whether the load reached the requested rate.
    pub(crate) fn kept_up(&self) -> bool {
        self.switches.saturating_mul(10) >= self.switches_asked.saturating_mul(9)
    }
}

/// Runs the workload once.
pub(crate) fn run(
    variant: Variant,
    options: RunOptions,
    machines: &mut BootedMachines,
    folder: &Path,
) -> Result<Run> {
    let recording = Recording::begin(variant, machines, options.buffer_kib)?;
    let exits = options.with_exits.then(|| begin_exits(machines)).transpose()?;
    let before = machines.host.usage()?;
    let executor = machines.executor();
    let mut executed = (0, 0);
    let measured = machines.guest.measure(
        options.time,
        options.switches,
        options.with_score,
        &mut |boundary| {
            let now = BootedMachines::executor_cpu_ns(executor);
            match boundary {
                Boundary::Begin => executed.0 = now,
                Boundary::End => executed.1 = now,
            }
        },
    )?;
    let after = machines.host.usage()?;
    let exits_by_device = exits.map(|exits| end_exits(exits, machines, folder)).transpose()?;
    let arrived = recording.end(machines, folder)?;
    let seconds = seconds(measured.duration_ns);
    let host_seconds = self::seconds(after.at_ns.saturating_sub(before.at_ns));
    let of_agent = |thread: &ThreadUsage| variant.agent() == Some(thread.process.as_str());
    let (agent_cpu_ns, agent_wakeups) = used(&measured.before, &measured.after, of_agent);
    let (host_cpu_ns, _) = used(&before, &after, |thread| !is_vcpu(thread));
    let (vcpu_ns, _) = used(&before, &after, is_vcpu);
    let passes = float(measured.iterations);
    let wall_score = passes / seconds;
    let executed_score = passes / self::seconds(executed.1.saturating_sub(executed.0));
    let exits = |usage: &Usage| usage.kvm.get("exits").copied().unwrap_or(0);
    Ok(Run {
        seconds,
        score: if options.counts_instructions { wall_score } else { executed_score },
        guest_score: passes / self::seconds(vcpu_ns),
        passes: measured.iterations,
        counts_instructions: options.counts_instructions,
        wall_score,
        switches: measured.switches,
        switches_asked: measured.switches_asked,
        arrived,
        agent_cpu_ns,
        agent_wakeups,
        host_cpu_ns_per_s: float(host_cpu_ns) / host_seconds,
        exits_per_s: float(exits(&after).saturating_sub(exits(&before))) / host_seconds,
        interrupts: interrupts(&measured.before, &measured.after),
        exits_by_device: exits_by_device.unwrap_or_default(),
    })
}

/// Whether the thread has QEMU's name of a vCPU thread.
fn is_vcpu(thread: &ThreadUsage) -> bool {
    thread.thread.starts_with("CPU ") && thread.thread.ends_with("/KVM")
}

/// CPU time and wake-ups of threads between two readings. A new thread starts at 0.
fn used(before: &Usage, after: &Usage, is_one: impl Fn(&ThreadUsage) -> bool) -> (u64, u64) {
    let ones = after.threads.iter().filter(|thread| is_one(thread));
    ones.map(|now| {
        let then = before.threads.iter().find(|then| then.tid == now.tid);
        let then = then.map_or((0, 0), |then| (then.cpu_ns, then.sleeps));
        (now.cpu_ns.saturating_sub(then.0), now.sleeps.saturating_sub(then.1))
    })
    .fold((0, 0), |sum, usage| (sum.0 + usage.0, sum.1 + usage.1))
}

fn interrupts(before: &Usage, after: &Usage) -> Vec<(String, u64)> {
    let then = |name: &str| before.interrupts.get(name).copied().unwrap_or(0);
    let differences = after.interrupts.iter();
    differences.map(|(name, now)| (name.clone(), now.saturating_sub(then(name)))).collect()
}

/// KVM events that are needed to attribute exits.
const EXITS: [&str; 6] =
    ["kvm_exit", "kvm_entry", "kvm_page_fault", "kvm_mmio", "kvm_fast_mmio", "kvm_pio"];

fn begin_exits(machines: &mut BootedMachines) -> Result<Running> {
    let events = EXITS.map(|event| format!("-e kvm:{event}")).join(" ");
    machines.host.start(
        &format!(
            "rm -rf {FOLDER}/exits; exec hyperscope record {events} --buffer 8192 -o {FOLDER}/exits"
        ),
        &format!("{FOLDER}/exits.log"),
        "hyperscope: recording",
    )
}

fn end_exits(
    recorder: Running,
    machines: &mut BootedMachines,
    folder: &Path,
) -> Result<Vec<(String, DeviceExits)>> {
    machines.host.end(recorder, "INT")?;
    let file = folder.join("host.dat");
    machines.host.get(&format!("{FOLDER}/exits/host.dat"), &file)?;
    let unreadable = |source| BenchError::Recording { variant: "the host", source };
    let host = sources::open(&file).map_err(unreadable)?;
    let addresses: Vec<_> = machines.devices.iter().map(Device::addresses).collect();
    let names = machines.devices.iter().map(|device| device.address.clone());
    Ok(names.zip(device_exits(&host, &addresses, &|_| {})).collect())
}

fn seconds(nanoseconds: u64) -> f64 {
    (float(nanoseconds) / 1e9).max(1e-9)
}

#[allow(clippy::cast_precision_loss, reason = "counts and times of seconds are exact in 53 bits")]
pub(crate) fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(tid: u32, process: &str, cpu_ns: u64, sleeps: u64) -> ThreadUsage {
        ThreadUsage { tid, process: process.into(), thread: process.into(), cpu_ns, sleeps }
    }

    #[test]
    fn what_new_and_old_threads_used_is_added_up() {
        let before = Usage { threads: vec![thread(1, "cat", 100, 5)], ..Usage::default() };
        let threads =
            vec![thread(1, "cat", 150, 7), thread(2, "cat", 30, 1), thread(3, "sh", 9, 9)];
        let after = Usage { threads, ..Usage::default() };
        assert_eq!(used(&before, &after, |usage| usage.process == "cat"), (80, 3));
    }

    #[test]
    fn vcpus_are_distinguished_from_qemus_other_threads() {
        let thread_named =
            |name: &str| ThreadUsage { thread: name.into(), ..ThreadUsage::default() };
        assert!(is_vcpu(&thread_named("CPU 0/KVM")));
        assert!(!is_vcpu(&thread_named("qemu-system-x86")) && !is_vcpu(&thread_named("vhost-98")));
    }
}
