//! A guest's running recording: the recorder owns its pages, the agent is this project's or trace-cmd's.

use std::fmt::Debug;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use channel::wire::{CpuEnd, DeviceRange, EventCost, GuestHello, NamedDevice, Started, Status};
use os::confine::Unconfined;
use os::folder::Folder;
use os::waits::{Deadline, Wait};
use session_json::SamplerSummary;
use tracefs::FunctionTracer;
use vms::Vm;

use crate::ending::Ending;
use crate::error::{RecordError, Result};
use crate::flusher::Flusher;
use crate::guest::clock_samples::ClockSamples;
use crate::guest::files::{GuestFiles, PageShape};
use crate::guest::make_pages_folder;
use crate::guest::quota::Quota;
use crate::guest::recorded::{GuestRecorded, Parts};
use crate::guest::segments::OpenSegments;
use crate::guest::texts::GuestTexts;
use crate::task::Outcome;

/// The status of a guest's recording.
#[derive(Clone, Debug, Default)]
pub(crate) struct GuestStatus {
    /// Whether it records.
    pub(crate) started: bool,
    /// Why it does not record any more.
    pub(crate) over: Option<String>,
    /// Events lost in the guest so far.
    pub(crate) lost: u64,
    /// Bytes of pages that it has sent.
    pub(crate) sent_bytes: u64,
}

/// An agent's reports about a guest.
#[derive(Debug, Default)]
pub(crate) struct AgentReport {
    /// Parameters of the recording; `None` if it has not begun.
    pub(crate) started: Option<Started>,
    pub(crate) texts: GuestTexts,
    pub(crate) cpus: Vec<CpuEnd>,
    /// The last status; trace-cmd's agent sends none.
    pub(crate) status: Option<Status>,
    /// Ranges of its channel's device; empty if unknown or if there is none.
    pub(crate) device: Vec<DeviceRange>,
    /// Its virtio devices, as reported by the guest.
    pub(crate) devices: Vec<NamedDevice>,
    /// The cost of an event in the guest, if measured.
    pub(crate) event_cost: Option<EventCost>,
    /// Relation of its clock to the host's, if measured.
    pub(crate) clock_samples: Option<ClockSamples>,
    /// Totals of its kernel samples, if requested.
    pub(crate) sampled: Option<SamplerSummary>,
    /// Time from the start of its recording to the stop request, or to its disappearance.
    pub(crate) recorded: Option<Duration>,
    pub(crate) faults: Vec<String>,
}

impl AgentReport {
    /// The report of a thread that received from the agent.
    pub(crate) fn of_task(outcome: Outcome<Self>) -> Self {
        let fault = match outcome {
            Outcome::Done(report) => return report,
            Outcome::Panicked => "the thread that listened to the guest panicked",
            Outcome::StillBusy => "the thread that listens to the guest did not end in time",
        };
        Self { faults: vec![fault.into()], ..Self::default() }
    }
}

/// An agent that records a guest: everything in which this project's and trace-cmd's differ.
pub(crate) trait Agent: Debug + Send {
    /// Progress of the recording.
    fn status(&self) -> GuestStatus;

