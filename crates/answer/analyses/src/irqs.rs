//! Handlers of interrupts and soft interrupts, of hosts and guests: how often, how long, whom they interrupted, and of a
//! guest's what the host took of their time.
//!
//! A handler lasts from its `*_entry` to its `*_exit` event on the same CPU. Its own time is without handlers that
//! interrupted it, so that own times add up. Where a guest's recording lies over its host's, the time in which its vCPU was
//! not in the guest is known: a handler that "took 5 ms" may have run for 20 us.

mod names;
mod open_handlers;
mod search;
mod sink;
mod sources;
mod sums;

use ::sources::Recording;
use timeline::Losses;
use timeline::trace_events::each_trace_event_and_names;

use self::sources::Sources;
use crate::states::{Besides, states_by};
use crate::view::View;

pub(crate) use self::search::{HandlerSearch, WithHandlers};
pub use self::sources::HandlerKind;
pub(crate) use self::sources::{IRQ_NAMES, softirq_name};
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
pub fn irqs(view: View<'_>, by: By, tick: &(dyn Fn(u64) + Sync)) -> Irqs {
    let View { recordings, guests } = view;
    let search = HandlerSearch::new(recordings, by);
    let mut sink = search.sink(guests);
    let source_of = |format: &eventfmt::EventFormat| search.source_of(format);
    let besides = Besides { handlers: Some(&source_of), ..Besides::default() };
    let (states, names) = states_by(view, besides, &mut sink, |asked| {
        each_trace_event_and_names(recordings, asked, IRQ_NAMES, tick)
    });
    search.answer(sink, (&states, &names), view)
}
