//! The part of recordings that a verb reads: a range of time, some VMs, some vCPUs.

use clap::Args;
use timeline::event_filter::CpuSet;

use crate::part::Part;
use crate::seconds::When;

/// A part of recordings.
#[derive(Clone, Debug, Args)]
pub(crate) struct PartArgs {
    #[command(flatten)]
    pub(crate) range: RangeArgs,
    #[command(flatten)]
    pub(crate) vms: VmArgs,
}

/// A range of time.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct RangeArgs {
    /// Read only what happened from this time on, in seconds as events prints them, or +SECONDS from
    /// the beginning
    #[arg(long, value_name = "TIME", help_heading = PART)]
    pub(crate) from: Option<When>,
    /// Read only what happened before this time
    #[arg(long, value_name = "TIME", alias = "until", help_heading = PART)]
    pub(crate) to: Option<When>,
}

/// VMs and their vCPUs.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct VmArgs {
    /// Read no exits of other VMs than these, separated by commas and named as in exits, nor calls of
    /// their vCPUs, nor other guests' recordings
    #[arg(long, value_name = "VM,…", value_delimiter = ',', help_heading = PART)]
    pub(crate) vm: Vec<String>,
    /// Read no exits and calls of other vCPUs than these, such as 0,2-3
    #[arg(long, value_name = "LIST", value_parser = CpuSet::parse, help_heading = PART)]
    pub(crate) vcpu: Option<CpuSet>,
}

/// What help calls these options.
pub(crate) const PART: &str = "Part of the recordings";

impl From<&PartArgs> for Part {
    fn from(args: &PartArgs) -> Self {
        Self::new(args.range.from, args.range.to, &args.vms)
    }
}
