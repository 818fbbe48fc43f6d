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
//! // Called with the bytes read, for whoever shows progress.
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
//! | what differs, and what helps | [`diff`], [`ab`], [`advice`] |
//! | what a recording has | [`contents`], [`recorded`], [`known_parts`], [`vms`], [`align`], [`hypertrace`] |
//! | what numbers are called | [`reasons`], [`msr_names`] |
//!
//! Most are an [`ExitSink`](timeline::ExitSink) or a sink of the trace's few events in order of time
//! ([`timeline::trace_events`]); `docs/howto/add-an-analysis.md` goes through one.

#![forbid(unsafe_code)]

pub mod ab;
pub mod advice;
pub mod align;
pub mod boot;
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
pub mod group;
pub mod hypertrace;
pub mod irqs;
pub mod known_parts;
pub mod lanes;
pub mod latencies;
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
pub mod virtio;
pub mod vmm;
pub mod vms;

pub use stats::{Comparison, Estimate};
pub use timeline::arch::Isa;
