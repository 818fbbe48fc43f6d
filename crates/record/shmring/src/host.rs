//! The host's side of a region: checks what the guest declares, once, and watches the agent.

use std::sync::Arc;

use sys::SharedMap;

use crate::control::{ByteConsumer, ByteProducer, Listen};
use crate::guest::{RUNNING, byte_rings};
use crate::layout::{ALIGN, Layout, LayoutError, MAGIC, RegionPlan, header};
use crate::page_consumer::{Begin, PageConsumer};
use crate::poll::Poller;

/// Memory that can't be attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttachError {
    /// Not even the header has room.
    #[error("{0} bytes are too few for a region")]
    TooShort(usize),
    /// No agent has laid the memory out, or one is just doing so.
    #[error("no agent has started in this memory yet")]
    NotReady,
    /// The memory holds something else.
    #[error("the memory does not hold a region: its first word is {0:#x}")]
    NoRegion(u64),
    /// The header declares what can't be.
    #[error("the region's header is invalid")]
    Layout(#[from] LayoutError),
}

/// All ends that a host has. Each may go to a thread of its own; none allocates any more.
#[derive(Debug)]
pub struct HostSide {
    /// One for each CPU, in their order.
    pub pages: Vec<PageConsumer>,
    /// The control stream from the guest.
    pub from_guest: ByteConsumer,
    /// The control stream to the guest.
    pub to_guest: ByteProducer,
    /// What the agent says of itself.
    pub watch: Watch,
}

impl HostSide {
    /// Attaches to a region where the last host left it. There may be one host at a time; a lock on
    /// the file is a way to make sure.
    ///
    /// # Errors
    /// When there is no sound region.
    pub fn attach(map: Arc<SharedMap>) -> Result<Self, AttachError> {
        let (layout, generation) = layout(&map)?;
        let attaches = map.load(header::ATTACHES).wrapping_add(1).max(1);
        map.store(header::ATTACHES, attaches);
        Ok(Self::new(&map, &layout, generation, Begin::WhereLeft, Listen::To(attaches)))
    }

    /// Opens a region whose guest is gone, or that nobody has listened to: page rings begin at their
    /// oldest page, the control stream at its oldest byte. Mapped for reading only, a region stays as
    /// it was found.
    ///
    /// # Errors
    /// When there is no sound region.
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

/// The layout that the region declares, and the number of the laying out it is of.
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

/// What the agent says of itself. From the guest, unchecked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Counts the agent's starts.
    pub epoch: u64,
    /// The boot in which it started: /proc/sys/kernel/random/boot_id of the guest.
    pub boot_id: [u8; 16],
    /// Counts its beats.
    pub heartbeats: u64,
    /// The guest's time of the last beat.
    pub guest_ns: u64,
    /// Counts its wake-ups.
    pub wake_ups: u64,
    /// False once it has ended in order; one that was killed has not said so.
    pub is_running: bool,
}

/// What became of the agent since the last look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    None,
    /// It started again, with the same plan. The rings continue: pages of both epochs come in order,
    /// and each names its own.
    Restarted {
        /// The new epoch.
        epoch: u64,
    },
    /// It started again and laid the region out again. What was not taken is gone, this side gets
    /// nothing more; attach again.
    Replaced,
}

/// Watches the agent, and shows the guest what the host does.
#[derive(Debug)]
pub struct Watch {
    map: Arc<SharedMap>,
    plan: RegionPlan,
    generation: u64,
    epoch: u64,
}

impl Watch {
    /// The region's plan, as checked when it was attached to.
    #[must_use]
    pub fn plan(&self) -> RegionPlan {
        self.plan
    }

    /// What the agent says of itself now.
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

    /// Whether the agent has started again since the last call, or since this side attached.
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
