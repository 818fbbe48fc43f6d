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

mod aside;
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
use timeline::trace_events::{Asked, TraceEventPass, each_trace_event};
use timeline::{VcpuInfo, Vm, group_vms};

use crate::recorded::Recorded;
use crate::view::View;
use pass::Pass;
use wanted::wanted_of_cpus;

pub(crate) use wanted::{Besides, HandlerEdge, handler_of};

pub(crate) use aside::aside;
pub use aside::states_aside;
pub use guest::GuestEventKinds;
pub use roles::{Part, Role, Roles};
pub use span::{ExitOf, GuestCpu, OccupantSpan, StateSink, StateSpan, VcpuRef, VcpuState};
pub use weave::GuestFit;

/// What a pass over states leaves besides what its sink gathered.
#[derive(Debug)]
pub struct States {
    /// By recording: its vCPUs, which [`VcpuRef::index`] counts.
    pub vcpus: Vec<Vec<VcpuInfo>>,
    /// By recording: its vCPUs put together.
    pub vms: Vec<Vec<Vm>>,
    /// By recording: which states of vCPUs it has events for.
    pub recorded: Vec<Recorded>,
    /// By recording made in a guest: what it has events for.
    pub guest_events: Vec<Option<GuestEventKinds>>,
    /// By guest's recording that was laid over its host's, how well it fits.
    pub placed: Vec<(usize, GuestFit)>,
    /// By recording: threads made while it was recorded, each with the thread that made it.
    makers: Vec<FxHashMap<u32, u32>>,
    /// What else the pass gives: losses, names of threads, times.
    pub pass: TraceEventPass,
}

/// Gives `sink` the states of all that `recordings` show. `guests` says which of them is whose
/// guest: see [`crate::align::align`]; they must have been applied. `tick` hears of the bytes done.
pub fn states<S: StateSink>(view: View<'_>, sink: &mut S, tick: &(dyn Fn(u64) + Sync)) -> States {
    read_states(view, Besides::default(), sink, tick)
}

/// [`states`] for a sink to which the order of different vCPUs and CPUs means nothing. Where no recording was made in a
/// guest, and none has an event in several buffers, recordings are read thread by thread, as for exits: that needs no order
/// of all CPUs. Where something can't be read, what is not known after it begins in another place when CPUs are read apart:
/// those recordings are read in order, too, into a sink that is new, so that all answers about them agree.
pub fn states_by_thread<S: StateSink + Default>(
    view: View<'_>,
    sink: &mut S,
    tick: &(dyn Fn(u64) + Sync),
) -> States {
    let View { recordings, guests } = view;
    let is_alone =
        |one: &Recording| one.peer().is_none() && has_one_buffer(one) && one.damage().is_empty();
    if !guests.is_empty() || !recordings.iter().all(is_alone) {
        return states(view, sink, tick);
    }
    let mut pass = Pass::new(recordings, guests, sink);
    let mut events = TraceEventPass::default();
    for (at, recording) in recordings.iter().enumerate() {
        let wanted = |_: usize, format: &eventfmt::EventFormat| wanted_of_cpus(recording, format);
        let mut one = pass.one_by_thread(at);
        let found = each_cycle(recording, Asked { wanted: &wanted, sink: &mut one }, tick);
        events.append(one.finish(found));
    }
    if events.losses.iter().any(|losses| losses.damage.count() > 0) {
        drop(pass);
        *sink = S::default();
        return states(view, sink, tick);
    }
    states_of(recordings, pass, events)
}

/// Whether all events of a recording are in one buffer.
fn has_one_buffer(recording: &Recording) -> bool {
    let mut buffers = recording.streams().iter().map(sources::Stream::buffer);
    let first = buffers.next();
    buffers.all(|one| Some(one) == first)
}

/// [`states`] with [`ExitOf::guest_pc`].
pub(crate) fn states_with_pc<S: StateSink>(
    view: View<'_>,
    sink: &mut S,
    tick: &(dyn Fn(u64) + Sync),
) -> States {
    let besides = Besides { guest_pc: true, ..Besides::default() };
    read_states(view, besides, sink, tick)
}

fn read_states<S: StateSink>(
    view: View<'_>,
    besides: Besides<'_>,
    sink: &mut S,
    tick: &(dyn Fn(u64) + Sync),
) -> States {
    let View { recordings, .. } = view;
    let read = |asked: Asked<'_, Pass<'_, S>>| {
        (each_trace_event(recordings, asked.wanted, asked.sink, tick), ())
    };
    states_by(view, besides, sink, read).0
}

/// [`states`] of what `read` reads, which may give something else, too.
pub(crate) fn states_by<S: StateSink, R>(
    view: View<'_>,
    besides: Besides<'_>,
    sink: &mut S,
    read: impl FnOnce(Asked<'_, Pass<'_, S>>) -> (TraceEventPass, R),
) -> (States, R) {
    let View { recordings, guests } = view;
    let mut pass = Pass::new(recordings, guests, sink);
    let is_guest = pass.guests();
    let wanted = |at: usize, format: &eventfmt::EventFormat| {
        let recording = recordings.get(at)?;
        wanted::wanted(recording, format, is_guest.get(at) == Some(&true), besides)
    };
    let (events, more) = read(Asked { wanted: &wanted, sink: &mut pass });
    (states_of(recordings, pass, events), more)
}

/// The states of recordings that have been read.
fn states_of<S: StateSink>(
    recordings: &[Recording],
    pass: Pass<'_, S>,
    events: TraceEventPass,
) -> States {
    let left = pass.finish(&events.spans_ns);
    let pairs = recordings.iter().zip(&left.vcpus);
    let vms = pairs.map(|(recording, vcpus)| group_vms(recording, vcpus)).collect();
    let seen = recordings.iter().zip(&left.seen);
    States {
        vcpus: left.vcpus,
        vms,
        recorded: seen.map(|(recording, &seen)| Recorded::new(recording, seen)).collect(),
        guest_events: left.guest_events,
        placed: left.placed,
        makers: left.makers,
        pass: events,
    }
}
