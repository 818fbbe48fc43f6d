//! Handlers of interrupts and soft interrupts, of hosts and guests: how often, how long, whom they interrupted, and of a
//! guest's what the host took of their time.
//!
//! A handler lasts from its `*_entry` to its `*_exit` event on the same CPU. Its own time is without handlers that
//! interrupted it, so that own times add up. Where a guest's recording lies over its host's, the time in which its vCPU was
//! not in the guest is known: a handler that "took 5 ms" may have run for 20 us.

mod names;
mod open_handlers;
mod sink;
mod sources;
mod sums;

use std::cmp::Reverse;

use ::sources::Recording;
use timeline::Losses;
use timeline::trace_events::each_trace_event_and_names;

use self::names::Names;
use self::sink::IrqSink;
use self::sources::{IRQ_NAMES, Sources};
use crate::align::GuestAlignment;
use crate::machine_names::machine_names;
use crate::states::{Besides, states_by};

pub use self::sources::HandlerKind;
pub(crate) use self::sources::softirq_name;
pub use self::sums::HandlerSums;

/// What rows are of, within a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A handler on all CPUs.
    Handler,
    /// A handler on one CPU.
    Cpu,
    /// A handler while one thread had the CPU.
    Thread,
}

/// Handlers of one kind and name.
#[derive(Clone, Debug)]
pub struct HandlerRow {
    /// Index of the recording.
    pub recording: usize,
    /// The kind.
    pub kind: HandlerKind,
    /// Number of the interrupt, or of the soft one; `None`: it has none.
    pub number: Option<u64>,
    /// Of an interrupt what its handler is called, of a soft one and a vector the kernel's name.
    pub name: Option<String>,
    /// The CPU, of [`By::Cpu`].
    pub cpu: Option<u32>,
    /// Id of the thread that was interrupted, and its name, of [`By::Thread`].
    pub thread: Option<(u32, Option<String>)>,
    /// The numbers.
    pub sums: HandlerSums,
}

/// Handlers of interrupts of some recordings that are read as one.
#[derive(Debug)]
pub struct Irqs {
    /// Those with most of their own time first, by machine.
    pub rows: Vec<HandlerRow>,
    /// By recording, what its machine is called.
    pub machines: Vec<String>,
    /// By recording, its first and last time.
    pub spans_ns: Vec<Option<(u64, u64)>>,
    /// By recording: whether it has events for handlers.
    pub is_recorded: Vec<bool>,
    /// Ends of handlers that began before the recording or while events were lost.
    pub ends_alone: u64,
    /// Handlers for which no row was left.
    pub left_out: u64,
    /// By recording.
    pub losses: Vec<Losses>,
    /// Whether times are nanoseconds.
    pub nanoseconds: bool,
}

/// Whether a recording can have events of handlers: known before it is read.
#[must_use]
pub fn has_handlers(recording: &Recording) -> bool {
    let sources = Sources::new(std::slice::from_ref(recording));
    recording.formats().iter().any(|(_, format)| sources.of(format).is_some())
}

/// The handlers of `recordings`, of which `guests` says who is whose guest; they must have been applied. `tick` gets the
/// bytes done.
#[must_use]
pub fn irqs(
    recordings: &[Recording],
    guests: &[GuestAlignment],
    by: By,
    tick: &(dyn Fn(u64) + Sync),
) -> Irqs {
    let sources = Sources::new(recordings);
    let mut sink = IrqSink::new(guests, by);
    let source_of = |format: &eventfmt::EventFormat| sources.of(format);
    let besides = Besides::Handlers(&source_of);
    let (states, names) = states_by(recordings, guests, besides, &mut sink, |asked| {
        each_trace_event_and_names(recordings, asked, IRQ_NAMES, tick)
    });
    let (sums, ends_alone) = sink.finish();
    let named = Names { recordings, sources: &sources, irqs: &names, threads: &states.pass.names };
    let left_out = sums.left_out;
    let mut rows: Vec<HandlerRow> =
        sums.rows.into_iter().map(|(key, sums)| named.row(by, key, sums)).collect();
    rows.sort_by_key(|row| (row.recording, Reverse((row.sums.own_ns, row.sums.begun))));
    Irqs {
        rows,
        machines: machine_names(recordings, guests),
        spans_ns: states.pass.spans_ns,
        is_recorded: recordings.iter().map(has_handlers).collect(),
        ends_alone,
        left_out,
        losses: states.pass.losses,
        nanoseconds: recordings.iter().all(Recording::is_nanoseconds),
    }
}
