//! What the agent may ask of its kernel while it serves hosts.

use os::confine::{CapabilitySet, Confined, Unconfined, apart};
use tracefs::Tracefs;

use crate::error::Result;

/// What its unit leaves it, too: the TSC's conversion, the kernel's symbols, and ports below 1024.
const NEEDED: CapabilitySet =
    CapabilitySet::SYS_ADMIN.union(CapabilitySet::SYSLOG).union(CapabilitySet::NET_BIND_SERVICE);

/// What sampling takes, where a host asks for it: the events themselves, addresses of the kernel's symbols,
/// what processes have mapped that run already, and the kernel's own code.
const SAMPLES: CapabilitySet = CapabilitySet::SYS_ADMIN
    .union(CapabilitySet::SYSLOG)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::SYS_RAWIO);

/// Serves hosts in a thread that is confined, as are all that it starts: what hosts send can't have it
/// start a program, look into another process, mount, or load anything into the kernel.
/// `serve` is given a thread that begins to sample for it.
///
/// # Errors
/// Those of `serve`, and when there is no tracefs.
pub fn confined(serve: impl FnOnce(&Unconfined) -> Result<()> + Send) -> Result<()> {
    // It stays mounted meanwhile, and what dead ones have mounted goes before: a confined thread can't mount.
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
