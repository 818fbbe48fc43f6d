//! The plan of a measurement of channels.

use std::time::Duration;

use crate::bench::channels::Variant;

/// The plan.
#[derive(Clone, Debug)]
pub struct ChannelsPlan {
    /// The variants, in the order of the report.
    pub variants: Vec<Variant>,
    /// Pairs of runs of each variant.
    pub rounds: u32,
    /// Length of a run.
    pub time: Duration,
    /// Scheduler events per second of the load.
    pub rate: u64,
    /// Seed of the order of runs.
    pub seed: u64,
    /// Whether to search for the highest rate without a loss.
    pub with_search: bool,
    /// Size of each CPU's buffer in the guest's kernel.
    pub buffer_kib: u32,
    /// Whether the lab's time counts instructions, so that other work of this system has no effect.
    pub counts_instructions: bool,
}
