//! Publishes to a guest, over the memory it shares with its host, what the host does with the guest's vCPUs: their
//! exits, and when they are preempted.
//!
//! ```text
//!  tracefs instance, filtered to one VM's vCPU threads
//!    ─▶ LiveTraceEvents ─▶ VcpuCycles ─▶ spans on the guest's TSC ─▶ shmring::spans ─▶ the guest
//! ```
//!
//! Only guests that the operator names ([`PublishOptions`]) get spans, each only of its own vCPUs: the kernel filters
//! events of other threads out of the instance, the memory must be mapped by that VM and no other, and the thread that
//! took a vCPU's place is published only as one of three kinds. The publisher never waits for a guest, and trusts
//! nothing in its memory.

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
