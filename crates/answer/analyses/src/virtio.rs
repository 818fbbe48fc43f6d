//! Virtqueues as the guest sees them: buffers, bytes, kicks, interrupts, and times of buffers in the device.
//!
//! The events are probes of the guest's kernel (`record --guest-kprobe @virtio`): buffers added and returned, and
//! calls and returns of the notify function. A buffer's time is from its addition to its return. Tokens identify
//! buffers: they are unique in a queue at any time.

mod buffers;
mod by_thread;
mod disk_names;
mod disk_requests;
mod events;
mod packets;
mod queues;

use ftrace::eventfmt::EventFormat;
use sources::Recording;
use timeline::Losses;
use timeline::reading::each_trace_event;
use timeline::trace_events::{EventRequest, Gap, TraceEvent, TraceEventSink, WantsTraceEvents};

use self::buffers::AddedBuffer;
use self::disk_requests::{DiskRequest, DiskRequests};
use self::events::{Kind, Parts, is_of_queue, kind, wanted};
use self::packets::Packets;
use self::queues::{Driver, Queues, Returned};
pub use self::queues::{VirtQueue, VirtQueueDepth};
use crate::view::View;

/// Activity of virtqueues in some guests.
#[derive(Clone, Debug, Default)]
pub struct Virtio {
    /// Active queues by recording, device and name.
    pub queues: Vec<VirtQueue>,
    /// By recording: from its first event to its last.
    pub spans_ns: Vec<Option<(u64, u64)>>,
    /// VM names by guest's recording.
    pub vms: Vec<Option<String>>,
    /// By recording.
    pub losses: Vec<Losses>,
    /// Whether any recording has the necessary events.
    pub is_recorded: bool,
    /// Whether times are nanoseconds.
    pub nanoseconds: bool,
}

/// Activity of virtqueues in the guests of `view`. `progress` receives the number of bytes read.
#[must_use]
pub fn virtio(view: View<'_>, progress: &(dyn Fn(u64) + Sync)) -> Virtio {
    let View { recordings, guests } = view;
    let mut sink = VirtioSink::new(recordings);
    let pass = each_trace_event(recordings, &mut sink, progress);
    let vm = |at: usize| {
        guests.iter().find(|alignment| alignment.guest == at).map(|alignment| alignment.vm.clone())
    };
    Virtio {
        queues: sink.queues.finish(),
        vms: (0..recordings.len()).map(vm).collect(),
        spans_ns: pass.spans_ns,
        losses: pass.losses,
        is_recorded: sink.with_queues.contains(&true),
        nanoseconds: recordings.iter().all(Recording::is_nanoseconds),
    }
}

/// Joins events that come in several parts, or as a call and its return.
struct VirtioSink {
    /// By recording: whether it has events of queues.
    with_queues: Vec<bool>,
    queues: Queues,
    parts: Parts,
    disk_requests: DiskRequests,
    packets: Packets,
}

impl VirtioSink {
    fn new(recordings: &[Recording]) -> Self {
        let has_queues = |recording: &Recording| {
            recording.formats().iter().any(|(_, format)| is_of_queue(format))
        };
        let orders = recordings.iter().map(|recording| recording.abi().order).collect();
        Self {
            with_queues: recordings.iter().map(has_queues).collect(),
            queues: Queues::new(orders),
            parts: Parts::default(),
            disk_requests: DiskRequests::default(),
            packets: Packets::default(),
        }
    }

    /// The driver adds a buffer to a queue.
    fn add(&mut self, event: &TraceEvent, mut buffer: AddedBuffer) {
        let key = (event.recording, event.thread);
        let disk = match self.queues.driver(event.recording, &buffer) {
            Some(Driver::Disk) => self.disk_requests.complete(key, &mut buffer),
            Some(Driver::Network) => {
                self.packets.complete(key, &mut buffer);
                None
            }
            None => None,
        };
        self.queues.add(event.recording, event.stamp_ns, &buffer, disk);
    }
}

impl WantsTraceEvents for VirtioSink {
    fn wanted(&self, at: usize, format: &EventFormat) -> Option<EventRequest> {
        wanted(format).filter(|_| self.with_queues.get(at) == Some(&true))
    }
}

impl TraceEventSink for VirtioSink {
    fn event(&mut self, event: &TraceEvent) {
        let at_ns = event.stamp_ns;
        match kind(event.tag) {
            Some(Kind::Add) => {
                if let Some(fields) = self.parts.complete(event)
                    && let Some(buffer) = AddedBuffer::from_fields(&fields)
                {
                    self.add(event, buffer);
                }
            }
            Some(Kind::Call(call)) => {
                if let Some(vq) = event.value(0) {
                    self.parts.call(event, call, vq);
                }
            }
            Some(Kind::Return(call)) => {
                if let Some((vq, value)) = self.parts.returned(event, call).zip(event.value(0)) {
                    let returned = Returned { call, value, written: event.value(1) };
                    self.queues.returned((event.recording, vq), at_ns, returned);
                }
            }
            Some(Kind::DiskRequest) => {
                let key = (event.recording, event.thread);
                if let Some(bytes) = event.value(0) {
                    let disk = event.value(1).and_then(|dev| u32::try_from(dev).ok());
                    self.disk_requests.begin(key, DiskRequest { bytes, disk });
                }
            }
            Some(Kind::Packet) => {
                if let Some((bytes, elsewhere)) = event.value(0).zip(event.value(1)) {
                    self.packets.begin((event.recording, event.thread), bytes, elsewhere);
                }
            }
            None => {}
        }
    }

    fn gap(&mut self, gap: &Gap) {
        self.parts.lost(gap.recording);
        self.disk_requests.lost(gap.recording);
        self.packets.lost(gap.recording);
        self.queues.lost(gap.recording);
    }
}
