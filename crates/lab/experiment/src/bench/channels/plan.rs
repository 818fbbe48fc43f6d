//! What is to be measured, and for how long.

use std::time::Duration;

use crate::bench::channels::Variant;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct ChannelsPlan {
    /// The variants, in the order of the report.
    pub variants: Vec<Variant>,
    /// Pairs of runs of each variant.
    pub rounds: u32,
    /// How long a run lasts.
    pub time: Duration,
    /// Scheduler events a second that the load makes.
    pub rate: u64,
    /// What the order of runs is drawn from.
    pub seed: u64,
    /// Whether to search for the highest rate without a loss.
    pub with_search: bool,
    /// Size of each processor's buffer in the guest's kernel.
    pub buffer_kib: u32,
    /// Whether the lab's time is the number of instructions that it executes, so that what else this
    /// system does makes no difference.
    pub counts_instructions: bool,
}
