//! Machines, CPUs, threads, vCPUs and exits on one clock.
//!
//! A recording's streams are decoded in parallel ([`rounds`]), reduced to what concerns threads
//! (`extract`), put in order per thread (`lanes`) and turned into exits with parts (`vcpu`). An [`ExitSink`]
//! is given each of them:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use timeline::{ExitSink, ExitSpan, Outcome, each_exit};
//!
//! /// Time from exits to the entries after them, of all vCPUs.
//! struct TimeInExits(u64);
//!
//! impl ExitSink for TimeInExits {
//!     fn exit(&mut self, _vcpu: usize, span: &ExitSpan) {
//!         if span.outcome == Outcome::Paired {
//!             self.0 += span.end_ns - span.start_ns;
//!         }
//!     }
//! }
//!
//! let recording = sources::open("../../../fixtures/x86-svm/nested.dat".as_ref())?;
//! let pass = each_exit(&recording, false, TimeInExits(0), &|_bytes| ());
//! println!("{} vCPUs, {} ns in exits", pass.vcpus.len(), pass.sink.0);
//! # assert!(pass.sink.0 > 0);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

pub mod align;
pub mod arch;
mod buffers;
pub mod cycles;
pub mod delays;
mod event_condition;
pub mod event_filter;
mod exit_span;
mod exits;
mod extract;
mod gaps;
mod lanes;
mod least_tree;
mod load;
mod losses;
mod numbered_names;
mod poll;
pub mod reasons;
pub mod rounds;
pub mod stamps;
mod thread_batch;
mod thread_event;
pub mod trace_cmd_forms;
pub mod trace_events;
mod vcpu;
mod vcpus;
mod vms;

pub use exit_span::{Detail, ExitSpan, Handler, Outcome, Parts};
pub use exits::{ExitPass, each_exit, each_exit_and, find_vcpus, guess_vcpus, has_detail};
pub use losses::Losses;
pub use numbered_names::{NamedNumber, NumberedNames};
pub use thread_event::{Kind, KindSet};
pub use vcpu::{ExitSink, VcpuActivity};
pub use vcpus::VcpuInfo;
pub use vms::{Vm, VmVcpu, group_vms};
