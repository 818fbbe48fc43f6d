//! Which VMs a recording shows.

use sources::Recording;
use timeline::{Vm, find_vcpus, group_vms};

/// The VMs of `recording`; `tick` hears of the bytes done.
#[must_use]
pub fn find_vms(recording: &Recording, tick: &(dyn Fn(u64) + Sync)) -> Vec<Vm> {
    group_vms(recording, &find_vcpus(recording, tick))
}
