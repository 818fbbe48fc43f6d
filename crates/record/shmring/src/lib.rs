//! Rings of pages and of bytes in memory that a guest and its host share: plain loads and stores, no doorbell, no exit.
//!
//! ```text
//!  guest: GuestSide::create                    host: HostSide::attach
//!    pages[cpu]  PageProducer ── page ring ──▶ PageConsumer  pages[cpu]
//!    to_host     ByteProducer ── bytes ──────▶ ByteConsumer  from_guest
//!    from_host   ByteConsumer ◀────── bytes ── ByteProducer  to_guest
//!    pulse       Pulse ───────── header ─────▶ Watch         watch
//! ```
//!
//! The guest finds the memory with [`shared_memory_devices`], the host has it as a file. Neither side waits for the
//! other. The host trusts nothing: the layout is checked once and kept outside the shared memory, positions are checked
//! each time, and arbitrary writes of the guest can only make pages missing or their bytes wrong. The content of a page
//! stays untrusted.
//!
//! docs/formats/shared-memory.md specifies the region byte by byte. The same memory also has, after the region, a
//! host's reports to its guest about the guest's vCPUs ([`spans`]), and frames of a kernel module ([`frame_rings`]).

#![forbid(unsafe_code)]

mod control;
mod frames;
mod guest;
mod host;
mod ivshmem;
mod layout;
mod page_consumer;
mod page_producer;
mod parts;
mod poll;
mod slots;
pub mod spans;

pub use control::{ByteConsumer, ByteProducer, Received, Sent};
pub use frames::{Frame, FrameRing, NoFrames, TakeFrom, frame_rings};
pub use guest::{GuestSide, Pulse};
pub use host::{Agent, AttachError, Change, HostSide, Watch};
pub use ivshmem::{PCI_DEVICES, SharedMemoryDevice, shared_memory_devices};
pub use layout::{
    CONTROL_BYTES, LayoutError, MAX_CPUS, MAX_SLOTS, Mode, PAGE_BYTES, RegionPlan, RegionPlanError,
};
pub use page_consumer::{PageConsumer, ProducerLosses, TakenPage, Totals, Written};
pub use page_producer::{Filled, PageProducer, Slot};
pub use parts::agent_bytes;
pub use poll::{Pause, Poller};
pub use sys::{Access, SharedMap};
