//! Finds the analysed threads by name or id.

use ftrace::eventfmt::EventFormat;
use rustc_hash::FxHashMap;
use sources::Recording;
use timeline::reading::each_trace_event;
use timeline::trace_events::{
    EventRequest, Gap, ThreadNames, TraceEvent, TraceEventSink, WantsTraceEvents,
};

use super::names::Names;
use crate::path::{Machines, Thread};
use crate::view::View;

/// Max threads to analyse at once.
const MAX_TARGETS: usize = 1 << 12;

/// Max threads in the error message if no thread matches.
const MAX_KNOWN: usize = 12;

/// A thread name or id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CriticalTask(
    /// `NAME`, `TID`, or either with `MACHINE/` before it.
    pub String,
);

/// Counts the switches of each thread.
#[derive(Debug, Default)]
pub(super) struct Switches(pub(super) FxHashMap<Thread, u64>);

impl WantsTraceEvents for Switches {
    fn wanted(&self, _: usize, format: &EventFormat) -> Option<EventRequest> {
        let is_switch = format.full_name() == "sched:sched_switch";
        is_switch.then_some(EventRequest { tag: 0, fields: &["prev_pid", "next_pid"] })
    }
}

impl TraceEventSink for Switches {
    fn event(&mut self, event: &TraceEvent) {
        let threads = [0, 1].into_iter().filter_map(|at| event.thread_value(at));
        for thread in threads.filter(|&thread| thread != 0) {
            *self.0.entry((event.recording, thread)).or_default() += 1;
        }
    }

    fn gap(&mut self, _: &Gap) {}
}

/// The threads in switch events, and their names.
pub(super) struct SeenThreads {
    /// By number of switches, descending.
    all: Vec<(Thread, u64)>,
    pub(super) names: Vec<ThreadNames>,
}

impl SeenThreads {
    pub(super) fn read(recordings: &[Recording]) -> Self {
        let mut switches = Switches::default();
        let pass = each_trace_event(recordings, &mut switches, &|_| ());
        let mut all: Vec<(Thread, u64)> = switches.0.into_iter().collect();
        all.sort_by_key(|(thread, count)| (std::cmp::Reverse(*count), *thread));
        Self { all, names: pass.names }
    }

    /// Finds the threads by their last names, or by earlier names if no last name matches. Otherwise returns the
    /// busiest threads with their machines.
    pub(super) fn find(
        &self,
        view: View<'_>,
        machines: &Machines<'_>,
        task: &CriticalTask,
    ) -> Result<Vec<Thread>, Vec<(String, String)>> {
        let machine_names = view.machine_names();
        let names = Names::new(machines, view.guests, (&self.names, &[]));
        let is_asked = |thread: &Thread, has_name: &dyn Fn(&str) -> bool| {
            let machine = machine_names.get(usize::from(thread.0)).map_or("", String::as_str);
            let rest = task.0.strip_prefix(machine).and_then(|rest| rest.strip_prefix('/'));
            [Some(task.0.as_str()), rest].into_iter().flatten().any(has_name)
        };
        let is_called = |thread: &Thread| {
            let comm = self.names_of(*thread).and_then(|all| all.get(thread.1));
            is_asked(thread, &|wanted| {
                wanted == names.thread(*thread, None)
                    || comm == Some(wanted)
                    || wanted == thread.1.to_string()
            })
        };
        let was_called = |thread: &Thread| {
            let mut earlier =
                self.names_of(*thread).into_iter().flat_map(|all| all.history(thread.1));
            earlier.any(|(_, name)| is_asked(thread, &|wanted| wanted == name))
        };
        let found = |is_wanted: &dyn Fn(&Thread) -> bool| {
            let threads = self.all.iter().map(|(thread, _)| *thread);
            let found = threads.filter(|thread| is_wanted(thread));
            Some(found.take(MAX_TARGETS).collect::<Vec<Thread>>()).filter(|all| !all.is_empty())
        };
        let found = found(&is_called).or_else(|| found(&was_called));
        found.ok_or_else(|| known(&self.all, &names))
    }

    fn names_of(&self, thread: Thread) -> Option<&ThreadNames> {
        self.names.get(usize::from(thread.0))
    }
}

/// The busiest threads, without duplicate names per machine.
fn known(all: &[(Thread, u64)], names: &Names<'_>) -> Vec<(String, String)> {
    let mut known = Vec::new();
    for (thread, _) in all {
        let entry = (names.machine(thread.0), names.thread(*thread, None));
        if known.len() < MAX_KNOWN && !known.contains(&entry) {
            known.push(entry);
        }
    }
    known
}

/// Whether a recording has switches and wake-ups, by the ids of its events.
pub(super) fn has_scheduler(recording: &Recording, event_ids: &[u16]) -> bool {
    let has = |name: &str| {
        let format = recording.formats().by_name(name);
        format.is_some_and(|format| event_ids.binary_search(&format.id()).is_ok())
    };
    has("sched:sched_switch") && (has("sched:sched_waking") || has("sched:sched_wakeup"))
}
