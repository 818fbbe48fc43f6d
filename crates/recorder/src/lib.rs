//! Records the kernel's trace of a KVM host into a session.
//!
//! A recording has an instance of tracefs of its own: what others trace goes on, and nothing of it
//! is left when it ends. Pages go from the kernel's buffers to files without being looked at.

mod assemble;
mod clock;
mod error;
mod events;
mod instance;
mod losses;
mod pages_folder;
mod probes;
mod pump;
mod recording;
mod session;
mod tracefs;
mod vms;

pub use error::{RecordError, Result};
pub use events::Profile;
pub use losses::CpuLosses;
pub use recording::{Plan, Progress, Recording, clean_up, holds_recording};
pub use session::Recorded;
pub use vms::{Vcpu, Vm, running};
