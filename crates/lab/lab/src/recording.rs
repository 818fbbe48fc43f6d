//! Recordings of a lab's level 1 by hyperscope, one after the other, while something else has the lab at work.

use std::fs;
use std::path::Path;

use crate::error::{LabError, Result};
use crate::hyperscope_recorder::{self, HyperscopeRecording};
use crate::lab::Lab;
use crate::scenario::Record;

/// A recording that runs.
pub struct LabRecording {
    lab: Lab,
    recording: HyperscopeRecording,
}

impl Lab {
    /// Puts hyperscope into level 1, so that it can be recorded.
    ///
    /// # Errors
    /// When hyperscope doesn't run there, or level 1 doesn't answer.
    pub fn prepare_recordings(&self) -> Result<()> {
        let arch = self.description()?.arch;
        if hyperscope_recorder::can_run(self, arch, &Record::of_host())? {
            Ok(())
        } else {
            Err(LabError::Usage("hyperscope, which records, does not run in level 1".into()))
        }
    }

    /// Begins to record level 1, after [`prepare_recordings`](Self::prepare_recordings), as `hyperscope record` does where nothing is asked for.
    ///
    /// # Errors
    /// When it doesn't begin.
    pub fn begin_recording(&self) -> Result<LabRecording> {
        let recording = HyperscopeRecording::begin(self, &Record::of_host())?;
        Ok(LabRecording { lab: self.clone(), recording })
    }
}

impl LabRecording {
    /// Ends it, and brings its session out into a folder that is made.
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
