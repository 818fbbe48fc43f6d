//! Publishes to a guest, over the memory it shares with its host, what the host does with the guest's vCPUs:
//! their exits, and when they are kept from running.
//!
//! ```text
//!  tracefs instance, filtered to one VM's vCPU threads
//!    ─▶ LiveTraceEvents ─▶ VcpuCycles ─▶ spans on the guest's TSC ─▶ shmring::spans ─▶ the guest
//! ```
//!
//! Only guests that the operator names ([`PublishOptions`]) get anything, and each of them its own vCPUs alone:
//! the kernel keeps events of other threads out of the instance, the memory is checked to be mapped by
//! that VM and no other, and who took a vCPU's place is given as one of three kinds. Nothing a guest does
//! is waited for, and of its memory nothing is believed.

#![forbid(unsafe_code)]

mod error;
mod guest_clock;
mod names;
mod permission;
mod publisher;
mod spans;
mod trace;

pub use error::{PublishError, Result};
pub use publisher::{PublishOptions, Publisher, Summary};
