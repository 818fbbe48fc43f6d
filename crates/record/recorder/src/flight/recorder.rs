//! A flight recorder that goes on.

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

/// How long a guest's control thread may take to say what it has heard: it looks every second.
const GUESTS_SAY: Duration = Duration::from_secs(3);

/// It rolls its segments while it is asked to ([`Flight::tick`]), and gives what they hold.
#[derive(Debug)]
pub struct Flight {
    recording: Recording,
    names: TaskNames,
    /// VMs that ran while something was recorded that is kept, and when they were last seen.
    vms: Vec<(Instant, Vm)>,
    looked: Option<Instant>,
}

impl Flight {
    /// Begins to record what a plan says, with its pages in a folder for sessions.
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

    /// Ends segments that are long, or large, and removes what need not be kept: to be called several times
    /// a second.
    ///
    /// # Errors
    /// When that is not possible any more.
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
                // Where segments are full all the time, looking each time would hold the next one up.
                if self.looked.is_none_or(|looked| looked.elapsed() >= often) {
                    self.look();
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Looks which VMs there are, and which names tasks have.
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

    /// What is to be done for a session of all that is kept by now. Recording goes on meanwhile.
    ///
    /// # Errors
    /// When what is kept can't be opened, or is gone.
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

    /// Ends it; what is kept goes. What went wrong with that.
    #[must_use]
    pub fn end(self) -> Vec<String> {
        self.recording.discard()
    }
}
