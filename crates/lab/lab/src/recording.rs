//! Records a lab's level 1 with hyperscope, repeatedly, while other programs keep the lab busy.

use std::fs;
use std::path::Path;

use crate::error::{LabError, Result};
use crate::hyperscope_recorder::{self, HyperscopeRecording};
use crate::lab::Lab;
use crate::scenario::Record;

/// A running recording.
pub struct LabRecording {
    lab: Lab,
    recording: HyperscopeRecording,
}

impl Lab {
    /// Copies hyperscope to level 1, so that it can be recorded.
    ///
    /// # Errors
    /// When hyperscope does not run there, or level 1 does not answer.
    pub fn prepare_recordings(&self) -> Result<()> {
        let arch = self.description()?.arch;
        if hyperscope_recorder::can_run(self, arch, &Record::of_host())? {
            Ok(())
        } else {
            Err(LabError::Usage("hyperscope, which records, does not run in level 1".into()))
        }
    }

    /// Starts recording level 1 with the default events of `hyperscope record`, after
    /// [`prepare_recordings`](Self::prepare_recordings).
    ///
    /// # Errors
    /// When the recording does not begin.
    pub fn begin_recording(&self) -> Result<LabRecording> {
        let recording = HyperscopeRecording::begin(self, &Record::of_host())?;
        Ok(LabRecording { lab: self.clone(), recording })
    }
}

impl LabRecording {
    /// Ends it, and copies its session to a new folder.
    ///
    /// # Errors
    /// When the recorder fails, or a file can't be written.
    pub fn end(self, to: &Path) -> Result<()> {
        let files = self.recording.end(&self.lab)?;
        fs::create_dir(to).map_err(LabError::io("cannot make", to))?;
        self.lab.bring_out(&files, to)
    }
}

impl std::fmt::Debug for LabRecording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LabRecording").field("lab", &self.lab).finish_non_exhaustive()
    }
}
