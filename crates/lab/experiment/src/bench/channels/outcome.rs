//! The results of a measurement of channels.

use serde::Serialize;

use crate::bench::channels::Variant;
use crate::bench::surroundings::Surroundings;
use stats::Estimate;

/// The results of a measurement of all channels.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// `hyperscope.bench-channels/1`.
    pub schema: &'static str,
    pub conditions: Conditions,
    pub variants: Vec<Row>,
}

/// Conditions of a measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Conditions {
    #[serde(flatten)]
    pub surroundings: Surroundings,
    /// Pairs of runs of each variant.
    pub rounds: u32,
    /// Length of a run.
    pub seconds: f64,
    /// Requested scheduler events per second of the load.
    pub rate: u64,
    /// Seed of the order of runs.
    pub seed: u64,
    /// CPUs of the host inside the lab.
    pub host_cpus: u32,
    /// CPUs of the guest; all run the score.
    pub guest_cpus: u32,
    /// Size of each CPU's buffer in the guest's kernel.
    pub buffer_kib: u32,
    /// Number of runs that were repeated because a machine did not answer.
    pub repeated_runs: u32,
}

/// The cost of a variant.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub variant: Variant,
    /// Ratio of the scores with and without the variant, of each pair. A score is work per second of CPU time of host
    /// and guest, or per 10^9 instructions of both.
    pub score_ratio: Option<Estimate>,
    /// (1 - ratio) * 100.
    pub overhead_percent: Option<Estimate>,
    /// The same for work per second of CPU time of the guest's vCPU threads: the guest's overhead if the host did its
    /// part elsewhere.
    pub guest_overhead_percent: Option<Estimate>,
    /// Additional instructions of host and guest per recorded event; `None` if instructions are not counted.
    pub instructions_per_event: Option<Estimate>,
    /// Additional instructions of the guest's vCPU threads only.
    pub guest_instructions_per_event: Option<Estimate>,
    /// Overhead of work per second of wall-clock time, which the load of this system affects.
    pub wall_overhead_percent: Option<Estimate>,
    /// Events recorded in all rounds.
    pub events: u64,
    /// Events recorded per second.
    pub events_per_s: f64,
    /// Events that the guest's kernel dropped; `None` without a reader.
    pub events_lost: Option<u64>,
    /// Switches of the load that did not arrive, in all rounds; `None` if nothing leaves the guest.
    pub load_missing: Option<u64>,
    /// Bytes of pages that arrived in all rounds.
    pub bytes: u64,
    /// CPU time of the programs in the guest that move pages.
    pub agent_cpu_ms_per_mb: Option<f64>,
    /// CPU time of the host's threads other than vCPUs, minus that of the paired runs.
    pub host_cpu_ms_per_mb: Option<Estimate>,
    /// Exits of all kinds, minus those of the paired runs.
    pub exits_per_mb: Option<Estimate>,
    /// Exits of the channel's device.
    pub attributed: Option<Attributed>,
    /// Interrupts of the channel's device in the guest.
    pub interrupts_per_mb: Option<f64>,
    /// Wake-ups of the threads in the guest that move pages.
    pub agent_wakeups_per_s: Option<f64>,
    /// The highest rate without a loss.
    pub sustained: Option<Sustained>,
}

/// Exits of a channel's device, counted in a recording of the host.
#[derive(Clone, Debug, Serialize)]
pub struct Attributed {
    /// The device's PCI address in the guest.
    pub device: String,
    /// Exits at the addresses of its memory and registers: page faults, accesses, kicks.
    pub memory_exits: u64,
    pub port_exits: u64,
    /// The sum of both in a run without the variant: the lab's own commands use virtio-serial.
    pub exits_without: u64,
    /// Exits of all kinds in that recording.
    pub all_exits: u64,
    /// Bytes of pages that arrived meanwhile.
    pub bytes: u64,
    /// Exits at the device, minus those of the run without the variant.
    pub exits_per_mb: Option<f64>,
}

/// The highest rate without a loss.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sustained {
    /// Events per second that all arrived; `None` if some were lost at the lowest tested rate.
    pub events_per_s: Option<f64>,
    /// The lowest rate with a loss; `None` if the load could not produce more.
    pub lost_at: Option<f64>,
}
