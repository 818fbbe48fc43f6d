//! The program inside a guest that records it on its host's behalf.
//!
//! It waits for a host on its channel, says what this machine is, and does what the host asks for,
//! which is tracing and nothing else: no message names a program or a file. Pages go from the
//! kernel's buffers to the channel without being looked at.
//!
//! It says how this machine sees itself, to hosts that look at their VMs live. Without a host it shows what one
//! publishes about this guest's vCPUs.

#![forbid(unsafe_code)]

mod admission;
mod allowed;
mod answer;
mod confined;
mod error;
mod event_cost;
mod files;
mod guard;
mod leave;
mod link;
mod machine;
mod probe_sets;
mod pump;
mod recording;
mod samples;
mod shown;
mod struct_layouts;
mod texts;
pub mod trace_cmd;
mod view;
mod watchers;

pub use allowed::Allowed;
pub use answer::serve;
pub use confined::confined;
pub use error::{AgentError, Result};
pub use files::{ToFolder, record};
pub use guard::{Guard, guard};
pub use link::Link;
pub use shown::show_steal;
pub use steal_viewer::{Format, Options};
