//! Recounts calls from entries and exits alone, without a stack: an exit belongs to the last open entry of its
//! thread, function and depth. Of two calls that contain the same time, the one that started later is the inner
//! one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use analyses::calls::{CallQuestion, RecordedCalls, calls};
use ftrace::eventfmt::EventFormat;
use serde_json::Value;
use sources::Recording;
use timeline::reading::each_trace_event;
use timeline::trace_events::{EventRequest, Gap, TraceEvent, TraceEventSink, WantsTraceEvents};

/// Start and end in nanoseconds.
pub(crate) type Span = (u64, u64);

/// Counts of a function: calls, self time, off-CPU time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) calls: u64,
    pub(crate) self_ns: i64,
    pub(crate) off_cpu_ns: u64,
}

/// Splits a thread's time at starts and ends of calls, and assigns each piece to the innermost call. Off-CPU time
/// belongs to the innermost call at its end, because the switch event comes from a traced function that ends
/// before the thread leaves the CPU.
pub(crate) fn count_again(calls: &[(u64, Span)], off_cpu: &[Span]) -> BTreeMap<u64, Counted> {
    let mut counted: BTreeMap<u64, Counted> = BTreeMap::new();
    let mut cuts: Vec<u64> = off_cpu.iter().map(|&(_, to_ns)| to_ns).collect();
    for &(function, (from_ns, to_ns)) in calls {
        counted.entry(function).or_default().calls += 1;
        cuts.extend([from_ns, to_ns]);
    }
    cuts.sort_unstable();
    cuts.dedup();
    let mut by_begin: Vec<_> = calls.to_vec();
    by_begin.sort_by_key(|&(_, (from_ns, to_ns))| (from_ns, std::cmp::Reverse(to_ns)));
    let (mut next, mut open) = (by_begin.into_iter().peekable(), Vec::new());
    for piece in cuts.windows(2) {
        open.extend(std::iter::from_fn(|| next.next_if(|(_, (from_ns, _))| *from_ns <= piece[0])));
        open.retain(|(_, (_, to_ns))| *to_ns >= piece[1]);
        let Some((function, _)) = open.last() else { continue };
        let function_counts = counted.get_mut(function).unwrap();
        function_counts.self_ns += (piece[1] - piece[0]) as i64;
        for (from_ns, to_ns) in off_cpu.iter().filter(|(_, to_ns)| *to_ns == piece[1]) {
            function_counts.self_ns -= (to_ns - from_ns) as i64;
            function_counts.off_cpu_ns += to_ns - from_ns;
        }
    }
    counted
}

/// The analysis' result in the same form.
pub(crate) fn found(calls: &RecordedCalls) -> BTreeMap<u64, Counted> {
    let called = calls.functions.iter().filter(|function| function.count > 0);
    let counted = called.map(|function| {
        let (calls, self_ns, off_cpu_ns) =
            (function.count, function.self_ns as i64, function.off_cpu_ns);
        (function.address, Counted { calls, self_ns, off_cpu_ns })
    });
    counted.collect()
}

/// Entries and exits of a recording by thread.
#[derive(Default)]
struct Raw {
    open: BTreeMap<(u32, u64, u64), Vec<u64>>,
    calls: BTreeMap<u32, Vec<(u64, Span)>>,
    away: BTreeMap<u32, u64>,
    off_cpu: BTreeMap<u32, Vec<Span>>,
    seen: BTreeMap<u32, Span>,
    entries: u64,
    exits_alone: u64,
}

impl WantsTraceEvents for Raw {
    fn wanted(&self, _: usize, format: &EventFormat) -> Option<EventRequest> {
        let (tag, fields): (u16, &'static [&'static str]) = match format.name() {
            "funcgraph_entry" => (0, &["func", "depth"]),
            "funcgraph_exit" => (1, &["func", "depth", "calltime", "rettime"]),
            "sched_switch" => (2, &["prev_pid", "next_pid"]),
            _ => return None,
        };
        Some(EventRequest { tag, fields })
    }
}

