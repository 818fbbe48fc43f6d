//! How long threads of hosts waited for a CPU, and how long they slept in the kernel for storage or memory.

use ftrace::eventfmt::EventFormat;
use rustc_hash::FxHashMap;
use timeline::arch::{sleeps, sleeps_uninterruptibly};
use timeline::trace_events::{EventRequest, Gap, TraceEvent, TraceEventSink, WantsTraceEvents};

use crate::longest_span::LongestSpan;
use crate::view::View;

const SWITCH: u16 = 0;
const WAKING: u16 = 1;

/// Delays of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ThreadDelay {
    /// Woken or preempted, and waiting for a CPU.
    pub(super) run_queue_ns: u64,
    pub(super) waits: u64,
    /// The longest of these waits.
    pub(super) longest_wait: LongestSpan,
    /// In uninterruptible sleep, which is mostly I/O.
    pub(super) storage_ns: u64,
    pub(super) longest_storage: LongestSpan,
}

/// By recording and thread.
#[derive(Debug, Default)]
pub(super) struct ThreadDelays(FxHashMap<(u16, u32), ThreadDelay>);

impl ThreadDelays {
    pub(super) fn of_thread(&self, recording: usize, thread: u32) -> ThreadDelay {
        let key = u16::try_from(recording).ok().map(|recording| (recording, thread));
        key.and_then(|key| self.0.get(&key)).copied().unwrap_or_default()
    }
}

/// What a thread does while it has no CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// It runs, or events were lost.
    #[default]
    Unknown,
    Sleeping,
    InStorage {
        since_ns: u64,
    },
    Runnable {
        since_ns: u64,
    },
}

#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    phase: Phase,
    /// The number of losses of its recording when `phase` began: a later loss makes it unknown.
    losses: u32,
    delay: ThreadDelay,
}

/// Follows the threads of hosts.
#[derive(Debug)]
pub(super) struct ThreadDelaySink {
    is_host: Vec<bool>,
    /// By recording, how many losses there were.
    losses: Vec<u32>,
    threads: FxHashMap<(u16, u32), Thread>,
}

impl ThreadDelaySink {
    pub(super) fn new(view: View<'_>) -> Self {
        let is_host = (0..view.recordings.len()).map(|at| view.is_host(at)).collect();
        Self { is_host, losses: vec![0; view.recordings.len()], threads: FxHashMap::default() }
    }

    pub(super) fn answer(self) -> ThreadDelays {
        let delays = self.threads.into_iter().map(|(key, thread)| (key, thread.delay));
        ThreadDelays(delays.filter(|(_, delay)| *delay != ThreadDelay::default()).collect())
    }

    fn thread(&mut self, recording: u16, thread: u32) -> &mut Thread {
        let losses = self.losses.get(usize::from(recording)).copied().unwrap_or_default();
        let thread = self.threads.entry((recording, thread)).or_default();
        if thread.losses != losses {
            (thread.losses, thread.phase) = (losses, Phase::Unknown);
        }
        thread
    }

    fn switch(&mut self, event: &TraceEvent) {
        let at_ns = event.stamp_ns;
        if let Some(previous) = event.thread_value(0).filter(|&thread| thread != 0) {
            self.thread(event.recording, previous).leaves(at_ns, event.value(1).unwrap_or(0));
        }
        if let Some(next) = event.thread_value(2).filter(|&thread| thread != 0) {
            self.thread(event.recording, next).runs(at_ns);
        }
    }
}

impl Thread {
    fn leaves(&mut self, at_ns: u64, state: u64) {
        self.phase = if !sleeps(state) {
            Phase::Runnable { since_ns: at_ns }
        } else if sleeps_uninterruptibly(state) {
            Phase::InStorage { since_ns: at_ns }
        } else {
            Phase::Sleeping
        };
    }

    fn wakes(&mut self, at_ns: u64) {
        if let Phase::InStorage { since_ns } = self.phase {
            let slept_ns = at_ns.saturating_sub(since_ns);
            self.delay.storage_ns = self.delay.storage_ns.saturating_add(slept_ns);
            self.delay.longest_storage.add(since_ns, at_ns);
        }
        if matches!(self.phase, Phase::InStorage { .. } | Phase::Sleeping) {
            self.phase = Phase::Runnable { since_ns: at_ns };
        }
    }

    fn runs(&mut self, at_ns: u64) {
        if let Phase::Runnable { since_ns } = self.phase {
            let waited_ns = at_ns.saturating_sub(since_ns);
            self.delay.run_queue_ns = self.delay.run_queue_ns.saturating_add(waited_ns);
            self.delay.waits += 1;
            self.delay.longest_wait.add(since_ns, at_ns);
        }
        self.phase = Phase::Unknown;
    }
}

impl WantsTraceEvents for ThreadDelaySink {
    fn wanted(&self, recording: usize, format: &EventFormat) -> Option<EventRequest> {
        let is_host = self.is_host.get(recording).copied().unwrap_or_default();
        match format.full_name().as_str() {
            _ if !is_host => None,
            "sched:sched_switch" => {
                Some(EventRequest { tag: SWITCH, fields: &["prev_pid", "prev_state", "next_pid"] })
            }
            "sched:sched_waking" => Some(EventRequest { tag: WAKING, fields: &["pid"] }),
            _ => None,
        }
    }
}

impl TraceEventSink for ThreadDelaySink {
    const WITH_NAMES: bool = false;

    fn event(&mut self, event: &TraceEvent) {
        match event.tag {
            SWITCH => self.switch(event),
            _ => {
                if let Some(woken) = event.thread_value(0).filter(|&thread| thread != 0) {
                    self.thread(event.recording, woken).wakes(event.stamp_ns);
                }
            }
        }
    }

    fn gap(&mut self, gap: &Gap) {
        if let Some(losses) = self.losses.get_mut(usize::from(gap.recording)) {
            *losses = losses.wrapping_add(1);
        }
    }
}
