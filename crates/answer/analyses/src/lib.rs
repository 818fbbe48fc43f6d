//! One module per question asked of a timeline.
//!
//! An analysis takes a recording and gives numbers; how they look is for `report` to say. The question is the
//! name of the module, of its function, and of the type that answers it:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use analyses::exits::exits;
//! use analyses::group::By;
//!
//! let path = "../../../fixtures/x86-svm/nested.dat";
//! let recording = sources::open(path.as_ref())?;
//! // Called with the number of bytes read, to show progress.
//! let progress = |_bytes| ();
//! let found = exits(&recording, &[By::Level, By::Reason], &progress);
//! for row in found.rows.iter().take(3) {
//!     let reason = &row.group.reason;
//!     println!("{reason:?}: {} exits, {} ns", row.tally.count, row.tally.durations.sum());
//! }
//! # assert!(found.rows.len() > 3);
//! # Ok(())
//! # }
//! ```
//!
//! | asked | modules |
//! |---|---|
//! | which exits, and what they cost | [`exits`], [`group`], [`tally`], [`distribution`], [`device_exits`], [`exit_question`] |
//! | when: over time, one by one, in a heat map | [`over_time`], [`each_exit`], [`latencies`], [`lanes`] |
//! | nested guests | [`nested`], [`nested_steps`], [`nested_touches`] |
//! | who had the CPUs, and did what | [`states`], [`cpu`], [`profile`], [`calls`], [`boot`] |
//! | why somebody waited, and what VMMs do | [`path`], [`critical`], [`virtio`], [`vmm`] |
//! | what is wrong, what differs, and what helps | [`why`], [`diff`], [`ab`], [`advice`] |
//! | what a recording has | [`contents`], [`recorded`], [`known_parts`], [`vms`], [`align`], [`hypertrace`] |
//! | what numbers are called | [`reasons`], [`msr_names`] |
//!
//! Most are an [`ExitSink`](timeline::ExitSink) or a sink of the trace's few events in order of time
//! ([`timeline::trace_events`]); `docs/howto/add-an-analysis.md` goes through one.
//!
//! # How the larger analyses work
//!
//! **Comparisons** ([`diff`]). A report that can be compared is a `Question`: key columns, metrics, and a function that measures
//! one run as groups of `Series`, sums and durations in at most 128 slices of time. `grid` doubles the slices when a run turns
//! out longer, so memory is bounded and no events are kept. `estimate` resamples the slices of a run, `compare` compares the
//! sides, and the crate `stats` has the mathematics.
//!
//! **States** ([`states`]). A guest's own events are laid over the vCPU's states of the host: a guest event belongs to the nearest
//! time in the guest, at most as far away as the bound of the clocks' alignment. An event farther away proves nothing. A
//! `StateSink` receives each span as soon as it is certain.
//!
//! **Paths** ([`path`]). Each thread has the requests that it works on (`follow`). A wake-up hands them on (`sched`), an exit begins
//! a request and an entry ends one (`vcpus`), and what a thread does in between is a step (`work`, `io`, `guest`). A request is its
//! last step and a link to the steps before it (`chain`), so paths fork without copies.
//!
//! **Waits** ([`critical`]) are followed backwards. `follow` keeps what threads, CPUs and vCPUs did since the pending waits began
//! (`history`), and in which interrupt a thread was woken (`context`). When a waiting thread runs again, `walk` goes back to the
//! beginning of the wait with a stack of who waits for whom. Each step assigns the time before it to one part (`piece`), so parts
//! always add up.
//!
//! **Boots** ([`boot`]). `follow` makes phases and initcalls from a guest's few boot events, and `initcalls` finds each one's section in
//! the kernel's symbols. Their beginnings and ends cut time into segments. One pass over the guest's pages sums its events by
//! segment, one pass over the host's exits sums those of all guests, and a phase is a sum of segments (`sums`).
//!
//! **Calls** ([`calls`]). `stack` holds the functions that a thread is in, by the depths that the kernel recorded; `follower` knows the
//! threads and ends what a loss may have touched; `tree` keeps stacks apart up to a bound.
//!
//! **The page** needs two analyses for its drawings: [`latencies`] counts exits on a grid that coarsens with the length of the
//! recording, and [`lanes`] keeps a bounded number of spans and merges short neighbours beyond that.

#![forbid(unsafe_code)]

pub mod ab;
pub mod advice;
pub mod align;
pub mod boot;
mod by_recording;
pub mod calls;
pub mod contents;
pub mod cpu;
pub mod critical;
pub mod device_exits;
pub mod diff;
pub mod distribution;
pub mod each_exit;
pub mod exit_question;
pub mod exits;
mod extent;
pub mod group;
pub mod hypertrace;
pub mod irqs;
pub mod known_parts;
pub mod lanes;
pub mod latencies;
mod loss_log;
pub mod machine_names;
pub mod msr_names;
pub mod nested;
pub mod nested_steps;
pub mod nested_touches;
pub mod over_time;
pub mod path;
pub mod processor;
pub mod profile;
pub mod recorded;
pub mod recorders;
pub mod sensitivity;
pub mod states;
pub mod tally;
pub mod view;
pub mod virtio;
pub mod vmm;
pub mod vms;
pub mod why;

pub use stats::{Comparison, Estimate};
pub use timeline::arch::Isa;
