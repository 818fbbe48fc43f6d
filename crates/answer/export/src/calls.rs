//! Calls of kernel functions: a track for each thread, on which callees lie within their callers.

use analyses::calls::{CallQuestion, CallSink, Called, Function, calls};
use rustc_hash::FxHashMap;

use crate::walk::Walk;
use crate::{Role, Scene, Slice, TimelineWriter, Track};

/// The key of a thread with calls: its recording, its id and, for an idle task, the CPU.
pub(crate) type CallThread = (usize, u32, Option<u16>);

/// The export needs no stacks.
const NO_STACKS: CallQuestion = CallQuestion { patterns: Vec::new(), most_stacks: 0 };

impl Scene {
    /// Adds tracks for the threads whose calls were recorded together with their returns.
    pub(crate) fn find_calls(
        &mut self,
        recordings: &[sources::Recording],
        progress: &(dyn Fn(u64) + Sync),
    ) {
        for (recording, source) in recordings.iter().enumerate() {
            if self.has_calls.get(recording) != Some(&true) {
                continue;
            }
            let mut threads = Threads::default();
            calls(source, &NO_STACKS, &mut threads, progress);
            let mut threads: Vec<_> = threads.0.into_iter().collect();
            // Threads with most calls first.
            threads.sort_unstable_by_key(|&(thread, count)| (u64::MAX - count, thread));
            let Some(group) = (!threads.is_empty()).then(|| self.call_group(recording)) else {
                continue;
            };
            for ((thread, idle_cpu), _) in threads {
                let name = match idle_cpu {
                    Some(cpu) => format!("idle of CPU {cpu}"),
                    None => format!("{} {thread}", self.thread_name(recording, thread)),
                };
                let number = idle_cpu.map_or(thread, u32::from);
                let role = Role::Calls;
                let at = self.tracks.len();
                let thread_id = Some(thread);
                self.tracks.push(Track { group, recording, name, role, number, thread: thread_id });
                self.calls.insert((recording, thread, idle_cpu), at);
            }
        }
    }
}

/// Threads with calls, and the number of their calls.
#[derive(Default)]
struct Threads(FxHashMap<(u32, Option<u16>), u64>);

impl CallSink for Threads {
    fn call(&mut self, call: &Called, _: &Function) {
        *self.0.entry((call.thread, call.idle_cpu)).or_default() += 1;
    }
}

/// Writes the calls of all recordings, a callee before its caller.
pub(crate) fn write_calls<W: TimelineWriter>(
    walk: &mut Walk<'_, W>,
    recordings: &[sources::Recording],
    progress: &(dyn Fn(u64) + Sync),
) {
    for (recording, source) in recordings.iter().enumerate() {
        if walk.scene.calls.keys().any(|(index, ..)| *index == recording) {
            let titles = FxHashMap::default();
            calls(source, &NO_STACKS, &mut Slices { walk, recording, titles }, progress);
        }
    }
}

struct Slices<'w, 'q, W> {
    walk: &'w mut Walk<'q, W>,
    recording: usize,
    titles: FxHashMap<u32, String>,
}

impl<W: TimelineWriter> CallSink for Slices<'_, '_, W> {
    fn call(&mut self, call: &Called, function: &Function) {
        let thread = (self.recording, call.thread, call.idle_cpu);
        let Some(&track) = self.walk.scene.calls.get(&thread) else { return };
        let name = self.titles.entry(call.function).or_insert_with(|| function.title());
        let (from_ns, to_ns) = (call.from_ns, call.to_ns);
        self.walk.slice(track, &Slice { from_ns, to_ns, name, category: "call", args: &[] });
    }
}
