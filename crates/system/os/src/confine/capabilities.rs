//! Capabilities that a thread keeps.

use std::io;

pub use rustix::thread::CapabilitySet;
use rustix::thread::{
    CapabilitySets, capabilities, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

/// Has the calling thread, and those that it starts from now on, keep no other capabilities than
/// these, of those that it has. Programs that it runs get no others either, and none by set-user-id.
///
/// The bounding set stays as it is where the thread lacks `CAP_SETPCAP`: nothing can be gained by it
/// then, as programs gain no privileges any more.
///
/// # Errors
/// When the kernel refuses, as a filter of a container's may.
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
    // What is not permitted is in no ambient set; kernels before 4.3 have none.
    let _ = clear_ambient_capability_set();
    Ok(set_no_new_privs(true)?)
}

fn keep_in_bounding_set(to_keep: CapabilitySet) -> io::Result<()> {
    for bit in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        // The kernel knows no capability with this number, nor a later one.
        let Ok(is_there) = capability_is_in_bounding_set(capability) else { break };
        if is_there && !to_keep.contains(capability) {
            remove_capability_from_bounding_set(capability)?;
        }
    }
    Ok(())
}
