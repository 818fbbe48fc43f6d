//! In a guest: what its host does with its vCPUs, as the host publishes it in shared memory
//! (`shmring::spans`). Shares of time by vCPU, exits by reason, the longest absences, and a recording
//! that is read together with the guest's own.
//!
//! It is part of the agent as well as of `hyperscope`, so it is small: tables and JSON lines are
//! written here, without the crates that make reports.

#![forbid(unsafe_code)]

mod absences;
mod error;
mod exits;
mod follow;
mod jsonl;
mod own_steal;
mod rate;
mod recording;
mod shares;
mod table;
mod watch;

pub use absences::Absence;
pub use error::{Result, StealError};
pub use exits::Exits;
pub use follow::Follower;
pub use shares::{Interval, VcpuShares};
pub use watch::{Format, Options, watch};
