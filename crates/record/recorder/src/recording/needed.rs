//! Root's privileges that a recording needs after it has begun.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use os::confine::CapabilitySet;
use rustix::process::geteuid;

use super::Recording;
use crate::error::{RecordError, Result};

impl Recording {
    /// Reduces the capabilities of the calling thread to those needed for ending the recording. Programs that it starts
    /// later inherit the reduced set: to start some with all capabilities, start a thread for that before.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn confine_caller(&self) -> Result<()> {
        let failed = RecordError::io("drop capabilities for", self.to.path());
        os::confine::keep_only(self.needed()).map_err(failed)
    }

    /// Files of tracefs belong to root, and root needs no capability for its own files.
    fn needed(&self) -> CapabilitySet {
        let mut needed = CapabilitySet::empty();
        if !self.of_vm {
            // VMs that are started meanwhile are other users' processes.
            needed |= CapabilitySet::SYS_PTRACE;
        }
        if self.to.is_given_away() {
            needed |= CapabilitySet::CHOWN;
        }
        if is_in_anothers(self.to.path()) {
            // Counting the recorded events opens the file by its path.
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

/// Whether it belongs to another user, or that can't be determined.
fn is_anothers(path: &Path) -> bool {
    path.metadata().map_or(true, |about| about.uid() != geteuid().as_raw())
}

/// Whether one of its parent folders belongs to another user.
fn is_in_anothers(path: &Path) -> bool {
    let Ok(path) = std::path::absolute(path) else { return true };
    path.ancestors().skip(1).any(is_anothers)
}
