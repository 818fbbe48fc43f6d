//! Calls that guests' kernel modules reported to their hosts by hypercall or in memory.
//!
//! The module reports no depth: a call is one level deeper than the innermost open call, and a return ends the
//! innermost call of its function. If events of a CPU are missing, the calls of threads that may have run there
//! end, like after losses of the kernel.

use std::collections::BTreeMap;

use ftrace::eventfmt::Kallsyms;
use hypertrace::{Call, Event, Kind, Task};
use rustc_hash::FxHashMap;
use sources::Recording;
use timeline::Losses;

use super::follower::CallFollower;
use super::functions::Functions;
use super::tree::CallTree;
use super::{CallQuestion, CallTracer, RecordedCalls};
use crate::hypertrace::{
    Carrier, GuestEvent, GuestEventSink, HypertraceFiles, HypertraceSummary, VcpuThread, hypertrace,
};

/// The name of the guest that a vCPU thread belongs to.
type GuestOf<'g> = &'g (dyn Fn(VcpuThread) -> String + Sync);

#[derive(Debug)]
pub struct GuestCalls {
    /// Name of the guest.
    pub guest: String,
    /// Its calls; the losses include those of its streams and of the host's recorder.
    pub calls: RecordedCalls,
}

/// The calls that guests reported in `recordings` and `files`, as [`hypertrace`](hypertrace()) reads them;
/// `guest_of` maps vCPU threads to names of guests.
pub fn guest_calls(
    recordings: &[Recording],
    files: HypertraceFiles<'_>,
    number: u64,
    guest_of: GuestOf<'_>,
    question: &CallQuestion,
    progress: &(dyn Fn(u64) + Sync),
) -> Vec<GuestCalls> {
    let nanoseconds = recordings.iter().all(Recording::is_nanoseconds);
    let mut kinds = Kinds::default();
    hypertrace(recordings, files, number, &mut kinds, progress);
    if kinds.returns.is_empty() {
        return Vec::new();
    }
    let mut by_guest = BTreeMap::<String, bool>::new();
    for (from, returns) in kinds.returns {
        *by_guest.entry(guest_of(from)).or_default() |= returns;
    }
    let symbols = Kallsyms::default();
    let follower = |(guest, returns)| {
        let (functions, tree) = (Functions::new(&symbols), CallTree::new(question.most_stacks));
        let mut follower = CallFollower::new(functions, tree, nanoseconds, ());
        follower.tracer = Some(CallTracer::Module { returns });
        Guest { name: guest, follower, returns }
    };
    let guests = by_guest.into_iter().map(follower).collect();
    let mut guests = Guests { guest_of, guests, of_thread: FxHashMap::default() };
    let summary = hypertrace(recordings, files, number, &mut guests, &|_| ());
    let calls = guests.guests.into_iter().map(|Guest { name: guest, mut follower, .. }| {
        follower.finish();
        let names: Vec<_> =
            follower.threads.iter().map(|thread| thread.calls.name.clone()).collect();
        let losses = losses_of(&guest, &summary, guest_of);
        let mut calls = follower.totals().named(nanoseconds, &question.patterns, losses);
        calls.threads.iter_mut().zip(names).for_each(|(thread, name)| thread.name = name);
        GuestCalls { guest, calls }
    });
    calls.collect()
}

/// Losses in a guest's streams; frames are uncounted losses.
fn losses_of(guest: &str, summary: &HypertraceSummary, guest_of: GuestOf<'_>) -> Losses {
    let mut sum = Losses::default();
    for stream in summary.streams.iter().filter(|stream| guest_of(stream.from) == guest) {
        let lost = &stream.losses;
        let events = [lost.events_dropped, lost.events_missing];
        let frames = [lost.frames_lost, lost.frames_damaged, lost.frames_unknown, lost.frames_cut];
        sum.events_lost = events.into_iter().fold(sum.events_lost, u64::saturating_add);
        sum.uncounted_losses = frames.into_iter().fold(sum.uncounted_losses, u64::saturating_add);
        if let Some(host) = summary.losses.get(usize::from(stream.from.recording)) {
            sum.damage.clone_from(&host.damage);
            sum.doubt.clone_from(&host.doubt);
        }
    }
    sum
}

