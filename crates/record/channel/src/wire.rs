//! Messages between a guest's agent and the host that records it.
//!
//! This module only converts bytes to messages and back: no channel, no clock, no file. Neither side trusts the other's
//! bytes: every length is checked before memory is allocated, and invalid bytes are skipped up to the next valid
//! message.
//!
//! A recording has a *control stream*, on which the host asks and the agent answers ([`Message`]), and *page streams*
//! from the guest to the host ([`PageHead`], then unchanged pages of the guest's kernel). `docs/formats/agent.md`
//! specifies both. [`trace_cmd`] is trace-cmd's protocol for the same purpose.

#![deny(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

mod code;
mod control;
mod device;
mod event_cost;
mod fields;
mod message;
mod pages;
mod samples;
mod text;
pub mod trace_cmd;
mod view;

pub use code::{CodePiece, CodeRequest, MAX_CODE_BYTES};
pub use control::{ControlDecoder, MAX_PAYLOAD_BYTES, encode};
pub use device::{
    DeviceRange, MAX_DEVICE_NAME_BYTES, MAX_DEVICE_RANGES, MAX_NAMED_DEVICES, MAX_RANGES_OF_ONE,
    NamedDevice,
};
pub use event_cost::{CostRound, EventCost, MAX_COST_ROUNDS};
pub use message::{
    CpuCounts, CpuEnd, EventFilter, GuestHello, Message, Start, Started, Status, TracedFunctions,
};
pub use pages::{MAX_PAGES_BYTES, PAGE_HEAD_BYTES, PageDecoder, PageHead, Piece};
pub use samples::{SampleEvent, SampleFile, SamplePart, SampleRequest, SamplesEnd};
pub use text::{Text, TextKind};
pub use view::{
    CpuUse, GuestView, MAX_TASK_NAME_BYTES, MAX_VIEW_CPUS, MAX_VIEW_TASKS, TaskUse, ViewRequest,
};

/// Version of the protocol; both sides must have the same.
pub const VERSION: u16 = 2;
