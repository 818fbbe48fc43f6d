//! The queues: sums of each, and the buffers that it has.

use std::collections::BTreeMap;

use raw_bytes::ByteOrder;
use rustc_hash::FxHashMap;

use super::buffers::AddedBuffer;
use super::disk_names::disk_name;
use super::events::Call;
use crate::by_recording::ByRecording;
use crate::distribution::Distribution;

/// Queues that are kept apart, of all guests together.
const MAX_QUEUES: usize = 1 << 14;
/// Buffers that are remembered while the device has them, of all queues together: times of others are not known.
const MAX_BUFFERS: usize = 1 << 20;

/// Disks of one queue that are told apart.
const MAX_DISKS: usize = 64;

/// A queue: its recording, and the lower half of its address in the guest.
type QueueKey = (u16, u64);

/// What a queue did.
#[derive(Clone, Debug, Default)]
pub struct VirtQueue {
    /// Index of the guest's recording.
    pub recording: usize,
    /// The device's name in the guest (`virtio0`), where that was recorded.
    pub device: Option<String>,
    /// The name that the driver gave the queue (`input.0`).
    pub name: Option<String>,
    /// The disks that it is of, as the guest's kernel calls them (`vda`); none: it is of none, or that was not recorded.
    pub disks: Vec<String>,
    /// Lower half of its address in the guest.
    pub vq: u64,
    /// Buffers that were handed to the device, each of one or more lists of parts.
    pub added: u64,
    /// Lists that the device reads, and that it writes.
    pub lists: [u64; 2],
    /// Bytes of those; `None`: not recorded.
    pub bytes: Option<[u64; 2]>,
    /// Buffers some of whose bytes were not recorded: then `bytes` are too few.
    pub cut: u64,
    /// Buffers that were taken back.
    pub taken_back: u64,
    /// Bytes that the device says it wrote into those; `None`: not recorded.
    pub written: Option<u64>,
    /// Notifications of the host.
    pub kicks: u64,
    /// Times that the host didn't have to be notified though there was something new.
    pub kicks_avoided: u64,
    /// Interrupts that were the queue's.
    pub interrupts: u64,
    /// From handing a buffer over to taking it back.
    pub latencies: Distribution,
    /// Buffers that the device has at a time; `None` where events were lost.
    pub depth: Option<VirtQueueDepth>,
}

/// Buffers that a device has at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VirtQueueDepth {
    /// On average over time.
    pub mean: f64,
    /// At most.
    pub max: u64,
}

/// Whose queue it is, where a layer above the driver says how many bytes it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Driver {
    Disk,
    Network,
}

/// What a call returned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Returned {
    pub(super) call: Call,
    /// The token of the buffer that is taken back, or whether it was so.
    pub(super) value: u64,
    /// Bytes of that buffer that the device says it wrote.
    pub(super) written: Option<u64>,
}

/// A queue whose events still come.
#[derive(Debug, Default)]
struct Live {
    sums: VirtQueue,
    /// Numbers of the disks that its requests were for, and how many.
    disks: BTreeMap<u32, u64>,
    /// Buffers more than at the beginning, of which nothing is known but what comes back.
    level: i64,
    greatest: i64,
    /// The level over time: its sum, and since when.
    level_ns: i128,
    first_ns: Option<u64>,
    last_ns: u64,
    /// Buffers that came back though they were not seen going: the device had them at the beginning.
    before: u64,
    /// Losses of its recording before its first event.
    losses_before: u64,
}

impl Live {
    fn change(&mut self, at_ns: u64, by: i64) {
        let since_ns = at_ns.saturating_sub(self.last_ns);
        if self.first_ns.is_some() {
            self.level_ns += i128::from(self.level) * i128::from(since_ns);
        }
        self.first_ns.get_or_insert(at_ns);
        self.last_ns = at_ns.max(self.last_ns);
        self.level = self.level.saturating_add(by);
        self.greatest = self.greatest.max(self.level);
    }

    /// A request was for that disk.
    fn for_disk(&mut self, disk: u32) {
        if self.disks.len() < MAX_DISKS || self.disks.contains_key(&disk) {
            *self.disks.entry(disk).or_default() += 1;
        }
    }

    /// Names of its disks. A queue of virtio-blk has one: that of most requests, as a thread may begin some of several
    /// disks before it hands them over.
    fn disks(&self) -> Vec<String> {
        let Some(queue) = &self.sums.name else { return Vec::new() };
        let most = self.disks.iter().max_by_key(|(_, count)| **count).map(|(disk, _)| *disk);
        let is_its = |disk: u32| !queue.starts_with("req.") || Some(disk) == most;
        let disks = self.disks.keys().copied().filter(|disk| is_its(*disk));
        disks.filter_map(|disk| disk_name(queue, disk)).collect()
    }

    /// `losses`: how many its recording has.
    fn depth(&self, losses: u64) -> Option<VirtQueueDepth> {
        let over_ns = self.last_ns.saturating_sub(self.first_ns?);
        let mean = self.level_ns as f64 / (over_ns as f64).max(1.0) + self.before as f64;
        let max = u64::try_from(self.greatest.saturating_add_unsigned(self.before)).unwrap_or(0);
        (losses == self.losses_before).then_some(VirtQueueDepth { mean: mean.max(0.0), max })
    }
}

#[derive(Debug)]
pub(super) struct Queues {
    /// By recording.
    orders: Vec<ByteOrder>,
    live: BTreeMap<QueueKey, Live>,
    /// When buffers were handed over that the device has, by queue and token.
    away: ByRecording<(u64, u64), u64>,
    /// By recording, how often events of it were missing.
    losses: FxHashMap<u16, u64>,
}

