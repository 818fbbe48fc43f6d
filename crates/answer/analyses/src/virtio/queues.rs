//! Sums per queue, and its buffers in the device.

use std::collections::BTreeMap;

use raw_bytes::ByteOrder;
use rustc_hash::FxHashMap;

use super::buffers::AddedBuffer;
use super::disk_names::disk_name;
use super::events::Call;
use crate::by_recording::ByRecording;
use crate::distribution::Distribution;

/// Max queues of all guests together.
const MAX_QUEUES: usize = 1 << 14;
/// Max buffers in devices, of all queues together: further ones have no times.
const MAX_BUFFERS: usize = 1 << 20;

/// Max disks per queue.
const MAX_DISKS: usize = 64;

/// A queue: index of its recording, and the lower half of its address in the guest.
type QueueKey = (u16, u64);

/// Activity of a queue.
#[derive(Clone, Debug, Default)]
pub struct VirtQueue {
    /// Index of the guest's recording.
    pub recording: usize,
    /// The device's name in the guest (`virtio0`), if it was recorded.
    pub device: Option<String>,
    /// The driver's name of the queue (`input.0`).
    pub name: Option<String>,
    /// Names of its disks in the guest (`vda`); empty if it has none, or if they were not recorded.
    pub disks: Vec<String>,
    /// Lower half of its address in the guest.
    pub vq: u64,
    /// Buffers added to the queue, each with one or more lists of parts.
    pub added: u64,
    /// Numbers of out and in lists.
    pub lists: [u64; 2],
    /// Bytes of out and in lists; `None` if they were not recorded.
    pub bytes: Option<[u64; 2]>,
    /// Buffers with incomplete lengths: their missing bytes are not in `bytes`.
    pub cut: u64,
    /// Buffers that the device returned.
    pub taken_back: u64,
    /// Bytes that the device wrote according to its used ring; `None` if they were not recorded.
    pub written: Option<u64>,
    pub kicks: u64,
    /// New buffers without a notification, because the host did not need one.
    pub kicks_avoided: u64,
    /// Interrupts of this queue.
    pub interrupts: u64,
    /// Times from adding a buffer to its return.
    pub latencies: Distribution,
    /// Number of buffers in the device; `None` after a loss.
    pub depth: Option<VirtQueueDepth>,
}

/// Number of buffers in the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VirtQueueDepth {
    /// Average over time.
    pub mean: f64,
    pub max: u64,
}

/// Kind of a queue's driver, for queues with byte counts from a layer above the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Driver {
    Disk,
    Network,
}

/// Return of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Returned {
    pub(super) call: Call,
    /// Token of the returned buffer, or the call's boolean result.
    pub(super) value: u64,
    /// Bytes that the device wrote into that buffer.
    pub(super) written: Option<u64>,
}

/// A queue during the pass.
#[derive(Debug, Default)]
struct Live {
    sums: VirtQueue,
    /// Number of requests by disk.
    disks: BTreeMap<u32, u64>,
    /// Buffers in the device, relative to the unknown number at the start.
    level: i64,
    greatest: i64,
    /// Integral of the level over time; its start is `first_ns`.
    level_ns: i128,
    first_ns: Option<u64>,
    last_ns: u64,
    /// Buffers that returned without an addition: the device had them at the start.
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

    /// Counts a request for a disk.
    fn for_disk(&mut self, disk: u32) {
        if self.disks.len() < MAX_DISKS || self.disks.contains_key(&disk) {
            *self.disks.entry(disk).or_default() += 1;
        }
    }

    /// Names of its disks. A virtio-blk queue has one disk: the most frequent one, because a thread can start
    /// requests for several disks before it adds them.
    fn disks(&self) -> Vec<String> {
        let Some(queue) = &self.sums.name else { return Vec::new() };
        let most = self.disks.iter().max_by_key(|(_, count)| **count).map(|(disk, _)| *disk);
        let is_its = |disk: u32| !queue.starts_with("req.") || Some(disk) == most;
        let disks = self.disks.keys().copied().filter(|disk| is_its(*disk));
        disks.filter_map(|disk| disk_name(queue, disk)).collect()
    }

    /// `losses` is the number of losses of its recording.
    fn depth(&self, losses: u64) -> Option<VirtQueueDepth> {
        let over_ns = self.last_ns.saturating_sub(self.first_ns?);
        let mean = self.level_ns as f64 / (over_ns as f64).max(1.0) + self.before as f64;
        let max = u64::try_from(self.greatest.saturating_add_unsigned(self.before)).unwrap_or(0);
        (losses == self.losses_before).then_some(VirtQueueDepth { mean: mean.max(0.0), max })
    }
}

#[derive(Debug)]
pub(super) struct Queues {
    /// Byte orders by recording.
    orders: Vec<ByteOrder>,
    live: BTreeMap<QueueKey, Live>,
    /// Addition times of buffers in devices, by queue and token.
    away: ByRecording<(u64, u64), u64>,
    /// Number of losses by recording.
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

    /// Kind of driver, by the name of the queue: disks have `req.0` or `request`, networks have `output.0`.
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

    /// A buffer is added to a queue, for a request of `disk`.
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

    /// A call for a queue returns.
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

    /// Handles a loss: afterwards the buffers in devices are unknown.
    pub(super) fn lost(&mut self, recording: u16) {
        self.away.forget(recording);
        *self.losses.entry(recording).or_default() += 1;
    }

    /// Active queues by recording, device and name.
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

/// A name of at most 16 characters from two numbers.
fn text(numbers: [u64; 2], order: ByteOrder) -> Option<String> {
    let bytes = numbers.map(|number| match order {
        ByteOrder::Little => number.to_le_bytes(),
        ByteOrder::Big => number.to_be_bytes(),
    });
    let bytes = bytes.concat();
    let name = raw_bytes::slice::until_nul(&bytes);
    (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned())
}
