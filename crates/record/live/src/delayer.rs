//! Makes chosen exits of one VM longer by a known time, by BPF programs in a KVM host's kernel, and counts
//! what the VM gets done meanwhile.
//!
//! The programs are `bpf/delay.bpf.c`. Time is cut into slices: in each, exits of one reason are delayed by
//! one of several times, or none is, in an order by chance. So a slice has its control a moment before and
//! after it. Nothing of the programs stays when the [`Delayer`], or its process, is gone.

mod codes;
mod error;
mod programs;
mod slices;

pub use codes::{CodeTable, NoSuchReason};
pub use error::{DelayError, Result};
pub use programs::{DelayPlan, DelayedThread, Delayer, MAX_DELAY, SliceNumber};
pub use slices::{Progress, SlicePlan, run};

/// Codes of exits that there is room for.
pub const MAX_CODES: usize = 8;
