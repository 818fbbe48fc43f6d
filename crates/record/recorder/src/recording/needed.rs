//! What a recording still needs of root's rights once it has begun.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use os::confine::CapabilitySet;
use rustix::process::geteuid;

use super::Recording;
use crate::error::{RecordError, Result};

impl Recording {
    /// Has the calling thread, which is to end the recording, keep no other capabilities than that
    /// takes. Programs that it runs from then on get no others either: whoever wants to run some with all
    /// of them starts the thread for that before.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn confine_caller(&self) -> Result<()> {
        let failed = RecordError::io("drop capabilities for", self.to.path());
        os::confine::keep_only(self.needed()).map_err(failed)
    }

    /// Files of tracefs are root's, and root needs no capability for its own.
    fn needed(&self) -> CapabilitySet {
        let mut needed = CapabilitySet::empty();
        if !self.of_vm {
            // VMs that were started meanwhile are other users' processes.
            needed |= CapabilitySet::SYS_PTRACE;
        }
        if self.to.is_given_away() {
            needed |= CapabilitySet::CHOWN;
        }
        if is_in_anothers(self.to.path()) {
            // What was recorded is read by its path to count what is in it.
            needed |= CapabilitySet::DAC_READ_SEARCH;
        }
        if is_anothers(self.session.tracefs().root()) {
            needed |= CapabilitySet::DAC_OVERRIDE;
        }
        if self.session.tracefs().is_own_mount() {
            needed |= CapabilitySet::SYS_ADMIN;
        }
        needed
    }
}

/// Whether it is another user's, or that can't be seen.
fn is_anothers(path: &Path) -> bool {
    path.metadata().map_or(true, |about| about.uid() != geteuid().as_raw())
}

/// Whether some folder that it is in is another user's.
fn is_in_anothers(path: &Path) -> bool {
    let Ok(path) = std::path::absolute(path) else { return true };
    path.ancestors().skip(1).any(is_anothers)
}
