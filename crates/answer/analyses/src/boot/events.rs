//! Boot and shutdown events in a guest's own recording.

use std::ops::ControlFlow;

use ftrace::eventfmt::{EventFormat, NumberAt, Value};
use ftrace::ringbuf::Missed;
use raw_bytes::ByteOrder;
use sources::{Block, Damage, Recording};
use timeline::rounds::{self, Batch, Consume, Decode, Input};

use super::shutdown;
use super::sums::Add;

/// Max bytes of an event's text.
const MAX_TEXT: usize = 200;

/// A boot or shutdown event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BootEvent {
    pub(super) ns: u64,
    pub(super) thread: u32,
    /// Index of its buffer.
    buffer: usize,
    pub(super) what: BootEventKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BootEventKind {
    /// The kernel starts the initcalls of a level.
    Level(String),
    /// An initcall at this address starts.
    Start(u64),
    /// An initcall returns this result.
    Finish(u64, i64),
    /// A program starts.
    Exec(String),
    /// A thread is created.
    Fork,
    /// A module is loaded.
    Module(String),
    /// A program writes a mark.
    Mark(String),
    /// A step of a shutdown.
    Down(&'static str),
}

/// Boot events of a recording.
#[derive(Debug, Default)]
pub(super) struct BootEvents {
    pub(super) events: Vec<BootEvent>,
    /// First and last event of any kind.
    pub(super) span_ns: Option<(u64, u64)>,
    /// The buffer with the boot events; `None` means all, if no initcall was recorded.
    pub(super) buffer: Option<usize>,
}

/// Reads the boot events; `progress` receives the number of bytes read.
pub(super) fn read(guest: &Recording, progress: &(dyn Fn(u64) + Sync)) -> BootEvents {
    let reader = Reader::new(guest);
    let mut consumer = BootEventConsumer::default();
    rounds::run(&Input::on_clock_of(guest), &reader, &mut consumer, progress);
    let mut events = consumer.0;
    // Pages of one CPU are in order; CPUs and buffers are not.
    events.events.sort_by_key(|event| event.ns);
    let is_of_boot = |event: &&BootEvent| {
        matches!(event.what, BootEventKind::Level(_) | BootEventKind::Start(_))
    };
    events.buffer = events.events.iter().filter(is_of_boot).map(|event| event.buffer).min();
    if let Some(buffer) = events.buffer {
        events.events.retain(|event| event.buffer == buffer);
    }
    events
}

/// A guest's text, safe for a terminal.
pub(super) fn shown(text: &str) -> String {
    text.trim().replace(char::is_control, "\u{fffd}")
}

/// Whether a recording has events of its machine's boot or shutdown.
#[must_use]
pub fn recorded_in(recording: &Recording) -> bool {
    let mut formats = recording.formats().iter();
    formats
        .any(|(_, format)| matches!(Kind::from_format(format), Some(Kind::Start | Kind::Down(_))))
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Level,
    Start,
    Finish,
    Exec,
    Fork,
    Module,
    Mark,
    Down(&'static str),
}

impl Kind {
    fn from_format(format: &EventFormat) -> Option<Self> {
        Some(match format.name() {
            "initcall_level" => Self::Level,
            "initcall_start" => Self::Start,
            "initcall_finish" => Self::Finish,
            "sched_process_exec" => Self::Exec,
            "sched_process_fork" => Self::Fork,
            "module_load" => Self::Module,
            "print" => Self::Mark,
            name => Self::Down(shutdown::step(name)?),
        })
    }
}

struct Reader<'r> {
    order: ByteOrder,
    type_at: NumberAt,
    pid_at: NumberAt,
    by_id: Vec<Option<(Kind, &'r EventFormat)>>,
}

impl<'r> Reader<'r> {
    fn new(guest: &'r Recording) -> Self {
        let formats = guest.formats();
        let mut by_id = Vec::new();
        for (id, format) in formats.iter() {
            let Some(kind) = Kind::from_format(format) else { continue };
            by_id.resize(by_id.len().max(usize::from(id) + 1), None);
            if let Some(place) = by_id.get_mut(usize::from(id)) {
                *place = Some((kind, format));
            }
        }
        let order = guest.abi().order;
        Self { order, type_at: formats.type_at(), pid_at: formats.pid_at(), by_id }
    }

    fn read(&self, record: &[u8]) -> Option<(u32, BootEventKind)> {
        let id = usize::try_from(self.type_at.read(record, self.order)?).ok()?;
        let (kind, format) = self.by_id.get(id).copied().flatten()?;
        let thread = self.pid_at.read(record, self.order)? as u32;
        let number = |name: &str| format.field(name)?.unsigned(record, self.order);
        let text = |name: &str| match format.field(name)?.value(record, self.order)? {
            Value::Text(bytes) => {
                let bytes = bytes.get(..MAX_TEXT).unwrap_or(bytes);
                Some(shown(&String::from_utf8_lossy(bytes)))
            }
            _ => None,
        };
        let what = match kind {
            Kind::Level => BootEventKind::Level(text("level")?),
            Kind::Start => BootEventKind::Start(number("func")?),
            Kind::Finish => BootEventKind::Finish(
                number("func")?,
                format.field("ret")?.signed(record, self.order)?,
            ),
            Kind::Exec => BootEventKind::Exec(text("filename")?),
            Kind::Fork => BootEventKind::Fork,
            Kind::Module => BootEventKind::Module(text("name")?),
            Kind::Mark => BootEventKind::Mark(text("buf")?),
            Kind::Down(step) => BootEventKind::Down(step),
        };
        Some((thread, what))
    }
}

#[derive(Debug, Default)]
struct BootEventBatch(BootEvents);

impl Batch for BootEventBatch {
    fn clear(&mut self) {
        *self = Self::default();
    }

    fn last_stamp_ns(&self) -> Option<u64> {
        // Events are sorted after all of them are read.
        None
    }

    fn set_unreadable(&mut self, _: Damage) {
        // Damage is counted in [`weigh`].
    }
}

impl Decode for Reader<'_> {
    type Batch = BootEventBatch;

    fn decode(&self, _: usize, input: Input<'_>, block: &Block<'_>, batch: &mut BootEventBatch) {
        let (cpu, buffer) = (input.stream.cpu(), input.stream.buffer());
        let correction = input.recording.correction(input.stream);
        let events = &mut batch.0;
        for packet in block.packets().filter_map(|(_, packet)| packet.ok()) {
            // Damage is counted in [`weigh`].
            let _ = packet.for_each(|record| {
                let ns = correction.ns(record.stamp, cpu);
                let (first, last) = events.span_ns.unwrap_or((ns, ns));
                events.span_ns = Some((first.min(ns), last.max(ns)));
                if let Some((thread, what)) = self.read(record.payload) {
                    events.events.push(BootEvent { ns, thread, buffer, what });
                }
            });
        }
    }
}

#[derive(Debug, Default)]
struct BootEventConsumer(BootEvents);

impl Consume<BootEventBatch> for BootEventConsumer {
    fn take(&mut self, _: usize, batch: BootEventBatch) {
        let (all, new) = (&mut self.0, batch.0);
        all.events.extend(new.events);
        let spans = all.span_ns.into_iter().chain(new.span_ns);
        all.span_ns = spans.reduce(|span, other| (span.0.min(other.0), span.1.max(other.1)));
    }

    fn advance(&mut self, _: u64, _: &mut Vec<BootEventBatch>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Size of the events in a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    pub events: u64,
    /// Bytes in the kernel's buffer: payloads and their headers of four bytes.
    pub bytes: u64,
    /// Losses before a page that begins in this phase.
    pub losses: u64,
    /// Lost events that the kernel counted.
    pub lost: u64,
}

/// Min size of the header before each payload in a page.
const HEAD_BYTES: u64 = 4;

/// Weights of the events between boundaries: the first one is before the first boundary.
pub(super) fn weigh(
    guest: &Recording,
    boundaries_ns: &[u64],
    buffer: Option<usize>,
    progress: &(dyn Fn(u64) + Sync),
) -> Weights {
    let scale = Scale { boundaries_ns, buffer };
    let mut weights =
        Weights { phases: vec![Weight::default(); boundaries_ns.len() + 1], damaged: 0 };
    rounds::run(&Input::on_clock_of(guest), &scale, &mut weights, progress);
    weights
}

/// Weights by phase.
#[derive(Clone, Debug, Default)]
pub(super) struct Weights {
    pub(super) phases: Vec<Weight>,
    /// Unreadable pages and chunks.
    pub(super) damaged: u64,
}

impl Batch for Weights {
    fn clear(&mut self) {
        *self = Self::default();
    }

    fn last_stamp_ns(&self) -> Option<u64> {
        None
    }

    fn set_unreadable(&mut self, _: Damage) {
        self.damaged += 1;
    }
}

struct Scale<'b> {
    boundaries_ns: &'b [u64],
    buffer: Option<usize>,
}

impl Decode for Scale<'_> {
    type Batch = Weights;

    fn decode(&self, _: usize, input: Input<'_>, block: &Block<'_>, batch: &mut Weights) {
        let cpu = input.stream.cpu();
        if self.buffer.is_some_and(|buffer| buffer != input.stream.buffer()) {
            return;
        }
        let correction = input.recording.correction(input.stream);
        let phase = |stamp| {
            let ns = correction.ns(stamp, cpu);
            self.boundaries_ns.partition_point(|&boundary| boundary <= ns)
        };
        batch.phases.resize(self.boundaries_ns.len() + 1, Weight::default());
        for (_, packet) in block.packets() {
            let Ok(packet) = packet else {
                batch.damaged += 1;
                continue;
            };
            if let Some(weight) = batch.phases.get_mut(phase(packet.stamp)) {
                weight.losses += u64::from(packet.missed != Missed::Nothing);
                if let Missed::Events(lost) = packet.missed {
                    weight.lost = weight.lost.saturating_add(lost);
                }
            }
            let result = packet.for_each(|record| {
                if let Some(weight) = batch.phases.get_mut(phase(record.stamp)) {
                    weight.events += 1;
                    weight.bytes += record.payload.len() as u64 + HEAD_BYTES;
                }
            });
            batch.damaged += u64::from(result.is_err());
        }
    }
}

impl Consume<Self> for Weights {
    fn take(&mut self, _: usize, batch: Self) {
        self.damaged += batch.damaged;
        for (sum, new) in self.phases.iter_mut().zip(batch.phases) {
            sum.add(&new);
        }
    }

    fn advance(&mut self, _: u64, _: &mut Vec<Self>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
