//! Handlers of interrupts and soft interrupts, of hosts and guests: how often, how long, whom they interrupted, and of a
//! guest's what the host took of their time.
//!
//! A handler lasts from its `*_entry` to its `*_exit` event on the same CPU. Its own time is without handlers that
//! interrupted it, so that own times add up. Where a guest's recording lies over its host's, the time in which its vCPU was
//! not in the guest is known: a handler that "took 5 ms" may have run for 20 us.

mod names;
mod open_handlers;
mod rows;
mod sink;
mod sources;
mod sums;

use ::sources::Recording;
use timeline::Losses;
use timeline::reading::Reading;

use self::sources::Sources;
use crate::states::{HandlerSources, states_for_all};
use crate::view::View;

pub(crate) use self::sink::IrqSink;
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
    recording.formats().iter().any(|(_, format)| sources.source_of(format).is_some())
}

/// The handlers of a view's recordings; `progress` gets the number of bytes read.
#[must_use]
pub fn irqs(view: View<'_>, by: By, progress: &(dyn Fn(u64) + Sync)) -> Irqs {
    let reading = Reading::on_one_clock(view.recordings);
    let mut handlers = IrqSink::new(view, by);
    let mut names = reading.names(IRQ_NAMES);
    let states = states_for_all(view, vec![&mut handlers], (&reading, &mut [&mut names]), progress);
    handlers.answer(&states, &names.finish(), view)
}
