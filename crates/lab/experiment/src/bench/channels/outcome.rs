//! What came of a measurement.

use serde::Serialize;

use crate::bench::channels::Variant;
use crate::bench::surroundings::Surroundings;
use stats::Estimate;

/// What came of a measurement of all channels.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// `hyperscope.bench-channels/1`.
    pub schema: &'static str,
    /// Under which conditions.
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
    /// How long a run lasts.
    pub seconds: f64,
    /// Scheduler events a second asked of the load.
    pub rate: u64,
    /// What the order of runs was drawn from.
    pub seed: u64,
    /// Processors of the host inside the lab.
    pub host_cpus: u32,
    /// Processors of the guest; all work for the score.
    pub guest_cpus: u32,
    /// Size of each processor's buffer in the guest's kernel.
    pub buffer_kib: u32,
    /// Runs that failed because a machine did not answer, and were made again.
    pub repeated_runs: u32,
}

/// What a variant costs.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub variant: Variant,
    /// Score with the variant over the score without, of each pair; a score is the work done a second
    /// of CPU time that executing host and guest took, or each 10^9 instructions of both.
    pub score_ratio: Option<Estimate>,
    /// (1 - ratio) * 100.
    pub overhead_percent: Option<Estimate>,
    /// The same with scores a second of CPU time of the guest's vCPU threads: what the guest would see
    /// if the host did its own part elsewhere.
    pub guest_overhead_percent: Option<Estimate>,
    /// Instructions more, of host and guest together, for each event that was recorded; none where
    /// they are not counted.
    pub instructions_per_event: Option<Estimate>,
    /// The same instructions in the guest's vCPU threads alone.
    pub guest_instructions_per_event: Option<Estimate>,
    /// Overhead with scores a second of the clock on the wall, which the load of this system changes.
    pub wall_overhead_percent: Option<Estimate>,
    /// Events that were recorded in all rounds.
    pub events: u64,
    /// The same a second.
    pub events_per_s: f64,
    /// Events that the guest's kernel dropped; none without a reader.
    pub events_lost: Option<u64>,
    /// Switches of the load that did not arrive, in all rounds; none where nothing leaves the guest.
    pub load_missing: Option<u64>,
    /// Bytes of pages that arrived in all rounds.
    pub bytes: u64,
    /// CPU time of the programs in the guest that move pages.
    pub agent_cpu_ms_per_mb: Option<f64>,
    /// CPU time of the host's threads other than vCPUs, beyond that of the paired runs.
    pub host_cpu_ms_per_mb: Option<Estimate>,
    /// Exits of all kinds beyond those of the paired runs.
    pub exits_per_mb: Option<Estimate>,
    /// Exits at the channel's device.
    pub attributed: Option<Attributed>,
    /// Interrupts of the channel's device in the guest.
    pub interrupts_per_mb: Option<f64>,
    /// How often the threads in the guest that move pages were woken up.
    pub agent_wakeups_per_s: Option<f64>,
    /// The highest rate without a loss.
    pub sustained: Option<Sustained>,
}

/// Exits at the device of a channel, counted in a recording of the host.
#[derive(Clone, Debug, Serialize)]
pub struct Attributed {
    /// The device's PCI address in the guest.
    pub device: String,
    /// Exits at the addresses of its memory and registers: page faults, accesses, kicks.
    pub memory_exits: u64,
    pub port_exits: u64,
    /// The same two together in a run without the variant: the lab's own commands use virtio-serial.
    pub exits_without: u64,
    /// Exits of all kinds in that recording.
    pub all_exits: u64,
    /// Bytes of pages that arrived meanwhile.
    pub bytes: u64,
    /// Exits at the device beyond those of the run without the variant.
    pub exits_per_mb: Option<f64>,
}

/// The highest rate without a loss.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sustained {
    /// Events a second that all arrived; none when some were lost at the lowest rate tried.
    pub events_per_s: Option<f64>,
    /// The lowest rate at which some were lost; none when the load could make no more.
    pub lost_at: Option<f64>,
}
