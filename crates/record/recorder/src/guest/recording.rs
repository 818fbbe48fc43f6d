//! The recording of a guest while it goes on: its pages are the recorder's, and the agent that sends them is this
//! project's or trace-cmd's.

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
    /// It records.
    pub(crate) started: bool,
    /// It does not any more, and why.
    pub(crate) over: Option<String>,
    /// Events that were lost in the guest so far.
    pub(crate) lost: u64,
    /// Bytes of pages that it has sent.
    pub(crate) sent_bytes: u64,
}

/// What an agent has reported of a guest.
#[derive(Debug, Default)]
pub(crate) struct AgentReport {
    /// How it records; none: it has not begun.
    pub(crate) started: Option<Started>,
    pub(crate) texts: GuestTexts,
    pub(crate) cpus: Vec<CpuEnd>,
    /// The last status; trace-cmd's agent sends none.
    pub(crate) status: Option<Status>,
    /// Where its channel's device is; empty: it does not say, or has none.
    pub(crate) device: Vec<DeviceRange>,
    /// Where it says that its virtio devices are.
    pub(crate) devices: Vec<NamedDevice>,
    /// What an event costs the guest, if it has measured that.
    pub(crate) event_cost: Option<EventCost>,
    /// How its clock and the host's relate, where that was measured.
    pub(crate) clock_samples: Option<ClockSamples>,
    /// What came of samples of its code, where it was asked for some.
    pub(crate) sampled: Option<SamplerSummary>,
    /// From when it recorded to when it was asked to stop, or was gone.
    pub(crate) recorded: Option<Duration>,
    pub(crate) faults: Vec<String>,
}

impl AgentReport {
    /// That of a thread which listened to the agent.
    pub(crate) fn of_task(outcome: Outcome<Self>) -> Self {
        let fault = match outcome {
            Outcome::Done(report) => return report,
            Outcome::Panicked => "the thread that listened to the guest panicked",
            Outcome::StillBusy => "the thread that listens to the guest did not end in time",
        };
        Self { faults: vec![fault.into()], ..Self::default() }
    }
}

/// An agent that records a guest: all in which this project's and trace-cmd's differ.
pub(crate) trait Agent: Debug + Send {
    /// How it is going.
    fn status(&self) -> GuestStatus;

    /// Whether it has reported all that it will, waiting for that as long as `wait` says.
    fn is_over(&self, wait: Wait<'_>) -> bool;

    /// Asks for what it has reported by now.
    ///
    /// # Errors
    /// When the agent reports at its end alone.
    fn snapshot(&self) -> io::Result<Receiver<AgentReport>>;

    /// Waits for all that it reports and sends, once the end has begun, and as long as that says.
    fn end(self: Box<Self>, ending: &Ending) -> AgentReport;
}

/// What identifies a guest, and how its pages are made.
#[derive(Clone, Debug)]
pub(crate) struct GuestIdentity {
    /// The name that it is recorded under.
    pub(crate) name: String,
    /// The channel to its agent.
    pub(crate) channel: String,
    pub(crate) vm: Option<Vm>,
    /// What the host's file calls its recording.
    pub(crate) trace_id: u64,
    pub(crate) hello: GuestHello,
}

/// Where the pages of a guest go.
#[derive(Debug)]
pub(crate) struct GuestPages {
    pub(crate) folder: Folder,
    pub(crate) files: Arc<GuestFiles>,
    flusher: Flusher,
}

/// What limits the pages of a guest.
#[derive(Clone, Debug)]
pub(crate) struct PageLimits {
    pub(crate) quota: Quota,
    /// The newest pages alone are kept.
    pub(crate) in_segments: bool,
    /// How long pages stay off the disk at most; unset: a second.
    pub(crate) disk_flush: Option<Duration>,
}

impl GuestPages {
    /// Makes the folder of a guest's pages in a session, and has the disk keep what comes.
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
    /// The tracer of functions that it was asked for.
    pub(crate) tracer: Option<FunctionTracer>,
}

impl GuestRecording {
    /// The name that the guest is recorded under.
    pub(crate) fn name(&self) -> &str {
        &self.identity.name
    }

    /// How it is going.
    pub(crate) fn status(&self) -> GuestStatus {
        self.agent.status()
    }

    /// Begins new segments, where those are kept, and removes those that ended before a time.
    pub(crate) fn roll(&self, keep_from: Instant) {
        self.pages.files.roll(keep_from);
    }

    /// Asks for what its agent has reported by now.
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

    /// Has the guest stop; it is waited for until then.
    pub(crate) fn begin_end(&self, until: Deadline) {
        self.ending.begin(until);
    }

    /// Has the guest stop, and waits until then for what it still has to send.
    pub(crate) fn end_by(self, until: Deadline) -> GuestRecorded {
        self.begin_end(until);
        self.end()
    }

    /// Whether its agent has reported all that it will, waiting for that as long as `wait` says.
    pub(crate) fn is_over(&self, wait: Wait<'_>) -> bool {
        self.agent.is_over(wait)
    }

    /// Waits for what the guest still has to send, once the end has begun.
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