    /// Whether the last report has arrived, after a wait.
    fn is_over(&self, wait: Wait<'_>) -> bool;

    /// Requests a snapshot of the reports so far.
    ///
    /// # Errors
    /// When the agent reports only at its end.
    fn snapshot(&self) -> io::Result<Receiver<AgentReport>>;

    /// Waits for the remaining reports and pages within the deadline of `ending`.
    fn end(self: Box<Self>, ending: &Ending) -> AgentReport;
}

/// A guest's identity, and the layout of its pages.
#[derive(Clone, Debug)]
pub(crate) struct GuestIdentity {
    /// The name of its recording.
    pub(crate) name: String,
    /// The channel to its agent.
    pub(crate) channel: String,
    pub(crate) vm: Option<Vm>,
    /// Trace id of its recording, for the host's file.
    pub(crate) trace_id: u64,
    pub(crate) hello: GuestHello,
}

/// The destination of a guest's pages.
#[derive(Debug)]
pub(crate) struct GuestPages {
    pub(crate) folder: Folder,
    pub(crate) files: Arc<GuestFiles>,
    flusher: Flusher,
}

/// Limits of a guest's pages.
#[derive(Clone, Debug)]
pub(crate) struct PageLimits {
    pub(crate) quota: Quota,
    /// Keeps only the newest pages.
    pub(crate) in_segments: bool,
    /// Max time until pages are synced to the disk; `None`: a second.
    pub(crate) disk_flush: Option<Duration>,
}

impl GuestPages {
    /// Makes the session's folder of a guest's pages, and starts syncing it.
    pub(crate) fn make(
        session: &Folder,
        name: &str,
        (cpus, shape): (u32, PageShape),
        limits: PageLimits,
    ) -> Result<Self> {
        let failed = |source| RecordError::Guest { name: name.to_owned(), source };
        let folder = make_pages_folder(session, name)?;
        let opener = Unconfined::start("guest-files").map_err(failed)?;
        let files = GuestFiles::new((folder.clone(), opener), cpus, shape, limits.quota);
        let files = Arc::new(if limits.in_segments { files.in_segments() } else { files });
        let flusher = files.keep_on_disk(session, limits.disk_flush).map_err(failed)?;
        Ok(Self { folder, files, flusher })
    }
}

#[derive(Debug)]
pub(crate) struct GuestRecording {
    pub(crate) identity: GuestIdentity,
    pub(crate) pages: GuestPages,
    pub(crate) agent: Box<dyn Agent>,
    pub(crate) ending: Ending,
    /// The requested function tracer.
    pub(crate) tracer: Option<FunctionTracer>,
}

impl GuestRecording {
    /// The name of its recording.
    pub(crate) fn name(&self) -> &str {
        &self.identity.name
    }

    /// Progress of the recording.
    pub(crate) fn status(&self) -> GuestStatus {
        self.agent.status()
    }

    /// Starts new segments, if they are kept, and removes those that ended before `keep_from`.
    pub(crate) fn roll(&self, keep_from: Instant) {
        self.pages.files.roll(keep_from);
    }

    /// Requests a snapshot of the agent's reports so far.
    pub(crate) fn snapshot(&self) -> io::Result<Receiver<AgentReport>> {
        self.agent.snapshot()
    }

    pub(crate) fn open_segments(&self, report: AgentReport) -> io::Result<(Parts, OpenSegments)> {
        let kept_segments = self.pages.files.open_segments()?;
        let parts = Parts {
            identity: self.identity.clone(),
            folder: self.pages.folder.clone(),
            received: kept_segments.received.clone(),
            malformed: self.pages.files.malformed(),
            report,
            tracer: self.tracer.clone(),
        };
        Ok((parts, kept_segments))
    }

    /// Asks the guest to stop, with a deadline for the rest.
    pub(crate) fn begin_end(&self, until: Deadline) {
        self.ending.begin(until);
    }

    /// Asks the guest to stop, and waits for the rest until the deadline.
    pub(crate) fn end_by(self, until: Deadline) -> GuestRecorded {
        self.begin_end(until);
        self.end()
    }

    /// Whether the agent's last report has arrived, after a wait.
    pub(crate) fn is_over(&self, wait: Wait<'_>) -> bool {
        self.agent.is_over(wait)
    }

    /// Waits for the rest of the guest's pages, after the end has begun.
    pub(crate) fn end(self) -> GuestRecorded {
        let Self { identity, pages, agent, ending, tracer } = self;
        let mut report = agent.end(&ending);
        let GuestPages { folder, files, flusher } = pages;
        let unwritten = |error| format!("writing its pages stopped early: {error}");
        report.faults.extend(files.failure().map(unwritten));
        report.faults.extend(flusher.end(ending.threads_until()));
        let (received, malformed) = (files.received(), files.malformed());
        GuestRecorded::new(Parts { identity, folder, received, malformed, report, tracer })
    }
}
