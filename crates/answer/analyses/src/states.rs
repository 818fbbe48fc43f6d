//! States of vCPUs, guest threads and CPUs over time.
//!
//! ```text
//!  host    entry ─────────────┐ irq  kvm_exit ── kvm_userspace_exit ── … ─── entry
//!  guest     thread A │ irq │ B │                                               B
//!  vCPU     guest-user│irq  │user│before-exit│ exit-kernel │ exit-user │ …    │ user
//! ```
//! The host's part is that of the exits report (`timeline::cycles`). The guest's part comes from its own
//! recording, converted to the host's clock. Sinks receive spans as soon as they are final: memory only holds the
//! events between an entry and the next one.

mod apart;
mod guest;
mod occupancy;
mod pass;
mod roles;
mod span;
mod wanted;
mod weave;

use rustc_hash::FxHashMap;
use sources::Recording;
use timeline::cycles::each_cycle;
use timeline::reading::{Reading, Task};
use timeline::trace_events::TraceEventPass;
use timeline::{VcpuInfo, Vm, group_vms};

use crate::recorded::RecordedParts;
use crate::view::View;
use apart::on_own_thread;
use pass::Pass;

pub(crate) use wanted::{HandlerEdge, HandlerSources, handler_of};

pub use guest::GuestEventKinds;
pub use roles::{Part, Role, Roles};
pub use span::{ExitOf, GuestCpu, OccupantSpan, StateSink, StateSpan, VcpuRef, VcpuState};
pub use wanted::StateNeeds;
pub use weave::GuestFit;

/// Results of a pass over states besides those of its sink.
#[derive(Debug)]
pub struct States {
    /// vCPUs by recording; [`VcpuRef::index`] is the index in the inner vector.
    pub vcpus: Vec<Vec<VcpuInfo>>,
    /// VMs by recording.
    pub vms: Vec<Vec<Vm>>,
    /// By recording: states of vCPUs that it has events for.
    pub recorded: Vec<RecordedParts>,
    /// By guest's recording: kinds of events in it; `None` for hosts.
    pub guest_events: Vec<Option<GuestEventKinds>>,
    /// Aligned guests' recordings, and how well they fit their hosts'.
    pub placed: Vec<(usize, GuestFit)>,
    /// By recording: threads created during it, each with its creator.
    makers: Vec<FxHashMap<u32, u32>>,
    /// The remaining results of the pass: losses, thread names, times.
    pub pass: TraceEventPass,
}

/// Gives `sink` the states in all recordings of `view`, including aligned guests. `progress` receives the number
/// of bytes read.
pub fn states<S: StateSink>(
    view: View<'_>,
    sink: &mut S,
    progress: &(dyn Fn(u64) + Sync),
) -> States {
    let reading = Reading::on_one_clock(view.recordings);
    read(view, sink, (&reading, &mut []), progress)
}

/// Gives several sinks the states, in one pass with other tasks. Sinks that need no events run on a second thread.
pub fn states_for_all(
    view: View<'_>,
    sinks: Vec<&mut dyn StateSink>,
    (reading, tasks): (&Reading<'_>, &mut [&mut dyn Task]),
    progress: &(dyn Fn(u64) + Sync),
) -> States {
    let needs_events = |sink: &&mut dyn StateSink| sink.needs().events;
    let (mut with_events, without): (Vec<_>, Vec<_>) = sinks.into_iter().partition(needs_events);
    if without.is_empty() {
        return read(view, &mut with_events, (reading, tasks), progress);
    }
    on_own_thread(without, |sender| {
        let mut sinks: Vec<&mut dyn StateSink> = vec![sender];
        for sink in with_events {
            sinks.push(sink);
        }
        read(view, &mut sinks, (reading, tasks), progress)
    })
}

fn read<S: StateSink>(
    view: View<'_>,
    sink: &mut S,
    (reading, tasks): (&Reading<'_>, &mut [&mut dyn Task]),
    progress: &(dyn Fn(u64) + Sync),
) -> States {
    let mut pass = Pass::new(view, sink);
    let mut events = reading.trace_events(&mut pass);
    let mut all: Vec<&mut dyn Task> = vec![&mut events];
    for task in tasks {
        all.push(*task);
    }
    reading.run(&mut all, progress);
    let events = events.finish();
    states_of(view, pass, events)
}

/// [`states`] for a sink that does not need an order across vCPUs and CPUs. Recordings are read thread by thread,
/// like for exits, which needs no order across CPUs. Exceptions are read in the order of time: guests' recordings,
/// events in several buffers, and damage. After damage, states become unknown at other points if CPUs are read
/// separately, so a new sink reads damaged recordings in order and all analyses of them agree.
pub fn states_by_thread<S: StateSink + Default>(
    view: View<'_>,
    sink: &mut S,
    progress: &(dyn Fn(u64) + Sync),
) -> States {
    let View { recordings, guests } = view;
    let is_alone = |recording: &Recording| {
        recording.peer().is_none() && has_one_buffer(recording) && recording.damage().is_empty()
    };
    if !guests.is_empty() || !recordings.iter().all(is_alone) {
        return states(view, sink, progress);
    }
    let mut pass = Pass::new(view, sink);
    let mut events = TraceEventPass::default();
    for (at, recording) in recordings.iter().enumerate() {
        let mut by_thread = pass.by_thread(at);
        let found = each_cycle(recording, &mut by_thread, progress);
        events.append(by_thread.finish(found));
    }
    if events.losses.iter().any(|losses| losses.damage.count() > 0) {
        drop(pass);
        *sink = S::default();
        return states(view, sink, progress);
    }
    states_of(view, pass, events)
}

/// Whether all events of a recording are in one buffer.
fn has_one_buffer(recording: &Recording) -> bool {
    let mut buffers = recording.streams().iter().map(sources::Stream::buffer);
    let first = buffers.next();
    buffers.all(|buffer| Some(buffer) == first)
}

/// The results for recordings that have been read.
fn states_of<S: StateSink>(view: View<'_>, pass: Pass<'_, S>, events: TraceEventPass) -> States {
    let View { recordings, .. } = view;
    let outcome = pass.finish(&events.spans_ns);
    let pairs = recordings.iter().zip(&outcome.vcpus);
    let vms = pairs.map(|(recording, vcpus)| group_vms(recording, vcpus)).collect();
    let seen = recordings.iter().zip(&outcome.seen);
    States {
        vcpus: outcome.vcpus,
        vms,
        recorded: seen.map(|(recording, &seen)| RecordedParts::new(recording, seen)).collect(),
        guest_events: outcome.guest_events,
        placed: outcome.placed,
        makers: outcome.makers,
        pass: events,
    }
}
