//! Handlers of interrupts and soft interrupts on hosts and guests: counts, durations, interrupted threads, and the
//! host's share of a guest handler's time.
//!
//! A handler lasts from its `*_entry` to its `*_exit` event on the same CPU. Its own time excludes nested
//! handlers, so own times add up. If a guest's recording is aligned with its host's, time in which the vCPU was
//! not in the guest is separate: a handler that "took 5 ms" may have run for 20 us.

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

/// How handlers of a machine are grouped into rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A handler on all CPUs.
    Handler,
    /// A handler on one CPU.
    Cpu,
    /// A handler while one thread was current on the CPU.
    Thread,
}

/// Handlers of one kind and name.
#[derive(Clone, Debug)]
pub struct HandlerRow {
    /// Index of the recording.
    pub recording: usize,
    pub kind: HandlerKind,
    /// Interrupt or soft interrupt number; `None` if it has none.
    pub number: Option<u64>,
    /// The handler's name for an interrupt; the kernel's name for a soft interrupt or a vector.
    pub name: Option<String>,
    /// The CPU; set for [`By::Cpu`].
    pub cpu: Option<u32>,
    /// Id and name of the interrupted thread; set for [`By::Thread`].
    pub thread: Option<(u32, Option<String>)>,
    pub sums: HandlerSums,
}

/// Interrupt handlers in recordings read together.
#[derive(Debug)]
pub struct Irqs {
    /// Rows by machine, then by own time, descending.
    pub rows: Vec<HandlerRow>,
    /// Machine names by recording.
    pub machines: Vec<String>,
    /// First and last time by recording.
    pub spans_ns: Vec<Option<(u64, u64)>>,
    /// By recording: whether it has events of handlers.
    pub is_recorded: Vec<bool>,
    /// Ends of handlers without a start: they began before the recording or during a loss.
    pub ends_alone: u64,
    /// Handlers without a row, because there were too many rows.
    pub left_out: u64,
    /// By recording.
    pub losses: Vec<Losses>,
    /// Whether times are nanoseconds.
    pub nanoseconds: bool,
}

/// Whether a recording can have events of handlers, according to its formats.
#[must_use]
pub fn has_handlers(recording: &Recording) -> bool {
    let sources = Sources::new(std::slice::from_ref(recording));
    recording.formats().iter().any(|(_, format)| sources.source_of(format).is_some())
}

/// Interrupt handlers in the recordings of `view`; `progress` receives the number of bytes read.
#[must_use]
pub fn irqs(view: View<'_>, by: By, progress: &(dyn Fn(u64) + Sync)) -> Irqs {
    let reading = Reading::on_one_clock(view.recordings);
    let mut handlers = IrqSink::new(view, by);
    let mut names = reading.names(IRQ_NAMES);
    let states = states_for_all(view, vec![&mut handlers], (&reading, &mut [&mut names]), progress);
    handlers.answer(&states, &names.finish(), view)
}
