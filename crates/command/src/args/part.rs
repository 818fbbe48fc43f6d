//! The part of recordings that a verb reads: a range of time, some VMs, some vCPUs.

use clap::Args;
use session::{Selection, VmName, VmNames, When};
use timeline::event_filter::CpuSet;

/// A part of recordings.
#[derive(Clone, Debug, Args)]
pub struct PartArgs {
    #[command(flatten)]
    pub range: RangeArgs,
    #[command(flatten)]
    pub vms: VmArgs,
}

/// A range of time.
#[derive(Clone, Copy, Debug, Args)]
pub struct RangeArgs {
    /// Read only events from this time on: in seconds as printed by events, or with a unit (500ms,
    /// 2m); +TIME counts from the beginning
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, help_heading = PART)]
    pub from: Option<When>,
    /// Read only events before this time
    #[arg(long, value_name = "TIME", alias = "until", allow_negative_numbers = true, help_heading = PART)]
    pub to: Option<When>,
}

/// VMs and their vCPUs.
#[derive(Clone, Debug, Default, Args)]
pub struct VmArgs {
    /// Read only exits, calls and guest recordings of these VMs, separated by commas and named as
    /// in exits
    #[arg(long, value_name = "VM,…", value_delimiter = ',', help_heading = PART)]
    pub vm: Vec<String>,
    /// Read only exits and calls of these vCPUs, such as 0,2-3
    #[arg(long, value_name = "LIST", value_parser = CpuSet::parse, help_heading = PART)]
    pub vcpu: Option<CpuSet>,
    #[command(flatten)]
    pub names: NameArgs,
}

/// What VMs are called.
#[derive(Clone, Debug, Default, Args)]
pub struct NameArgs {
    /// Rename a VM of the recording, as in vm-119=web; may be repeated
    #[arg(long = "name", value_name = "VM=NAME", help_heading = PART)]
    pub names: Vec<VmName>,
}

impl NameArgs {
    /// VM names for recordings that are read as one session; each must exist in one of them.
    pub fn of_one_session(&self) -> VmNames {
        VmNames::of_one_session(&self.names)
    }

    /// Names for sessions that are compared, or added one by one, and need not have the same VMs.
    pub fn of_each_session(&self) -> VmNames {
        VmNames::of_each_session(&self.names)
    }
}

/// The heading of these options in help.
pub const PART: &str = "Part of the recordings";

impl From<&PartArgs> for Selection {
    fn from(args: &PartArgs) -> Self {
        args.vms.selection(args.range.from, args.range.to)
    }
}

impl VmArgs {
    /// These VMs and vCPUs in a range of time.
    pub fn selection(&self, from: Option<When>, to: Option<When>) -> Selection {
        Selection::of_times(from, to).of_vms(self.vm.clone(), self.vcpu.clone())
    }
}
