//! The program inside a guest that records it for its host.
//!
//! It waits for a host on its channel, identifies this machine, and executes the host's requests. Requests only concern
//! tracing: no message names a program or a file. Pages go from the kernel's buffers to the channel unread.
//!
//! For hosts that watch their VMs live, it also answers with this machine's view of itself. Without a recording host,
//! it shows the vCPU activity that a host publishes.

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
