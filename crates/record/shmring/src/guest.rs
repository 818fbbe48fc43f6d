//! The agent's side of a region: lays it out, or continues an earlier agent's region.

use std::sync::Arc;

use sys::SharedMap;

use crate::control::{ByteConsumer, ByteProducer, ByteRing, Listen};
use crate::layout::{Layout, MAGIC, RegionPlan, RegionPlanError, control, header, pages, slot};
use crate::page_producer::PageProducer;
use crate::slots::Slots;

/// All ends of an agent. Each may move to its own thread; none allocates later.
#[derive(Debug)]
pub struct GuestSide {
    /// One per CPU, in order.
    pub pages: Vec<PageProducer>,
    /// The control stream to the host.
    pub to_host: ByteProducer,
    /// The control stream from the host.
    pub from_host: ByteConsumer,
    /// The agent's heartbeat.
    pub pulse: Pulse,
}

impl GuestSide {
    /// Lays out the memory as a region of the plan, and begins an epoch.
    ///
    /// A region of the same plan is not wiped: its rings continue at their positions, so that a host still gets the
    /// unread pages of the earlier agent; in `KEEP` mode none of them is overwritten.
    ///
    /// # Errors
    /// When the plan is out of bounds, or the memory too small for it.
    pub fn create(
        map: Arc<SharedMap>,
        plan: &RegionPlan,
        boot_id: [u8; 16],
    ) -> Result<Self, RegionPlanError> {
        let layout = Layout::for_plan(plan)?.within(map.len_bytes())?;
        if !can_go_on(&map, &layout) {
            lay_out(&map, &layout);
        }
        let epoch = map.load(header::EPOCH).wrapping_add(1).max(1);
        let (low, high) = boot_words(boot_id);
        map.store(header::BOOT_ID, low);
        map.store(header::BOOT_ID + 8, high);
        SharedMap::publish();
        map.store(header::EPOCH, epoch);
        let producer = |cpu| PageProducer::new(Arc::clone(&map), &layout, cpu, epoch);
        let pages = (0..plan.cpus).map(producer).collect();
        let (to_host, to_guest) = byte_rings(&layout);
        let side = Self {
            pages,
            to_host: ByteProducer::new(Arc::clone(&map), to_host),
            from_host: ByteConsumer::new(Arc::clone(&map), to_guest, Listen::To(epoch)),
            pulse: Pulse { map: Arc::clone(&map), epoch, heartbeats: 0, wake_ups: 0 },
        };
        map.store(header::STATE, RUNNING);
        SharedMap::publish();
        map.store(header::MAGIC, MAGIC);
        Ok(side)
    }
}

/// Values of the header's state word.
pub(crate) const RUNNING: u64 = 1;
const ENDED: u64 = 2;

/// The control rings to the host and to the guest.
pub(crate) fn byte_rings(layout: &Layout) -> (ByteRing, ByteRing) {
    let len_bytes = layout.plan.control_bytes;
    (
        ByteRing { ring_at: layout.to_host_at, len_bytes, peer: header::ATTACHES },
        ByteRing { ring_at: layout.to_guest_at, len_bytes, peer: header::EPOCH },
    )
}

fn boot_words(boot_id: [u8; 16]) -> (u64, u64) {
    let id = u128::from_le_bytes(boot_id);
    // The halves of 128 bits.
    (id as u64, (id >> 64) as u64)
}

fn can_go_on(map: &SharedMap, layout: &Layout) -> bool {
    map.load(header::MAGIC) == MAGIC
        && Layout::load(map).as_ref() == Ok(layout)
        && (0..layout.plan.cpus).all(|cpu| PageProducer::can_go_on(map, layout, cpu))
}

/// Wipes the old content. Without the magic number no host attaches, and an attached one notices the new generation;
/// epoch and attach count continue from their old values.
fn lay_out(map: &SharedMap, layout: &Layout) {
    map.store(header::MAGIC, 0);
    map.store(header::GENERATION, map.load(header::GENERATION).wrapping_add(1));
    SharedMap::publish();
    for at in [header::HEARTBEATS, header::WAKE_UPS, header::AGENT_NS, header::STATE] {
        map.store(at, 0);
    }
    let (to_host, to_guest) = byte_rings(layout);
    for ring in [to_host, to_guest] {
        wipe_words(map, ring.ring_at, control::TAIL + 8);
    }
    for cpu in 0..layout.plan.cpus {
        wipe_words(map, layout.page_ring_at(cpu), pages::SLOTS);
        let slots = Slots::new(layout, cpu);
        (0..slots.count()).for_each(|index| map.store(slots.word(index, slot::SEQUENCE), 0));
    }
    layout.store(map);
    SharedMap::publish();
}

fn wipe_words(map: &SharedMap, at: usize, len_bytes: usize) {
    (0..len_bytes).step_by(8).for_each(|offset| map.store(at + offset, 0));
}

/// The agent's heartbeat, in the header.
#[derive(Debug)]
pub struct Pulse {
    map: Arc<SharedMap>,
    epoch: u64,
    heartbeats: u64,
    wake_ups: u64,
}

impl Pulse {
    /// The number of this start.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Increments the heartbeat, with the guest's time on the agreed clock. False if another agent has started
    /// meanwhile: this one must stop, because both would write to the same slots.
    #[must_use]
    pub fn beat(&mut self, guest_ns: u64) -> bool {
        self.heartbeats += 1;
        self.map.store(header::AGENT_NS, guest_ns);
        self.map.store(header::HEARTBEATS, self.heartbeats);
        self.map.load(header::EPOCH) == self.epoch
    }

    /// Counts a wake-up of the agent: a cost of recording besides copying.
    pub fn woke(&mut self) {
        self.wake_ups += 1;
        self.map.store(header::WAKE_UPS, self.wake_ups);
    }

    /// Number of times that a host has attached.
    #[must_use]
    pub fn host_attaches(&self) -> u64 {
        self.map.load(header::ATTACHES)
    }

    /// Tells the host that the agent ends in order, and that no page will follow.
    pub fn end(self) {
        SharedMap::publish();
        self.map.store(header::STATE, ENDED);
    }
}
