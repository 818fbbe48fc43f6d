//! Which VMs a recording shows.

use sources::Recording;
use timeline::{ExitSink, ExitSpan, Vm, each_exit, group_vms};

/// Exits do not matter here: vCPUs are found on the way.
pub(crate) struct Ignore;

impl ExitSink for Ignore {
    fn exit(&mut self, _: usize, _: &ExitSpan) {}
}

/// The VMs of `recording`; `tick` hears of the bytes done.
#[must_use]
pub fn find_vms(recording: &Recording, tick: &(dyn Fn(u64) + Sync)) -> Vec<Vm> {
    let pass = each_exit(recording, false, Ignore, tick);
    group_vms(recording, &pass.vcpus)
}