/// vCPUs that reported calls, and whether they report returns, which is only known at the end.
#[derive(Default)]
struct Kinds {
    returns: BTreeMap<VcpuThread, bool>,
}

impl GuestEventSink for Kinds {
    fn event(&mut self, from: VcpuThread, event: &GuestEvent, _: &Carrier) {
        if let GuestEvent::Event(Event { kind: Kind::Call { what, .. }, .. }) = event {
            *self.returns.entry(from).or_default() |= *what == Call::Exit;
        }
    }
}

struct Guests<'g, 'k> {
    guest_of: GuestOf<'g>,
    /// Guests with calls.
    guests: Vec<Guest<'k>>,
    /// Indexes of guests by thread: caches `guest_of`, so that it runs once per thread and not per event.
    of_thread: FxHashMap<VcpuThread, Option<usize>>,
}

struct Guest<'k> {
    name: String,
    follower: CallFollower<'k, ()>,
    returns: bool,
}

impl GuestEventSink for Guests<'_, '_> {
    fn event(&mut self, from: VcpuThread, event: &GuestEvent, _: &Carrier) {
        let GuestEvent::Event(event) = event else { return };
        let Self { guest_of, guests, of_thread } = self;
        let at = of_thread.entry(from).or_insert_with(|| {
            let name = guest_of(from);
            guests.iter().position(|guest| guest.name == name)
        });
        if let Some(guest) = at.and_then(|at| guests.get_mut(at)) {
            guest.event(event);
        }
    }
}

impl Guest<'_> {
    fn event(&mut self, event: &Event) {
        if event.after_loss {
            self.follower.lost(event.cpu, event.stamp_ns);
        }
        match &event.kind {
            Kind::Switch { next, .. } => {
                let [prev, next] = [event.running, *next].map(|task| Some(task?.pid));
                self.follower.switched(event.cpu, event.stamp_ns, prev, next);
            }
            Kind::Call { address: Some(address), name, what } => {
                let Some(number) = self.follower.functions.named(*address, name.as_deref()) else {
                    return;
                };
                match event.running {
                    Some(task) => self.call(event, task, number, *what),
                    None => self.of_nobody(number, *what),
                }
            }
            // The function is unknown, so the depth of the next calls is unknown as well.
            Kind::Call { address: None, .. } => self.follower.lost(event.cpu, event.stamp_ns),
            _ => {}
        }
    }

    fn call(&mut self, event: &Event, task: Task, number: u32, what: Call) {
        let Some(at) = self.follower.thread(task.pid, event.cpu, event.stamp_ns) else { return };
        let Some(thread) = self.follower.threads.get_mut(at) else { return };
        if thread.calls.name.as_ref().is_none_or(|name| name.as_bytes() != task.comm()) {
            thread.calls.name = Some(String::from_utf8_lossy(task.comm()).into_owned());
        }
        let frames = thread.stack.frames();
        let depth_of = |number| frames.iter().rev().find(|frame| frame.function == number);
        match what {
            Call::Entry if !self.returns => self.follower.called(at, number, None),
            Call::Entry => {
                let depth = frames.last().map_or(0, |caller| caller.depth.saturating_add(1));
                self.follower.enter(at, number, depth, event.stamp_ns);
            }
            Call::Exit => match depth_of(number).map(|call| call.depth) {
                Some(depth) => self.follower.leave(at, number, depth, event.stamp_ns, None),
                None => self.of_nobody(number, what),
            },
        }
    }

    /// Counts a call or return without a thread, or without its other end.
    fn of_nobody(&mut self, number: u32, what: Call) {
        let Some(function) = self.follower.functions.get_mut(number) else { return };
        function.events += 1;
        match what {
            Call::Entry if !self.returns => function.count += 1,
            Call::Entry => function.without_return += 1,
            Call::Exit => function.without_call += 1,
        }
    }
}
