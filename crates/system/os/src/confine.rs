//! Restricts threads: their capabilities, and their system calls.
//!
//! Both are per thread. Threads of a process share memory, so this is not a boundary between them.
//! But it prevents that a bug in code that reads untrusted bytes gives direct access to files,
//! programs and kernel interfaces, and the kernel enforces it at each call.

mod calls;
mod capabilities;
mod filter;
mod thread;
mod unconfined;

pub use capabilities::{CapabilitySet, keep_only};
pub use filter::failure;
pub use thread::{Confined, apart, apart_while};
pub use unconfined::Unconfined;
