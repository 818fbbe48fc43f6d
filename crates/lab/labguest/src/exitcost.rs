//! The cost of exits: causes exits of each kind, and counts their cycles.
//!
//! There are two ways. A *tiny machine* over `/dev/kvm` executes one instruction in a loop, without an operating
//! system. A program in a *guest* causes those exits that user space can cause.

#![deny(clippy::print_stdout, clippy::print_stderr)]
#![cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, reason = "other processors are refused, with the same texts and types")
)]

mod ablation;
mod ablation_sheet;
mod exit_counts;
mod kind;
mod measure;
mod measure_options;
mod sheet;
mod toggle;
mod undo;

#[cfg(target_arch = "x86_64")]
mod counters;
#[cfg(target_arch = "x86_64")]
mod guest;
#[cfg(target_arch = "x86_64")]
mod host;
#[cfg(target_arch = "x86_64")]
mod machine;
#[cfg(target_arch = "x86_64")]
mod payload;
#[cfg(target_arch = "x86_64")]
mod runs;
#[cfg(target_arch = "x86_64")]
mod server;
#[cfg(target_arch = "x86_64")]
mod steps;
#[cfg(target_arch = "x86_64")]
mod vm;
#[cfg(target_arch = "x86_64")]
mod waker;

pub use ablation::ablate;
pub use ablation_sheet::{AblationOptions, AblationSheet, StepSheet};
pub use exit_counts::{ExitCounts, ReasonCount, end_exit_counts, exit_counts};
pub use kind::Kind;
pub use measure::measure;
pub use measure_options::MeasureOptions;
pub use sheet::{ExitSource, HandledBy, Row, Sheet, System};
pub use toggle::Toggle;
