//! Moves the host's pages from the kernel's buffers to files.

use std::time::Duration;

use os::folder::Folder;
use os::waits::{Deadline, Signal};
use session_json::CpuLosses;
use tracefs::TraceSession;

use super::FOLDER;
use crate::ending::stop_signal;
use crate::error::{RecordError, Result};
use crate::flight_plan::FlightPlan;
use crate::flusher::{Flusher, GrowingFiles};
use crate::losses;
use crate::pump::Pump;
use crate::quota::Quota;
use crate::rolling::Rolling;
use crate::session_folder::SessionFolder;

/// A thread for each CPU, and one that syncs their files. Drop ends them.
#[derive(Debug)]
pub(super) struct HostPages {
    /// The stop signal for pumps and all parallel writers.
    stop: Signal,
    pumps: Vec<Pump>,
    /// Used instead of pumps if only the newest pages are kept.
    pub(super) rolling: Option<Rolling>,
    flusher: Option<Flusher>,
    quota: Quota,
    /// Max time until events are synced to the disk.
    flush: Duration,
}

impl HostPages {
    /// Moves no pages yet.
    pub(super) fn new(quota: Quota, flush: Duration) -> Result<Self> {
        let stop = stop_signal()?;
        Ok(Self { stop, pumps: Vec::new(), rolling: None, flusher: None, quota, flush })
    }

    /// Starts keeping only the newest pages, in a folder of the session. They are not synced: most are removed too soon
    /// for that to matter.
    pub(super) fn begin_rolling(
        &mut self,
        plan: &FlightPlan,
        session: &TraceSession,
        to: &SessionFolder,
    ) -> Result<()> {
        let folder = pages_folder(to)?;
        session.texts().write(&folder, &session.clock().line)?;
        session.begin_tracer()?;
        self.rolling = Some(Rolling::begin(plan.clone(), session, folder, &self.stop)?);
        Ok(())
    }

    /// Starts moving pages into a folder of the session, with the texts that decode them.
    pub(super) fn begin(&mut self, session: &TraceSession, to: &SessionFolder) -> Result<()> {
        let folder = pages_folder(to)?;
        crate::session::take_room(to)?;
        session.texts().write(&folder, &session.clock().line)?;
        session.begin_tracer()?;
        for &cpu in session.cpus() {
            let raw = session.raw_pages(cpu)?;
            let (stop, quota) = (self.stop.clone(), self.quota.clone());
            self.pumps.push(Pump::start(cpu, raw, &folder, stop, quota, Some(self.flush))?);
        }
        folder.sync().and_then(|()| to.sync()).map_err(RecordError::io("write", folder.path()))?;
        let files = GrowingFiles::default();
        self.pumps.iter_mut().filter_map(Pump::growing).for_each(|file| files.add(file));
        let path = folder.path().to_owned();
        let flusher = Flusher::start((**to).clone(), folder, files, self.flush);
        self.flusher = Some(flusher.map_err(RecordError::io("start a thread for", &path))?);
        Ok(())
    }

    /// Set at the end.
    pub(super) fn stop(&self) -> &Signal {
        &self.stop
    }

    /// Number of recorded CPUs.
    pub(super) fn cpus(&self) -> usize {
        self.pumps.len() + self.rolling.as_ref().map_or(0, Rolling::cpus)
    }

    /// Size of the files so far.
    pub(super) fn bytes(&self) -> u64 {
        self.pumps.iter().map(Pump::bytes).sum::<u64>()
            + self.rolling.as_ref().map_or(0, Rolling::bytes)
    }

    /// Whether writing has failed, for example because of a full disk.
    pub(super) fn has_failed(&self) -> bool {
        self.pumps.iter().any(Pump::is_finished)
            || self.rolling.as_ref().is_some_and(Rolling::has_failed)
    }

    /// Waits for the pumps' remaining pages; returns the losses of each CPU, and the kernel's text of its counts.
    pub(super) fn end(
        &mut self,
        session: &TraceSession,
        faults: &mut Vec<String>,
    ) -> Result<Vec<(CpuLosses, String)>> {
        self.stop.set();
        let mut end = |pump: Pump| {
            let cpu = pump.cpu;
            let (bytes, ended) = pump.join();
            if let Err(error) = ended {
                faults.push(format!("CPU {cpu}: writing its pages stopped early: {error}"));
            }
            let (counts, text) = session.stats(cpu)?;
            Ok((losses::from_stats(&counts, bytes), text))
        };
        std::mem::take(&mut self.pumps).into_iter().map(&mut end).collect()
    }

    /// Ends the syncing thread, and returns the errors of files.
    pub(super) fn settle(&mut self, until: Deadline) -> Vec<String> {
        let flusher = self.flusher.take().and_then(|flusher| flusher.end(until));
        flusher.into_iter().chain(self.quota.fault()).collect()
    }
}

/// The folder of pages.
fn pages_folder(to: &SessionFolder) -> Result<Folder> {
    to.subfolder(FOLDER).map_err(RecordError::io("make", &to.path().join(FOLDER)))
}

impl Drop for HostPages {
    fn drop(&mut self) {
        // Pumps hold files of the instance, which the kernel can't remove before.
        self.stop.set();
        self.pumps.drain(..).for_each(|pump| drop(pump.join()));
    }
}
