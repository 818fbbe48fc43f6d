//! For how long guests had requests at their disks, by the guests' own events.

use ftrace::eventfmt::EventFormat;
use rustc_hash::FxHashMap;
use timeline::trace_events::{EventRequest, Gap, TraceEvent, TraceEventSink, WantsTraceEvents};

use crate::longest_span::LongestSpan;
use crate::view::View;

const ISSUE: u16 = 0;
const COMPLETE: u16 = 1;

/// Requests of one recording that are remembered at a time.
const MAX_REQUESTS: usize = 1 << 12;

/// Requests of a guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DiskWait {
    pub(super) requests: u64,
    /// Time with at least one request under way.
    pub(super) waited_ns: u64,
    pub(super) longest: LongestSpan,
}

/// By recording.
#[derive(Debug, Default)]
pub(super) struct DiskWaits(Vec<DiskWait>);

impl DiskWaits {
    pub(super) fn of_recording(&self, at: usize) -> DiskWait {
        self.0.get(at).copied().unwrap_or_default()
    }
}

#[derive(Debug, Default)]
struct Guest {
    is_wanted: bool,
    wait: DiskWait,
    /// By disk and first sector: when the request was issued.
    requests: FxHashMap<(u64, u64), u64>,
    /// When the first of the requests under way was issued.
    busy_since_ns: Option<u64>,
}

#[derive(Debug)]
pub(super) struct DiskWaitSink(Vec<Guest>);

impl DiskWaitSink {
    pub(super) fn new(view: View<'_>) -> Self {
        let guest = |at| Guest { is_wanted: !view.is_host(at), ..Guest::default() };
        Self((0..view.recordings.len()).map(guest).collect())
    }

    pub(super) fn answer(self) -> DiskWaits {
        DiskWaits(self.0.into_iter().map(|guest| guest.wait).collect())
    }
}

impl Guest {
    fn issue(&mut self, at_ns: u64, request: (u64, u64)) {
        if self.requests.len() < MAX_REQUESTS {
            self.requests.insert(request, at_ns);
            self.busy_since_ns.get_or_insert(at_ns);
        }
    }

    fn complete(&mut self, at_ns: u64, request: (u64, u64)) {
        let Some(issued_ns) = self.requests.remove(&request) else { return };
        self.wait.requests += 1;
        self.wait.longest.add(issued_ns, at_ns);
        if self.requests.is_empty()
            && let Some(since_ns) = self.busy_since_ns.take()
        {
            let waited_ns = at_ns.saturating_sub(since_ns);
            self.wait.waited_ns = self.wait.waited_ns.saturating_add(waited_ns);
        }
    }
}

impl WantsTraceEvents for DiskWaitSink {
    fn wanted(&self, recording: usize, format: &EventFormat) -> Option<EventRequest> {
        let fields: &[&str] = &["dev", "sector"];
        match format.full_name().as_str() {
            _ if !self.0.get(recording).is_some_and(|guest| guest.is_wanted) => None,
            "block:block_rq_issue" => Some(EventRequest { tag: ISSUE, fields }),
            "block:block_rq_complete" => Some(EventRequest { tag: COMPLETE, fields }),
            _ => None,
        }
    }
}

impl TraceEventSink for DiskWaitSink {
    const WITH_NAMES: bool = false;

    fn event(&mut self, event: &TraceEvent) {
        let Some(guest) = self.0.get_mut(usize::from(event.recording)) else { return };
        let Some(request) = event.value(0).zip(event.value(1)) else { return };
        match event.tag {
            ISSUE => guest.issue(event.stamp_ns, request),
            _ => guest.complete(event.stamp_ns, request),
        }
    }

    /// A completion may be among the events that were lost.
    fn gap(&mut self, gap: &Gap) {
        if let Some(guest) = self.0.get_mut(usize::from(gap.recording)) {
            guest.requests = FxHashMap::default();
            guest.busy_since_ns = None;
        }
    }
}
