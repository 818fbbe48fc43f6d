//! Limits the agent's privileges while it serves hosts.

use os::confine::{CapabilitySet, Confined, Unconfined, apart};
use tracefs::Tracefs;

use crate::error::Result;

/// Capabilities, also in the agent's systemd unit: for the TSC's conversion, the kernel's symbols, and ports below
/// 1024.
const NEEDED: CapabilitySet =
    CapabilitySet::SYS_ADMIN.union(CapabilitySet::SYSLOG).union(CapabilitySet::NET_BIND_SERVICE);

/// Capabilities for sampling: perf events, addresses of the kernel's symbols, mappings of running processes, and the
/// kernel's code.
const SAMPLES: CapabilitySet = CapabilitySet::SYS_ADMIN
    .union(CapabilitySet::SYSLOG)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::SYS_RAWIO);

/// Serves hosts in a confined thread, and so are all threads that it starts: a host's message can't make it start a
/// program, read another process, mount, or load code into the kernel. `serve` gets a less confined thread that starts
/// sampling.
///
/// # Errors
/// Those of `serve`, and when there is no tracefs.
pub fn confined(serve: impl FnOnce(&Unconfined) -> Result<()> + Send) -> Result<()> {
    // Mounts tracefs until the end, and first removes the mounts of dead agents: a confined thread can't mount.
    let tracefs = Tracefs::find()?;
    tracefs.remove_stale();
    let starter = Unconfined::with(SAMPLES, "starts")?;
    apart(Confined::TracefsWorker(NEEDED), "serves", || {
        if let Some(why) = os::confine::failure() {
            printable::print_message(format_args!(
                "hyperscope-agent: cannot drop privileges: {why}"
            ));
        }
        Ok(serve(&starter))
    })?
}
