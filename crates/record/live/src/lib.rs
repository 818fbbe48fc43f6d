//! The accounting of `hyperscope exits` inside the kernel of a KVM host, interval by interval: BPF programs accumulate
//! exits, and no events are streamed.
//!
//! ```text
//!  bpf/live.bpf.c ─▶ programs ─▶ Snapshot ─▶ Interval ─▶ a table, JSON, metrics
//!  rows in two banks,   layout     as read      names, differences
//!  a state per vCPU
//! ```
//!
//! The end of an interval is set before that time comes, and each exit belongs to the interval of its `kvm_entry` on
//! the kernel's own clock. So intervals have no gaps and no overlaps, however late they are read. [`Snapshot`],
//! [`Interval`] and their parts do not depend on BPF.
//!
//! `bpf/live.bpf.c` implements the state machine of the timeline's `vcpu` in the kernel: a change of how exits are
//! accounted changes both. `live_sums.h` has rows, buckets and banks, `live_state.h` a vCPU's thread, `live_takers.h`
//! the threads that ran on a CPU while a vCPU waited for it, `live_x86.h` and `live_arm64.h` an exit's reason.
//! `programs` loads them and empties maps, `layout` decodes the maps' bytes, `accounting` ends intervals. `viewer`
//! shows intervals, `metrics` sums them for Prometheus, and `guest_views` asks agents for the guests' view of the same
//! intervals.

#![forbid(unsafe_code)]

mod accounting;
mod condition;
pub mod delayer;
mod error;
mod figures;
pub mod guest_views;
mod histogram;
mod interval;
mod layout;
pub mod metrics;
mod owners;
mod programs;
mod reasons;
mod snapshot;
mod states;
mod sums;
pub mod viewer;

pub use accounting::{Accounting, Limits};
pub use condition::{Condition, Held, NoCondition};
pub use error::{LiveError, Result};
pub use figures::{Change, Changes, ExitFigures, History, ReasonOf};
pub use histogram::{BUCKETS, Histogram};
pub use interval::{By, Cost, Interval, LeftOut, RanInstead, Row, Vcpu};
pub use programs::host_isa;
pub use reasons::reason_names;
pub use snapshot::{RowKey, Snapshot, Taker, VcpuState};
pub use states::{ACTIVITIES, States};
pub use sums::Sums;
