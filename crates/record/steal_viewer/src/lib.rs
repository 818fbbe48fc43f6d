//! Shows in a guest what its host does with its vCPUs, from the host's spans in shared memory (`shmring::spans`):
//! shares of time by vCPU, exits by reason, the longest absences, and a recording to read together with the guest's
//! own.
//!
//! The agent links it as well as `hyperscope`, so it is small: it writes tables and JSON lines without the report
//! crates.

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
