//! The host's side of a region: checks the guest's layout once, and watches the agent.

use std::sync::Arc;

use sys::SharedMap;

use crate::control::{ByteConsumer, ByteProducer, Listen};
use crate::guest::{RUNNING, byte_rings};
use crate::layout::{ALIGN, Layout, LayoutError, MAGIC, RegionPlan, header};
use crate::page_consumer::{Begin, PageConsumer};
use crate::poll::Poller;

/// Why attaching failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttachError {
    /// The memory is too small for the header.
    #[error("{0} bytes are too few for a region")]
    TooShort(usize),
    /// No agent has laid the memory out yet, or one is just doing so.
    #[error("no agent has started in this memory yet")]
    NotReady,
    /// The memory has another content.
    #[error("the memory does not hold a region: its first word is {0:#x}")]
    NoRegion(u64),
    /// The header has an invalid layout.
    #[error("the region's header is invalid")]
    Layout(#[from] LayoutError),
}

/// All ends of a host. Each may move to its own thread; none allocates later.
#[derive(Debug)]
pub struct HostSide {
    /// One per CPU, in order.
    pub pages: Vec<PageConsumer>,
    /// The control stream from the guest.
    pub from_guest: ByteConsumer,
    /// The control stream to the guest.
    pub to_guest: ByteProducer,
    /// The agent's state.
    pub watch: Watch,
}

impl HostSide {
    /// Attaches to a region where the last host detached. Only one host may be attached at a time; a lock on the file
    /// can guarantee that.
    ///
    /// # Errors
    /// When there is no valid region.
    pub fn attach(map: Arc<SharedMap>) -> Result<Self, AttachError> {
        let (layout, generation) = layout(&map)?;
        let attaches = map.load(header::ATTACHES).wrapping_add(1).max(1);
        map.store(header::ATTACHES, attaches);
        Ok(Self::new(&map, &layout, generation, Begin::WhereLeft, Listen::To(attaches)))
    }

    /// Opens a region whose guest is gone, or that no host has read: page rings start at their oldest page, the control
    /// stream at its oldest byte. A region that is mapped read-only stays unchanged.
    ///
    /// # Errors
    /// When there is no valid region.
    pub fn post_mortem(map: Arc<SharedMap>) -> Result<Self, AttachError> {
        let (layout, generation) = layout(&map)?;
        Ok(Self::new(&map, &layout, generation, Begin::Oldest, Listen::Any))
    }

    fn new(
        map: &Arc<SharedMap>,
        layout: &Layout,
        generation: u64,
        begin: Begin,
        listen: Listen,
    ) -> Self {
        let consumer = |cpu| PageConsumer::new(Arc::clone(map), layout, cpu, generation, begin);
        let (to_host, to_guest) = byte_rings(layout);
        let epoch = map.load(header::EPOCH);
        map.store(header::FOLLOWED, epoch);
        Self {
            pages: (0..layout.plan.cpus).map(consumer).collect(),
            from_guest: ByteConsumer::new(Arc::clone(map), to_host, listen),
            to_guest: ByteProducer::new(Arc::clone(map), to_guest),
            watch: Watch { map: Arc::clone(map), plan: layout.plan, generation, epoch },
        }
    }
}

/// The region's layout, and its generation.
fn layout(map: &SharedMap) -> Result<(Layout, u64), AttachError> {
    if map.len_bytes() < ALIGN {
        return Err(AttachError::TooShort(map.len_bytes()));
    }
    let generation = map.load(header::GENERATION);
    match map.load(header::MAGIC) {
        MAGIC => {}
        0 => return Err(AttachError::NotReady),
        other => return Err(AttachError::NoRegion(other)),
    }
    let layout = Layout::load(map)?;
    if map.load(header::GENERATION) != generation {
        return Err(AttachError::NotReady);
    }
    Ok((layout, generation))
}

/// The agent's state, as the guest reports it, unchecked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Number of the agent's starts.
    pub epoch: u64,
    /// The boot of its start: the guest's /proc/sys/kernel/random/boot_id.
    pub boot_id: [u8; 16],
    /// Number of heartbeats.
    pub heartbeats: u64,
    /// Guest's time of the last heartbeat.
    pub guest_ns: u64,
    /// Number of wake-ups.
    pub wake_ups: u64,
    /// False once it has ended in order; a killed agent leaves it true.
    pub is_running: bool,
}

/// A change of the agent since the last check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// No change.
    None,
    /// It restarted with the same plan. The rings continue: pages of both epochs come in order, and each has its epoch.
    Restarted { epoch: u64 },
    /// It restarted and laid the region out again. Unread pages are lost, and this side gets nothing more; attach
    /// again.
    Replaced,
}

/// Watches the agent, and shows the guest the host's activity.
#[derive(Debug)]
pub struct Watch {
    map: Arc<SharedMap>,
    plan: RegionPlan,
    generation: u64,
    epoch: u64,
}

impl Watch {
    /// The region's plan, as checked when attaching.
    #[must_use]
    pub fn plan(&self) -> RegionPlan {
        self.plan
    }

    /// The agent's current state.
    #[must_use]
    pub fn agent(&self) -> Agent {
        let word = |at| self.map.load(at);
        let low = u128::from(word(header::BOOT_ID));
        let high = u128::from(word(header::BOOT_ID + 8));
        Agent {
            epoch: word(header::EPOCH),
            boot_id: (low | high << 64).to_le_bytes(),
            heartbeats: word(header::HEARTBEATS),
            guest_ns: word(header::AGENT_NS),
            wake_ups: word(header::WAKE_UPS),
            is_running: word(header::STATE) == RUNNING,
        }
    }

    /// Whether the agent has restarted since the last call, or since this side attached.
    pub fn change(&mut self) -> Change {
        if self.map.load(header::GENERATION) != self.generation {
            return Change::Replaced;
        }
        let epoch = self.map.load(header::EPOCH);
        if epoch == self.epoch {
            return Change::None;
        }
        self.epoch = epoch;
        self.map.store(header::FOLLOWED, epoch);
        Change::Restarted { epoch }
    }

    /// Shows the guest how often the host has polled and slept.
    pub fn publish_polls(&self, poller: &Poller) {
        self.map.store(header::POLLS, poller.polls());
        self.map.store(header::SLEEPS, poller.sleeps());
    }
}
