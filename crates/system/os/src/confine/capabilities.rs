//! Drops a thread's capabilities.

use std::io;

pub use rustix::thread::CapabilitySet;
use rustix::thread::{
    CapabilitySets, capabilities, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

/// Restricts the capabilities of the calling thread, and of threads that it starts from now on, to
/// those in `to_keep`. Programs that it executes get no others, not even through set-user-id.
///
/// Without `CAP_SETPCAP` the bounding set does not change, which has no effect: programs can no
/// longer gain privileges.
///
/// # Errors
/// If the kernel refuses, for example because of a container's filter.
pub fn keep_only(to_keep: CapabilitySet) -> io::Result<()> {
    let now = capabilities(None)?;
    if now.effective.contains(CapabilitySet::SETPCAP) {
        keep_in_bounding_set(to_keep)?;
    }
    let to_keep = now.permitted & to_keep;
    let sets = CapabilitySets {
        effective: to_keep,
        permitted: to_keep,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets)?;
    // The ambient set cannot contain capabilities that are not permitted; kernels before 4.3 have
    // no such set.
    let _ = clear_ambient_capability_set();
    Ok(set_no_new_privs(true)?)
}

fn keep_in_bounding_set(to_keep: CapabilitySet) -> io::Result<()> {
    for bit in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        // The kernel knows neither this capability nor higher ones.
        let Ok(is_there) = capability_is_in_bounding_set(capability) else { break };
        if is_there && !to_keep.contains(capability) {
            remove_capability_from_bounding_set(capability)?;
        }
    }
    Ok(())
}