impl TraceEventSink for Raw {
    fn event(&mut self, event: &TraceEvent) {
        let value = |at| event.value(at).unwrap();
        let mut threads = vec![event.thread];
        match event.tag {
            0 => {
                self.entries += 1;
                let key = (event.thread, value(0), value(1));
                self.open.entry(key).or_default().push(event.stamp_ns);
            }
            1 => {
                let entry = self.open.get_mut(&(event.thread, value(0), value(1)));
                match entry.and_then(Vec::pop) {
                    Some(_) => {
                        let call = (value(0), (value(2), value(3)));
                        self.calls.entry(event.thread).or_default().push(call);
                    }
                    None => self.exits_alone += 1,
                }
            }
            _ => {
                let (from, to) = (value(0) as u32, value(1) as u32);
                self.away.insert(from, event.stamp_ns);
                if let Some(since_ns) = self.away.remove(&to) {
                    self.off_cpu.entry(to).or_default().push((since_ns, event.stamp_ns));
                }
                threads = vec![from, to];
            }
        }
        for thread in threads {
            let seen = self.seen.entry(thread).or_insert((event.stamp_ns, event.stamp_ns));
            seen.1 = event.stamp_ns;
        }
    }

    fn gap(&mut self, gap: &Gap) {
        panic!("the recounted recordings have lost nothing: {gap:?}");
    }
}

fn raw(recording: &Recording) -> Raw {
    let mut raw = Raw::default();
    each_trace_event(std::slice::from_ref(recording), &mut raw, &|_| ());
    raw
}

/// Recordings whose truth has counts of call entries.
fn recordings() -> Vec<PathBuf> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures");
    let folders = fixtures.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let files = folders.filter(|path| path.is_dir()).flat_map(|folder| folder.read_dir().unwrap());
    let has_calls = |path: &Path| {
        let truth: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        truth["calls"]
            .as_object()
            .is_some_and(|calls| calls.values().any(|counts| counts["exits"].is_u64()))
    };
    let truths = files.map(|entry| entry.unwrap().path());
    let truths = truths.filter(|path| path.to_string_lossy().ends_with(".truth.json"));
    let with_calls = truths.filter(|path| has_calls(path));
    with_calls.map(|path| path.with_extension("").with_extension("dat")).collect()
}

#[test]
fn a_recount_of_entries_and_exits_gives_the_same_to_the_nanosecond() {
    let recordings = recordings();
    assert!(!recordings.is_empty());
    for path in recordings {
        let recording = sources::open(&path).unwrap();
        let raw = raw(&recording);
        let calls = calls(&recording, &CallQuestion::default(), &mut (), &|_| ());
        assert_eq!(
            calls.sum(|function| function.count + function.without_return),
            raw.entries,
            "{path:?}"
        );
        assert_eq!(calls.sum(|function| function.without_call), raw.exits_alone, "{path:?}");
        let mut again: BTreeMap<u64, Counted> = BTreeMap::new();
        for (thread, of_thread) in &raw.calls {
            let off_cpu = raw.off_cpu.get(thread).map_or(&[][..], Vec::as_slice);
            let counted = count_again(of_thread, off_cpu);
            let known_ns: i64 = counted.values().map(|counts| counts.self_ns).sum();
            let away_ns: u64 = off_cpu.iter().map(|(from_ns, to_ns)| to_ns - from_ns).sum();
            let thread_calls =
                calls.threads.iter().find(|thread_calls| thread_calls.thread == *thread).unwrap();
            let (first_ns, last_ns) = raw.seen[thread];
            let unaccounted_ns = last_ns - first_ns - known_ns as u64 - away_ns;
            assert_eq!(thread_calls.unaccounted_ns(), unaccounted_ns, "{path:?} {thread}");
            for (function, more) in counted {
                let sum = again.entry(function).or_default();
                sum.calls += more.calls;
                sum.self_ns += more.self_ns;
                sum.off_cpu_ns += more.off_cpu_ns;
            }
        }
        let title = |address| {
            calls.functions.iter().find(|function| function.address == address).unwrap().title()
        };
        // The tracer's address is a few bytes into the function.
        let begins: BTreeSet<u64> = found(&calls).into_keys().collect();
        for (address, found) in found(&calls) {
            let of_it = |raw: &u64| begins.range(..=raw).next_back() == Some(&address);
            let counted = again.iter().filter(|(raw, _)| of_it(raw));
            let counted: Vec<&Counted> = counted.map(|(_, counts)| counts).collect();
            assert_eq!(counted, [&found], "{path:?} {}", title(address));
        }
    }
}
