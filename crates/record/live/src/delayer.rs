//! Lengthens chosen exits of one VM by a known time, with BPF programs in a KVM host's kernel, and counts the VM's
//! progress meanwhile.
//!
//! The programs are `bpf/delay.bpf.c`. Time is cut into slices: each delays exits of one reason by one of several
//! times, or none, in random order. So each slice has a control slice shortly before or after it. The programs
//! disappear with the [`Delayer`] or its process.

mod codes;
mod error;
mod programs;
mod slices;

pub use codes::{CodeTable, NoSuchReason};
pub use error::{DelayError, Result};
pub use programs::{DelayPlan, DelayedThread, Delayer, MAX_DELAY, SliceNumber};
pub use slices::{Progress, SlicePlan, run};

/// Max exit codes.
pub const MAX_CODES: usize = 8;
