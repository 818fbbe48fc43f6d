//! Rights of threads: the capabilities that they keep, and the system calls that they may make.
//!
//! Both belong to a thread. Threads of one process share memory, so this is no wall between them: it
//! keeps a mistake in what reads strangers' bytes from being a way to files, programs and kernel
//! interfaces at once, and it is checked by the kernel at each call.

mod calls;
mod capabilities;
mod filter;
mod thread;
mod unconfined;

pub use capabilities::{CapabilitySet, keep_only};
pub use filter::failure;
pub use thread::{Confined, apart, apart_while};
pub use unconfined::Unconfined;
