//! One module per question asked of a timeline.
//!
//! An analysis computes numbers from a recording; the crate `report` formats them. The question names the module,
//! its function, and the type of the result:
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
//! | question | modules |
//! |---|---|
//! | exits and their cost | [`exits`], [`group`], [`tally`], [`distribution`], [`device_exits`], [`exit_question`] |
//! | exits over time, single exits, heat maps | [`over_time`], [`each_exit`], [`latencies`], [`lanes`] |
//! | nested guests | [`nested`], [`nested_steps`], [`nested_touches`] |
//! | CPU usage, and the code that ran | [`states`], [`cpu`], [`profile`], [`calls`], [`boot`] |
//! | reasons of waits, work of VMMs | [`path`], [`critical`], [`virtio`], [`vmm`] |
//! | causes, comparisons, and advice | [`why`], [`diff`], [`ab`], [`advice`] |
//! | contents of a recording | [`contents`], [`recorded`], [`known_parts`], [`vms`], [`align`], [`hypertrace`] |
//! | names of numbers | [`reasons`], [`msr_names`] |
//!
//! Most analyses are an [`ExitSink`](timeline::ExitSink), or a sink of selected trace events in the order of time
//! ([`timeline::trace_events`]); `docs/howto/add-an-analysis.md` walks through one.
//!
//! # How the larger analyses work
//!
//! **Comparisons** ([`diff`]). A comparable report is a `Question`: key columns, metrics, and a function that
//! measures one run as groups of `Series`, sums and durations in at most 128 slices of time. `grid` doubles the
//! slice width when a run turns out longer, so memory is bounded and no events are stored. `estimate` resamples
//! the slices of a run, `compare` compares the sides, and the crate `stats` has the mathematics.
//!
//! **States** ([`states`]). A guest's own events are overlaid on the vCPU states from the host: a guest event
//! belongs to the nearest time in the guest, but at most the alignment's bound away. Events farther away are
//! ignored. A `StateSink` receives each span as soon as it is final.
//!
//! **Paths** ([`path`]). Each thread has the requests that it works on (`follow`). A wake-up passes them on
//! (`sched`), an exit begins a request and an entry ends it (`vcpus`), and the thread's work in between makes the
//! steps (`work`, `io`, `guest`). A request is its last step and a link to the steps before it (`chain`), so paths
//! fork without copies.
//!
//! **Waits** ([`critical`]) are followed backwards. `follow` stores the history of threads, CPUs and vCPUs since
//! the pending waits began (`history`), and the interrupts in which threads were woken (`context`). When a waiting
//! thread runs again, `walk` goes back to the beginning of the wait with a stack of waiting threads. Each step
//! assigns the time before it to one part (`piece`), so parts always add up.
//!
//! **Boots** ([`boot`]). `follow` makes phases and initcalls from a guest's few boot events, and `initcalls` finds
//! the section of each initcall in the kernel's symbols. Their starts and ends cut time into segments. One pass
//! over the guest's pages sums its events by segment, one pass over the host's exits sums those of all guests, and
//! a phase is a sum of segments (`sums`).
//!
//! **Calls** ([`calls`]). `stack` has the open functions of a thread by recorded depth; `follower` has the
//! threads, and closes calls that a loss may affect; `tree` stores distinct stacks up to a limit.
//!
//! **The page** needs two analyses for its drawings: [`latencies`] counts exits on a grid that coarsens with the
//! length of the recording, and [`lanes`] stores a limited number of spans and merges short neighbours beyond
//! that.

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
mod longest_span;
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
