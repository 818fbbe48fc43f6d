//! What every vCPU, every thread of a guest and every CPU did when: states over time.
//!
//! ```text
//!  host    entry ─────────────┐ irq  kvm_exit ── kvm_userspace_exit ── … ─── entry
//!  guest     thread A │ irq │ B │                                               B
//!  vCPU     guest-user│irq  │user│before-exit│ exit-kernel │ exit-user │ …    │ user
//! ```
//! The host's side is that of the exits report (`timeline::cycles`); what the guest did is taken from
//! its own recording, brought to the host's clock. Spans are given away as soon as they are certain:
//! nothing is kept but what lies between an entry and the next.

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

/// What a pass over states leaves besides what its sink gathered.
#[derive(Debug)]
pub struct States {
    /// By recording: its vCPUs, which [`VcpuRef::index`] counts.
    pub vcpus: Vec<Vec<VcpuInfo>>,
    /// By recording: its vCPUs put together.
    pub vms: Vec<Vec<Vm>>,
    /// By recording: which states of vCPUs it has events for.
    pub recorded: Vec<RecordedParts>,
    /// By recording made in a guest: what it has events for.
    pub guest_events: Vec<Option<GuestEventKinds>>,
    /// By guest's recording that was laid over its host's, how well it fits.
    pub placed: Vec<(usize, GuestFit)>,
    /// By recording: threads made while it was recorded, each with the thread that made it.
    makers: Vec<FxHashMap<u32, u32>>,
    /// What else the pass gives: losses, names of threads, times.
    pub pass: TraceEventPass,
}

/// Gives `sink` the states of all that a view's recordings show, guests among them that were brought to their hosts' clocks.
/// `progress` gets the number of bytes read.
pub fn states<S: StateSink>(
    view: View<'_>,
    sink: &mut S,
    progress: &(dyn Fn(u64) + Sync),
) -> States {
    let reading = Reading::on_one_clock(view.recordings);
    read(view, sink, (&reading, &mut []), progress)
}

/// Gives several sinks the states, of one reading that other tasks take part in. Sinks that need no events take their states
/// on another thread.
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

/// [`states`] for a sink to which the order of different vCPUs and CPUs means nothing. Where no recording was made in a
/// guest, and none has an event in several buffers, recordings are read thread by thread, as for exits: that needs no order
/// of all CPUs. Where something can't be read, what is not known after it begins in another place when CPUs are read apart:
/// those recordings are read in order, too, into a sink that is new, so that all answers about them agree.
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

/// The states of recordings that have been read.
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
