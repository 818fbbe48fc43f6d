//! Machines, CPUs, threads, vCPUs and exits on one clock.
//!
//! A recording's streams are decoded in parallel ([`rounds`]), reduced to what concerns threads
//! (`extract`), put in order per thread (`lanes`) and turned into exits with parts (`vcpu`).

#![forbid(unsafe_code)]

pub mod align;
pub mod arch;
mod buffers;
pub mod cycles;
mod exit_span;
mod exits;
mod extract;
mod gaps;
mod lanes;
mod losses;
mod poll;
pub mod rounds;
pub mod stamps;
mod thread_batch;
mod thread_event;
pub mod trace_events;
mod vcpu;
mod vcpus;
mod vms;

pub use exit_span::{Detail, ExitSpan, Handler, Outcome, Parts};
pub use exits::{ExitPass, each_exit, each_exit_and, has_detail};
pub use losses::Losses;
pub use thread_event::{Kind, KindSet};
pub use vcpu::{ExitSink, VcpuActivity};
pub use vcpus::VcpuInfo;
pub use vms::{Vm, VmVcpu, group_vms};
