//! A running flight recorder.

use std::time::{Duration, Instant};

use vms::Vm;

use super::Trigger;
use super::dump::{DumpJob, FlightFacts};
use super::task_names::TaskNames;
use crate::ending::Stop;
use crate::error::{RecordError, Result};
use crate::plan::RecordPlan;
use crate::recording::Recording;
use crate::session_folder::SessionFolder;

/// Max time for a guest's control thread to report: it checks for requests every second.
const GUESTS_SAY: Duration = Duration::from_secs(3);

/// Rolls its segments in [`Flight::tick`], and dumps their content.
#[derive(Debug)]
pub struct Flight {
    recording: Recording,
    names: TaskNames,
    /// VMs that ran during the kept time, and when they were last seen.
    vms: Vec<(Instant, Vm)>,
    looked: Option<Instant>,
}

impl Flight {
    /// Starts recording a plan, with pages in a folder of sessions.
    ///
    /// # Errors
    /// As [`Recording::begin`].
    pub fn begin(plan: &RecordPlan, to: &SessionFolder, outside: &Stop) -> Result<Self> {
        let recording = Recording::begin(plan, to, outside)?;
        let vms = recording.vms().iter().map(|vm| (Instant::now(), vm.clone())).collect();
        Ok(Self { recording, names: TaskNames::default(), vms, looked: None })
    }

    #[must_use]
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Ends segments that have reached their max time or size, and removes old ones. Call it several times per second.
    ///
    /// # Errors
    /// When recording has failed.
    pub fn tick(&mut self) -> Result<()> {
        if self.recording.has_failed() {
            let why = "the buffer of a CPU can no longer be read";
            let error = RecordError::io("record into", self.recording.folder().path());
            return Err(error(std::io::Error::other(why)));
        }
        match self.recording.rolling() {
            Some(rolling) if rolling.is_due() => {
                rolling.refuse_removed()?;
                rolling.roll()?;
                let (often, oldest) = (rolling.often(), rolling.oldest());
                self.recording.guests().lock().roll(oldest);
                // If segments fill quickly, looking at every roll would delay the next one.
                if self.looked.is_none_or(|looked| looked.elapsed() >= often) {
                    self.look();
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Updates the running VMs and the names of tasks.
    fn look(&mut self) {
        self.looked = Some(Instant::now());
        let saved = self.recording.tracing().thread_names();
        let now = self.recording.vms_now();
        let Some(rolling) = self.recording.rolling() else { return };
        let keep = rolling.plan().window;
        self.names.take(&saved, keep);
        let is_gone = |vm: &Vm| now.iter().all(|other| other.pid != vm.pid);
        self.vms.retain(|(seen, vm)| seen.elapsed() < keep && is_gone(vm));
        self.vms.extend(now.into_iter().map(|vm| (Instant::now(), vm)));
    }

    /// Prepares a session of everything kept now. Recording continues meanwhile.
    ///
    /// # Errors
    /// When the segments can't be opened, or are gone.
    pub fn dump(&mut self, trigger: Trigger) -> Result<DumpJob> {
        if let Some(rolling) = self.recording.rolling() {
            rolling.refuse_removed()?;
            rolling.roll()?;
            let oldest = rolling.oldest();
            self.recording.guests().lock().roll(oldest);
        }
        self.look();
        let guests = self.recording.guests().lock().open_segments(GUESTS_SAY);
        let vms = self.vms.iter().map(|(_, vm)| vm.clone()).collect();
        let known = FlightFacts { vms, names: self.names.text(), trigger, guests };
        DumpJob::new(&mut self.recording, known)
    }

    /// Stops, and removes the segments. Returns errors.
    #[must_use]
    pub fn end(self) -> Vec<String> {
        self.recording.discard()
    }
}
