//! Events as recorded, not ordered across CPUs: for formats that need no order or sort by
//! themselves.

use std::ops::ControlFlow;

use ftrace::eventfmt::EventFormat;
use ftrace::ringbuf::{Missed, Record};
use raw_bytes::ByteOrder;
use sources::{Block, Damage, Recording};
use timeline::rounds::{self, Batch, Consume, Decode, Input};

#[derive(Clone, Copy, Debug)]
pub struct RawEvent<'a> {
    /// Index of its recording.
    pub recording: usize,
    /// The CPU that recorded it.
    pub cpu: u32,
    /// Its corrected time.
    pub stamp_ns: u64,
    /// The thread that ran.
    pub thread: u32,
    pub format: &'a EventFormat,
    /// Its bytes.
    pub payload: &'a [u8],
    pub order: ByteOrder,
}

/// Receives events, those of each CPU in order.
pub(crate) trait RawSink: Send {
    fn event(&mut self, event: &RawEvent<'_>);

    /// Reports that events of a CPU were lost before this time.
    fn lost(&mut self, recording: usize, cpu: u32, stamp_ns: u64, missed: Missed);
}

/// Gives `sink` all `wanted` events, and the losses.
pub(crate) fn each_raw<S: RawSink>(
    recordings: &[Recording],
    wanted: &dyn Fn(usize, &EventFormat) -> bool,
    sink: &mut S,
    progress: &(dyn Fn(u64) + Sync),
) {
    let mut inputs = Vec::new();
    let mut owners = Vec::new();
    for (owner, recording) in recordings.iter().enumerate() {
        for input in Input::on_clock_of(recording) {
            inputs.push(input);
            owners.push(owner);
        }
    }
    let formats = |(at, recording): (usize, &'_ Recording)| {
        let formats = recording.formats().iter();
        let mut ids = vec![false; 1 << 16];
        for (id, _) in formats.filter(|(_, format)| wanted(at, format)) {
            if let Some(is_wanted) = ids.get_mut(usize::from(id)) {
                *is_wanted = true;
            }
        }
        ids
    };
    let decoder =
        Decoder { owners: &owners, wanted: recordings.iter().enumerate().map(formats).collect() };
    let mut consumer =
        Consumer { recordings, inputs: &inputs, owners: &owners, sink, spent: vec![] };
    rounds::run(&inputs, &decoder, &mut consumer, progress);
}

/// An event in a batch; its bytes end at `end`.
#[derive(Debug)]
struct BatchedEvent {
    stamp_ns: u64,
    thread: u32,
    id: u16,
    end: usize,
}

/// The wanted events of a block.
#[derive(Debug, Default)]
struct RawBatch {
    events: Vec<BatchedEvent>,
    bytes: Vec<u8>,
    lost: Vec<(u64, Missed)>,
    last_ns: Option<u64>,
}

impl Batch for RawBatch {
    fn clear(&mut self) {
        self.events.clear();
        self.bytes.clear();
        self.lost.clear();
        self.last_ns = None;
    }

    fn last_stamp_ns(&self) -> Option<u64> {
        self.last_ns
    }

    // The pass over states counts these.
    fn set_unreadable(&mut self, _: Damage) {}
}

struct Decoder<'o> {
    owners: &'o [usize],
    /// By recording and event id, whether it is wanted.
    wanted: Vec<Vec<bool>>,
}

impl Decode for Decoder<'_> {
    type Batch = RawBatch;

    fn decode(&self, index: usize, input: Input<'_>, block: &Block<'_>, batch: &mut RawBatch) {
        let Some(wanted) = self.owners.get(index).and_then(|&owner| self.wanted.get(owner)) else {
            return;
        };
        let (recording, cpu) = (input.recording, input.stream.cpu());
        let (order, formats) = (recording.abi().order, recording.formats());
        let (type_at, pid_at) = (formats.type_at(), formats.pid_at());
        let correction = recording.correction(input.stream);
        for (_, packet) in block.packets() {
            let Ok(packet) = packet else { continue };
            let page_ns = correction.ns(packet.stamp, cpu);
            batch.last_ns = batch.last_ns.max(Some(page_ns));
            if packet.missed != Missed::Nothing {
                batch.lost.push((page_ns, packet.missed));
            }
            // The pass over states counts damage.
            let _ = packet.for_each(|Record { stamp, payload }| {
                let stamp_ns = correction.ns(stamp, cpu);
                batch.last_ns = batch.last_ns.max(Some(stamp_ns));
                let id = type_at.read(payload, order).unwrap_or(0) as u16;
                if wanted.get(usize::from(id)) == Some(&true) {
                    batch.bytes.extend_from_slice(payload);
                    let thread = pid_at.read(payload, order).unwrap_or(0) as u32;
                    batch.events.push(BatchedEvent {
                        stamp_ns,
                        thread,
                        id,
                        end: batch.bytes.len(),
                    });
                }
            });
        }
    }
}

struct Consumer<'r, 's, S> {
    recordings: &'r [Recording],
    inputs: &'r [Input<'r>],
    owners: &'r [usize],
    sink: &'s mut S,
    spent: Vec<RawBatch>,
}

impl<S: RawSink> Consume<RawBatch> for Consumer<'_, '_, S> {
    fn take(&mut self, input: usize, batch: RawBatch) {
        let owner = self.owners.get(input).copied().unwrap_or(0);
        let (Some(recording), Some(stream)) =
            (self.recordings.get(owner), self.inputs.get(input).map(|input| input.stream))
        else {
            return;
        };
        for (stamp_ns, missed) in &batch.lost {
            self.sink.lost(owner, stream.cpu(), *stamp_ns, *missed);
        }
        let mut begin = 0;
        for &BatchedEvent { stamp_ns, thread, id, end } in &batch.events {
            let payload = batch.bytes.get(begin..end).unwrap_or(&[]);
            begin = end;
            let Some(format) = recording.formats().by_id(id) else { continue };
            let (cpu, order) = (stream.cpu(), recording.abi().order);
            let event =
                RawEvent { recording: owner, cpu, stamp_ns, thread, format, payload, order };
            self.sink.event(&event);
        }
        self.spent.push(batch);
    }

    fn advance(&mut self, _: u64, spent: &mut Vec<RawBatch>) -> ControlFlow<()> {
        spent.append(&mut self.spent);
        ControlFlow::Continue(())
    }
}
