//! Selects the buffer for a thread's exits if a recording has several.
//!
//! An event that is enabled in two buffers is recorded twice, a short time apart, and the second
//! record still precedes the thread's next action. Most repeated events are harmless: a thread that
//! is off CPU cannot go off CPU again. Exits, entries and wake-ups of a halted vCPU are read from a
//! single buffer, their *giver*: the buffer in which the thread first had an event of that kind.
//!
//! Givers are selected per thread, because each instance can record the threads of one VM, and per
//! kind, because an instance can record exits without entries.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use sources::Recording;

use crate::rounds::Input;
use crate::thread_event::{Kind, ThreadEvent};

/// Instead of a stream: a CPU on which the thread has no event.
const ELSEWHERE: u16 = u16::MAX;

/// The machine and buffer of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StreamOrigin {
    buffer: usize,
    /// The first stream of the same CPU, in any buffer.
    cpu: u16,
}

/// The buffers of a recording, and the events that each gives to each thread.
#[derive(Debug)]
pub(crate) struct Buffers {
    /// By stream.
    origins: Vec<StreamOrigin>,
    several: bool,
    threads: FxHashMap<u32, EventSources>,
}

/// The buffers that give one thread's events.
#[derive(Debug, Default)]
struct EventSources {
    /// By kind: the buffer in which it first appeared.
    by_kind: [Option<usize>; Kind::COUNT],
    /// Time of the last event that was used.
    last_ns: u64,
    /// Buffers whose exits, entries or wake-ups were skipped.
    repeats: BTreeSet<usize>,
    /// Losses since the last entry or exit in buffers that have given no events so far, at most one
    /// per stream. They concern the thread if such a buffer gives the next event.
    not_yet: Vec<(StreamOrigin, ThreadEvent)>,
}

impl Buffers {
    pub(crate) fn new(inputs: &[Input<'_>]) -> Self {
        let mut cpus = FxHashMap::default();
        let origin = |(input, at): (&Input<'_>, u16)| StreamOrigin {
            buffer: input.stream.buffer(),
            cpu: *cpus.entry(input.stream.cpu()).or_insert(at),
        };
        let origins: Vec<StreamOrigin> = inputs.iter().zip(0..).map(origin).collect();
        let first = origins.first().map(|origin| origin.buffer);
        let several = origins.iter().any(|origin| Some(origin.buffer) != first);
        Self { origins, several, threads: FxHashMap::default() }
    }

    /// Whether several buffers have pages.
    pub(crate) fn are_several(&self) -> bool {
        self.several
    }

    /// Names of the buffers whose exits were skipped because another buffer has them, too.
    pub(crate) fn repeated(&self, recording: &Recording) -> Vec<String> {
        let repeated: BTreeSet<usize> =
            self.threads.values().flat_map(|sources| &sources.repeats).copied().collect();
        let names = &recording.info().buffers;
        repeated.iter().filter_map(|&buffer| Some(names.get(buffer)?.name.clone())).collect()
    }

    /// Copies a thread's events, each once, and the losses that may concern it. In the copies,
    /// `stream` identifies a CPU, independent of the buffer. `open` has earlier losses that may
    /// have begun before the thread's first event.
    pub(crate) fn once_each(
        &mut self,
        thread: u32,
        events: &[ThreadEvent],
        open: &[ThreadEvent],
        out: &mut Vec<ThreadEvent>,
    ) {
        let origin_of = |event: &ThreadEvent| self.origins.get(usize::from(event.stream)).copied();
        let first_ns = events.first().map_or(0, |event| event.stamp_ns);
        let sources = self.threads.entry(thread).or_insert_with(|| {
            let mut sources = EventSources::default();
            let earlier_losses = open.iter().filter(|loss| loss.stamp_ns < first_ns);
            let with_origin = earlier_losses.filter_map(|loss| Some((origin_of(loss)?, *loss)));
            with_origin.for_each(|(origin, loss)| sources.keep(origin, loss));
            sources
        });
        for event in events {
            let Some(origin) = origin_of(event) else { continue };
            let event = ThreadEvent { stream: origin.cpu, ..*event };
            if event.kind == Kind::Lost {
                out.extend(sources.loss(origin, event));
            } else if sources.takes(&event, origin.buffer) {
                sources.give(origin.buffer, event, out);
            }
        }
    }
}

impl EventSources {
    fn source(&self, kind: Kind) -> Option<usize> {
        self.by_kind.get(kind as usize).copied().flatten()
    }

    /// Whether to use an event of `buffer`: it is not a harmful repetition.
    fn takes(&mut self, event: &ThreadEvent, buffer: usize) -> bool {
        if self.source(event.kind).is_none_or(|source| source == buffer) {
            return true;
        }
        if matches!(event.kind, Kind::Exit | Kind::Entry | Kind::VcpuWakeup) {
            self.repeats.insert(buffer);
            return false;
        }
        // At equal times the order is unknown; a repetition follows its original.
        event.stamp_ns > self.last_ns
    }

    /// Adds an event; the first event of a kind also adds preceding losses in its buffer.
    fn give(&mut self, buffer: usize, event: ThreadEvent, out: &mut Vec<ThreadEvent>) {
        self.last_ns = event.stamp_ns;
        let was_vcpu = self.source(Kind::Exit).or(self.source(Kind::Entry)).is_some();
        let ends_guest_or_exit = matches!(event.kind, Kind::Exit | Kind::Entry);
        if !was_vcpu && !ends_guest_or_exit {
            return;
        }
        if !was_vcpu {
            // This is the vCPU's first event: nothing may precede it.
            out.push(event);
        }
        if self.source(event.kind).is_none() {
            self.now_gives(buffer, event, out);
        }
        if was_vcpu {
            out.push(event);
        }
        if ends_guest_or_exit {
            self.not_yet.retain(|(_, loss)| loss.value > event.stamp_ns);
        }
    }

    fn now_gives(&mut self, buffer: usize, first: ThreadEvent, out: &mut Vec<ThreadEvent>) {
        if let Some(source) = self.by_kind.get_mut(first.kind as usize) {
            *source = Some(buffer);
        }
        self.not_yet.retain(|(origin, loss)| {
            let its_own = origin.buffer == buffer;
            if its_own {
                out.push(ThreadEvent { stamp_ns: first.stamp_ns, stream: origin.cpu, ..*loss });
            }
            !its_own
        });
    }

    /// Adapts a loss to the thread. If a buffer has given no events, it is unknown what it would
    /// have given: its loss is not on the thread's own CPU, and matters only if the thread leaves
    /// that CPU.
    fn loss(&mut self, origin: StreamOrigin, loss: ThreadEvent) -> Option<ThreadEvent> {
        if self.by_kind.contains(&Some(origin.buffer)) {
            return Some(loss);
        }
        self.keep(origin, loss);
        // Until the giver of the thread's switches is known, it could be a buffer that repeats its
        // exits.
        let repeats =
            self.source(Kind::SchedOut).is_some() && self.repeats.contains(&origin.buffer);
        (!repeats).then_some(ThreadEvent { stream: ELSEWHERE, ..loss })
    }

    fn keep(&mut self, origin: StreamOrigin, loss: ThreadEvent) {
        let same = |pending: &&mut (StreamOrigin, ThreadEvent)| pending.0 == origin;
        match self.not_yet.iter_mut().find(same) {
            Some((_, pending_loss)) => pending_loss.value = pending_loss.value.max(loss.value),
            None => self.not_yet.push((origin, loss)),
        }
    }
}