impl Queues {
    pub(super) fn new(orders: Vec<ByteOrder>) -> Self {
        Self {
            orders,
            live: BTreeMap::new(),
            away: ByRecording::default(),
            losses: FxHashMap::default(),
        }
    }

    fn queue(&mut self, key: QueueKey) -> Option<&mut Live> {
        if self.live.len() >= MAX_QUEUES && !self.live.contains_key(&key) {
            return None;
        }
        let losses_before = self.losses.get(&key.0).copied().unwrap_or(0);
        let new = || Live { losses_before, ..Live::default() };
        Some(self.live.entry(key).or_insert_with(new))
    }

    /// Whose queue a buffer goes to, by the name that drivers give theirs: those of disks `req.0`, `request`, that of a
    /// network `output.0`.
    pub(super) fn driver(&self, recording: u16, buffer: &AddedBuffer) -> Option<Driver> {
        let name = buffer.names.and_then(|[name, _]| text(name, self.order(recording)))?;
        if name.starts_with("req") {
            return Some(Driver::Disk);
        }
        name.starts_with("output.").then_some(Driver::Network)
    }

    fn order(&self, recording: u16) -> ByteOrder {
        self.orders.get(usize::from(recording)).copied().unwrap_or(ByteOrder::Little)
    }

    /// A buffer is handed over, of a request for that disk.
    pub(super) fn add(
        &mut self,
        recording: u16,
        at_ns: u64,
        buffer: &AddedBuffer,
        disk: Option<u32>,
    ) {
        let key = (recording, buffer.vq);
        let order = self.order(recording);
        let Some(queue) = self.queue(key) else { return };
        queue.change(at_ns, 1);
        disk.into_iter().for_each(|disk| queue.for_disk(disk));
        let sums = &mut queue.sums;
        sums.added += 1;
        sums.cut += u64::from(buffer.is_cut);
        add_to(&mut sums.lists, buffer.lists);
        if let Some(bytes) = buffer.bytes {
            add_to(sums.bytes.get_or_insert_default(), bytes);
        }
        if let Some([name, device]) = buffer.names.filter(|_| sums.name.is_none()) {
            (sums.name, sums.device) = (text(name, order), text(device, order));
        }
        if self.away.len() < MAX_BUFFERS {
            self.away.set((recording, (buffer.vq, buffer.token)), at_ns);
        }
    }

    /// A call returned for a queue.
    pub(super) fn returned(&mut self, key: QueueKey, at_ns: u64, returned: Returned) {
        let Returned { call, value, written } = returned;
        let since_ns = match call {
            Call::Get if value != 0 => self.away.take((key.0, (key.1, value))),
            _ => None,
        };
        let Some(queue) = self.queue(key) else { return };
        match call {
            Call::Get if value == 0 => {}
            Call::Get => {
                queue.change(at_ns, -1);
                queue.sums.taken_back += 1;
                if let Some(bytes) = written {
                    let sum = queue.sums.written.get_or_insert_default();
                    *sum = sum.saturating_add(bytes);
                }
                match since_ns {
                    Some(since_ns) => queue.sums.latencies.add(at_ns.saturating_sub(since_ns)),
                    None => queue.before += 1,
                }
            }
            Call::KickPrepare if value == 0 => queue.sums.kicks_avoided += 1,
            Call::KickPrepare => queue.sums.kicks += 1,
            Call::Interrupt => queue.sums.interrupts += u64::from(value != 0),
        }
    }

    /// Events of a recording are missing: which buffers devices have is not known from here on.
    pub(super) fn lost(&mut self, recording: u16) {
        self.away.forget(recording);
        *self.losses.entry(recording).or_default() += 1;
    }

    /// The queues that did anything, by recording, device and name.
    pub(super) fn finish(self) -> Vec<VirtQueue> {
        let queue = |((recording, vq), live): (QueueKey, Live)| {
            let losses = self.losses.get(&recording).copied().unwrap_or(0);
            let (depth, disks) = (live.depth(losses), live.disks());
            VirtQueue { recording: usize::from(recording), vq, depth, disks, ..live.sums }
        };
        let did = |queue: &VirtQueue| {
            let sums =
                [queue.added, queue.taken_back, queue.kicks, queue.kicks_avoided, queue.interrupts];
            sums.iter().any(|sum| *sum > 0)
        };
        let mut queues: Vec<VirtQueue> = self.live.into_iter().map(queue).filter(did).collect();
        let natural = |name: &Option<String>| name.as_ref().map(|name| (name.len(), name.clone()));
        queues.sort_by_cached_key(|queue| {
            let is_nameless = queue.name.is_none();
            (queue.recording, is_nameless, natural(&queue.device), natural(&queue.name), queue.vq)
        });
        queues
    }
}

fn add_to(sums: &mut [u64; 2], more: [u64; 2]) {
    sums.iter_mut().zip(more).for_each(|(sum, addend)| *sum = sum.saturating_add(addend));
}

/// A name of at most 16 characters that is given as two numbers.
fn text(numbers: [u64; 2], order: ByteOrder) -> Option<String> {
    let bytes = numbers.map(|number| match order {
        ByteOrder::Little => number.to_le_bytes(),
        ByteOrder::Big => number.to_be_bytes(),
    });
    let bytes = bytes.concat();
    let name = raw_bytes::slice::until_nul(&bytes);
    (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned())
}
