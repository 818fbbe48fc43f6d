//! Records the kernel's trace of a KVM host into a session.
//!
//! A recording has an instance of tracefs of its own: what others trace continues, and nothing of it
//! is left when it ends. Pages go from the kernel's buffers to files without being looked at.

#![forbid(unsafe_code)]

mod assemble;
mod clean_up;
mod coming_guests;
mod ending;
mod error;
pub mod flight;
mod flusher;
mod guest;
mod guests;
mod host_identity;
mod hypercalls;
mod listen;
mod losses;
mod module;
mod page_events;
mod pages_folder;
mod pending_guests;
mod plan;
mod pump;
mod quota;
mod recording;
mod relation;
mod samples;
mod session;
mod session_folder;
mod session_number;
mod task;
mod trace_cmd;
mod tracer;

pub use clean_up::{Finished, clean_up, finish_left_overs};
pub use ending::{Stop, USUAL_GUEST_WAIT};
pub use error::{RecordError, Result};
pub use folder::{Modes, Observer, Operation};
pub use guest::{EventCostSummary, GuestCpu, GuestSummary};
pub use guests::{InGuests, USUAL_QUOTA_BYTES};
pub use host_identity::HostIdentity;
pub use hypercalls::{CollectorSummary, Hypercalls};
pub use listen::{ListenEvent, ListenPlan, Listening};
pub use losses::CpuLosses;
pub use module::ModuleSummary;
pub use plan::{NESTED_WRITES, RecordPlan};
pub use recording::{Progress, Recording};
pub use sampler::SampledEvent;
pub use samples::{CodeSummary, EarlierSummary, SamplerSummary, Sampling};
pub use session::Recorded;
pub use session_folder::SessionFolder;
pub use tracefs::{FunctionTracer, Profile};
pub use tracer::TracerSummary;
pub use wire::DeviceRange;
