//! Channels from a guest's agent to the host that records it, behind one interface.
//!
//! A channel has a control stream and page streams (see `wire`). A [`Stream`] of bytes carries them, whose operations
//! respect the caller's timeout: a virtio-serial port, a vsock or TCP connection, a Unix socket. The alternative is
//! memory that both sides share.

#![forbid(unsafe_code)]

mod address;
mod arrivals;
mod batch;
mod control;
mod device;
mod listener;
mod memory;
mod named_devices;
mod opening;
mod peer;
mod ports;
mod sent;
mod session_number;
mod sink;
mod stream;
#[cfg(feature = "tls")]
mod tls;
#[cfg(not(feature = "tls"))]
#[path = "no_tls.rs"]
mod tls;
mod trace_cmd;
pub mod wire;

pub use address::{AddressError, AgentAddress, HostAddress, KeyFiles, PORT};
pub use arrivals::{Arrival, Arrivals};
pub use control::{Control, Received};
pub use device::device_ranges;
pub use listener::Listener;
pub use memory::{ControlRings, GuestMemory, HostMemory, PageRing, has_shared_memory};
pub use named_devices::named_devices;
pub use opening::Opening;
pub use peer::{Fingerprint, Peer};
pub use ports::{GuestPorts, PortSockets};
pub use sent::Sent;
pub use session_number::session_number;
pub use shmring::{
    Access, Frame, FrameRing, NoFrames, PageConsumer, Pause, Poller, SharedMap, TakeFrom,
    frame_rings,
};
pub use sink::{PageSink, StreamSink};
pub use stream::{Stream, is_closed};
pub use trace_cmd::TraceCmd;
