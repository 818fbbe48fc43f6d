//! Machines, CPUs, threads, vCPUs and exits on one clock.
//!
//! A recording's streams are decoded in parallel ([`rounds`]), reduced to events of threads
//! (`extract`), ordered per thread (`lanes`) and converted to exits with parts (`vcpu`). An
//! [`ExitSink`] receives each exit:
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
//!
//! # From records to exits without a global merge
//!
//! A recording has one *stream* per CPU and buffer. A stream consists of *blocks* (compressed
//! chunks, or a few hundred KiB of stored pages) that can be decoded independently. A text report
//! merges all events of all CPUs by time, which is its slowest step. Exits do not need that merge:
//! an exit happens on one thread.
//!
//! **Rounds** ([`rounds`]). A round decodes the next blocks of the streams that lag behind, in
//! parallel. Everything before the *horizon*, the earliest time that some stream has not reached
//! yet, is complete and can be consumed. Meanwhile the next round is decoded. A round and the items
//! beyond the horizon bound the memory.
//!
//! ```text
//! CPU 0  ████████████████░░░░        █ decoded   ░ decoded in the next round
//! CPU 1  ██████████░░░░░░░░░░
//!                  ▲ horizon: everything before it is complete
//! ```
//!
//! **One reading, several tasks** ([`reading`]). Sinks say which events they want. A [`reading::Reading`] reads and unpacks each
//! block once for a list of tasks; each task decodes the block with code compiled for it alone.
//!
//! **Extraction** (`extract`, [`arch`]). A decoder turns each relevant event into a `ThreadEvent` of 24 bytes: time, thread,
//! kind, value. One table per architecture lists the events and the names of their fields in each kernel. Formats, byte
//! orders and field names end here; other events are skipped by their id.
//!
//! **Lanes** (`lanes`). Within a stream, the events of one thread come in runs, because the scheduler gave it the CPU for a
//! while. The runs of a thread from all streams, sorted by their first time, are its history; only overlapping runs are
//! merged event by event. If several buffers hold the same exits, one of them is used (`buffers`).
//!
//! ```text
//! CPU 0  AAAA BB AAAA              thread A: AAAA │ AAAA │ AAA
//! CPU 1  CC      BBBB AAA          thread B: BB │ BBBB
//! ```
//!
//! **vCPUs** (`vcpu`, `poll`). One state machine per thread opens an [`ExitSpan`] at `kvm_exit`, assigns all time to one
//! part (kernel, user space, runnable, blocked), subtracts halt polling that `kvm_vcpu_wakeup` reports, tracks the nested
//! level, and closes the span at `kvm_entry`. After a loss on a CPU that the thread may have used, an open span has no time.
//!
//! **Order across machines.** States over time need one order of events of all machines. [`trace_events`] gives the few relevant
//! events in that order; [`cycles`] feeds them to the same state machine, so that states and exits cannot disagree. A sink that
//! only adds up needs no order of all CPUs: `cycles::by_thread` feeds each vCPU from its lane. A test compares both ways on all
//! fixtures and on random histories.
//!
//! **Clocks** ([`align`]) relates a guest's clock to its host's from the times in which a vCPU was out of the guest and the times
//! of the guest's events: `search` keeps possible offsets as intervals, `lines` possible lines as a polygon, and `solve` follows
//! them and finds where they break.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

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
pub mod reading;
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
pub use exits::{ExitPass, each_exit, find_vcpus, guess_vcpus, has_detail};
pub use losses::Losses;
pub use numbered_names::{NamedNumber, NumberedNames};
pub use thread_event::{Kind, KindSet};
pub use vcpu::{ExitSink, VcpuActivity};
pub use vcpus::VcpuInfo;
pub use vms::{Vm, VmVcpu, group_vms};
